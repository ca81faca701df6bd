//! Writes payment files: pain.001 in the version that the bank reads.

use super::reading::NAMESPACE_PREFIX;
use super::xml::Document;
use crate::kernel::{Currency, Money, StoreError};
use crate::rails::files::characters::Characters;
use crate::rails::files::format::{IdentityDocument, PaymentOrder, Remitter};
use crate::rails::files::profile::{CodeOrText, Pain001};
use crate::rails::files::settings::BankSettings;
use crate::rails::files::values::{Day, MessageId, date_time};
use crate::rails::port::PaymentMethod;

/// The most characters that the standard allows for a street, a postal code, a town or region, a
/// document's number, and a text for the beneficiary.
const STREET_MAX: usize = 70;
const POSTAL_CODE_MAX: usize = 16;
const TOWN_MAX: usize = 35;
const DOCUMENT_NUMBER_MAX: usize = 35;
const REMITTANCE_MAX: usize = 140;
/// What is written as the place of birth. The standard requires a place beside the date of birth,
/// and only the date is known.
const CITY_UNKNOWN: &str = "NOTPROVIDED";
const COUNTRY_UNKNOWN: &str = "XX";

/// The namespace of a version of the message.
pub fn namespace(version: Pain001) -> String {
    format!("{NAMESPACE_PREFIX}{}", version.as_str())
}

/// Writes an element that holds a code or a text of the bank's own.
fn choice(document: &mut Document, name: &str, value: &CodeOrText) {
    let (element, text) = value.element();
    document.path(&[name, element], text);
}

/// Writes a bank's branch by its IFSC.
fn bank_branch(document: &mut Document, name: &str, ifsc: &str) {
    document.element(name, |agent| {
        agent.element("FinInstnId", |institution| {
            institution.element("ClrSysMmbId", |member| {
                member.path(&["ClrSysId", "Cd"], "INFSC");
                member.text("MmbId", ifsc);
            });
        });
    });
}

/// Writes an account with its type. Both sides have the profile's `account_type`, which is NRE
/// unless the profile says otherwise.
fn account(document: &mut Document, name: &str, number: &str, kind: &CodeOrText) {
    document.element(name, |account| {
        account.path(&["Id", "Othr", "Id"], number);
        choice(account, "Tp", kind);
        account.text("Ccy", "INR");
    });
}

fn total(orders: &[&PaymentOrder]) -> Result<Money, StoreError> {
    orders.iter().try_fold(Money::zero(Currency::Inr), |sum, order| sum.plus(order.amount))
}

/// Writes the whole file. The same arguments give the same bytes. `created` is in Unix seconds; the
/// bank is to make the payments on the Indian day of `created`.
pub fn write(
    settings: &BankSettings,
    message_id: MessageId,
    created: i64,
    orders: &[PaymentOrder],
) -> Result<Vec<u8>, StoreError> {
    let all: Vec<&PaymentOrder> = orders.iter().collect();
    let sum = total(&all)?;
    let day = Day::at(created)
        .ok_or_else(|| StoreError::Broken("the time is out of the calendar's range".into()))?;
    let mut batches = Vec::new();
    for method in PaymentMethod::ALL {
        let batch: Vec<&PaymentOrder> =
            orders.iter().filter(|order| order.method == *method).collect();
        if !batch.is_empty() {
            batches.push((*method, total(&batch)?, batch));
        }
    }
    let (encoding, name) = (settings.profile.encoding, namespace(settings.profile.pain_001));
    let bytes = Document::declared(encoding.declared(), &name, |document| {
        document.element("CstmrCdtTrfInitn", |initiation| {
            initiation.element("GrpHdr", |header| {
                header.text("MsgId", &message_id.to_string());
                header.text("CreDtTm", &date_time(created));
                header.text("NbOfTxs", &orders.len().to_string());
                header.text("CtrlSum", &sum.to_string());
                header.element("InitgPty", |party| {
                    party.text("Nm", &settings.written_name(&settings.initiating_party));
                    if let Some(customer_id) = &settings.profile.customer_id {
                        party.element("Id", |id| {
                            id.element("OrgId", |id| {
                                id.element("Othr", |other| {
                                    other.text("Id", customer_id);
                                    if let Some(scheme) = &settings.profile.customer_id_scheme {
                                        choice(other, "SchmeNm", scheme);
                                    }
                                });
                            });
                        });
                    }
                });
            });
            for (method, sum, batch) in &batches {
                initiation.element("PmtInf", |information| {
                    write_batch(information, settings, message_id, day, *method, *sum, batch)
                });
            }
        });
    });
    settings.encoded(&bytes)
}

