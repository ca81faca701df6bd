//! Writes payment files: pain.001 in the version that the bank takes.

use super::reading::NAMESPACE_PREFIX;
use super::xml::Document;
use crate::kernel::{Currency, Money, StoreError};
use crate::rails::files::format::PaymentOrder;
use crate::rails::files::settings::{BankSettings, Pain001};
use crate::rails::files::values::{Day, MessageId, date_time};
use crate::rails::port::Method;

/// The namespace of a version of the message.
pub fn namespace(version: Pain001) -> String {
    format!("{NAMESPACE_PREFIX}{}", version.as_str())
}

/// A text shortened to the room that the standard has for it.
fn short(text: &str, characters_max: usize) -> String {
    text.chars().take(characters_max).collect()
}

fn agent(document: &mut Document, name: &str, ifsc: &str) {
    document.element(name, |agent| {
        agent.element("FinInstnId", |institution| {
            institution.element("ClrSysMmbId", |member| {
                member.path(&["ClrSysId", "Cd"], "INFSC");
                member.text("MmbId", ifsc);
            });
        });
    });
}

/// An account that is marked as NRE: the debit side for foreign inward remittance, the credit side
/// by its kind.
fn account(document: &mut Document, name: &str, number: &str) {
    document.element(name, |account| {
        account.path(&["Id", "Othr", "Id"], number);
        account.path(&["Tp", "Prtry"], "NRE");
        account.text("Ccy", "INR");
    });
}

fn total(orders: &[&PaymentOrder]) -> Result<Money, StoreError> {
    orders.iter().try_fold(Money::zero(Currency::Inr), |sum, order| sum.plus(order.amount))
}

/// The whole file. The same arguments give the same bytes. `created` is in Unix seconds; the
/// payments are to be made on its day in India.
pub fn write(
    settings: &BankSettings,
    message_id: MessageId,
    created: i64,
    orders: &[PaymentOrder],
) -> Result<Vec<u8>, StoreError> {
    let all: Vec<&PaymentOrder> = orders.iter().collect();
    let sum = total(&all)?;
    let day = Day::at(created)
        .ok_or_else(|| StoreError::Broken("a moment that no calendar has".into()))?;
    let mut batches = Vec::new();
    for method in Method::ALL {
        let batch: Vec<&PaymentOrder> =
            orders.iter().filter(|order| order.method == *method).collect();
        if !batch.is_empty() {
            batches.push((*method, total(&batch)?, batch));
        }
    }
    Ok(Document::write(&namespace(settings.profile.pain_001), |document| {
        document.element("CstmrCdtTrfInitn", |initiation| {
            initiation.element("GrpHdr", |header| {
                header.text("MsgId", &message_id.to_string());
                header.text("CreDtTm", &date_time(created));
                header.text("NbOfTxs", &orders.len().to_string());
                header.text("CtrlSum", &sum.to_string());
                header.path(&["InitgPty", "Nm"], &settings.initiating_party);
            });
            for (method, sum, batch) in &batches {
                initiation.element("PmtInf", |information| {
                    write_batch(information, settings, message_id, day, *method, *sum, batch)
                });
            }
        });
    }))
}

fn write_batch(
    information: &mut Document,
    settings: &BankSettings,
    message_id: MessageId,
    day: Day,
    method: Method,
    sum: Money,
    batch: &[&PaymentOrder],
) {
    // Urgent is what goes over RTGS; the local instrument names the system.
    let (instrument, level) = match method {
        Method::Neft => ("NEFT", "URNS"),
        Method::Rtgs => ("RTGS", "URGP"),
    };
    information.text("PmtInfId", &format!("{message_id}-{instrument}"));
    information.text("PmtMtd", "TRF");
    information.text("BtchBookg", "false");
    information.text("NbOfTxs", &batch.len().to_string());
    information.text("CtrlSum", &sum.to_string());
    information.element("PmtTpInf", |kind| {
        kind.path(&["SvcLvl", "Cd"], level);
        kind.path(&["LclInstrm", "Prtry"], instrument);
    });
    // The older version has a date alone where the newer one lets a time be chosen.
    match settings.profile.pain_001 {
        Pain001::V03 => information.text("ReqdExctnDt", &day.to_string()),
        Pain001::V09 => information.path(&["ReqdExctnDt", "Dt"], &day.to_string()),
    }
    information.path(&["Dbtr", "Nm"], &settings.debit_account_name);
    account(information, "DbtrAcct", settings.debit_account_number());
    agent(information, "DbtrAgt", &settings.debit_account_ifsc);
    information.text("ChrgBr", "DEBT");
    for order in batch {
        information.element("CdtTrfTxInf", |transaction| write_order(transaction, order));
    }
}

fn write_order(transaction: &mut Document, order: &PaymentOrder) {
    let end_to_end_id = order.end_to_end_id.to_string();
    transaction.element("PmtId", |id| {
        id.text("InstrId", &end_to_end_id);
        id.text("EndToEndId", &end_to_end_id);
    });
    transaction.element("Amt", |amount| amount.amount("InstdAmt", order.amount));
    transaction.element("UltmtDbtr", |sender| {
        sender.text("Nm", &short(&order.sender_name, 140));
        sender.element("PstlAdr", |address| {
            if let Some(street) = &order.sender_street {
                address.text("StrtNm", &short(street, 70));
            }
            if let Some(town) = &order.sender_town {
                address.text("TwnNm", &short(town, 35));
            }
            address.text("Ctry", &order.sender_country);
        });
    });
    agent(transaction, "CdtrAgt", &order.ifsc);
    transaction.path(&["Cdtr", "Nm"], &short(&order.beneficiary_name, 140));
    account(transaction, "CdtrAcct", &order.account_number);
    transaction.path(&["Purp", "Prtry"], &order.purpose_code);
    transaction.element("RgltryRptg", |report| {
        report.text("DbtCdtRptgInd", "CRED");
        report.path(&["Dtls", "Cd"], &order.purpose_code);
    });
    // Says to the beneficiary's bank that the money came from abroad, which is what an NRE account
    // may take.
    transaction.path(&["RmtInf", "Ustrd"], "FOREIGN INWARD REMITTANCE");
}
