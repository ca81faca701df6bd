//! A simulated bank to try the files with. It reads pain.001, decides by the last four digits of
//! the beneficiary's account number, and answers with status reports, notifications and statements.
//! It pays twice if it is instructed twice, so that it hides no mistake of the service. The bank of
//! test mode is another one, `rails::simulated`, and uses no files.
//!
//! Last four digits: `1001` is refused as closed, `1002` is paid and comes back with a value date
//! three days later, `1003` is accepted and gets no final status, `1004` is paid but booked without
//! a reference. Anything else is paid.

use std::path::Path;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::instruct;
use super::reading::NAMESPACE_PREFIX;
use super::xml::{self, Document};
use crate::kernel::{Currency, Money};
use crate::rails::files::format::FileError;
use crate::rails::files::profile::Pain001;
use crate::rails::files::reports::{ReportKind, Sign};
use crate::rails::files::values::{Day, MessageId, date_time, inr};
use crate::rails::port::PaymentMethod;

/// How many days later the value date of a returned payment is.
const RETURN_DAYS: i64 = 3;
/// What the account holds at first, in paise: INR 1 billion (100 crore).
const OPENING_UNITS: i64 = 100_000_000_000;
/// The most rounds that a delayed file waits; [`SimulatedIsoBank::next_files`] begins a round.
const DELAY_ROUNDS_MAX: u64 = 4;
/// The message that is read.
const MESSAGE_READ: &str = "pain.001";
/// How often the process looks at its folders.
const LOOK_MILLISECONDS: u64 = 100;

crate::string_enum!(
    /// What can make a bank difficult: files that come late, twice, or in another order, and
    /// statement lines without a reference.
    Behaviour { Delays "delays", Duplicates "duplicates", Reordering "reordering",
        StrayLines "stray_lines" }
);

/// Reads a list such as `delays,duplicates`. From the empty text it reads an empty list.
pub fn parse_behaviour(text: &str) -> Result<Vec<Behaviour>, String> {
    let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
    words
        .map(|word| {
            Behaviour::parse(word).ok_or_else(|| {
                format!("{word:?} is no behaviour: write some of {}", Behaviour::WORDS.join(", "))
            })
        })
        .collect()
}

/// A file on its way to the inbox.
#[derive(Clone, Debug)]
pub struct Outgoing {
    pub name: String,
    pub bytes: Vec<u8>,
}

/// A payment as it was read.
#[derive(Clone, Debug)]
struct Payment {
    end_to_end_id: String,
    batch_id: String,
    amount: Money,
    account_number: String,
    method: PaymentMethod,
}

/// The payment file that a status report answers.
struct Original {
    message_id: String,
    version: Pain001,
}

/// A booked movement.
#[derive(Clone, Debug)]
struct Booked {
    amount: Money,
    sign: Sign,
    end_to_end_id: Option<String>,
    utr: Option<String>,
    servicer_reference: String,
    is_return: bool,
    value_day: Day,
}

pub struct SimulatedIsoBank {
    random: StdRng,
    behaviour: Vec<Behaviour>,
    /// Part of each message's identity, so that it differs from those of an earlier run.
    run: i64,
    debit_account_number: String,
    /// The last number that was given to an entry or a message.
    last_number: i64,
    balance_units: i64,
    /// The last day that a statement closed. No later statement closes an earlier day.
    closed: Option<Day>,
    /// Movements that are booked and not on a statement yet.
    booked: Vec<Booked>,
    /// Files to come, each with the round after which it is due.
    outgoing: Vec<(u64, Outgoing)>,
    round: u64,
    /// The identity of each payment that was made. If a payment was made twice, it is here twice.
    pub paid: Vec<String>,
}

/// The namespace of the version that this bank writes.
fn namespace(kind: ReportKind) -> String {
    format!("{NAMESPACE_PREFIX}{}", kind.as_str())
}

/// Writes the account that a statement or notification is about.
fn write_account(parent: &mut Document, account_number: &str) {
    parent.element("Acct", |account| {
        account.path(&["Id", "Othr", "Id"], account_number);
        account.text("Ccy", "INR");
    });
}

impl SimulatedIsoBank {
    /// `run` is anything that differs from run to run, such as the start in Unix seconds.
    pub fn new(seed: u64, run: i64, behaviour: Vec<Behaviour>) -> SimulatedIsoBank {
        SimulatedIsoBank {
            random: StdRng::seed_from_u64(seed),
            behaviour,
            run,
            debit_account_number: String::new(),
            last_number: 0,
            balance_units: OPENING_UNITS,
            closed: None,
            booked: Vec::new(),
            outgoing: Vec::new(),
            round: 0,
            paid: Vec::new(),
        }
    }
    fn has(&self, behaviour: Behaviour) -> bool {
        self.behaviour.contains(&behaviour)
    }
    fn next_number(&mut self) -> i64 {
        self.last_number += 1;
        self.last_number
    }
    fn message_id(&mut self, what: &str) -> String {
        let number = self.next_number();
        format!("SIM{}-{what}-{number:06}", self.run)
    }

