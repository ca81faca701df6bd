//! Statements: what one account's transfers moved in a period. A row shows one transfer: what it
//! moved, the hashes of its deposits and refunds, and the bank's reference. In every currency,
//! opening + movements = closing.
//!
//! What came in and what left are sums of the period's ledger postings into the compartments and
//! out of them. Opening and closing are what the compartments held at the start and at the end of
//! the period. Everything else describes the transfer as it is now.

pub mod api;
pub mod rows;

use schemars::JsonSchema;
use serde::Serialize;

use crate::kernel::id::kind;
use crate::kernel::state::Status;
use crate::kernel::{Code, Currency, Id, Money, OperationError, Rate, Refusal, Scope, StoreError};
use crate::payouts;
use crate::rails::PaymentMethod;
use crate::resource::Resource;
use crate::store::Tx;
use crate::transfers;
use crate::transfers::state::TransferStatus;

pub const RESOURCE: Resource =
    Resource::new(api::routes).at("statements", "What transfers moved in a period.");

/// The most transfers of one statement.
pub const TRANSFERS_MAX: usize = 5_000;
/// The longest period of one statement, a leap year, in days and in seconds.
pub const PERIOD_DAYS_MAX: i64 = 366;
pub const PERIOD_SECONDS_MAX: i64 = PERIOD_DAYS_MAX * 86_400;
/// The period in seconds if the caller names no beginning.
pub const PERIOD_SECONDS_DEFAULT: i64 = 30 * 86_400;

crate::string_enum!(StatementWord { Statement "statement" });

/// One transfer. `usdt_in`, `usdt_out`, `inr_in` and `inr_out` are what it moved in the period; the
/// other fields show the transfer as it is now.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "StatementRow")]
pub struct StatementRow {
    pub transfer_id: Id<kind::Transfer>,
    pub status: TransferStatus,
    pub created: i64,
    /// Hashes of the completed deposits, in chain order; at most 100.
    pub deposit_transaction_hashes: Vec<String>,
    /// How many completed deposits there are, including those whose hashes are not listed.
    pub deposits_count: i64,
    /// USDT that came in during the period. USDT that a failed or returned payout gave back counts
    /// too.
    pub usdt_in: Money,
    /// USDT that left in the period, fee and refunds included.
    pub usdt_out: Money,
    /// INR for one USD.
    pub rate: Rate,
    /// In USD.
    pub fee: Money,
    pub payout_id: Option<Id<kind::Payout>>,
    pub payout_amount: Money,
    pub method: Option<PaymentMethod>,
    pub unique_transaction_reference: Option<String>,
    pub settled_at: Option<i64>,
    /// INR that was bought in the period.
    pub inr_in: Money,
    /// INR that left in the period: paid out, or exchanged back into USDT after a failed payout.
    pub inr_out: Money,
    /// USDT of completed refunds.
    pub refunded: Money,
    /// Hashes of the completed refunds, oldest first; at most 100.
    pub refund_transaction_hashes: Vec<String>,
    /// How many completed refunds there are, including those whose hashes are not listed.
    pub refunds_count: i64,
}

/// One currency over the period.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "StatementTotal")]
pub struct StatementTotal {
    pub currency: Currency,
    pub opening: Money,
    pub movements: Money,
    pub closing: Money,
}

/// A period's transfers and totals. `from` is included and `to` is not, in Unix seconds.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Statement")]
pub struct Statement {
    pub object: StatementWord,
    pub from: i64,
    pub to: i64,
    pub data: Vec<StatementRow>,
    pub totals: Vec<StatementTotal>,
    pub livemode: bool,
}

fn too_many() -> Refusal {
    let message = format!(
        "More than {TRANSFERS_MAX} transfers moved money in this period: choose a shorter period."
    );
    Refusal::field(Code::RequestQueryParameterInvalid, "to", message)
}

