//! The funding diagnosis: what became of a transaction that is said to have paid a transfer. It
//! changes nothing.
//!
//! A node is asked only if the book has no completed deposit of the transaction. If the book has a
//! deposit of a movement, and the deposit was not dropped, the book decides what became of this
//! movement, whatever the node shows. Of several findings about a transaction, the caller is told
//! the one whose [`DiagnosisCode`] is listed first.

pub mod api;
pub mod message;

use super::state::TransferStatus;
use super::{Transfer, funding};
use crate::chains::address::AddressBytes;
use crate::chains::inspect::{SeenBlock, SeenMovement, SeenToken, SeenTransaction};
use crate::deposits::Deposit;
use crate::deposits::state::{Classification, DepositStatus, ReasonCode};
use crate::kernel::id::kind;
use crate::kernel::{Currency, Id, Money, StoreError};

crate::string_enum!(
    /// What became of a transaction, in order of precedence. If several codes apply to one
    /// transaction, for example because it has several token movements, the answer is the one
    /// listed first here.
    DiagnosisCode {
        // It is final, and counts.
        Credited "credited",
        // It is on its way: in no block, in one that is not final, or in a final block that the
        // service has not read yet.
        Confirming "confirming",
        // It counts, and more is missing.
        ShortBy "short_by",
        // Its block is later than `expires_at`.
        LateBy "late_by",
        // The transfer had been cancelled before it came.
        AfterCancel "after_cancel",
        // It came when the transfer no longer accepted money.
        Unmatched "unmatched",
        // The right token came to the right address in a final block that the service has read, and
        // yet the book does not have it: only the operator can say why.
        NotCredited "not_credited",
        // A movement of the token to the right address whose amount is zero, or below a millionth.
        ZeroValue "zero_value",
        // Another contract whose symbol looks like the token's.
        LookAlikeToken "look_alike_token",
        // Another token came to the right address.
        WrongToken "wrong_token",
        // The token went to another address.
        WrongAddress "wrong_address",
        // Tokens moved, but neither the right one nor to the right address.
        Unrelated "unrelated",
        // No token moved: the chain's own coin was sent, or something else was done.
        NoToken "no_token",
        // The transaction failed, so nothing moved.
        Reverted "reverted",
        // The chain does not know it.
        NotFound "not_found",
    }
);

impl DiagnosisCode {
    /// What became of the transaction, for the guides.
    pub const fn meaning(self) -> &'static str {
        match self {
            DiagnosisCode::Credited => "It is final, and counts.",
            DiagnosisCode::Confirming => "It is on its way, and its block is not final yet.",
            DiagnosisCode::ShortBy => "It counts, and `short_by` is still missing.",
            DiagnosisCode::LateBy => "Its block is `late_by_seconds` later than the expiry.",
            DiagnosisCode::AfterCancel => "It came after the transfer was cancelled.",
            DiagnosisCode::Unmatched => "It came when the transfer took no more money.",
            DiagnosisCode::NotCredited => {
                "It is final and at the right address, and yet it was not credited."
            }
            DiagnosisCode::ZeroValue => "Its amount is zero, or less than a millionth.",
            DiagnosisCode::LookAlikeToken => "It is another token with the same name, or nearly.",
            DiagnosisCode::WrongToken => "It is another token.",
            DiagnosisCode::WrongAddress => "It went to another address.",
            DiagnosisCode::Unrelated => {
                "It moved other tokens, and nothing to this transfer's address."
            }
            DiagnosisCode::NoToken => "It moved no token; perhaps it sent the chain's own coin.",
            DiagnosisCode::Reverted => "It failed on the chain, so nothing moved.",
            DiagnosisCode::NotFound => "The chain does not know it.",
        }
    }
    /// What a caller does about it, for the guides.
    pub const fn remedy(self) -> &'static str {
        match self {
            DiagnosisCode::Credited => "Nothing: the status of the transfer says how it goes on.",
            DiagnosisCode::Confirming => "Wait for `deposit.status.completed`.",
            DiagnosisCode::ShortBy => {
                "Before the expiry, ask for the rest, to the same address. Afterwards the transfer \
                 is in `funding_hold`."
            }
            DiagnosisCode::LateBy | DiagnosisCode::AfterCancel => {
                "Decide about the `funding_hold`, or wait."
            }
            DiagnosisCode::Unmatched | DiagnosisCode::NotCredited | DiagnosisCode::WrongToken => {
                "Ask the operator, and name the transaction."
            }
            DiagnosisCode::ZeroValue
            | DiagnosisCode::LookAlikeToken
            | DiagnosisCode::Unrelated
            | DiagnosisCode::NoToken => "Nothing can be credited. Ask the payer to pay.",
            DiagnosisCode::WrongAddress => {
                "It cannot be credited here. The payer has to ask whoever has that address."
            }
            DiagnosisCode::Reverted => "Ask the payer to send it again.",
            DiagnosisCode::NotFound => {
                "Check the hash and the network. One that was just sent shows within a minute."
            }
        }
    }
}

