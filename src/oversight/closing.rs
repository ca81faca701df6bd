//! The daily closing: what each ledger account opened with, what moved, and what it closed with.
//! What moved is compared with the bank's statements, and with the deposits and refunds that the
//! chain made final on that day. The deposits and refunds are read from the store; no node of the
//! chain is asked.

use crate::kernel::{Currency, Mode, Money, StoreError};
use crate::ledger::LedgerAccount;
use crate::rails::files::values::Day;
use crate::store::Tx;

pub mod rows;

/// One ledger account in one currency over a day. A balance is debits less credits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosingLine {
    pub account: LedgerAccount,
    pub opening: Money,
    pub debits: Money,
    pub credits: Money,
    pub closing: Money,
}

/// One comparison: the ledger's figure in `book`, and that of the bank or the chain in `outside`.
/// The bank's is `None` if the mode has no bank, or if no statement closes the day or a later one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// A key in the section `closing` of the console's texts.
    pub what: &'static str,
    pub book: Money,
    pub outside: Option<Money>,
}

impl Comparison {
    /// By how much the bank or the chain shows more than the ledger; negative if less.
    pub fn difference(&self) -> Option<Money> {
        self.outside.and_then(|outside| outside.minus(self.book).ok())
    }
}

/// The closing of one Indian day.
#[derive(Clone, Debug)]
pub struct Closing {
    pub day: Day,
    pub lines: Vec<ClosingLine>,
    pub comparisons: Vec<Comparison>,
}

/// Makes the closing of a day in one mode.
pub fn read(tx: &mut dyn Tx, mode: Mode, day: Day) -> Result<Closing, StoreError> {
    let from = day.begins_at();
    let before = day.plus_days(1).begins_at();
    let mut lines = Vec::new();
    for moved in rows::moved(tx, mode, from, before)? {
        let money = |units| Money::new(units, moved.currency);
        let opening = money(moved.opening_units);
        let (debits, credits) = (money(moved.debit_units), money(moved.credit_units));
        let closing = opening.plus(debits)?.minus(credits)?;
        lines.push(ClosingLine { account: moved.account, opening, debits, credits, closing });
    }
    let figure = |account: LedgerAccount, currency: Currency, pick: fn(&ClosingLine) -> Money| {
        lines
            .iter()
            .find(|line| line.account == account && line.opening.currency == currency)
            .map_or(Money::zero(currency), pick)
    };
    let (inr, usdt) = (Currency::Inr, Currency::Usdt);
    let chain = rows::chain(tx, mode, from, before)?;
    let bank = rows::bank(tx, mode, day)?;
    let comparisons = vec![
        Comparison {
            what: "paid_out",
            book: figure(LedgerAccount::PaidOut, inr, |line| line.debits),
            outside: bank.map(|bank| Money::new(bank.debit_units, inr)),
        },
        Comparison {
            what: "came_back",
            book: figure(LedgerAccount::PaidOut, inr, |line| line.credits),
            outside: bank.map(|bank| Money::new(bank.credit_units, inr)),
        },
        Comparison {
            what: "deposited",
            book: figure(LedgerAccount::Custody, usdt, |line| line.credits),
            outside: Some(Money::new(chain.deposited_units, usdt)),
        },
        Comparison {
            what: "refunded",
            book: figure(LedgerAccount::Custody, usdt, |line| line.debits),
            outside: Some(Money::new(chain.refunded_units, usdt)),
        },
    ];
    Ok(Closing { day, lines, comparisons })
}

impl Closing {
    /// As RFC 4180 text. Every value is a word or a number of ours, so none needs quoting. The row
    /// of a comparison has its name in the column `account`, and the ledger's figure in `closing`.
    pub fn to_csv(&self) -> String {
        let mut text =
            "day,account,currency,opening,debits,credits,closing,outside,difference\r\n".to_owned();
        let day = self.day.to_string();
        for line in &self.lines {
            let (account, currency) = (line.account.as_str(), line.opening.currency.as_str());
            let (opening, closing) = (line.opening, line.closing);
            text.push_str(&format!(
                "{day},{account},{currency},{opening},{},{},{closing},,\r\n",
                line.debits, line.credits
            ));
        }
        for compared in &self.comparisons {
            let or_empty = |money: Option<Money>| money.map_or(String::new(), |m| m.to_string());
            text.push_str(&format!(
                "{day},{},{},,,,{},{},{}\r\n",
                compared.what,
                compared.book.currency.as_str(),
                compared.book,
                or_empty(compared.outside),
                or_empty(compared.difference())
            ));
        }
        text
    }
}
