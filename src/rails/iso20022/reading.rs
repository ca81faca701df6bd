//! Reads what a bank sends: status reports (pain.002), notifications (camt.054) and statements
//! (camt.053). The readers know the versions from pain.002.001.03, camt.053.001.02 and
//! camt.054.001.02 on.
//!
//! The versions have a few elements in different places; each reader looks in all of them. A file
//! is judged statement by statement and entry by entry: a part that cannot be read is listed with
//! its place, and the rest counts. Remittance texts are searched for references and then dropped.
//! Names and addresses are not used.

use super::elements::{amount, day, identity, sign};
use super::entries;
use super::status;
use super::xml::{self, Element};
use crate::kernel::{Currency, Money};
use crate::rails::files::format::FileError;
use crate::rails::files::reports::{
    AccountReport, Content, Incoming, REPORTS_MAX, ReportKind, Sign, Unread,
};
use crate::rails::files::values::Day;

/// The messages that are read: the name of each in a namespace, its element, and its kind.
const MESSAGES: &[(&str, &str, ReportKind)] = &[
    ("pain.002.001.", "CstmrPmtStsRpt", ReportKind::Status),
    ("camt.053.001.", "BkToCstmrStmt", ReportKind::Statement),
    ("camt.054.001.", "BkToCstmrDbtCdtNtfctn", ReportKind::Notification),
];
/// The same messages in words.
const MESSAGES_READ: &str = "pain.002, camt.053 or camt.054";
/// Why a statement of an account that is not ours is left out.
const OTHER_ACCOUNT: &str =
    "it is about another account than the one of [bank] debit_account_number";
/// The namespace of the standard, without the message.
pub const NAMESPACE_PREFIX: &str = "urn:iso:std:iso:20022:tech:xsd:";

/// Whether a namespace is one of a message that is read. National variants have namespaces of their
/// own that hold the message's name. Some banks write no namespace.
fn is_known(namespace: &str) -> bool {
    namespace.is_empty() || MESSAGES.iter().any(|(name, ..)| namespace.contains(name))
}

/// Reads a file, whatever accounts it is about.
pub fn read(bytes: &[u8]) -> Result<Incoming, FileError> {
    read_for(bytes, &|_| true)
}

/// Reads a file. Statements and notifications of accounts that are not ours are listed as unread. A
/// file of statements or notifications is refused if parts of it are unread and no entry was read.
/// But it is not refused if a statement or notification of ours was read and only those of other
/// accounts are unread.
pub fn read_for(bytes: &[u8], is_ours: &dyn Fn(&str) -> bool) -> Result<Incoming, FileError> {
    let (namespace, document) = xml::parse(bytes, &is_known, MESSAGES_READ)?;
    let mut found = None;
    for (name, element, kind) in MESSAGES {
        if let Some(root) = document.optional(element)?
            && (namespace.is_empty() || namespace.contains(name))
        {
            found = Some((root, *kind));
        }
    }
    let (root, kind) = found.ok_or_else(|| xml::no_message(MESSAGES_READ))?;
    let header = root.required("GrpHdr")?;
    let message_id = identity(header, "MsgId")?;
    let page = page_at(header, "MsgPgntn")?;
    let created = header.text_at("CreDtTm")?.and_then(Day::parse);
    let mut unread = Unread::default();
    let mut is_copy = false;
    let content = match kind {
        ReportKind::Status => Content::Statuses(status::read(root, &mut unread)?),
        ReportKind::Notification | ReportKind::Statement => {
            let name = if kind == ReportKind::Statement { "Stmt" } else { "Ntfctn" };
            let parts: Vec<&Element> = root.all(name).collect();
            if parts.is_empty() {
                return Err(FileError::new(format!("{} lacks {name}", root.shown())));
            }
            is_copy = parts.iter().any(|part| matches!(part.text_at("CpyDplctInd"), Ok(Some(_))));
            let context = AccountContext { name, page, created, is_ours };
            Content::Accounts(read_accounts(&parts, &context, &mut unread)?)
        }
    };
    Ok(Incoming { kind, message_id, page: page.unwrap_or(1), is_copy, content, unread })
}

/// What the reader of one account needs to know of the file around it.
struct AccountContext<'a> {
    /// The element of one account: `Stmt` or `Ntfctn`.
    name: &'static str,
    /// The page and the day of the whole message, for an account that has none of its own.
    page: Option<i64>,
    created: Option<Day>,
    is_ours: &'a dyn Fn(&str) -> bool,
}

