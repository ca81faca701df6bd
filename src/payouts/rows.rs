//! The rows of payouts.

use super::advice_texts::AdviceTexts;
use super::state::{HoldReason, PayoutStatus};
use super::totals::{DAY_LENGTH, LimitSubject, MONTH_LENGTH, TotalKey};
use super::{Payout, PayoutFailure};
use crate::kernel::id::kind;
use crate::kernel::page::Page;
use crate::kernel::state::Status;
use crate::kernel::{Currency, History, Id, Money, Scope, StoreError};
use crate::rails::{FailureCode, FailureSource, PaymentMethod};
use crate::resource::BookRule;
use crate::store::list::{self, Listing};
use crate::store::{Row, Tx};
use crate::values;

crate::stored! {
    "payouts" as Payout, written from payout, read from row;
    fixed {
        scope: payout.scope => row.scope()?;
        id: payout.id => row.id()?;
        version: payout.version => row.int()?;
        transfer_id: payout.transfer_id => row.id()?;
        beneficiary_id: payout.beneficiary_id => row.id()?;
        currency: payout.amount.currency => row.word(Currency::parse)?;
        units: payout.amount.units => row.int()?;
        method: payout.method.as_str() => row.word(PaymentMethod::parse)?;
        purpose_code: &payout.purpose_code => row.text()?;
        created: payout.created => row.int()?;
    }
    changing from PayoutStatus {
        status: payout.status.as_str() => row.word(PayoutStatus::parse)?;
        unique_transaction_reference: &payout.unique_transaction_reference => row.text_or_null()?;
        submitted_milliseconds: payout.submitted_milliseconds => row.int_or_null()?;
        settled_at: payout.settled_at => row.int_or_null()?;
        failure_code: payout.failure.as_ref().map(|failure| failure.code.as_str())
            => row.word_or_null(FailureCode::parse)?;
        failure_message: payout.failure.as_ref().map(|failure| failure.message.as_str())
            => row.text_or_null()?;
        failure_source: payout.failure.as_ref().map(|failure| failure.source.as_str())
            => row.word_or_null(FailureSource::parse)?;
        advice_available_at: payout.advice_available_at => row.int_or_null()?;
        status_history: &payout.status_history.to_text() => History::from_text(&row.text()?)?;
        advice_texts_number: payout.advice_texts_number => row.int_or_null()?;
        held_for: payout.held_for.map(HoldReason::as_str) => row.word_or_null(HoldReason::parse)?;
    }
    into Payout {
        scope,
        id,
        version,
        transfer_id,
        beneficiary_id,
        status,
        amount: Money::new(units, currency),
        method,
        purpose_code,
        unique_transaction_reference,
        submitted_milliseconds,
        settled_at,
        failure: match (failure_code, failure_message, failure_source) {
            (Some(code), Some(message), Some(source)) => {
                Some(PayoutFailure { code, message, source })
            }
            _ => None,
        },
        advice_available_at,
        advice_texts_number,
        status_history,
        held_for,
        created,
    }
}

/// Keeps texts of payment advices, unless they are kept already; answers their number.
pub fn keep_advice_texts(tx: &mut dyn Tx, texts: &AdviceTexts) -> Result<i64, StoreError> {
    let number = texts.number();
    tx.execute(
        "INSERT INTO advice_texts (number, issuer, issuer_address, issuer_licence, sponsor_bank, \
         debited_account_last4) VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (number) DO NOTHING",
        values![
            number,
            &texts.issuer,
            &texts.issuer_address,
            &texts.issuer_licence,
            &texts.sponsor_bank,
            &texts.debited_account_last4,
        ],
    )?;
    Ok(number)
}

pub fn find_advice_texts(tx: &mut dyn Tx, number: i64) -> Result<Option<AdviceTexts>, StoreError> {
    let sql = "SELECT issuer, issuer_address, issuer_licence, sponsor_bank, \
               debited_account_last4 FROM advice_texts WHERE number = ?1";
    let read = |mut row: Row| {
        Ok(AdviceTexts {
            issuer: row.text()?,
            issuer_address: row.text_or_null()?,
            issuer_licence: row.text_or_null()?,
            sponsor_bank: row.text_or_null()?,
            debited_account_last4: row.text_or_null()?,
        })
    };
    tx.row(sql, values![number])?.map(read).transpose()
}

/// Finds a payout in whatever account it is. It serves links that prove by a keyed hash that the
/// service made them, so the caller checks the hash first.
pub fn find_anywhere(tx: &mut dyn Tx, id: Id<kind::Payout>) -> Result<Option<Payout>, StoreError> {
    for scope in crate::keys::rows::scopes(tx)? {
        if let Some(payout) = find(tx, scope, id)? {
            return Ok(Some(payout));
        }
    }
    Ok(None)
}

