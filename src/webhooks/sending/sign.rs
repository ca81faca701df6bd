//! Signs webhook deliveries: the `Webhook-Signature` header and the text of a new secret.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// What the text of every webhook secret begins with (Standard Webhooks 1.0.0, "Symmetric").
pub const SECRET_PREFIX: &str = "whsec_";

/// Random bytes in a webhook secret; Standard Webhooks 1.0.0 asks for 24 to 64.
pub const SECRET_BYTES: usize = 32;

/// The version tag of an HMAC-SHA256 entry in `Webhook-Signature` (Standard Webhooks 1.0.0).
const ENTRY_VERSION: &str = "v1,";

/// Base64 characters of one SHA-256 digest: 32 bytes in groups of three, padded.
const DIGEST_CHARACTERS: usize = 44;

/// The text of a webhook secret, as it is shown to its owner and as [`signature_header`] takes it:
/// `whsec_` and the base64 (RFC 4648 section 4, padded) of `random`, which must come from a
/// cryptographic source.
pub fn secret_text(random: [u8; SECRET_BYTES]) -> String {
    format!("{SECRET_PREFIX}{}", STANDARD.encode(random))
}

/// The value of `Webhook-Signature` for one attempt: for each secret two `v1,` entries, all
/// separated by single spaces, in the order of `secrets`.
///
/// An entry is `v1,` and the base64 of HMAC-SHA256 (RFC 2104) over
/// `{id}.{timestamp_seconds}.{body}`. The key of a pair's first entry is the secret's whole text.
/// The key of the second is the bytes that the base64 after `whsec_` stands for;
/// docs/guides/webhooks.md and the libraries of Standard Webhooks verify with that key. A secret
/// with no valid base64 after `whsec_` gets the first entry only.
///
/// `id` is the value of `Webhook-Id`, and contains no `.`. `timestamp_seconds` is the value of
/// `Webhook-Timestamp`, in Unix seconds. It should be the time of this attempt, because receivers
/// refuse a timestamp that is more than 300 s off. `body` has the bytes as they are sent.
pub fn signature_header(secrets: &[&str], id: &str, timestamp_seconds: i64, body: &[u8]) -> String {
    let entry_characters = ENTRY_VERSION.len() + DIGEST_CHARACTERS + 1;
    let mut header = String::with_capacity(secrets.len() * 2 * entry_characters);
    let timestamp_text = timestamp_seconds.to_string();
    for secret in secrets {
        let encoded = secret.strip_prefix(SECRET_PREFIX).unwrap_or(secret);
        let decoded = STANDARD.decode(encoded).ok();
        let keys = [Some(secret.as_bytes()), decoded.as_deref()];
        for key in keys.into_iter().flatten() {
            // RFC 2104 takes a key of any length, so no key is left out here.
            let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else {
                continue;
            };
            for part in [id.as_bytes(), b".", timestamp_text.as_bytes(), b".".as_slice(), body] {
                mac.update(part);
            }
            if !header.is_empty() {
                header.push(' ');
            }
            header.push_str(ENTRY_VERSION);
            STANDARD.encode_string(mac.finalize().into_bytes(), &mut header);
        }
    }
    header
}

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::Digest;
    use standardwebhooks::Webhook;
    use std::time::{SystemTime, UNIX_EPOCH};

    const ID: &str = "event_01JD0Z3Y6W8V4T2R0Q9P7N5M3K";
    const BODY: &[u8] = br#"{"object":"event","type":"transfer.status.payout_settled"}"#;

    fn secret(seed: u8) -> String {
        secret_text(std::array::from_fn(|index| seed.wrapping_add((index as u8).wrapping_mul(37))))
    }

    fn now_seconds() -> i64 {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64
    }

    /// HMAC-SHA256 from its definition (RFC 2104 section 2), so that the tests do not compare the
    /// crate `hmac` with itself.
    fn hmac_by_definition(key: &[u8], message: &[u8]) -> Vec<u8> {
        let mut block = [0_u8; 64];
        if key.len() > block.len() {
            block[..32].copy_from_slice(&Sha256::digest(key));
        } else {
            block[..key.len()].copy_from_slice(key);
        }
        let inner_pad: Vec<u8> = block.iter().map(|byte| byte ^ 0x36).collect();
        let outer_pad: Vec<u8> = block.iter().map(|byte| byte ^ 0x5c).collect();
        let inner = Sha256::digest([inner_pad.as_slice(), message].concat());
        Sha256::digest([outer_pad.as_slice(), inner.as_slice()].concat()).to_vec()
    }

    /// Verifies a delivery as a receiver would that takes the secret's whole text as the key.
    /// Answers the HTTP status that the receiver answers.
    fn receiver_status(
        secret: &str,
        id: &str,
        timestamp: &str,
        signature: &str,
        raw_body: &[u8],
        now_seconds: i64,
    ) -> u16 {
        let signed = [format!("{id}.{timestamp}.").as_bytes(), raw_body].concat();
        let expected = STANDARD.encode(hmac_by_definition(secret.as_bytes(), &signed));
        let matches = signature.split(' ').any(|entry| {
            let given = entry.strip_prefix("v1,").unwrap_or_default().as_bytes();
            given.len() == expected.len()
                && given
                    .iter()
                    .zip(expected.as_bytes())
                    .fold(0, |difference, (left, right)| difference | (left ^ right))
                    == 0
        });
        let fresh =
            timestamp.parse::<i64>().is_ok_and(|seconds| (now_seconds - seconds).abs() <= 300);
        if matches && fresh { 200 } else { 400 }
    }

    #[test]
    fn hmac_by_definition_gives_rfc_4231_case_2() {
        let digest = hmac_by_definition(b"Jefe", b"what do ya want for nothing?");
        let hex = crate::kernel::hex::encode(digest);
        assert_eq!(hex, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    }

    #[test]
    fn a_receiver_accepts_a_delivery_and_refuses_changes() {
        let (secret, other) = (secret(1), secret(2));
        let header = signature_header(&[&secret], ID, 1_764_000_000, BODY);
        let check = |secret: &str, id: &str, timestamp: &str, body: &[u8], now: i64| {
            receiver_status(secret, id, timestamp, &header, body, now)
        };
        assert_eq!(check(&secret, ID, "1764000000", BODY, 1_764_000_000 + 300), 200);
        assert_eq!(check(&secret, ID, "1764000000", BODY, 1_764_000_000 + 301), 400);
        assert_eq!(check(&other, ID, "1764000000", BODY, 1_764_000_000), 400);
        assert_eq!(check(&secret, "event_02", "1764000000", BODY, 1_764_000_000), 400);
        assert_eq!(check(&secret, ID, "1764000001", BODY, 1_764_000_000), 400);
        assert_eq!(check(&secret, ID, "1764000000", b"{}", 1_764_000_000), 400);
    }

    #[test]
    fn the_library_of_standard_webhooks_accepts_both_keys_of_every_secret() {
        let (current, previous) = (secret(3), secret(4));
        let now_seconds = now_seconds();
        let header = signature_header(&[&current, &previous], ID, now_seconds, BODY);
        let mut headers = http::HeaderMap::new();
        headers.insert("webhook-id", ID.parse().unwrap());
        headers.insert("webhook-timestamp", now_seconds.to_string().parse().unwrap());
        headers.insert("webhook-signature", header.parse().unwrap());
        for secret in [&current, &previous] {
            let decoding = Webhook::new(secret).unwrap();
            decoding.verify(BODY, &headers).unwrap();
            let verbatim = Webhook::from_bytes(secret.as_bytes().to_vec()).unwrap();
            verbatim.verify(BODY, &headers).unwrap();
            assert!(decoding.verify(b"{}", &headers).is_err());
            let timestamp = now_seconds.to_string();
            assert_eq!(receiver_status(secret, ID, &timestamp, &header, BODY, now_seconds), 200);
        }
        let stranger = Webhook::new(&secret(5)).unwrap();
        assert!(stranger.verify(BODY, &headers).is_err());
    }

    #[test]
    fn entries_stand_in_the_order_of_the_secrets() {
        let (first, second) = (secret(6), secret(7));
        let both = signature_header(&[&first, &second], ID, 7, BODY);
        let alone =
            [signature_header(&[&first], ID, 7, BODY), signature_header(&[&second], ID, 7, BODY)];
        assert_eq!(both, alone.join(" "));
        assert_eq!(both.split(' ').count(), 4);
        assert!(both.split(' ').all(|entry| entry.len() == 47 && entry.starts_with("v1,")));
        assert_eq!(signature_header(&[], ID, 7, BODY), "");
    }

    #[test]
    fn a_secret_that_is_not_base64_signs_verbatim_only() {
        let header = signature_header(&["whsec_not base64"], ID, 7, BODY);
        assert_eq!(header.split(' ').count(), 1);
        assert_eq!(receiver_status("whsec_not base64", ID, "7", &header, BODY, 7), 200);
    }

    #[test]
    fn secret_text_is_the_prefix_and_padded_base64() {
        assert_eq!(secret_text([0; 32]), "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=");
        let text = secret_text([0xff; 32]);
        assert_eq!(text, "whsec_//////////////////////////////////////////8=");
    }
}