/// Makes the statement of one account and mode. Refuses more than [`TRANSFERS_MAX`] transfers. The
/// caller checks the period: `from` is before `to`, by at most [`PERIOD_SECONDS_MAX`].
pub fn compose(
    tx: &mut dyn Tx,
    scope: Scope,
    from: i64,
    to: i64,
) -> Result<Statement, OperationError> {
    // A transfer has at most two rows, one for each currency. So this many rows belong to more than
    // `TRANSFERS_MAX` transfers.
    let transfer_totals = rows::moved(tx, scope, from, to, TRANSFERS_MAX as i64 * 2 + 1)?;
    let mut data: Vec<StatementRow> = Vec::new();
    for moved in transfer_totals {
        if data.last().is_none_or(|row| row.transfer_id != moved.transfer_id) {
            if data.len() == TRANSFERS_MAX {
                return Err(too_many().into());
            }
            data.push(row(tx, scope, moved.transfer_id)?);
        }
        let Some(row) = data.last_mut() else { continue };
        let (came, left) = (
            Money::new(moved.in_units, moved.currency),
            Money::new(moved.out_units, moved.currency),
        );
        match moved.currency {
            Currency::Inr => (row.inr_in, row.inr_out) = (came, left),
            Currency::Usdt => (row.usdt_in, row.usdt_out) = (came, left),
            Currency::Usd => return Err(StoreError::Broken("the ledger holds USD".into()).into()),
        }
    }
    let opening = rows::compartment_sums(tx, scope, from)?;
    let closing = rows::compartment_sums(tx, scope, to)?;
    let of = |sums: &[rows::CompartmentSum], currency| {
        Money::new(
            sums.iter().find(|sum| sum.currency == currency).map_or(0, |sum| sum.units),
            currency,
        )
    };
    let mut totals = Vec::new();
    for currency in [Currency::Inr, Currency::Usdt] {
        let mut movements = Money::zero(currency);
        for row in &data {
            let (came, left) = if currency == Currency::Inr {
                (row.inr_in, row.inr_out)
            } else {
                (row.usdt_in, row.usdt_out)
            };
            movements = movements.plus(came)?.minus(left)?;
        }
        let total = StatementTotal {
            currency,
            opening: of(&opening, currency),
            movements,
            closing: of(&closing, currency),
        };
        if total.opening.plus(total.movements)? != total.closing {
            return Err(StoreError::Broken("a statement does not add up".into()).into());
        }
        totals.push(total);
    }
    Ok(Statement {
        object: StatementWord::Statement,
        from,
        to,
        data,
        totals,
        livemode: scope.livemode(),
    })
}

fn row(tx: &mut dyn Tx, scope: Scope, id: Id<kind::Transfer>) -> Result<StatementRow, StoreError> {
    let lost = || StoreError::Broken(format!("the ledger names {id}, which is not there"));
    let transfer = transfers::rows::find(tx, scope, id)?.ok_or_else(lost)?;
    let payout =
        transfer.payout_id.map(|id| payouts::rows::find(tx, scope, id)).transpose()?.flatten();
    let deposits = rows::completed_deposits(tx, scope, id)?;
    let refunds = rows::completed_refunds(tx, scope, id)?;
    let (inr, usdt) = (Money::zero(Currency::Inr), Money::zero(Currency::Usdt));
    Ok(StatementRow {
        transfer_id: id,
        status: transfer.status,
        created: transfer.created,
        deposit_transaction_hashes: deposits.hashes,
        deposits_count: deposits.count,
        usdt_in: usdt,
        usdt_out: usdt,
        rate: transfer.rate,
        fee: transfer.fee,
        payout_id: transfer.payout_id,
        payout_amount: transfer.payout_amount,
        method: payout.as_ref().map(|payout| payout.method),
        unique_transaction_reference: payout
            .as_ref()
            .and_then(|payout| payout.unique_transaction_reference.clone()),
        settled_at: payout.as_ref().and_then(|payout| payout.settled_at),
        inr_in: inr,
        inr_out: inr,
        refunded: Money::new(refunds.units, Currency::Usdt),
        refund_transaction_hashes: refunds.hashes,
        refunds_count: refunds.count,
    })
}

const CSV_HEAD: &str = "row,transfer_id,status,created,deposit_transaction_hashes,usdt_in,usdt_out,rate,fee_usd,payout_id,payout_amount_inr,\
method,unique_transaction_reference,settled_at,inr_in,inr_out,refunded_usdt,refund_transaction_hashes,currency,opening,movements,closing,\
deposits_count,refunds_count\r\n";

impl Statement {
    /// The statement as CSV (RFC 4180): the head, a line for each transfer, then one for each
    /// currency. Each value is a word, a number, an identifier, a bank's reference of letters and
    /// digits, or hashes with spaces between them. So no value needs quoting.
    pub fn to_csv(&self) -> String {
        let mut text = String::from(CSV_HEAD);
        for row in &self.data {
            let or_empty = |value: Option<String>| value.unwrap_or_default();
            let cells = [
                "transfer".to_owned(),
                row.transfer_id.to_string(),
                row.status.as_str().to_owned(),
                row.created.to_string(),
                row.deposit_transaction_hashes.join(" "),
                row.usdt_in.to_string(),
                row.usdt_out.to_string(),
                row.rate.to_string(),
                row.fee.to_string(),
                or_empty(row.payout_id.map(|id| id.to_string())),
                row.payout_amount.to_string(),
                or_empty(row.method.map(|method| method.as_str().to_owned())),
                or_empty(row.unique_transaction_reference.clone()),
                or_empty(row.settled_at.map(|at| at.to_string())),
                row.inr_in.to_string(),
                row.inr_out.to_string(),
                row.refunded.to_string(),
                row.refund_transaction_hashes.join(" "),
            ];
            text.push_str(&cells.join(","));
            text.push_str(&format!(",,,,,{},{}\r\n", row.deposits_count, row.refunds_count));
        }
        for total in &self.totals {
            let (currency, commas) = (total.currency.as_str(), ",".repeat(17));
            text.push_str(&format!(
                "total{commas},{currency},{},{},{},,\r\n",
                total.opening, total.movements, total.closing
            ));
        }
        text
    }
}
