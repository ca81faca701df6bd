//! Reads what a bank sends: status reports (pain.002.001.10), notifications (camt.054.001.08) and
//! statements (camt.053.001.08), into values that say only what the rest of the service needs.
//!
//! Names, addresses and remittance texts in these files are looked through for references and then
//! dropped.

use super::reasons::{self, Meaning};
use super::values::{Day, EndToEndId, MessageId, Utr, inr};
use super::xml::{self, Element, Refused};
use crate::kernel::{Currency, Money};
use crate::rails::Method;

/// Reports or lines of one file.
pub const REPORTS_MAX: usize = 20_000;
/// Characters of a reference: the standard's `Max35Text`.
const REFERENCE_LENGTH_MAX: usize = 35;

crate::string_enum!(
    /// The messages that are read.
    ReportKind {
        Status "pain.002.001.10",
        Notification "camt.054.001.08",
        Statement "camt.053.001.08",
    }
);

const NAMESPACE_PREFIX: &str = "urn:iso:std:iso:20022:tech:xsd:";

impl ReportKind {
    fn of_namespace(namespace: &str) -> Option<ReportKind> {
        ReportKind::parse(namespace.strip_prefix(NAMESPACE_PREFIX)?)
    }
    pub fn namespace(self) -> String {
        format!("{NAMESPACE_PREFIX}{}", self.as_str())
    }
}

/// A file that was read whole.
#[derive(Clone, Debug)]
pub struct Incoming {
    pub kind: ReportKind,
    /// The bank's own identity of the message, 1 to 35 characters.
    pub message_id: String,
    pub content: Content,
}

#[derive(Clone, Debug)]
pub enum Content {
    Statuses(StatusReport),
    Accounts(Vec<AccountReport>),
}

/// A bank's word on a message of ours, as a whole and payment by payment.
#[derive(Clone, Debug)]
pub struct StatusReport {
    /// The message of ours that it is about; `None` if it is about somebody else's.
    pub original: Option<MessageId>,
    /// What is said of the whole message.
    pub whole: Option<Verdict>,
    /// What is said of one batch, by the identity that we gave it.
    pub batches: Vec<(String, Verdict)>,
    pub payments: Vec<PaymentStatus>,
}

/// A status and its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// `None` for a status that is not in the table.
    pub meaning: Option<Meaning>,
    pub reason: Option<String>,
}

#[derive(Clone, Debug)]
pub struct PaymentStatus {
    pub end_to_end_id: Option<EndToEndId>,
    pub verdict: Verdict,
    /// The original amount, where the bank repeats it.
    pub amount: Option<Money>,
    pub references: References,
}

/// Where a clearing system's reference may stand, from the surest to the least sure.
#[derive(Clone, Debug, Default)]
pub struct References {
    clearing: Option<String>,
    servicer: Vec<String>,
    /// Words of free texts that have a reference's length.
    words: Vec<String>,
}

impl References {
    /// The reference of a payment by `method`. The clearing system's own field counts as it is;
    /// other places only if what stands there has a known form, and free text only if it holds one.
    pub fn utr(&self, method: Method) -> Option<Utr> {
        let classified = |text: &String| Utr::parse(text, method).filter(Utr::is_classified);
        if let Some(found) = self.clearing.as_deref().and_then(|text| Utr::parse(text, method)) {
            return Some(found);
        }
        if let Some(found) = self.servicer.iter().find_map(classified) {
            return Some(found);
        }
        let mut words = self.words.iter().filter_map(classified);
        let first = words.next()?;
        // Two different ones leave it open which is this payment's.
        words.all(|other| other == first).then_some(first)
    }
    /// Everything that could be the reference of an earlier payment, for a look-up.
    pub fn candidates(&self) -> impl Iterator<Item = &str> {
        self.clearing.iter().chain(&self.servicer).chain(&self.words).map(String::as_str)
    }
    /// What is kept of a line that belongs to no payout, for the operator to look it up by.
    pub fn shown(&self) -> Option<&str> {
        self.clearing.as_deref().or_else(|| self.servicer.first().map(String::as_str))
    }
}

crate::string_enum!(
    /// Which way money moved on the account.
    Sign { Credit "credit", Debit "debit" }
);

