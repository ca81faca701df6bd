//! Reads one entry (`Ntry`) of a statement or notification into its movements.

use super::elements::{amount, code_at, day, possible_reference_at, reason_in, reference_at, sign};
use super::xml::Element;
use crate::kernel::Money;
use crate::rails::files::format::FileError;
use crate::rails::files::references::ReferenceElement;
use crate::rails::files::reports::{CHARGES, Sign, StatementLine};
use crate::rails::files::values::{Day, EndToEndId};

/// Turns a booked entry into its lines: one for each transaction. An entry with a single
/// transaction gets a second line for charges that it includes. If an entry has no transactions, or
/// if it has several and one of them has no amount in INR, it becomes one line with its whole
/// amount. An entry without a day gets `default_day`.
pub fn read(
    entry: &Element,
    place: &str,
    default_day: Option<Day>,
) -> Result<Vec<StatementLine>, FileError> {
    // Only a booked entry has moved money. A pending, informational or future one is left out. An
    // entry of any other status is listed as unread, so that the operator sees it.
    match code_at(entry, "Sts")? {
        Some("BOOK") => {}
        Some("PDNG" | "INFO" | "FUTR") => return Ok(Vec::new()),
        Some(_) => return Err(FileError::new("Sts is none of BOOK, PDNG, INFO and FUTR")),
        None => return Err(FileError::new("Ntry lacks Sts")),
    }
    let whole = amount(entry.required("Amt")?)?;
    let entry_sign = sign(entry)?.ok_or_else(|| FileError::new("Ntry lacks CdtDbtInd"))?;
    let is_marked_reversal = match entry.text_at("RvslInd")? {
        None | Some("false" | "0") => false,
        Some("true" | "1") => true,
        Some(_) => return Err(FileError::new("RvslInd is neither true nor false")),
    };
    let value_day = day(entry, "ValDt")?;
    let booking_day = day(entry, "BookgDt")?
        .or(value_day)
        .or(default_day)
        .ok_or_else(|| FileError::new("Ntry has no date"))?;
    let details: Vec<&Element> =
        entry.all("NtryDtls").flat_map(|details| details.all("TxDtls")).collect();
    let is_single = details.len() == 1;
    let mut template = StatementLine::zero(entry_sign, booking_day);
    template.value_day = value_day;
    template.entry_reference = possible_reference_at(entry, "AcctSvcrRef");
    template.place = place.to_owned();
    // A return that the bank books as a reversal is still a return.
    template.is_reversal = is_marked_reversal && !is_return(entry)?;
    if details.len() <= 1 {
        add_entry_references(entry, &mut template)?;
    }
    let amounts =
        details.iter().map(|details| details_amount(details)).collect::<Result<Vec<_>, _>>()?;
    if !is_single && amounts.iter().any(Option::is_none) || details.is_empty() {
        template.amount = whole;
        add_members(entry, &details, &mut template)?;
        return Ok(vec![template]);
    }
    let mut lines = Vec::new();
    let mut sum = 0_i64;
    for (index, (details, own_amount)) in details.into_iter().zip(amounts).enumerate() {
        let line_sign = sign(details)?.unwrap_or(entry_sign);
        let mut line = template.clone();
        line.sign = line_sign;
        line.place = format!("{place}, TxDtls {}", index + 1);
        let charges = match is_single {
            true => charges_within(details, line_sign, whole, own_amount)?,
            false => None,
        };
        line.amount = match (is_single, charges) {
            (true, Some(charges)) => Money::new(whole.units - charges.units, whole.currency),
            (true, None) => whole,
            (false, _) => own_amount.unwrap_or(whole),
        };
        read_details(details, &mut line)?;
        lines.push(line);
        if let Some(charges) = charges {
            let mut line = StatementLine::zero(line_sign, booking_day);
            line.amount = charges;
            line.value_day = value_day;
            line.other_reference = Some(CHARGES.into());
            line.place = format!("{place}, TxDtls {}, Chrgs", index + 1);
            lines.push(line);
        }
    }
    for line in &lines {
        let signed = if line.sign == entry_sign { line.amount.units } else { -line.amount.units };
        sum = sum
            .checked_add(signed)
            .ok_or_else(|| FileError::new("the amounts of an entry are too large"))?;
    }
    if sum != whole.units {
        return Err(FileError::new("the transactions of an entry do not add up to its amount"));
    }
    Ok(lines)
}

fn add_entry_references(entry: &Element, line: &mut StatementLine) -> Result<(), FileError> {
    if let Some(text) = &line.entry_reference {
        line.references.add(ReferenceElement::AcctSvcrRef, text);
    }
    if let Some(text) = possible_reference_at(entry, "NtryRef") {
        line.references.add(ReferenceElement::NtryRef, &text);
    }
    for text in entry.all("AddtlNtryInf") {
        line.references.add(ReferenceElement::AddtlNtryInf, text.text());
    }
    Ok(())
}