/// One thing that can be said of a transaction.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    pub code: DiagnosisCode,
    pub deposit_id: Option<Id<kind::Deposit>>,
    pub amount: Option<Money>,
    pub currency: Option<String>,
    /// What is missing of the transfer's amount once this movement counts.
    pub short_by: Option<Money>,
    /// By how many seconds the block's time is after `expires_at`. `None` if it is not, or if that
    /// does not matter for `code`.
    pub late_by_seconds: Option<i64>,
    pub block_number: Option<i64>,
    pub block_time: Option<i64>,
    pub confirmations: Option<i64>,
    pub to_address: Option<AddressBytes>,
    pub contract: Option<AddressBytes>,
}

impl Finding {
    fn bare(code: DiagnosisCode, block: Option<SeenBlock>) -> Finding {
        Finding {
            code,
            deposit_id: None,
            amount: None,
            currency: None,
            short_by: None,
            late_by_seconds: None,
            block_number: block.map(|block| block.number),
            block_time: block.map(|block| block.time),
            confirmations: block.map(|block| block.confirmations),
            to_address: None,
            contract: None,
        }
    }
}

fn late_by(transfer: &Transfer, block_time: Option<i64>) -> Option<i64> {
    block_time.map(|time| time - transfer.expires_at).filter(|seconds| *seconds > 0)
}

/// What will still be missing once this amount, which is not final yet, counts. `None` if nothing
/// will, or if the transfer takes no more money.
fn short_after(transfer: &Transfer, amount: Money) -> Result<Option<Money>, StoreError> {
    if !funding::takes_money(transfer.status) {
        return Ok(None);
    }
    let rest = funding::missing(transfer)?.minus(amount)?;
    Ok((rest.units > 0).then_some(rest))
}

/// The finding about a deposit in the book. `contract` is the contract of its movement, if that is
/// known.
fn of_deposit(
    transfer: &Transfer,
    deposit: &Deposit,
    contract: Option<AddressBytes>,
) -> Result<Finding, StoreError> {
    use Classification::{Exact, Late, Over, Partial, Unmatched, Unsupported};
    let missing = Some(funding::missing(transfer)?).filter(|missing| !missing.is_zero());
    // This stays true if the payout then fails or comes back.
    let was_funded = transfer.status_history.last_at(TransferStatus::Funded).is_some();
    let late_by_seconds = late_by(transfer, deposit.block_time);
    let code = match (deposit.status, deposit.classification) {
        (DepositStatus::Failed, _) if deposit.reason_code == Some(ReasonCode::Dropped) => {
            DiagnosisCode::NotFound
        }
        (DepositStatus::Failed, _) | (_, Some(Unsupported)) => DiagnosisCode::WrongToken,
        (DepositStatus::Initialized | DepositStatus::Processing, _)
            if deposit.asset != transfer.asset =>
        {
            DiagnosisCode::WrongToken
        }
        (DepositStatus::Initialized | DepositStatus::Processing, _) => DiagnosisCode::Confirming,
        (DepositStatus::Completed, Some(Unmatched)) => DiagnosisCode::Unmatched,
        (DepositStatus::Completed, _) if was_funded => DiagnosisCode::Credited,
        (DepositStatus::Completed, Some(Late)) if late_by_seconds.is_some() => {
            DiagnosisCode::LateBy
        }
        (DepositStatus::Completed, Some(Late)) => DiagnosisCode::AfterCancel,
        (DepositStatus::Completed, Some(Partial)) if missing.is_some() => DiagnosisCode::ShortBy,
        (DepositStatus::Completed, Some(Exact | Over | Partial) | None) => DiagnosisCode::Credited,
    };
    let short_by = match code {
        DiagnosisCode::Confirming => short_after(transfer, deposit.amount)?,
        DiagnosisCode::ShortBy | DiagnosisCode::LateBy => missing,
        _ => None,
    };
    Ok(Finding {
        code,
        deposit_id: Some(deposit.id),
        amount: Some(deposit.amount),
        currency: Some(deposit.asset.clone()),
        short_by,
        late_by_seconds: late_by_seconds
            .filter(|_| !matches!(code, DiagnosisCode::NotFound | DiagnosisCode::WrongToken)),
        block_number: deposit.block_number,
        block_time: deposit.block_time,
        confirmations: deposit.block_number.map(|_| deposit.confirmations),
        to_address: Some(deposit.to_address),
        contract,
    })
}