/// What happened on one account, or a page of it.
#[derive(Clone, Debug)]
pub struct AccountReport {
    pub id: String,
    /// The bank's number of the statement, which rises.
    pub sequence: Option<i64>,
    /// Compared with the debit account, then dropped.
    pub account_number: String,
    /// Booked balances of a statement; `None` on notifications and inner pages. Negative is
    /// overdrawn.
    pub opening: Option<(Money, Day)>,
    pub closing: Option<(Money, Day)>,
    /// Entries that are booked.
    pub lines: Vec<Line>,
}

/// One booked movement.
#[derive(Clone, Debug)]
pub struct Line {
    pub end_to_end_id: Option<EndToEndId>,
    /// The reference as it stands, if it is none of ours.
    pub foreign_reference: Option<String>,
    pub references: References,
    pub amount: Money,
    pub sign: Sign,
    /// The bank undoes an entry of its own.
    pub is_reversal: bool,
    /// Why a payment came back.
    pub return_reason: Option<String>,
    pub booking_day: Day,
    pub value_day: Option<Day>,
}

/// Reads a file.
pub fn read(bytes: &[u8]) -> Result<Incoming, Refused> {
    let (namespace, document) =
        xml::parse(bytes, &|namespace| ReportKind::of_namespace(namespace).is_some())?;
    let kind =
        ReportKind::of_namespace(&namespace).ok_or_else(|| Refused::new("an unknown message"))?;
    let root = document.required(match kind {
        ReportKind::Status => "CstmrPmtStsRpt",
        ReportKind::Notification => "BkToCstmrDbtCdtNtfctn",
        ReportKind::Statement => "BkToCstmrStmt",
    })?;
    let message_id = identity(root.required("GrpHdr")?, "MsgId")?;
    let content = match kind {
        ReportKind::Status => Content::Statuses(read_status(root)?),
        ReportKind::Notification => Content::Accounts(read_accounts(root, "Ntfctn")?),
        ReportKind::Statement => Content::Accounts(read_accounts(root, "Stmt")?),
    };
    Ok(Incoming { kind, message_id, content })
}

/// A reference of at most 35 characters that must be there.
fn identity(element: &Element, name: &str) -> Result<String, Refused> {
    reference_at(element, name)?
        .ok_or_else(|| Refused::new(format!("{} lacks {name}", element.shown())))
}

fn reference_at(element: &Element, path: &str) -> Result<Option<String>, Refused> {
    let Some(text) = element.text_at(path)? else { return Ok(None) };
    if text.chars().count() > REFERENCE_LENGTH_MAX || text.chars().any(char::is_control) {
        return Err(Refused::new(format!(
            "{path} is longer than {REFERENCE_LENGTH_MAX} characters"
        )));
    }
    Ok(Some(text.to_owned()))
}

fn verdict(element: &Element, status: &str) -> Result<Option<Verdict>, Refused> {
    let Some(code) = element.text_at(status)? else { return Ok(None) };
    let mut reason = None;
    for information in element.all("StsRsnInf") {
        let found = match information.text_at("Rsn/Cd")? {
            Some(code) => Some(code),
            None => information.text_at("Rsn/Prtry")?,
        };
        // The first reason is the bank's main one.
        reason = reason
            .or_else(|| found.filter(|code| code.len() <= REFERENCE_LENGTH_MAX).map(str::to_owned));
    }
    Ok(Some(Verdict { meaning: reasons::status(code), reason }))
}

fn read_status(root: &Element) -> Result<StatusReport, Refused> {
    let group = root.required("OrgnlGrpInfAndSts")?;
    let original = identity(group, "OrgnlMsgId")?;
    let mut report = StatusReport {
        original: MessageId::parse(&original),
        whole: verdict(group, "GrpSts")?,
        batches: Vec::new(),
        payments: Vec::new(),
    };
    for batch in root.all("OrgnlPmtInfAndSts") {
        let id = identity(batch, "OrgnlPmtInfId")?;
        if let Some(verdict) = verdict(batch, "PmtInfSts")? {
            report.batches.push((id, verdict));
        }
        for payment in batch.all("TxInfAndSts") {
            if report.payments.len() >= REPORTS_MAX {
                return Err(Refused::new(format!(
                    "the file holds more than {REPORTS_MAX} payments: have it split"
                )));
            }
            // Without a status of its own, a payment shares its batch's.
            let Some(verdict) = verdict(payment, "TxSts")? else { continue };
            let amount = match payment.at("OrgnlTxRef/Amt/InstdAmt")? {
                Some(element) => Some(amount(element)?),
                None => None,
            };
            let mut references = References {
                clearing: reference_at(payment, "ClrSysRef")?,
                ..References::default()
            };
            references.servicer.extend(reference_at(payment, "AcctSvcrRef")?);
            let name = match reference_at(payment, "OrgnlEndToEndId")? {
                Some(name) => Some(name),
                None => reference_at(payment, "OrgnlInstrId")?,
            };
            let end_to_end_id = name.as_deref().and_then(EndToEndId::parse);
            report.payments.push(PaymentStatus { end_to_end_id, verdict, amount, references });
        }
    }
    Ok(report)
}