fn write_batch(
    information: &mut Document,
    settings: &BankSettings,
    message_id: MessageId,
    day: Day,
    method: PaymentMethod,
    sum: Money,
    batch: &[&PaymentOrder],
) {
    let profile = &settings.profile;
    let method_profile = profile.method_profile(method);
    information.text("PmtInfId", &format!("{message_id}-{}", method.as_str().to_uppercase()));
    information.text("PmtMtd", "TRF");
    information.text("BtchBookg", if profile.batch_booking { "true" } else { "false" });
    information.text("NbOfTxs", &batch.len().to_string());
    information.text("CtrlSum", &sum.to_string());
    information.element("PmtTpInf", |kind| {
        choice(kind, "SvcLvl", &method_profile.service_level);
        choice(kind, "LclInstrm", &method_profile.local_instrument);
    });
    // Version 03 takes a date, version 09 a choice between a date and a date-time.
    match profile.pain_001 {
        Pain001::V03 => information.text("ReqdExctnDt", &day.to_string()),
        Pain001::V09 => information.path(&["ReqdExctnDt", "Dt"], &day.to_string()),
    }
    information.element("Dbtr", |debtor| {
        debtor.text("Nm", &settings.written_name(&settings.debit_account_name));
        if let Some((town, country)) = &settings.debit_account_place {
            debtor.element("PstlAdr", |address| {
                optional(address, "TwnNm", profile.characters, Some(town.as_str()), TOWN_MAX);
                address.text("Ctry", country);
            });
        }
    });
    account(information, "DbtrAcct", settings.debit_account_number(), &profile.account_type);
    bank_branch(information, "DbtrAgt", &settings.debit_account_ifsc);
    if let Some(bearer) = profile.charge_bearer {
        information.text("ChrgBr", bearer.as_str());
    }
    for order in batch {
        information.element("CdtTrfTxInf", |transaction| write_order(transaction, settings, order));
    }
}

/// Writes an element, unless there is no text or nothing of it is left in the bank's characters.
fn optional(
    document: &mut Document,
    name: &str,
    characters: Characters,
    text: Option<&str>,
    characters_max: usize,
) {
    let text = text.map(|text| characters.write_short(text, characters_max)).unwrap_or_default();
    if !text.is_empty() {
        document.text(name, &text);
    }
}

fn write_order(transaction: &mut Document, settings: &BankSettings, order: &PaymentOrder) {
    let profile = &settings.profile;
    let end_to_end_id = order.end_to_end_id.to_string();
    transaction.element("PmtId", |id| {
        id.text("InstrId", &end_to_end_id);
        id.text("EndToEndId", &end_to_end_id);
    });
    transaction.element("Amt", |amount| amount.amount("InstdAmt", order.amount));
    transaction.element("UltmtDbtr", |sender| write_sender(sender, settings, &order.sender));
    bank_branch(transaction, "CdtrAgt", &order.ifsc);
    transaction.path(&["Cdtr", "Nm"], &settings.written_name(&order.beneficiary_name));
    account(transaction, "CdtrAcct", &order.account_number, &profile.account_type);
    choice(transaction, "Purp", &profile.purpose(&order.purpose_code));
    if profile.regulatory_reporting {
        transaction.element("RgltryRptg", |report| {
            report.text("DbtCdtRptgInd", "CRED");
            report.path(&["Dtls", "Cd"], &order.purpose_code);
        });
    }
    // By default this tells the beneficiary's bank that the money came from abroad, as a payment
    // into an NRE account has to.
    let remittance: String = profile.remittance_text.chars().take(REMITTANCE_MAX).collect();
    transaction.path(&["RmtInf", "Ustrd"], &remittance);
}

/// Writes the remitter: name, address, and if known, what identifies the person. The parts of the
/// address have separate elements, not free lines (`AdrLine`).
fn write_sender(party: &mut Document, settings: &BankSettings, sender: &Remitter) {
    let characters = settings.profile.characters;
    party.text("Nm", &settings.written_name(&sender.name));
    party.element("PstlAdr", |address| {
        optional(address, "StrtNm", characters, sender.street.as_deref(), STREET_MAX);
        optional(address, "PstCd", characters, sender.postal_code.as_deref(), POSTAL_CODE_MAX);
        optional(address, "TwnNm", characters, sender.town.as_deref(), TOWN_MAX);
        optional(address, "CtrySubDvsn", characters, sender.region.as_deref(), TOWN_MAX);
        address.text("Ctry", &sender.country);
    });
    let number = sender.identification.as_ref().map(|(kind, number)| {
        let scheme = match kind {
            IdentityDocument::Passport => "CCPT",
            IdentityDocument::NationalId => "NIDN",
            IdentityDocument::DrivingLicence => "DRLC",
        };
        (scheme, Characters::Neft.write_short(number, DOCUMENT_NUMBER_MAX))
    });
    let number = number.filter(|(_, number)| !number.is_empty());
    if number.is_none() && sender.date_of_birth.is_none() {
        return;
    }
    party.element("Id", |id| {
        id.element("PrvtId", |id| {
            if let Some(date) = &sender.date_of_birth {
                id.element("DtAndPlcOfBirth", |birth| {
                    birth.text("BirthDt", date);
                    birth.text("CityOfBirth", CITY_UNKNOWN);
                    birth.text("CtryOfBirth", COUNTRY_UNKNOWN);
                });
            }
            if let Some((scheme, number)) = &number {
                id.element("Othr", |other| {
                    other.text("Id", number);
                    other.path(&["SchmeNm", "Cd"], scheme);
                });
            }
        });
    });
}
