//! `hundi reconcile`: compares the book with the bank's statements and with real chains, and names
//! the differences. It corrects nothing: the operator clears up each difference.

pub mod chain;
pub mod explaining;
pub mod kept;
pub mod rows;
mod statements;

use std::collections::HashMap;
use std::fmt;

use crate::kernel::id::kind;
use crate::kernel::{Currency, Id, Money, StoreError};
use crate::rails::files::reports::Sign;
use crate::rails::files::rows as journal;
use crate::store::Tx;
use rows::{Differing, PayoutPage};

/// The most differences of one kind that are listed; all are counted.
pub const DIFFERENCES_SHOWN_MAX: usize = 1_000;
/// Stands before each of the bank's own words in a difference's detail.
pub const BANK_SAYS: &str = "; the bank says ";
/// The most payouts, or lines of bank statements, that one query reads.
const PAGE_ROWS_MAX: i64 = 1_000;

crate::string_enum!(
    /// The kinds of difference.
    DifferenceKind {
        SettledWithoutLine "settled_without_line",
        LineWithoutSettlement "line_without_settlement",
        AmountDiffers "amount_differs",
        PaidTwice "paid_twice",
        ReturnedAtBank "returned_at_bank",
        ReturnedWithoutLine "returned_without_line",
        OutcomeUnknown "outcome_unknown",
        PaidAfterFailed "paid_after_failed",
        // The bank's reports contradict each other. In spite of the name, nothing need be on hold.
        HeldForDecision "held_for_decision",
        LineUnmatched "line_unmatched",
        StatementSum "statement_sum",
        StatementGap "statement_gap",
        DepositsBook "deposits_book",
        RefundsBook "refunds_book",
        MovementNotInBook "movement_not_in_book",
        MovementNotOnChain "movement_not_on_chain",
        MovementToken "movement_token",
        MovementAddress "movement_address",
        MovementAmount "movement_amount",
        MovementBlock "movement_block",
        AddressBalance "address_balance",
    }
);

impl DifferenceKind {
    /// For the operator: what differs, a colon, and what to do.
    pub const fn meaning(self) -> &'static str {
        match self {
            DifferenceKind::SettledWithoutLine => {
                "settled here, and on no statement: ask the bank; if its money came back, `hundi \
                 decide PAYOUT return`"
            }
            DifferenceKind::LineWithoutSettlement => {
                "paid at the bank, and not settled here: `hundi decide PAYOUT settle`, or, if it \
                 has failed, ask the bank for the money"
            }
            DifferenceKind::AmountDiffers => {
                "a line's amount is not the payout's: ask the bank, then `hundi reconcile --accept`"
            }
            DifferenceKind::PaidTwice => {
                "paid at the bank more than once: ask the bank for the money"
            }
            DifferenceKind::ReturnedAtBank => {
                "sent back by the bank, and settled here: `hundi decide PAYOUT return`"
            }
            DifferenceKind::ReturnedWithoutLine => {
                "returned here, and not back on the account: ask the bank where the money is"
            }
            DifferenceKind::OutcomeUnknown => {
                "the service does not know whether the bank paid it: if a detail follows, do what \
                 it says; otherwise ask the bank, then `hundi decide`"
            }
            DifferenceKind::PaidAfterFailed => {
                "paid at the bank after it had failed here or come back: ask the bank for the money"
            }
            DifferenceKind::HeldForDecision => {
                "the bank's reports do not fit together: ask the bank"
            }
            DifferenceKind::LineUnmatched => {
                "a line that was matched to no payout: find out what it is, then `hundi reconcile \
                 --accept`, with `--payout` if it belongs to one or several"
            }
            DifferenceKind::StatementSum => {
                "the opening balance and the movements do not add up to the closing balance: ask \
                 the bank for what is missing or wrong"
            }
            DifferenceKind::StatementGap => {
                "the opening balance is not the closing one of the statement before: ask the bank \
                 for the statement between them"
            }
            DifferenceKind::DepositsBook => {
                "the sum of the final deposits is not what the ledger has credited: stop paying \
                 out, and run `hundi check`"
            }
            DifferenceKind::RefundsBook => {
                "the sum of the completed refunds is not what the ledger has debited to custody: \
                 stop paying out, and run `hundi check`"
            }
            DifferenceKind::MovementNotInBook => {
                "on the chain, and not in the book: look at it, then `hundi deposits credit`"
            }
            DifferenceKind::MovementNotOnChain => {
                "in the book, and not on the chain: stop paying out (docs/chains.md)"
            }
            DifferenceKind::MovementToken => {
                "another token's movement is in the book as ours: stop paying out (docs/chains.md)"
            }
            DifferenceKind::MovementAddress => {
                "the chain shows another payer or recipient, or the book another owner of the \
                 address: stop paying out (docs/chains.md)"
            }
            DifferenceKind::MovementAmount => {
                "the chain shows another amount (the figure is the chain's less the book's): stop \
                 paying out (docs/chains.md)"
            }
            DifferenceKind::MovementBlock => {
                "the chain shows another block or time: stop paying out (docs/chains.md)"
            }
            DifferenceKind::AddressBalance => {
                "an address holds another amount (the figure is the balance less the book's): \
                 compare it with an explorer (docs/chains.md)"
            }
        }
    }
}