/// The finding about a movement that a node shows and the book does not have, or has only as a
/// dropped deposit. `None` if the movement does not concern the transfer. `followed_height` is the
/// last block that the service has read.
fn of_movement(
    transfer: &Transfer,
    movement: &SeenMovement,
    block: Option<SeenBlock>,
    followed_height: i64,
) -> Result<Option<Finding>, StoreError> {
    let is_to_us = movement.to_address == *transfer.deposit_address.bytes();
    let amount = movement.units.map(|units| Money::new(units, Currency::Usdt));
    let code = match (&movement.token, is_to_us) {
        (SeenToken::Ours, true) if movement.units == Some(0) => DiagnosisCode::ZeroValue,
        (SeenToken::Ours, true) => match block {
            Some(block) if block.is_final && block.number <= followed_height => {
                DiagnosisCode::NotCredited
            }
            _ => DiagnosisCode::Confirming,
        },
        // Ignored: anybody can make a movement of zero between any two addresses.
        (SeenToken::Ours, false) if movement.value == 0 => return Ok(None),
        (SeenToken::Ours, false) => DiagnosisCode::WrongAddress,
        (SeenToken::LookAlike, true) => DiagnosisCode::LookAlikeToken,
        (SeenToken::Other { .. }, true) => DiagnosisCode::WrongToken,
        (_, false) => return Ok(None),
    };
    let currency = match &movement.token {
        SeenToken::Ours => Some(transfer.asset.clone()),
        SeenToken::Other { symbol } => symbol.clone(),
        SeenToken::LookAlike => None,
    };
    let short_by = match (code, amount) {
        (DiagnosisCode::Confirming, Some(amount)) => short_after(transfer, amount)?,
        _ => None,
    };
    Ok(Some(Finding {
        // Without a currency, an amount of some other token would be read as an amount of ours.
        amount: amount.filter(|_| currency.is_some()),
        currency,
        short_by,
        late_by_seconds: late_by(transfer, block.map(|block| block.time))
            .filter(|_| code == DiagnosisCode::Confirming),
        to_address: Some(movement.to_address),
        contract: movement.contract,
        ..Finding::bare(code, block)
    }))
}