    /// Reads a payment file and prepares the answers, for the next round or later ones. `at` is in
    /// Unix seconds.
    pub fn take(&mut self, bytes: &[u8], at: i64) -> Result<(), FileError> {
        let (original, payments) = self.read(bytes)?;
        let today =
            Day::at(at).ok_or_else(|| FileError::new("the time is out of the calendar's range"))?;
        let accepted: Vec<(&Payment, &str, Option<&str>)> =
            payments.iter().map(|payment| (payment, "ACTC", None)).collect();
        self.report_status(&original, &accepted, at);
        let mut statuses = Vec::new();
        for payment in &payments {
            let last4 = payment
                .account_number
                .get(payment.account_number.len().saturating_sub(4)..)
                .unwrap_or("");
            match last4 {
                "1001" => statuses.push((payment, "RJCT", Some("AC04"))),
                "1003" => {}
                _ => {
                    statuses.push((payment, "ACSC", None));
                    self.pay(payment, last4, today, at);
                }
            }
        }
        self.report_status(&original, &statuses, at);
        Ok(())
    }

    fn pay(&mut self, payment: &Payment, last4: &str, today: Day, at: i64) {
        self.paid.push(payment.end_to_end_id.clone());
        let sequence = self.next_number();
        let utr = match payment.method {
            PaymentMethod::Neft => format!(
                "TESTN{:02}{:03}{sequence:06}",
                today.year().rem_euclid(100),
                today.day_of_year()
            ),
            PaymentMethod::Rtgs => {
                format!("TESTR1{}{sequence:08}", today.to_string().replace('-', ""))
            }
            // A transfer inside the bank passes through no clearing system, so it gets no UTR.
            PaymentMethod::Internal => String::new(),
        };
        let utr = Some(utr).filter(|utr| !utr.is_empty());
        let has_reference = last4 != "1004";
        let debit = Booked {
            amount: payment.amount,
            sign: Sign::Debit,
            end_to_end_id: has_reference.then(|| payment.end_to_end_id.clone()),
            utr,
            servicer_reference: format!("S{sequence:06}"),
            is_return: false,
            value_day: today,
        };
        self.book(debit, today, at);
        if last4 == "1002" {
            let sequence = self.next_number();
            let value_day = today.plus_days(RETURN_DAYS);
            let credit = Booked {
                amount: payment.amount,
                sign: Sign::Credit,
                end_to_end_id: Some(payment.end_to_end_id.clone()),
                utr: None,
                servicer_reference: format!("S{sequence:06}"),
                is_return: true,
                value_day,
            };
            self.book(credit, value_day, at);
        }
    }

    fn book(&mut self, booked: Booked, today: Day, at: i64) {
        self.notify(&booked, today, at);
        self.booked.push(booked);
    }

    /// Closes the day: sends a statement of what was booked since the last statement. Without such
    /// bookings it does nothing.
    pub fn close_day(&mut self, at: i64) {
        let Some(today) = Day::at(at).filter(|_| !self.booked.is_empty()) else { return };
        if self.has(Behaviour::StrayLines) {
            let sequence = self.next_number();
            self.booked.push(Booked {
                amount: Money::new(590, Currency::Inr),
                sign: Sign::Debit,
                end_to_end_id: None,
                utr: None,
                servicer_reference: format!("CHARGES{sequence}"),
                is_return: false,
                value_day: today,
            });
        }
        let booked = std::mem::take(&mut self.booked);
        let day =
            booked.iter().map(|booked| booked.value_day).chain(self.closed).max().unwrap_or(today);
        self.closed = Some(day);
        let opening = self.balance_units;
        for booked in &booked {
            match booked.sign {
                Sign::Credit => self.balance_units += booked.amount.units,
                Sign::Debit => self.balance_units -= booked.amount.units,
            }
        }
        let closing = self.balance_units;
        let (id, sequence) = (self.message_id("STMT"), self.last_number);
        let account_number = self.debit_account_number.clone();
        let bytes = Document::write(&namespace(ReportKind::Statement), |document| {
            document.element("BkToCstmrStmt", |root| {
                root.element("GrpHdr", |header| {
                    header.text("MsgId", &id);
                    header.text("CreDtTm", &date_time(at));
                });
                root.element("Stmt", |statement| {
                    statement.text("Id", &id);
                    statement.text("ElctrncSeqNb", &sequence.to_string());
                    statement.text("CreDtTm", &date_time(at));
                    write_account(statement, &account_number);
                    for (kind, units) in [("OPBD", opening), ("CLBD", closing)] {
                        statement.element("Bal", |balance| {
                            balance.path(&["Tp", "CdOrPrtry", "Cd"], kind);
                            balance.amount("Amt", Money::new(units.abs(), Currency::Inr));
                            balance.text("CdtDbtInd", if units < 0 { "DBIT" } else { "CRDT" });
                            balance.path(&["Dt", "Dt"], &day.to_string());
                        });
                    }
                    for booked in &booked {
                        write_entry(statement, booked, booked.value_day);
                    }
                });
            });
        });
        self.send("camt.053", id, bytes);
    }