fn amount(element: &Element) -> Result<Money, Refused> {
    if element.currency() != Some("INR") {
        return Err(Refused::new(format!("{} is not in INR", element.shown())));
    }
    inr(element.text()).ok_or_else(|| {
        Refused::new(format!("{} is not an amount with at most two decimals", element.shown()))
    })
}

fn sign(element: &Element) -> Result<Option<Sign>, Refused> {
    match element.text_at("CdtDbtInd")? {
        None => Ok(None),
        Some("CRDT") => Ok(Some(Sign::Credit)),
        Some("DBIT") => Ok(Some(Sign::Debit)),
        Some(_) => Err(Refused::new("CdtDbtInd is neither CRDT nor DBIT")),
    }
}

/// A date that stands alone or in a date-time.
fn day(element: &Element, name: &str) -> Result<Option<Day>, Refused> {
    let Some(choice) = element.optional(name)? else { return Ok(None) };
    let text = match choice.text_at("Dt")? {
        Some(text) => Some(text),
        None => choice.text_at("DtTm")?,
    };
    let day =
        text.and_then(Day::parse).ok_or_else(|| Refused::new(format!("{name} is not a date")))?;
    Ok(Some(day))
}

fn read_accounts(root: &Element, name: &str) -> Result<Vec<AccountReport>, Refused> {
    let mut reports = Vec::new();
    let mut lines_count = 0;
    for element in root.all(name) {
        let account = element.required("Acct")?.required("Id")?;
        let number = match account.text_at("Othr/Id")? {
            Some(number) => number,
            None => account.text_at("IBAN")?.ok_or_else(|| Refused::new("Acct has no number"))?,
        };
        let mut report = AccountReport {
            id: identity(element, "Id")?,
            sequence: element.text_at("ElctrncSeqNb")?.and_then(|text| text.parse().ok()),
            account_number: number.to_owned(),
            opening: balance(element, &["OPBD", "PRCD"])?,
            closing: balance(element, &["CLBD"])?,
            lines: Vec::new(),
        };
        for entry in element.all("Ntry") {
            read_entry(entry, &mut report.lines)?;
            if lines_count + report.lines.len() > REPORTS_MAX {
                return Err(Refused::new(format!(
                    "the file holds more than {REPORTS_MAX} entries: have it split"
                )));
            }
        }
        lines_count += report.lines.len();
        reports.push(report);
    }
    if reports.is_empty() {
        return Err(Refused::new(format!("{} lacks {name}", root.shown())));
    }
    Ok(reports)
}

/// The first balance of one of the types, with its sign.
fn balance(element: &Element, types: &[&str]) -> Result<Option<(Money, Day)>, Refused> {
    for wanted in types {
        for balance in element.all("Bal") {
            if balance.text_at("Tp/CdOrPrtry/Cd")? != Some(wanted) {
                continue;
            }
            let money = amount(balance.required("Amt")?)?;
            let units = match sign(balance)? {
                Some(Sign::Credit) => money.units,
                Some(Sign::Debit) => -money.units,
                None => return Err(Refused::new("Bal lacks CdtDbtInd")),
            };
            let at = day(balance, "Dt")?.ok_or_else(|| Refused::new("Bal lacks Dt"))?;
            return Ok(Some((Money::new(units, Currency::Inr), at)));
        }
    }
    Ok(None)
}