/// The finding about a transaction that the caller is told. `deposits` are the transfer's deposits
/// of this transaction; `token_contract` is the contract of the transfer's token. `seen` is what a
/// node shows of it: `None` if no node knows it, or none was asked. `followed_height` is the last
/// block that the service has read.
pub fn judge(
    transfer: &Transfer,
    token_contract: AddressBytes,
    deposits: &[Deposit],
    seen: Option<&SeenTransaction>,
    followed_height: i64,
) -> Result<Finding, StoreError> {
    let movements = seen.filter(|seen| seen.has_succeeded).map_or(&[][..], |seen| &seen.movements);
    let block = seen.and_then(|seen| seen.block);
    let mut findings = Vec::new();
    for deposit in deposits {
        let shown = movements.iter().find(|movement| movement.log_index == deposit.log_index);
        let contract = match deposit.contract {
            // This may be another contract than the transfer's own: the configured one counts too.
            Some(contract) => Some(contract),
            None if deposit.asset == transfer.asset => Some(token_contract),
            None => shown.and_then(|movement| movement.contract),
        };
        findings.push(of_deposit(transfer, deposit, contract)?);
    }
    let is_in_book = |movement: &SeenMovement| {
        let is_its_deposit = |deposit: &Deposit| {
            deposit.log_index == movement.log_index
                && deposit.reason_code != Some(ReasonCode::Dropped)
        };
        movement.to_address == *transfer.deposit_address.bytes()
            && deposits.iter().any(is_its_deposit)
    };
    for movement in movements.iter().filter(|movement| !is_in_book(movement)) {
        findings.extend(of_movement(transfer, movement, block, followed_height)?);
    }
    findings.push(match seen {
        None => Finding::bare(DiagnosisCode::NotFound, None),
        Some(seen) if !seen.has_succeeded => Finding::bare(DiagnosisCode::Reverted, block),
        Some(_) if movements.is_empty() => Finding::bare(DiagnosisCode::NoToken, block),
        Some(_) => Finding::bare(DiagnosisCode::Unrelated, block),
    });
    let rank = |finding: &Finding| DiagnosisCode::ALL.iter().position(|code| *code == finding.code);
    // Of findings with the same code, the first is the answer.
    Ok(findings
        .into_iter()
        .min_by_key(rank)
        .unwrap_or_else(|| Finding::bare(DiagnosisCode::NotFound, None)))
}

#[cfg(test)]
mod tests {
    use super::message::message;
    use super::*;
    use crate::chains::address::ChainAddress;
    use crate::kernel::id::Minter;
    use crate::kernel::{History, Metadata, Mode, Rate, Scope};
    use crate::transfers::{Policy, PurposeCode};
    use DiagnosisCode::*;

    const OURS: AddressBytes = AddressBytes::of_20([1; 20]);
    const TOKEN: AddressBytes = AddressBytes::of_20([2; 20]);
    const OTHER: AddressBytes = AddressBytes::of_20([3; 20]);
    const ELSEWHERE: AddressBytes = AddressBytes::of_20([4; 20]);
    const EXPIRES_AT: i64 = 1_000;
    const FOLLOWED: i64 = 50;

    fn usdt(units: i64) -> Money {
        Money::new(units, Currency::Usdt)
    }

    /// A transfer of 10 USDT that went through some statuses and received something.
    fn transfer(statuses: &[TransferStatus], received: i64) -> Transfer {
        let minter = Minter::above(0);
        let mut history = History::begun(TransferStatus::Funding, 1);
        statuses.iter().for_each(|status| history.push(*status, 2));
        Transfer {
            scope: Scope::new(1, Mode::Test),
            id: minter.mint(1, 1),
            version: 1,
            status: statuses.last().copied().unwrap_or(TransferStatus::Funding),
            status_reason: None,
            sender_id: minter.mint(1, 2),
            beneficiary_id: minter.mint(1, 3),
            quote_lock_id: minter.mint(1, 4),
            amount: Money::new(1_000, Currency::Usd),
            payout_amount: Money::new(1, Currency::Inr),
            rate: Rate(1),
            fee: Money::zero(Currency::Usd),
            gst: None,
            purpose_code: PurposeCode::P0014,
            asset: "USDT".into(),
            chain: "tron".into(),
            token_contract: ChainAddress::of_chain("tron", TOKEN),
            deposit_address: ChainAddress::of_chain("tron", OURS),
            account_fingerprint: 0,
            derivation_index: 0,
            expected: usdt(10_000_000),
            received: usdt(received),
            excess: usdt(0),
            unsettled_count: 0,
            expires_at: EXPIRES_AT,
            hold_until: None,
            refund_address: None,
            payer_sets_refund_address: false,
            return_url: None,
            policy: Policy::default(),
            reference: None,
            payout_id: None,
            refund_id: None,
            status_history: history,
            metadata: Metadata::default(),
            created: 1,
        }
    }