/// Adds to a line what its amount was booked for: the payments that the transactions name, or if
/// there are no transactions, the batch that the entry names.
fn add_members(
    entry: &Element,
    details: &[&Element],
    line: &mut StatementLine,
) -> Result<(), FileError> {
    for details in details {
        let named = match details.at("Refs")? {
            Some(refs) => our_payment(refs)?,
            None => None,
        };
        match named {
            Some(id) if !line.members.contains(&id) => line.members.push(id),
            // With a payment that is not ours or is named twice, it is not clear what was booked.
            _ => {
                line.members.clear();
                return Ok(());
            }
        }
    }
    if details.is_empty() {
        for batch in entry.all("NtryDtls").flat_map(|details| details.all("Btch")) {
            if let Some(text) = reference_at(batch, "PmtInfId")? {
                line.other_reference = line.other_reference.take().or(Some(text));
            }
        }
    }
    Ok(())
}

/// Our payment that the references name.
fn our_payment(refs: &Element) -> Result<Option<EndToEndId>, FileError> {
    for name in ["EndToEndId", "InstrId"] {
        if let Some(id) = reference_at(refs, name)?.as_deref().and_then(EndToEndId::parse) {
            return Ok(Some(id));
        }
    }
    Ok(None)
}

fn read_details(details: &Element, line: &mut StatementLine) -> Result<(), FileError> {
    let empty = Element::default();
    let refs = details.optional("Refs")?.unwrap_or(&empty);
    line.end_to_end_id = our_payment(refs)?;
    for name in ["EndToEndId", "InstrId"] {
        let Some(text) = reference_at(refs, name)? else { continue };
        if EndToEndId::parse(&text).is_none() {
            if name == "InstrId" {
                line.references.add(ReferenceElement::InstrId, &text);
            }
            line.other_reference = line.other_reference.take().or(Some(text));
        }
    }
    for (name, element) in [
        ("ClrSysRef", ReferenceElement::ClrSysRef),
        ("AcctSvcrRef", ReferenceElement::AcctSvcrRef),
        ("TxId", ReferenceElement::TxId),
    ] {
        let Some(text) = possible_reference_at(refs, name) else { continue };
        line.references.add(element, &text);
        if element == ReferenceElement::AcctSvcrRef {
            line.entry_reference = Some(text);
        }
    }
    for proprietary in refs.all("Prtry") {
        if let Some(text) = possible_reference_at(proprietary, "Ref") {
            line.references.add(ReferenceElement::Prtry, &text);
        }
    }
    for text in details.all("AddtlTxInf") {
        line.references.add(ReferenceElement::AddtlTxInf, text.text());
    }
    for remittance in details.all("RmtInf") {
        for text in remittance.all("Ustrd") {
            line.references.add(ReferenceElement::Ustrd, text.text());
        }
        for structured in remittance.all("Strd") {
            for text in structured.texts() {
                line.references.add(ReferenceElement::Strd, text);
            }
        }
    }
    for information in details.all("RtrInf") {
        reason_in(information, &mut line.reason, &mut line.references)?;
    }
    let is_return = details.optional("RtrInf")?.is_some() || is_return(details)?;
    line.is_reversal &= !is_return;
    Ok(())
}

/// Whether the bank's transaction code says that a payment came back.
fn is_return(element: &Element) -> Result<bool, FileError> {
    Ok(element.text_at("BkTxCd/Domn/Fmly/SubFmlyCd")? == Some("RRTN"))
}

/// The amount of one transaction in INR, the account's currency. An amount in another currency does
/// not count, because it does not show what was booked.
fn details_amount(details: &Element) -> Result<Option<Money>, FileError> {
    for path in ["Amt", "AmtDtls/TxAmt/Amt", "AmtDtls/InstdAmt/Amt"] {
        if let Some(element) = details.at(path)?.filter(|element| element.currency() == Some("INR"))
        {
            return amount(element).map(Some);
        }
    }
    Ok(None)
}

/// The charges that an entry's amount includes beside the payment; `None` if it includes none. The
/// entry includes charges if the transaction's amount and the charges add up to the entry's amount.
/// The transaction's `Amt` is compared only for a debit, the amounts in `AmtDtls` always.
fn charges_within(
    details: &Element,
    line_sign: Sign,
    whole: Money,
    own_amount: Option<Money>,
) -> Result<Option<Money>, FileError> {
    let mut units = 0_i64;
    for charges in details.all("Chrgs") {
        let records: Vec<&Element> = charges.all("Rcrd").collect();
        let parts = if records.is_empty() { vec![charges] } else { records };
        for part in parts {
            // A charge in another currency says nothing of this line's rupees.
            if let Some(element) =
                part.optional("Amt")?.filter(|element| element.currency() == Some("INR"))
            {
                units = units.saturating_add(amount(element)?.units);
            }
        }
    }
    let charged = Money::new(units, whole.currency);
    for path in ["AmtDtls/TxAmt/Amt", "AmtDtls/InstdAmt/Amt"] {
        if let Some(element) = details.at(path)?.filter(|element| element.currency() == Some("INR"))
            && units > 0
            && amount(element)?.units.checked_add(units) == Some(whole.units)
        {
            return Ok(Some(charged));
        }
    }
    let is_sum = own_amount.and_then(|own| own.units.checked_add(units)) == Some(whole.units);
    Ok((units > 0 && is_sum && line_sign != Sign::Credit).then_some(charged))
}