/// Payouts whose instruction was not given to the rail yet, with identifiers above `after`.
pub fn waiting(
    tx: &mut dyn Tx,
    scope: Scope,
    after: [u8; 16],
    rows_max: i64,
) -> Result<Vec<Id<kind::Payout>>, StoreError> {
    let rows = tx.rows(
        "SELECT id FROM payouts WHERE scope = ?1 AND id > ?2 \
         AND status IN ('initialized', 'hold') ORDER BY id LIMIT ?3",
        values![scope, &after, rows_max],
    )?;
    rows.into_iter().map(|mut row| row.id()).collect()
}

/// Payouts to a beneficiary that are on hold, for any reason, with identifiers above `after`.
pub fn on_hold_of_beneficiary(
    tx: &mut dyn Tx,
    scope: Scope,
    beneficiary_id: Id<kind::Beneficiary>,
    after: [u8; 16],
    rows_max: i64,
) -> Result<Vec<Id<kind::Payout>>, StoreError> {
    let rows = tx.rows(
        "SELECT id FROM payouts WHERE scope = ?1 AND beneficiary_id = ?2 AND status = 'hold' \
         AND id > ?3 ORDER BY id LIMIT ?4",
        values![scope, beneficiary_id, &after, rows_max],
    )?;
    rows.into_iter().map(|mut row| row.id()).collect()
}

/// Payouts on hold, with identifiers above `after`.
pub fn on_hold(
    tx: &mut dyn Tx,
    scope: Scope,
    after: [u8; 16],
    rows_max: i64,
) -> Result<Vec<Payout>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM payouts WHERE scope = ?1 AND id > ?2 AND status = 'hold' \
         ORDER BY id LIMIT ?3"
    );
    tx.rows(&sql, values![scope, &after, rows_max])?.into_iter().map(read).collect()
}

/// A total in paise; `None` if it does not exist yet.
pub fn total_units(
    tx: &mut dyn Tx,
    scope: Scope,
    total: &TotalKey,
) -> Result<Option<i64>, StoreError> {
    let row = tx.row(
        "SELECT units FROM payout_totals WHERE scope = ?1 AND subject = ?2 AND subject_id = ?3 \
         AND period = ?4",
        values![scope, total.subject.as_str(), &total.subject_id, &total.period],
    )?;
    row.map(|mut row| row.int()).transpose()
}

/// The sum of the payouts that were instructed in a total's period and neither failed nor came
/// back, in paise.
pub fn instructed_units(
    tx: &mut dyn Tx,
    scope: Scope,
    total: &TotalKey,
) -> Result<i64, StoreError> {
    const INSTRUCTED: &str = "p.status IN ('processing', 'settled') \
        AND p.submitted_milliseconds >= ?3 AND p.submitted_milliseconds < ?4";
    let source = match total.subject {
        LimitSubject::Sender => {
            "transfers t JOIN payouts p ON p.scope = t.scope AND p.id = t.payout_id \
             WHERE t.scope = ?1 AND t.sender_id = ?2"
        }
        LimitSubject::Beneficiary => {
            "transfers t JOIN payouts p ON p.scope = t.scope AND p.id = t.payout_id \
             WHERE t.scope = ?1 AND t.beneficiary_id = ?2"
        }
        // `p.id <> ?2` is always true. It is there so that the other parameters keep their numbers.
        LimitSubject::Account => "payouts p WHERE p.scope = ?1 AND p.id <> ?2",
    };
    let sql =
        format!("SELECT CAST(COALESCE(SUM(p.units), 0) AS BIGINT) FROM {source} AND {INSTRUCTED}");
    let (from, until) = (total.from_milliseconds, total.until_milliseconds);
    let row = tx.row(&sql, values![scope, &total.subject_id, from, until])?;
    row.map_or(Ok(0), |mut row| row.int())
}

/// Makes a total of `units` paise, unless another transaction has made it meanwhile.
pub fn begin_total(
    tx: &mut dyn Tx,
    scope: Scope,
    total: &TotalKey,
    units: i64,
) -> Result<(), StoreError> {
    tx.execute(
        "INSERT INTO payout_totals (scope, subject, subject_id, period, units, \
         until_milliseconds) VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
         ON CONFLICT (scope, subject, subject_id, period) DO NOTHING",
        values![
            scope,
            total.subject.as_str(),
            &total.subject_id,
            &total.period,
            units,
            total.until_milliseconds,
        ],
    )
    .map(drop)
}

