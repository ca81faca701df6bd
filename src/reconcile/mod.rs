//! `hundi reconcile`: compares the book with the bank's statements and with real chains, and names
//! every difference. It puts nothing right: what differs is the operator's to clear up.

pub mod chain;
pub mod explaining;
pub mod rows;

use std::fmt;

use crate::kernel::{Currency, Money, Now, StoreError};
use crate::rails::files::reports::Sign;
use crate::rails::files::rows as journal;
use crate::store::Tx;

/// Differences of one kind that are listed.
const DIFFERENCES_SHOWN_MAX: i64 = 1_000;
/// Statements that are compared with each other.
const STATEMENTS_MAX: i64 = 20_000;

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
    pub const fn meaning(self) -> &'static str {
        match self {
            DifferenceKind::SettledWithoutLine => "settled here, and on no statement",
            DifferenceKind::LineWithoutSettlement => "paid at the bank, and not settled here",
            DifferenceKind::AmountDiffers => "a line's amount is not the payout's",
            DifferenceKind::PaidTwice => "paid at the bank more than once",
            DifferenceKind::ReturnedAtBank => "sent back by the bank, and settled here",
            DifferenceKind::ReturnedWithoutLine => "returned here, and not back on the account",
            DifferenceKind::OutcomeUnknown => {
                "nobody knows whether the bank paid it: ask the bank, then `hundi decide`"
            }
            DifferenceKind::PaidAfterFailed => "paid at the bank after it had failed here",
            DifferenceKind::HeldForDecision => "the bank's reports contradict each other",
            DifferenceKind::LineUnmatched => {
                "a line that belongs to no payout: explain it, then `hundi reconcile --accept`"
            }
            DifferenceKind::StatementSum => "opening and movements do not make the closing balance",
            DifferenceKind::StatementGap => {
                "the opening balance is not the closing one of the statement before"
            }
            DifferenceKind::DepositsBook => "final deposits are not what the book has credited",
            DifferenceKind::RefundsBook => "completed refunds are not what the book has let go",
            DifferenceKind::MovementNotInBook => {
                "on the chain, and not in the book: look at it, then `hundi deposits credit`"
            }
            DifferenceKind::MovementNotOnChain => "in the book, and not on the chain",
            DifferenceKind::MovementToken => "another token's movement is in the book as ours",
            DifferenceKind::MovementAddress => {
                "the chain shows another payer or recipient, or the book another owner of the \
                 address"
            }
            DifferenceKind::MovementAmount => {
                "the chain shows another amount; so much more than the book"
            }
            DifferenceKind::MovementBlock => "the chain shows another block or time",
            DifferenceKind::AddressBalance => {
                "an address holds another amount; so much more than the book says"
            }
        }
    }
}

/// One difference: what is concerned, and the amount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub kind: DifferenceKind,
    /// A payout, a line, a statement or an account.
    pub what: String,
    /// The amount that is concerned, or by how much two amounts differ.
    pub amount: Money,
    /// The movement or address, where `what` is only a number for `--accept`.
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
        self.detail.as_ref().map_or(Ok(()), |detail| write!(f, ": {detail}"))
    }
}

/// What a comparison found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// One line about each thing that was compared.
    pub counts: Vec<String>,
    pub differences: Vec<Difference>,
}

fn inr(units: i64) -> Money {
    Money::new(units, Currency::Inr)
}

/// Compares the book with itself and with the bank's statements. Chains are compared by
/// `chain_following::audit`, which needs their nodes.
pub fn run(tx: &mut dyn Tx) -> Result<Report, StoreError> {
    let mut report = Report::default();
    bank(tx, &mut report)?;
    statements(tx, &mut report)?;
    custody(tx, &mut report)?;
    let closed = journal::closed_differences(tx)?;
    report.differences.retain(|difference| {
        !closed.iter().any(|(kind, subject, units)| {
            kind == difference.kind.as_str()
                && *subject == difference.what
                && *units == difference.amount.units
        })
    });
    Ok(report)
}

/// Closes the difference of a payout, a statement or an account, with the operator's note. Answers
/// the kinds that were found: one was closed, and of several none was.
pub fn close(
    tx: &mut dyn Tx,
    now: &Now,
    subject: &str,
    kind: Option<&str>,
    note: &str,
) -> Result<Vec<DifferenceKind>, StoreError> {
    let mut found = run(tx)?.differences;
    found.retain(|difference| {
        difference.what == subject && kind.is_none_or(|kind| kind == difference.kind.as_str())
    });
    if let [difference] = found.as_slice() {
        let (kind, units) = (difference.kind.as_str(), difference.amount.units);
        journal::close_difference(tx, now, kind, subject, units, note)?;
    }
    Ok(found.iter().map(|difference| difference.kind).collect())
}