/// One difference: its subject and its amount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub kind: DifferenceKind,
    /// What differs: a payout, a statement line, a statement or an account. Of a difference with a
    /// chain, this is the identifier of the difference.
    pub what: String,
    /// The amount of what differs, or by how much two amounts differ. For a statement line, a debit
    /// is negative. For `paid_twice`, this is what the bank paid less what came back.
    pub amount: Money,
    /// For a payout that waits for the operator, what happened and what the bank says of it. For a
    /// statement, which pages are missing. For a difference with a chain, the object, the movement
    /// or the address.
    pub detail: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let currency = self.amount.currency.as_str();
        write!(
            f,
            "{:<24} {:<36} {:>18} {currency}  {}",
            self.kind.as_str(),
            self.what,
            self.amount.to_string(),
            self.kind.meaning()
        )?;
        self.detail.as_ref().map_or(Ok(()), |detail| write!(f, "; {detail}"))
    }
}

/// What a comparison found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// One sentence about each thing that was compared.
    pub summary: Vec<String>,
    /// At most [`DIFFERENCES_SHOWN_MAX`] of each kind; of `amount_differs` and `line_unmatched`,
    /// that many together.
    pub differences: Vec<Difference>,
    /// How many differences there are, whether they are listed or not.
    pub differences_count: usize,
    /// How many differences there are of each kind. Of statement lines, only the first
    /// [`PAGE_ROWS_MAX`] are counted here.
    count_by_kind: HashMap<DifferenceKind, usize>,
}

/// A report in the making, without differences that the operator explained.
#[derive(Default)]
struct Findings {
    report: Report,
    /// For the kind and subject of each explained difference, the amount that was explained.
    explained: HashMap<(String, String), i64>,
    /// If set, only differences of this subject are kept.
    subject: Option<String>,
}

impl Findings {
    /// Adds a sentence about what was compared.
    fn tell(&mut self, sentence: String) {
        self.report.summary.push(sentence);
    }

    /// Counts a difference, and lists it while there is room. Drops a difference of another subject
    /// than `self.subject`, and one that was explained with the same amount.
    fn add(&mut self, difference: Difference) {
        if self.subject.as_ref().is_some_and(|subject| *subject != difference.what) {
            return;
        }
        let named = (difference.kind.as_str().to_owned(), difference.what.clone());
        if self.explained.get(&named) == Some(&difference.amount.units) {
            return;
        }
        self.report.differences_count += 1;
        let count = self.report.count_by_kind.entry(difference.kind).or_default();
        *count += 1;
        if *count <= DIFFERENCES_SHOWN_MAX {
            self.report.differences.push(difference);
        }
    }
}

fn inr(units: i64) -> Money {
    Money::new(units, Currency::Inr)
}

/// Compares the book with the bank's statements, and deposits and refunds with the ledger. Chains
/// are compared by `chain_following::audit`, which needs their nodes.
pub fn run(tx: &mut dyn Tx) -> Result<Report, StoreError> {
    compare(tx, None)
}

/// The differences of one payout, statement or account. Compares as [`run`] does, so it may take
/// long.
pub fn about(tx: &mut dyn Tx, subject: &str) -> Result<Vec<Difference>, StoreError> {
    Ok(compare(tx, Some(subject.to_owned()))?.differences)
}

fn compare(tx: &mut dyn Tx, subject: Option<String>) -> Result<Report, StoreError> {
    let mut findings = Findings { subject, ..Findings::default() };
    let explained = journal::explanations(tx)?.into_iter();
    findings.explained = explained.map(|(kind, subject, units)| ((kind, subject), units)).collect();
    compare_bank(tx, &mut findings)?;
    statements::compare(tx, &mut findings)?;
    compare_custody(tx, &mut findings)?;
    Ok(findings.report)
}

/// Runs a query page by page, and hands each payout that it finds to `visit`.
fn each_payout<T>(
    tx: &mut dyn Tx,
    read: impl Fn(&mut dyn Tx, PayoutPage) -> Result<Vec<T>, StoreError>,
    id_of: impl Fn(&T) -> Id<kind::Payout>,
    mut visit: impl FnMut(T),
) -> Result<(), StoreError> {
    let mut page = PayoutPage { after: Id::from_u128(0), rows_max: PAGE_ROWS_MAX };
    loop {
        let found = read(tx, page)?;
        let Some(last) = found.last() else { return Ok(()) };
        page.after = id_of(last);
        let is_last = (found.len() as i64) < page.rows_max;
        found.into_iter().for_each(&mut visit);
        if is_last {
            return Ok(());
        }
    }
}