    fn notify(&mut self, booked: &Booked, today: Day, at: i64) {
        let id = self.message_id("NTFN");
        let account_number = self.debit_account_number.clone();
        let bytes = Document::write(&namespace(ReportKind::Notification), |document| {
            document.element("BkToCstmrDbtCdtNtfctn", |root| {
                root.element("GrpHdr", |header| {
                    header.text("MsgId", &id);
                    header.text("CreDtTm", &date_time(at));
                });
                root.element("Ntfctn", |notification| {
                    notification.text("Id", &id);
                    notification.text("CreDtTm", &date_time(at));
                    write_account(notification, &account_number);
                    write_entry(notification, booked, today);
                });
            });
        });
        self.send("camt.054", id, bytes);
    }

    fn report_status(
        &mut self,
        original: &Original,
        statuses: &[(&Payment, &str, Option<&str>)],
        at: i64,
    ) {
        if statuses.is_empty() {
            return;
        }
        let id = self.message_id("STS");
        let mut batches: Vec<&str> =
            statuses.iter().map(|(payment, ..)| payment.batch_id.as_str()).collect();
        batches.dedup();
        let bytes = Document::write(&namespace(ReportKind::Status), |document| {
            document.element("CstmrPmtStsRpt", |root| {
                root.element("GrpHdr", |header| {
                    header.text("MsgId", &id);
                    header.text("CreDtTm", &date_time(at));
                });
                root.element("OrgnlGrpInfAndSts", |group| {
                    group.text("OrgnlMsgId", &original.message_id);
                    group.text("OrgnlMsgNmId", original.version.as_str());
                });
                for batch in &batches {
                    root.element("OrgnlPmtInfAndSts", |information| {
                        information.text("OrgnlPmtInfId", batch);
                        for (payment, status, reason) in
                            statuses.iter().filter(|(payment, ..)| payment.batch_id == *batch)
                        {
                            information.element("TxInfAndSts", |transaction| {
                                transaction.text("OrgnlInstrId", &payment.end_to_end_id);
                                transaction.text("OrgnlEndToEndId", &payment.end_to_end_id);
                                transaction.text("TxSts", status);
                                if let Some(reason) = reason {
                                    transaction.path(&["StsRsnInf", "Rsn", "Cd"], reason);
                                }
                                transaction.element("OrgnlTxRef", |reference| {
                                    reference.element("Amt", |amount| {
                                        amount.amount("InstdAmt", payment.amount)
                                    });
                                });
                            });
                        }
                    });
                }
            });
        });
        self.send("pain.002", id, bytes);
    }

    fn send(&mut self, kind: &str, id: String, bytes: Vec<u8>) {
        let name = format!("{kind}-{id}.xml");
        let copies = if self.has(Behaviour::Duplicates) { 2 } else { 1 };
        for copy in 0..copies {
            let delay = if self.has(Behaviour::Delays) {
                self.random.next_u64() % (DELAY_ROUNDS_MAX + 1)
            } else {
                0
            };
            let name = if copy == 0 { name.clone() } else { format!("copy-{name}") };
            self.outgoing.push((self.round + delay, Outgoing { name, bytes: bytes.clone() }));
        }
    }

    /// Begins a round, and answers its files.
    pub fn next_files(&mut self) -> Vec<Outgoing> {
        self.round += 1;
        let round = self.round;
        let (mut due, waiting): (Vec<_>, Vec<_>) =
            self.outgoing.drain(..).partition(|(at, _)| *at < round);
        self.outgoing = waiting;
        if self.has(Behaviour::Reordering) {
            for index in (1..due.len()).rev() {
                due.swap(index, (self.random.next_u64() % (index as u64 + 1)) as usize);
            }
        }
        due.into_iter().map(|(_, file)| file).collect()
    }
    /// Whether no file waits for a later round.
    pub fn is_quiet(&self) -> bool {
        self.outgoing.is_empty()
    }

