//! Reads what a status report (pain.002) says of a payment file, its batches and its payments.

use super::elements::{amount, identity, possible_reference_at, reason_in, reference_at};
use super::xml::Element;
use crate::rails::files::format::FileError;
use crate::rails::files::reasons;
use crate::rails::files::references::{ReferenceElement, References};
use crate::rails::files::reports::{
    PaymentStatus, REPORTS_MAX, Reason, ReportedStatus, StatusReport, Unread,
};
use crate::rails::files::values::{EndToEndId, MessageId};

/// The status in the element `name`, with its reason; `None` if the element is missing.
fn reported_status(
    element: &Element,
    name: &str,
    references: &mut References,
) -> Result<Option<ReportedStatus>, FileError> {
    let Some(code) = element.text_at(name)? else { return Ok(None) };
    let mut reason = Reason::default();
    for information in element.all("StsRsnInf") {
        reason_in(information, &mut reason, references)?;
    }
    Ok(Some(ReportedStatus { meaning: reasons::status(code), reason }))
}

/// Reads the report. A payment that cannot be read is listed, and the others count.
pub fn read(root: &Element, unread: &mut Unread) -> Result<StatusReport, FileError> {
    let group = root.required("OrgnlGrpInfAndSts")?;
    let original = identity(group, "OrgnlMsgId")?;
    let mut report = StatusReport {
        original: MessageId::parse(&original),
        original_version: reference_at(group, "OrgnlMsgNmId")?,
        whole: reported_status(group, "GrpSts", &mut References::new())?,
        ..StatusReport::default()
    };
    // In some reports the payments are beside the group, not within their batch.
    read_payments(root, "", &mut report, unread)?;
    for (index, batch) in root.all("OrgnlPmtInfAndSts").enumerate() {
        let place = format!("OrgnlPmtInfAndSts {}, ", index + 1);
        let head = identity(batch, "OrgnlPmtInfId")
            .and_then(|id| Ok((id, reported_status(batch, "PmtInfSts", &mut References::new())?)));
        match head {
            Ok((id, Some(status))) => report.batches.push((id, status)),
            Ok((_, None)) => {}
            Err(refused) => unread.push(place.trim_end_matches(", "), refused.reason),
        }
        read_payments(batch, &place, &mut report, unread)?;
    }
    Ok(report)
}

fn read_payments(
    parent: &Element,
    batch_place: &str,
    report: &mut StatusReport,
    unread: &mut Unread,
) -> Result<(), FileError> {
    for (index, payment) in parent.all("TxInfAndSts").enumerate() {
        if report.payments.len() >= REPORTS_MAX {
            return Err(FileError::new(format!(
                "the file holds more than {REPORTS_MAX} payments: have it split"
            )));
        }
        let place = format!("{batch_place}TxInfAndSts {}", index + 1);
        match read_payment(payment, &place) {
            // A payment without a status of its own is left out; the batch's status counts for it.
            Ok(found) => report.payments.extend(found),
            Err(refused) => unread.push(place, refused.reason),
        }
    }
    Ok(())
}

fn read_payment(payment: &Element, place: &str) -> Result<Option<PaymentStatus>, FileError> {
    let mut references = References::new();
    let Some(status) = reported_status(payment, "TxSts", &mut references)? else {
        return Ok(None);
    };
    let amount = match payment.at("OrgnlTxRef/Amt/InstdAmt")? {
        Some(element) => Some(amount(element)?),
        None => None,
    };
    for (name, element) in
        [("ClrSysRef", ReferenceElement::ClrSysRef), ("AcctSvcrRef", ReferenceElement::AcctSvcrRef)]
    {
        if let Some(text) = possible_reference_at(payment, name) {
            references.add(element, &text);
        }
    }
    let mut end_to_end_id = None;
    for name in ["OrgnlEndToEndId", "OrgnlInstrId"] {
        let text = reference_at(payment, name)?;
        end_to_end_id = end_to_end_id.or(text.as_deref().and_then(EndToEndId::parse));
    }
    let place = place.to_owned();
    Ok(Some(PaymentStatus { end_to_end_id, status, amount, references, place }))
}