/// Compares payouts with the lines of the bank's statements.
fn compare_bank(tx: &mut dyn Tx, findings: &mut Findings) -> Result<(), StoreError> {
    let closed = rows::closed_until(tx)?;
    // A payment is expected on a statement only once a statement has closed its day.
    let until = closed.map_or(0, |day| day.plus_days(1).begins_at());
    each_payout(
        tx,
        rows::awaiting_operator,
        |one| one.payout_id,
        |one| findings.add(of_awaiting(one)),
    )?;
    type PayoutQuestion<'a> =
        &'a dyn Fn(&mut dyn Tx, PayoutPage) -> Result<Vec<Differing>, StoreError>;
    let questions: [(DifferenceKind, PayoutQuestion<'_>); 6] = [
        (DifferenceKind::SettledWithoutLine, &|tx, page| {
            rows::settled_without_line(tx, page, until)
        }),
        (DifferenceKind::LineWithoutSettlement, &rows::line_without_settlement),
        (DifferenceKind::PaidTwice, &rows::paid_twice),
        (DifferenceKind::ReturnedAtBank, &rows::returned_at_bank),
        (DifferenceKind::ReturnedWithoutLine, &|tx, page| {
            rows::returned_without_line(tx, page, until)
        }),
        (DifferenceKind::OutcomeUnknown, &rows::outcome_unknown),
    ];
    for (kind, question) in questions {
        let add = |found: Differing| {
            let what = found.payout_id.to_string();
            findings.add(Difference { kind, what, amount: inr(found.units), detail: None });
        };
        each_payout(tx, question, |found| found.payout_id, add)?;
    }
    add_lines(tx, findings)?;
    let (count, paid, returned) = rows::line_sums(tx)?;
    let closed =
        closed.map_or_else(|| "no statement".to_owned(), |day| format!("statements up to {day}"));
    findings.tell(format!(
        "{closed}, {count} lines; payouts: {} INR paid, {} INR sent back",
        inr(paid),
        inr(returned)
    ));
    Ok(())
}

/// The difference of a payout that waits for the operator because of what the bank reported.
fn of_awaiting(waiting: rows::AwaitingOperator) -> Difference {
    let kind = match waiting.attention {
        journal::Attention::PaidAfterFailed | journal::Attention::PaidAgain => {
            DifferenceKind::PaidAfterFailed
        }
        _ if waiting.is_outcome_unknown => DifferenceKind::OutcomeUnknown,
        _ => DifferenceKind::HeldForDecision,
    };
    let mut detail = waiting.attention.meaning().to_owned();
    for said in [waiting.reason_code, waiting.reason_text].into_iter().flatten() {
        detail.push_str(BANK_SAYS);
        detail.push_str(&said);
    }
    Difference {
        kind,
        what: waiting.payout_id.to_string(),
        amount: inr(waiting.units),
        detail: Some(detail),
    }
}

/// Adds the lines of statements that are not matched to a payout.
fn add_lines(tx: &mut dyn Tx, findings: &mut Findings) -> Result<(), StoreError> {
    let listed = journal::unmatched(tx, PAGE_ROWS_MAX)?;
    let count = usize::try_from(journal::unmatched_count(tx)?).unwrap_or(usize::MAX);
    findings.report.differences_count += count.saturating_sub(listed.len());
    for line in listed {
        let kind = match line.matching {
            journal::Matching::AmountDiffers => DifferenceKind::AmountDiffers,
            _ => DifferenceKind::LineUnmatched,
        };
        let units = if line.sign == Sign::Credit { line.units } else { -line.units };
        findings.add(Difference {
            kind,
            what: line.id.to_string(),
            amount: inr(units),
            detail: None,
        });
    }
    Ok(())
}

/// Compares completed deposits and refunds with the ledger, account by account.
fn compare_custody(tx: &mut dyn Tx, findings: &mut Findings) -> Result<(), StoreError> {
    let usdt = |units| Money::new(units, Currency::Usdt);
    let sums = rows::custody_sums(tx)?;
    for sum in &sums {
        let pairs = [
            (DifferenceKind::DepositsBook, sum.deposited_units, sum.credited_units),
            (DifferenceKind::RefundsBook, sum.refunded_units, sum.debited_units),
        ];
        for (kind, objects, ledger) in pairs {
            let off = usdt(objects).minus(usdt(ledger))?;
            if !off.is_zero() {
                let what =
                    format!("account {} {}", sum.scope.account_number(), sum.scope.mode().as_str());
                findings.add(Difference { kind, what, amount: off, detail: None });
            }
        }
    }
    findings.tell(format!("{} accounts with deposits", sums.len()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_says_what_to_do() {
        let without = |kind: &&DifferenceKind| {
            let meaning = kind.meaning().split_once(": ");
            meaning.is_none_or(|(what, action)| what.is_empty() || action.is_empty())
        };
        let found: Vec<&DifferenceKind> = DifferenceKind::ALL.iter().filter(without).collect();
        assert_eq!(found, Vec::<&DifferenceKind>::new());
    }
}