    fn deposit(
        of: &Transfer,
        status: DepositStatus,
        classification: Option<Classification>,
        time: i64,
    ) -> Deposit {
        Deposit {
            scope: of.scope,
            id: Minter::above(7).mint(1, 7),
            version: 1,
            transfer_id: of.id,
            status,
            amount: usdt(4_000_000),
            asset: "USDT".into(),
            chain: "tron".into(),
            from_address: ELSEWHERE,
            to_address: OURS,
            transaction_hash: "ab".repeat(32),
            contract: None,
            log_index: 3,
            block_number: Some(40),
            block_time: Some(time),
            confirmations: 5,
            unseen_since: None,
            classification,
            reason_code: None,
            completed_at: None,
            status_history: History::begun(status, 1),
            created: 1,
        }
    }

    fn movement(token: SeenToken, to_address: AddressBytes, value: u128) -> SeenMovement {
        let contract = Some(if token == SeenToken::Ours { TOKEN } else { OTHER });
        SeenMovement {
            log_index: 9,
            token,
            contract,
            to_address,
            value,
            units: i64::try_from(value).ok(),
        }
    }

    fn seen(number: i64, is_final: bool, movements: Vec<SeenMovement>) -> SeenTransaction {
        let block = Some(SeenBlock { number, time: EXPIRES_AT - 1, confirmations: 2, is_final });
        SeenTransaction { block, has_succeeded: true, movements }
    }

    fn answer_of(
        transfer: &Transfer,
        deposits: &[Deposit],
        seen: Option<&SeenTransaction>,
    ) -> Finding {
        judge(transfer, TOKEN, deposits, seen, FOLLOWED).unwrap()
    }

    #[test]
    fn the_book_decides_before_a_node() {
        use Classification as C;
        use DepositStatus::{Completed, Failed, Initialized, Processing};
        use TransferStatus::{
            Cancelled, Expired, Funded, FundingHold, PayoutFailed, PayoutProcessing,
            RefundProcessing,
        };
        let (in_time, late) = (EXPIRES_AT, EXPIRES_AT + 7);
        let table: [(
            &[TransferStatus],
            i64,
            DepositStatus,
            Option<C>,
            i64,
            DiagnosisCode,
            Option<i64>,
            Option<i64>,
        ); 17] = [
            (&[Funded], 10_000_000, Completed, Some(C::Exact), in_time, Credited, None, None),
            (&[Funded], 12_000_000, Completed, Some(C::Over), in_time, Credited, None, None),
            (&[FundingHold], 12_000_000, Completed, Some(C::Over), in_time, Credited, None, None),
            (&[], 4_000_000, Completed, Some(C::Partial), in_time, ShortBy, Some(6_000_000), None),
            (
                &[FundingHold],
                4_000_000,
                Completed,
                Some(C::Partial),
                in_time,
                ShortBy,
                Some(6_000_000),
                None,
            ),
            (
                &[FundingHold, RefundProcessing],
                4_000_000,
                Completed,
                Some(C::Partial),
                in_time,
                ShortBy,
                Some(6_000_000),
                None,
            ),
            // The rest came, or the caller resolved the hold with a new quote lock for what had
            // come.
            (&[Funded], 10_000_000, Completed, Some(C::Partial), in_time, Credited, None, None),
            (
                &[FundingHold, Funded],
                4_000_000,
                Completed,
                Some(C::Partial),
                in_time,
                Credited,
                None,
                None,
            ),
            (
                &[Funded, PayoutProcessing, PayoutFailed],
                10_000_000,
                Completed,
                Some(C::Exact),
                in_time,
                Credited,
                None,
                None,
            ),
            (
                &[Expired, FundingHold],
                10_000_000,
                Completed,
                Some(C::Late),
                late,
                LateBy,
                None,
                Some(7),
            ),
            (
                &[FundingHold],
                4_000_000,
                Completed,
                Some(C::Late),
                late,
                LateBy,
                Some(6_000_000),
                Some(7),
            ),
            (
                &[Cancelled, FundingHold],
                10_000_000,
                Completed,
                Some(C::Late),
                in_time,
                AfterCancel,
                None,
                None,
            ),
            (&[Funded], 10_000_000, Completed, Some(C::Unmatched), in_time, Unmatched, None, None),
            (&[], 0, Initialized, None, in_time, Confirming, Some(6_000_000), None),
            (&[], 6_000_000, Processing, None, late, Confirming, None, Some(7)),
            (&[Funded], 10_000_000, Processing, None, in_time, Confirming, None, None),
            (&[], 0, Failed, Some(C::Unsupported), in_time, WrongToken, None, None),
        ];
        for (row, (statuses, received, status, classification, time, code, short, late)) in
            table.into_iter().enumerate()
        {
            let transfer = transfer(statuses, received);
            let deposit = deposit(&transfer, status, classification, time);
            let finding = answer_of(&transfer, std::slice::from_ref(&deposit), None);
            let facts = (
                finding.code,
                finding.short_by.map(|short| short.units),
                finding.late_by_seconds,
                finding.deposit_id,
            );
            assert_eq!(facts, (code, short, late, Some(deposit.id)), "row {row}");
            assert_eq!(
                (finding.block_number, finding.confirmations),
                (Some(40), Some(5)),
                "row {row}"
            );
        }
        let transfer = transfer(&[], 0);
        let dropped = Deposit {
            reason_code: Some(ReasonCode::Dropped),
            ..deposit(&transfer, Failed, None, in_time)
        };
        assert_eq!(answer_of(&transfer, std::slice::from_ref(&dropped), None).code, NotFound);
        let back = seen(
            60,
            false,
            vec![SeenMovement { log_index: 3, ..movement(SeenToken::Ours, OURS, 4_000_000) }],
        );
        assert_eq!(
            answer_of(&transfer, std::slice::from_ref(&dropped), Some(&back)).code,
            Confirming,
            "it came back"
        );
    }

