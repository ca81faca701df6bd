//! Packs the bodies of stored answers with a dictionary of what answers have in common.
//!
//! A write spends most of its time on committing its rows. If the answer were not packed, it would
//! be most of what a write stores for the idempotency key. An answer that is sealed is not packed.

use lz4_flex::block::{compress_prepend_size_with_dict, decompress_size_prepended_with_dict};

use crate::kernel::StoreError;

/// The texts that answers share. Never edit it, because stored answers were packed with it: another
/// dictionary needs another form beside `idempotency::BodyForm::Packed`.
const DICTIONARY: &[u8] = br#"{"object":"error","errors":[{"code":"parameter_value_invalid","message":"","metadata":{"field_name":""}}],"http_status_code":400}{"object":"refund","id":"refund_01","transfer_id":"transfer_01","kind":"principal","status":"requires_address","reason":"payout_failed","amount":"0.00","asset":"USDT","chain":"tron","to_address":null,"transaction_hash":null,"completed_at":null,"created":17,"livemode":false}{"object":"deposit","id":"deposit_01","transfer_id":"transfer_01","status":"initialized","amount":".00","currency":"USDT","asset":"USDT","chain":"tron","from_address":"TJCx4A1XzNvy32sqbmi86xcURjRi1Etver","to_address":"T","transaction_hash":"","log_index":0,"block_number":null,"block_time":null,"confirmations":0,"classification":null,"reason_code":null,"completed_at":null,"created":17,"livemode":false}{"object":"beneficiary","id":"beneficiary_01","name":"","account_number_last4":"","ifsc":"","account_type":"nre","status":"verifying","payouts_enabled":false,"payouts_disabled_reason":"verification_pending","bank_name":null,"branch_name":null,"email":null,"phone":null,"pan_last4":null,"passport_number_last4":null,"requirements":[],"verification":{"name_match":null,"checked_at":null},"metadata":{},"created":17,"livemode":false}{"object":"sender","id":"sender_01","name":"","type":"individual","country":"","email":null,"address":{"line1":"","city":"","state":null,"postal_code":null,"country":""},"date_of_birth":null,"nationality":null,"identification":null,"metadata":{},"created":17,"livemode":false}{"object":"quote_lock","id":"quote_lock_01","status":"active","sell_currency":"USD","sell_amount":".00","buy_currency":"INR","buy_amount":"","amount":".00","rate":"","mid_market_rate":"","fee":{"amount":"0.00","currency":"USD","details":[]},"expires_at":17,"transfer_id":null,"metadata":{},"created":17,"livemode":false}{"object":"transfer","id":"transfer_01","status":"funding","status_reason":null,"sender_id":"sender_01","beneficiary_id":"beneficiary_01","quote_lock_id":"quote_lock_01","amount":".00","currency":"USD","payout_amount":"","payout_currency":"INR","rate":"","fee":{"amount":"0.00","currency":"USD","details":[]},"purpose_code":"P1301","funding":{"rail":"stablecoin","asset":"USDT","chain":"tron","deposit_address":"T","status":"awaiting_funds","amount_expected":".00","amount_received":"0.00","amount_excess":"0.00","expires_at":17,"refund_address":null,"policy":{"underpaid":"hold","overpaid":"refund_excess","late":"hold"},"token_contract":"TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf","instructions_url":"https://"},"payout":null,"refund":null,"status_history":[{"status":"funding","at":17}],"metadata":{},"created":17,"livemode":false}"#;

/// The longest body that is unpacked, in bytes. Every answer to a POST is far shorter, so a greater
/// length comes from damage.
const UNPACKED_BYTES_MAX: usize = 1 << 20;

pub fn pack(body: &[u8]) -> Vec<u8> {
    compress_prepend_size_with_dict(body, DICTIONARY)
}

/// The bytes that were packed. `Err` if `packed` is so damaged that it cannot be unpacked.
pub fn unpack(packed: &[u8]) -> Result<Vec<u8>, StoreError> {
    let length =
        packed.first_chunk().map_or(usize::MAX, |bytes| u32::from_le_bytes(*bytes) as usize);
    if length > UNPACKED_BYTES_MAX {
        return Err(StoreError::Broken("a stored answer does not unpack".into()));
    }
    decompress_size_prepended_with_dict(packed, DICTIONARY)
        .map_err(|_| StoreError::Broken("a stored answer does not unpack".into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_answer_of_a_known_kind_shrinks() {
        let tail = &DICTIONARY[DICTIONARY.len() - 1_200..];
        assert!(pack(tail).len() < 200);
    }

    proptest! {
        #[test]
        fn what_is_packed_unpacks_to_the_same_bytes(
            body in proptest::collection::vec(any::<u8>(), 0..5_000),
            known in 0_usize..2_000,
        ) {
            let body = [&DICTIONARY[known..known + 300], &body].concat();
            prop_assert_eq!(unpack(&pack(&body)).unwrap(), body);
        }

        #[test]
        fn damaged_bytes_are_an_error_and_never_a_panic(
            damaged in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            let unpacked = unpack(&damaged);
            let is_bounded = unpacked.map_or(true, |body| body.len() <= UNPACKED_BYTES_MAX);
            prop_assert!(is_bounded);
        }
    }
}