/// Turns an entry into its lines: one for each transaction, or one for the whole where the
/// transactions have no amounts of their own.
fn read_entry(entry: &Element, lines: &mut Vec<Line>) -> Result<(), Refused> {
    // Only what is booked has moved money.
    if entry.text_at("Sts/Cd")? != Some("BOOK") {
        return Ok(());
    }
    let whole = amount(entry.required("Amt")?)?;
    let entry_sign = sign(entry)?.ok_or_else(|| Refused::new("Ntry lacks CdtDbtInd"))?;
    let is_reversal = match entry.text_at("RvslInd")? {
        None | Some("false" | "0") => false,
        Some("true" | "1") => true,
        Some(_) => return Err(Refused::new("RvslInd is neither true nor false")),
    };
    let value_day = day(entry, "ValDt")?;
    let booking_day = match day(entry, "BookgDt")? {
        Some(day) => day,
        None => value_day.ok_or_else(|| Refused::new("Ntry has no date"))?,
    };
    let line = |amount, sign| Line {
        end_to_end_id: None,
        foreign_reference: None,
        references: References::default(),
        amount,
        sign,
        is_reversal,
        return_reason: None,
        booking_day,
        value_day,
    };
    let entry_servicer = reference_at(entry, "AcctSvcrRef")?;
    let entry_words = words(entry.text_at("AddtlNtryInf")?);
    let details: Vec<&Element> =
        entry.all("NtryDtls").flat_map(|details| details.all("TxDtls")).collect();
    let is_single = details.len() == 1;
    let amounts =
        details.iter().map(|details| details_amount(details)).collect::<Result<Vec<_>, _>>()?;
    if !is_single && amounts.iter().any(Option::is_none) || details.is_empty() {
        let mut line = line(whole, entry_sign);
        line.references = References {
            clearing: None,
            servicer: entry_servicer.into_iter().collect(),
            words: entry_words,
        };
        lines.push(line);
        return Ok(());
    }
    let mut sum = 0_i64;
    for (details, own_amount) in details.into_iter().zip(amounts) {
        let line_sign = sign(details)?.unwrap_or(entry_sign);
        let mut line = line(if is_single { whole } else { own_amount.unwrap_or(whole) }, line_sign);
        let signed = if line_sign == entry_sign { line.amount.units } else { -line.amount.units };
        sum = sum
            .checked_add(signed)
            .ok_or_else(|| Refused::new("the amounts of an entry are too large"))?;
        let empty = Element::default();
        let refs = details.optional("Refs")?.unwrap_or(&empty);
        for name in ["EndToEndId", "InstrId"] {
            let Some(text) = reference_at(refs, name)? else { continue };
            match EndToEndId::parse(&text) {
                Some(id) => line.end_to_end_id = line.end_to_end_id.or(Some(id)),
                None => line.foreign_reference = line.foreign_reference.or(Some(text)),
            }
        }
        line.references.clearing = reference_at(refs, "ClrSysRef")?;
        line.references.servicer.extend(reference_at(refs, "AcctSvcrRef")?);
        line.references.servicer.extend(reference_at(refs, "TxId")?);
        if is_single {
            line.references.servicer.extend(entry_servicer.clone());
            line.references.words.extend(entry_words.iter().cloned());
        }
        line.references.words.extend(words(details.text_at("AddtlTxInf")?));
        if let Some(remittance) = details.optional("RmtInf")? {
            for text in remittance.all("Ustrd") {
                line.references.words.extend(words(Some(text.text())));
            }
        }
        if let Some(information) = details.optional("RtrInf")? {
            let code = match information.text_at("Rsn/Cd")? {
                Some(code) => Some(code),
                None => information.text_at("Rsn/Prtry")?,
            };
            line.return_reason =
                code.filter(|code| code.len() <= REFERENCE_LENGTH_MAX).map(str::to_owned);
        }
        lines.push(line);
    }
    if sum != whole.units {
        return Err(Refused::new("the transactions of an entry do not add up to it"));
    }
    Ok(())
}

/// The amount of one transaction in the account's currency; what was ordered in another one says
/// nothing of it.
fn details_amount(details: &Element) -> Result<Option<Money>, Refused> {
    for path in ["Amt", "AmtDtls/TxAmt/Amt", "AmtDtls/InstdAmt/Amt"] {
        if let Some(element) = details.at(path)?.filter(|element| element.currency() == Some("INR"))
        {
            return amount(element).map(Some);
        }
    }
    Ok(None)
}

/// Words of a free text that could be references; nothing else of it is kept.
fn words(text: Option<&str>) -> Vec<String> {
    let words = text.unwrap_or("").split(|character: char| !character.is_ascii_alphanumeric());
    words.filter(|word| matches!(word.len(), 16 | 22)).take(16).map(str::to_owned).collect()
}