    /// A transfer can be paid in the contract that its caller was shown and in the configured one.
    #[test]
    fn a_finding_names_the_contract_that_moved() {
        let transfer = transfer(&[TransferStatus::Funded], 10_000_000);
        for (kept, expected) in [(None, TOKEN), (Some(TOKEN), TOKEN), (Some(OTHER), OTHER)] {
            let paid = Deposit {
                contract: kept,
                ..deposit(
                    &transfer,
                    DepositStatus::Completed,
                    Some(Classification::Exact),
                    EXPIRES_AT,
                )
            };
            let finding = answer_of(&transfer, &[paid], None);
            assert_eq!((finding.code, finding.contract), (Credited, Some(expected)));
        }
    }

    #[test]
    fn what_a_node_shows_is_judged_by_token_address_and_depth() {
        let transfer = transfer(&[], 3_000_000);
        let other = |symbol: &str| SeenToken::Other { symbol: Some(symbol.into()) };
        let fails = SeenTransaction { has_succeeded: false, ..seen(40, true, vec![]) };
        let unplaced = SeenTransaction {
            block: None,
            ..seen(0, false, vec![movement(SeenToken::Ours, OURS, 5)])
        };
        let table: [(&str, Option<SeenTransaction>, DiagnosisCode); 14] = [
            ("not known to the chain", None, NotFound),
            ("failed", Some(fails), Reverted),
            ("no movement", Some(seen(40, true, vec![])), NoToken),
            ("in no block now", Some(unplaced), Confirming),
            (
                "in a block that is not final",
                Some(seen(40, false, vec![movement(SeenToken::Ours, OURS, 5)])),
                Confirming,
            ),
            (
                "final, not read yet",
                Some(seen(51, true, vec![movement(SeenToken::Ours, OURS, 5)])),
                Confirming,
            ),
            (
                "final and read",
                Some(seen(50, true, vec![movement(SeenToken::Ours, OURS, 5)])),
                NotCredited,
            ),
            (
                "an amount of zero",
                Some(seen(40, true, vec![movement(SeenToken::Ours, OURS, 0)])),
                ZeroValue,
            ),
            (
                "to another address",
                Some(seen(40, true, vec![movement(SeenToken::Ours, ELSEWHERE, 5)])),
                WrongAddress,
            ),
            (
                "zero to another address",
                Some(seen(40, true, vec![movement(SeenToken::Ours, ELSEWHERE, 0)])),
                Unrelated,
            ),
            (
                "another token",
                Some(seen(40, true, vec![movement(other("USDC"), OURS, 5)])),
                WrongToken,
            ),
            (
                "an unnamed token",
                Some(seen(40, true, vec![movement(SeenToken::Other { symbol: None }, OURS, 5)])),
                WrongToken,
            ),
            (
                "a look-alike",
                Some(seen(40, true, vec![movement(SeenToken::LookAlike, OURS, 5)])),
                LookAlikeToken,
            ),
            (
                "another token to another address",
                Some(seen(40, true, vec![movement(other("USDC"), ELSEWHERE, 5)])),
                Unrelated,
            ),
        ];
        for (what, seen, code) in table {
            let finding = answer_of(&transfer, &[], seen.as_ref());
            assert_eq!((finding.code, finding.deposit_id), (code, None), "{what}");
            let names_address = finding.to_address.is_some();
            assert_eq!(
                names_address,
                !matches!(code, NotFound | Reverted | NoToken | Unrelated),
                "{what}"
            );
            assert!(!message(&transfer, &finding).is_empty(), "{what}");
        }
        let look_alike = answer_of(
            &transfer,
            &[],
            Some(&seen(40, true, vec![movement(SeenToken::LookAlike, OURS, 5)])),
        );
        assert_eq!(
            (look_alike.amount, look_alike.currency, look_alike.contract),
            (None, None, Some(OTHER)),
            "its amount is no money"
        );
        let named = answer_of(
            &transfer,
            &[],
            Some(&seen(40, true, vec![movement(other("USDC"), OURS, 5)])),
        );
        assert_eq!((named.amount, named.currency.as_deref()), (Some(usdt(5)), Some("USDC")));
    }