fn read_accounts(
    parts: &[&Element],
    context: &AccountContext<'_>,
    unread: &mut Unread,
) -> Result<Vec<AccountReport>, FileError> {
    let mut reports: Vec<AccountReport> = Vec::new();
    let (mut lines_count, mut others_count) = (0, 0);
    for (index, element) in parts.iter().enumerate() {
        let place = format!("{} {}", context.name, index + 1);
        let (mut report, default_day, faults) = match read_head(element, context) {
            Ok(head) => head,
            Err(refused) => {
                others_count += usize::from(refused.reason == OTHER_ACCOUNT);
                unread.push(place, refused.reason);
                continue;
            }
        };
        for fault in faults {
            unread.push(format!("{place}, Bal"), fault.reason);
        }
        for (number, entry) in element.all("Ntry").enumerate() {
            let place = format!("{place}, Ntry {}", number + 1);
            match entries::read(entry, &place, default_day) {
                Ok(lines) => report.lines.extend(lines),
                Err(refused) => unread.push(place, refused.reason),
            }
            if lines_count + report.lines.len() > REPORTS_MAX {
                return Err(FileError::new(format!(
                    "the file holds more than {REPORTS_MAX} entries: have it split"
                )));
            }
        }
        lines_count += report.lines.len();
        reports.push(report);
    }
    // Everything about our account was read, so the file is not refused, even if it has no entries.
    if unread.count == others_count && !reports.is_empty() {
        return Ok(reports);
    }
    // If parts were unreadable and no entry was read, the file is refused, so that the operator
    // notices.
    match unread.shown.first() {
        Some((_, reason)) if lines_count == 0 => Err(FileError::new(reason.clone())),
        _ => Ok(reports),
    }
}

/// Reads a statement or notification without its entries. Also answers the day of entries that name
/// none, and the faults of the balances, because the entries are read even if a balance cannot
/// be.
fn read_head(
    element: &Element,
    context: &AccountContext<'_>,
) -> Result<(AccountReport, Option<Day>, Vec<FileError>), FileError> {
    let account = element.required("Acct")?.required("Id")?;
    let number = match account.text_at("Othr/Id")? {
        Some(number) => number,
        None => account.text_at("IBAN")?.ok_or_else(|| FileError::new("Acct has no number"))?,
    };
    if !(context.is_ours)(number) {
        return Err(FileError::new(OTHER_ACCOUNT));
    }
    let page = page_at(element, "StmtPgntn")?.or(context.page);
    let mut faults = Vec::new();
    let mut read_balance = |types: &[&str]| {
        balance(element, types).unwrap_or_else(|fault| {
            faults.push(fault);
            None
        })
    };
    let (opening, closing) = (read_balance(&["OPBD", "PRCD"]), read_balance(&["CLBD"]));
    let created = element.text_at("CreDtTm")?.and_then(Day::parse).or(context.created);
    let report = AccountReport {
        id: identity(element, "Id")?,
        sequence: match element.text_at("ElctrncSeqNb")? {
            Some(text) => text.parse().ok(),
            None => element.text_at("LglSeqNb")?.and_then(|text| text.parse().ok()),
        },
        page: page.unwrap_or(1),
        account_number: number.to_owned(),
        opening,
        closing,
        lines: Vec::new(),
    };
    Ok((report, closing.map(|(_, day)| day).or(created), faults))
}

fn page_at(element: &Element, name: &str) -> Result<Option<i64>, FileError> {
    let Some(text) = element.text_at(&format!("{name}/PgNb"))? else { return Ok(None) };
    let number = text.parse().ok().filter(|page| (1..=99_999).contains(page));
    number.map(Some).ok_or_else(|| FileError::new("PgNb is not the number of a page"))
}

/// The balance of the first of the types that the statement has; a debit balance is negative.
fn balance(element: &Element, types: &[&str]) -> Result<Option<(Money, Day)>, FileError> {
    for wanted in types {
        for balance in element.all("Bal") {
            if balance.text_at("Tp/CdOrPrtry/Cd")? != Some(wanted) {
                continue;
            }
            let money = amount(balance.required("Amt")?)?;
            let units = match sign(balance)? {
                Some(Sign::Credit) => money.units,
                Some(Sign::Debit) => -money.units,
                None => return Err(FileError::new("Bal lacks CdtDbtInd")),
            };
            let at = day(balance, "Dt")?.ok_or_else(|| FileError::new("Bal lacks Dt"))?;
            return Ok(Some((Money::new(units, Currency::Inr), at)));
        }
    }
    Ok(None)
}