    fn read(&mut self, bytes: &[u8]) -> Result<(Original, Vec<Payment>), FileError> {
        let version_of = |namespace: &str| {
            let mut versions = Pain001::ALL.iter().copied();
            versions.find(|version| namespace == instruct::namespace(*version))
        };
        let (namespace, document) =
            xml::parse(bytes, &|namespace| version_of(namespace).is_some(), MESSAGE_READ)?;
        let version = version_of(&namespace).ok_or_else(|| xml::no_message(MESSAGE_READ))?;
        let root = document.required("CstmrCdtTrfInitn")?;
        let text = |element: &xml::Element, path: &str| -> Result<String, FileError> {
            element
                .text_at(path)?
                .map(str::to_owned)
                .ok_or_else(|| FileError::new(format!("{} lacks {path}", element.shown())))
        };
        let message_id = text(root, "GrpHdr/MsgId")?;
        let mut payments = Vec::new();
        for information in root.all("PmtInf") {
            self.debit_account_number = text(information, "DbtrAcct/Id/Othr/Id")?;
            let batch_id = text(information, "PmtInfId")?;
            let (_, method) = MessageId::of_batch(&batch_id)
                .ok_or_else(|| FileError::new("PmtInfId does not end with a method"))?;
            for transaction in information.all("CdtTrfTxInf") {
                let amount = inr(&text(transaction, "Amt/InstdAmt")?)
                    .ok_or_else(|| FileError::new("InstdAmt is no amount"))?;
                payments.push(Payment {
                    end_to_end_id: text(transaction, "PmtId/EndToEndId")?,
                    batch_id: batch_id.clone(),
                    amount,
                    account_number: text(transaction, "CdtrAcct/Id/Othr/Id")?,
                    method,
                });
            }
        }
        Ok((Original { message_id, version }, payments))
    }
}

fn write_entry(parent: &mut Document, booked: &Booked, day: Day) {
    let sign = match booked.sign {
        Sign::Credit => "CRDT",
        Sign::Debit => "DBIT",
    };
    parent.element("Ntry", |entry| {
        entry.amount("Amt", booked.amount);
        entry.text("CdtDbtInd", sign);
        entry.path(&["Sts", "Cd"], "BOOK");
        entry.path(&["BookgDt", "Dt"], &day.to_string());
        entry.path(&["ValDt", "Dt"], &booked.value_day.to_string());
        entry.text("AcctSvcrRef", &booked.servicer_reference);
        entry.path(&["BkTxCd", "Prtry", "Cd"], "SIM");
        let Some(end_to_end_id) = &booked.end_to_end_id else { return };
        entry.element("NtryDtls", |details| {
            details.element("TxDtls", |details| {
                details.element("Refs", |references| {
                    references.text("AcctSvcrRef", &booked.servicer_reference);
                    references.text("EndToEndId", end_to_end_id);
                    if let Some(utr) = &booked.utr {
                        references.text("ClrSysRef", utr);
                    }
                });
                details.amount("Amt", booked.amount);
                details.text("CdtDbtInd", sign);
                if booked.is_return {
                    details.path(&["RtrInf", "Rsn", "Cd"], "AC04");
                }
            });
        });
    });
}

/// Takes files from the outbox and puts answers into the inbox, until the process ends or a folder
/// cannot be used.
pub fn run(
    outbox: &Path,
    inbox: &Path,
    mut bank: SimulatedIsoBank,
    clock: &dyn Fn() -> i64,
) -> Result<(), String> {
    let fault = |error: std::io::Error| format!("the bank's folders: {error}");
    loop {
        let mut names: Vec<_> =
            std::fs::read_dir(outbox).map_err(fault)?.flatten().map(|entry| entry.path()).collect();
        // A name that begins with a dot belongs to a file that is being written.
        names.retain(|path| {
            path.file_name().is_some_and(|name| !name.to_string_lossy().starts_with('.'))
        });
        names.sort();
        let is_idle = names.is_empty();
        for path in names {
            let bytes = std::fs::read(&path).map_err(fault)?;
            std::fs::remove_file(&path).map_err(fault)?;
            if let Err(refused) = bank.take(&bytes, clock()) {
                tracing::warn!(%refused, "the simulated bank refused a file");
            }
        }
        if is_idle && bank.is_quiet() {
            bank.close_day(clock());
        }
        for file in bank.next_files() {
            let partial = inbox.join(format!(".{}.part", file.name));
            std::fs::write(&partial, &file.bytes).map_err(fault)?;
            std::fs::rename(&partial, inbox.join(&file.name)).map_err(fault)?;
        }
        std::thread::sleep(Duration::from_millis(LOOK_MILLISECONDS));
    }
}