/// Adds an amount to a total if the sum is at most `units_max`, and answers whether it was added.
/// Amount and limit are in paise.
pub fn add_to_total(
    tx: &mut dyn Tx,
    scope: Scope,
    total: &TotalKey,
    units: i64,
    units_max: i64,
) -> Result<bool, StoreError> {
    let changed = tx.execute(
        "UPDATE payout_totals SET units = units + ?5 WHERE scope = ?1 AND subject = ?2 \
         AND subject_id = ?3 AND period = ?4 AND units <= ?6",
        values![
            scope,
            total.subject.as_str(),
            &total.subject_id,
            &total.period,
            units,
            units_max.saturating_sub(units),
        ],
    )?;
    Ok(changed == 1)
}

/// Subtracts a payout's amount in paise from a total. A total that is smaller than the amount
/// cannot include the payout, so the total stays as it is.
pub fn subtract_from_total(
    tx: &mut dyn Tx,
    scope: Scope,
    total: &TotalKey,
    units: i64,
) -> Result<(), StoreError> {
    tx.execute(
        "UPDATE payout_totals SET units = units - ?5 WHERE scope = ?1 AND subject = ?2 \
         AND subject_id = ?3 AND period = ?4 AND units >= ?5",
        values![scope, total.subject.as_str(), &total.subject_id, &total.period, units],
    )
    .map(drop)
}

/// Removes the totals of a limit that is not set, so that they begin with the sum of the payouts
/// once it is set again.
pub fn forget_totals(
    tx: &mut dyn Tx,
    subject: LimitSubject,
    is_month: bool,
) -> Result<(), StoreError> {
    let length = if is_month { MONTH_LENGTH } else { DAY_LENGTH };
    tx.execute(
        "DELETE FROM payout_totals WHERE subject = ?1 AND LENGTH(period) = ?2",
        values![subject.as_str(), length as i64],
    )
    .map(drop)
}

/// Payouts of more than `units` paise that settled at or after `from` and before `until`, in Unix
/// seconds, with identifiers above `after`. Includes those that came back later.
pub fn settled_above(
    tx: &mut dyn Tx,
    scope: Scope,
    from: i64,
    until: i64,
    units: i64,
    after: [u8; 16],
    rows_max: i64,
) -> Result<Vec<Payout>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM payouts WHERE scope = ?1 AND id > ?2 AND settled_at >= ?3 \
         AND settled_at < ?4 AND units > ?5 ORDER BY id LIMIT ?6"
    );
    let values = values![scope, &after, from, until, units, rows_max];
    tx.rows(&sql, values)?.into_iter().map(read).collect()
}

/// Removes at most `rows_max` totals of periods that ended before a moment in Unix milliseconds,
/// and answers how many.
pub fn purge_totals(
    tx: &mut dyn Tx,
    before_milliseconds: i64,
    rows_max: i64,
) -> Result<u64, StoreError> {
    let old = tx.rows(
        "SELECT scope, subject, subject_id, period FROM payout_totals WHERE until_milliseconds < \
         ?1 LIMIT ?2",
        values![before_milliseconds, rows_max],
    )?;
    let count = old.len() as u64;
    // Each row is removed by its whole key, because the planner could choose to scan the table for
    // one statement that removes many rows.
    for mut row in old {
        let (scope, subject, subject_id) = (row.scope()?, row.text()?, row.bytes()?);
        tx.execute_one(
            "DELETE FROM payout_totals WHERE scope = ?1 AND subject = ?2 AND subject_id = ?3 AND \
             period = ?4",
            values![scope, &subject, &subject_id, &row.text()?],
        )?;
    }
    Ok(count)
}

pub fn list(tx: &mut dyn Tx, scope: Scope, page: &Page) -> Result<(Vec<Row>, bool), StoreError> {
    list::read(
        tx,
        &Listing { table: "payouts", columns: COLUMNS, key: ("scope", scope.into()) },
        page,
    )
}

/// Queries that find errors in these rows, for `hundi check`, such as changes that somebody made
/// outside the service.
pub const BOOK_RULES: &[BookRule] = &[
    BookRule {
        meaning: "a payout's transfer has no completed deposit",
        sql: "SELECT 'payout', p.id FROM payouts p WHERE NOT EXISTS ( \
                SELECT 1 FROM deposits d WHERE d.scope = p.scope AND d.transfer_id = \
                p.transfer_id AND d.status = 'completed') LIMIT ?1",
    },
    BookRule {
        meaning: "a settled payout has no reference",
        sql: "SELECT 'payout', id FROM payouts WHERE status IN ('settled', 'returned') AND \
         unique_transaction_reference IS NULL LIMIT ?1",
    },
];