fn bank(tx: &mut dyn Tx, report: &mut Report) -> Result<(), StoreError> {
    let closed = rows::closed_until(tx)?;
    // A payment of a day that no statement closes yet cannot be on one.
    let until = closed.map_or(0, |day| day.plus_days(1).begins_at());
    let max = DIFFERENCES_SHOWN_MAX;
    let found = [
        (DifferenceKind::SettledWithoutLine, rows::settled_without_line(tx, until, max)?),
        (DifferenceKind::LineWithoutSettlement, rows::line_without_settlement(tx, max)?),
        (DifferenceKind::PaidTwice, rows::paid_twice(tx, max)?),
        (DifferenceKind::ReturnedAtBank, rows::returned_at_bank(tx, max)?),
        (DifferenceKind::ReturnedWithoutLine, rows::returned_without_line(tx, until, max)?),
        (DifferenceKind::OutcomeUnknown, rows::outcome_unknown(tx, max)?),
    ];
    for attended in rows::attended(tx, max)? {
        let kind = match attended.attention {
            journal::Attention::PaidAfterFailed | journal::Attention::PaidAgain => {
                DifferenceKind::PaidAfterFailed
            }
            _ if attended.is_unknown => DifferenceKind::OutcomeUnknown,
            _ => DifferenceKind::HeldForDecision,
        };
        let mut detail = attended.attention.meaning().to_owned();
        for said in [attended.reason_code, attended.reason_text].into_iter().flatten() {
            detail.push_str("; the bank says ");
            detail.push_str(&said);
        }
        report.differences.push(Difference {
            kind,
            what: attended.payout_id.to_string(),
            amount: inr(attended.units),
            detail: Some(detail),
        });
    }
    for (kind, differing) in found {
        let differences = differing.into_iter().map(|found| Difference {
            kind,
            what: found.payout_id.to_string(),
            amount: inr(found.units),
            detail: None,
        });
        report.differences.extend(differences);
    }
    for line in journal::unmatched(tx, max)? {
        let kind = match line.matching {
            journal::Matching::AmountDiffers => DifferenceKind::AmountDiffers,
            _ => DifferenceKind::LineUnmatched,
        };
        let units = if line.sign == Sign::Credit { line.units } else { -line.units };
        report.differences.push(Difference {
            kind,
            what: line.id.to_string(),
            amount: inr(units),
            detail: None,
        });
    }
    let (count, paid, returned) = rows::line_sums(tx)?;
    let closed =
        closed.map_or_else(|| "no statement".to_owned(), |day| format!("statements up to {day}"));
    report.counts.push(format!(
        "{closed}, {count} lines; payouts: {} INR paid, {} INR sent back",
        inr(paid),
        inr(returned)
    ));
    Ok(())
}

fn statements(tx: &mut dyn Tx, report: &mut Report) -> Result<(), StoreError> {
    let statements = rows::statements(tx, STATEMENTS_MAX)?;
    let mut closing_before: Option<i64> = None;
    for statement in &statements {
        if let (Some(opening), Some(closing)) = (statement.opening_units, statement.closing_units) {
            let off = inr(opening).plus(inr(statement.moved_units))?.minus(inr(closing))?;
            if !off.is_zero() {
                report.differences.push(Difference {
                    kind: DifferenceKind::StatementSum,
                    what: statement.statement_id.clone(),
                    amount: off,
                    detail: None,
                });
            }
        }
        if let (Some(before), Some(opening)) = (closing_before, statement.opening_units)
            && before != opening
        {
            let amount = inr(opening).minus(inr(before))?;
            report.differences.push(Difference {
                kind: DifferenceKind::StatementGap,
                what: statement.statement_id.clone(),
                amount,
                detail: None,
            });
        }
        closing_before = statement.closing_units.or(closing_before);
    }
    report.counts.push(format!("{} statements", statements.len()));
    Ok(())
}

fn custody(tx: &mut dyn Tx, report: &mut Report) -> Result<(), StoreError> {
    let usdt = |units| Money::new(units, Currency::Usdt);
    let sums = rows::custody(tx)?;
    for sum in &sums {
        let pairs = [
            (DifferenceKind::DepositsBook, sum.deposited_units, sum.credited_units),
            (DifferenceKind::RefundsBook, sum.refunded_units, sum.debited_units),
        ];
        for (kind, objects, book) in pairs {
            let off = usdt(objects).minus(usdt(book))?;
            if !off.is_zero() {
                let what =
                    format!("account {} {}", sum.scope.account_number(), sum.scope.mode().as_str());
                report.differences.push(Difference { kind, what, amount: off, detail: None });
            }
        }
    }
    report.counts.push(format!("{} accounts with deposits", sums.len()));
    Ok(())
}