    #[test]
    fn of_several_findings_the_first_code_is_the_answer() {
        let order = [
            "credited",
            "confirming",
            "short_by",
            "late_by",
            "after_cancel",
            "unmatched",
            "not_credited",
            "zero_value",
            "look_alike_token",
            "wrong_token",
            "wrong_address",
            "unrelated",
            "no_token",
            "reverted",
            "not_found",
        ];
        assert_eq!(DiagnosisCode::WORDS, order);
        let transfer = transfer(&[], 0);
        // Each of these movements is judged with every later one, in both orders.
        let other = SeenToken::Other { symbol: None };
        let table = [
            (movement(SeenToken::Ours, OURS, 5), NotCredited),
            (movement(SeenToken::Ours, OURS, 0), ZeroValue),
            (movement(SeenToken::LookAlike, OURS, 5), LookAlikeToken),
            (movement(other.clone(), OURS, 5), WrongToken),
            (movement(SeenToken::Ours, ELSEWHERE, 5), WrongAddress),
            (movement(other, ELSEWHERE, 5), Unrelated),
        ];
        for (index, (first, code)) in table.iter().enumerate() {
            for (later, _) in &table[index..] {
                for movements in
                    [vec![first.clone(), later.clone()], vec![later.clone(), first.clone()]]
                {
                    assert_eq!(
                        answer_of(&transfer, &[], Some(&seen(40, true, movements))).code,
                        *code
                    );
                }
            }
        }
        // What the book has of one movement comes before what a node shows of another.
        let exact =
            deposit(&transfer, DepositStatus::Completed, Some(Classification::Exact), EXPIRES_AT);
        let beside = seen(40, true, vec![movement(SeenToken::Ours, ELSEWHERE, 5)]);
        assert_eq!(answer_of(&transfer, &[exact], Some(&beside)).code, Credited);
    }
}
