//! `hundi bank certify`: what the service would make of a bank's sample files, without the book.

use std::collections::BTreeMap;

use super::references::{References, UtrFinding};
use super::reports::{Content, Line, Meaning, PaymentStatus, Reason, Sign};
use super::settings::{BankProfile, Format};
use super::values::EndToEndId;
use crate::kernel::Money;
use crate::rails::port::Method;

/// What was read so far, and what it says about the profile that the bank needs.
pub struct Certification {
    format: Format,
    profile: BankProfile,
    pub files_count: usize,
    pub refused_count: usize,
    pub reports_count: usize,
    pub unread_count: usize,
    /// Debits of ours, and those of them with one reference.
    pub debits_count: usize,
    pub referenced_count: usize,
    /// Of reports without a reference: how many have one candidate in an element.
    candidates: BTreeMap<&'static str, usize>,
    /// The account numbers of statements, as the bank writes them.
    accounts: BTreeMap<String, usize>,
}

impl Certification {
    pub fn new(format: Format, profile: BankProfile) -> Certification {
        Certification {
            format,
            profile,
            files_count: 0,
            refused_count: 0,
            reports_count: 0,
            unread_count: 0,
            debits_count: 0,
            referenced_count: 0,
            candidates: BTreeMap::new(),
            accounts: BTreeMap::new(),
        }
    }

    /// Reads one file and answers a line for everything in it.
    pub fn file(&mut self, name: &str, bytes: &[u8]) -> Vec<String> {
        self.files_count += 1;
        let found = match self.format.0.read_sample(bytes) {
            Ok(found) => found,
            Err(refused) => {
                self.refused_count += 1;
                return vec![format!("{name}: refused: {refused}")];
            }
        };
        let mut lines = vec![format!(
            "{name}: {} {}",
            match found.content {
                Content::Statuses(_) => "status report",
                Content::Accounts(_) => "movements",
            },
            found.identity()
        )];
        match found.content {
            Content::Statuses(report) => {
                if let Some(verdict) = &report.whole {
                    let meaning = meaning(verdict.meaning);
                    lines.push(format!("  whole file: {meaning}{}", told(&verdict.reason)));
                }
                for (batch, verdict) in &report.batches {
                    let meaning = meaning(verdict.meaning);
                    lines.push(format!("  batch {batch}: {meaning}{}", told(&verdict.reason)));
                }
                lines.extend(report.payments.iter().map(|payment| self.payment(payment)));
            }
            Content::Accounts(accounts) => {
                for account in &accounts {
                    *self.accounts.entry(account.account_number.clone()).or_default() += 1;
                    let balance = |balance: Option<(Money, _)>| {
                        balance.map_or("none".into(), |(money, _): (Money, _)| money.to_string())
                    };
                    lines.push(format!(
                        "  statement {} page {}: opening {}, closing {}",
                        account.id,
                        account.page,
                        balance(account.opening),
                        balance(account.closing)
                    ));
                    lines.extend(account.lines.iter().map(|line| self.line(line)));
                }
            }
        }
        self.unread_count += found.unread.count;
        for (place, reason) in &found.unread.shown {
            lines.push(format!("  {place}: NOT READ: {reason}"));
        }
        lines
    }

    fn payment(&mut self, payment: &PaymentStatus) -> String {
        self.reports_count += 1;
        let is_paid = payment.verdict.meaning == Some(Meaning::Paid);
        let is_ours = payment.end_to_end_id.is_some();
        let reference = self.reference(&payment.references, is_paid && is_ours, None);
        format!(
            "  {}: {}, {}, {reference}{}",
            payment.place,
            meaning(payment.verdict.meaning),
            name(payment.end_to_end_id, None),
            told(&payment.verdict.reason)
        )
    }

    fn line(&mut self, line: &Line) -> String {
        self.reports_count += 1;
        let what = match (line.sign, line.is_reversal) {
            (Sign::Debit, false) => "debit",
            (Sign::Debit, true) => "debit that undoes a credit",
            (Sign::Credit, false) => "credit",
            (Sign::Credit, true) => "credit that undoes a debit",
        };
        let is_ours = line.end_to_end_id.is_some();
        let is_payment = is_ours && line.sign == Sign::Debit;
        let reference = self.reference(&line.references, is_payment, Some(line.amount));
        let members = match line.members.len() {
            0 => String::new(),
            count => format!(", booked for {count} payouts together"),
        };
        format!(
            "  {}: {what} {} on {}, {}{members}, {reference}{}",
            line.place,
            line.amount,
            line.booking_day,
            name(line.end_to_end_id, line.foreign_reference.as_deref()),
            told(&line.reason)
        )
    }

    /// Which reference would be taken, and where it stands.
    fn reference(
        &mut self,
        references: &References,
        is_payment: bool,
        amount: Option<Money>,
    ) -> String {
        let method = amount.map_or(Method::Neft, Method::for_amount);
        let finding = references.utr(method, &self.profile.reference_elements, &[]);
        self.debits_count += usize::from(is_payment);
        match finding {
            UtrFinding::One(utr, element) => {
                self.referenced_count += usize::from(is_payment);
                format!("UTR {} from {}", utr.as_str(), element.as_str())
            }
            UtrFinding::Ambiguous => "several UTRs: the operator would decide".into(),
            UtrFinding::None => {
                if is_payment {
                    for element in references.elements_with_one_candidate() {
                        *self.candidates.entry(element.as_str()).or_default() += 1;
                    }
                }
                "no UTR".into()
            }
        }
    }

    /// What the files have in common, and the profile that would read more of them.
    pub fn summary(&self) -> Vec<String> {
        let mut lines = vec![format!(
            "{} files, {} refused; {} reports, {} parts not read; payments of ours: {}, with a \
             UTR: {}",
            self.files_count,
            self.refused_count,
            self.reports_count,
            self.unread_count,
            self.debits_count,
            self.referenced_count
        )];
        for (account, count) in &self.accounts {
            let hidden: String = account
                .chars()
                .enumerate()
                .map(
                    |(at, character)| {
                        if at + 4 < account.chars().count() { '.' } else { character }
                    },
                )
                .collect();
            lines.push(format!("account {hidden}: {count} statements or notifications"));
        }
        let missing = self.debits_count - self.referenced_count;
        let best = self.candidates.iter().max_by_key(|(_, count)| **count);
        match best {
            Some((element, count)) if missing > 0 => {
                let mut elements: Vec<&str> =
                    self.profile.reference_elements.iter().map(|known| known.as_str()).collect();
                elements.push(element);
                lines.push(format!(
                    "{count} of {missing} payments without a UTR have one text that could be it in \
                     {element}; if the bank confirms that, write"
                ));
                lines.push("[bank.profile]".into());
                lines.push(format!("reference_elements = {elements:?}"));
            }
            _ if missing > 0 => lines.push(format!(
                "{missing} payments have no UTR: ask the bank in which element it writes it"
            )),
            _ => {}
        }
        lines
    }
}

const fn meaning(meaning: Option<Meaning>) -> &'static str {
    match meaning {
        Some(Meaning::Processing) => "processing",
        Some(Meaning::Paid) => "paid",
        Some(Meaning::Refused) => "refused",
        None => "a status that is not known",
    }
}

fn name(end_to_end_id: Option<EndToEndId>, foreign: Option<&str>) -> String {
    match (end_to_end_id, foreign) {
        (Some(id), _) => format!("payout {}", id.payout_id()),
        (None, Some(_)) => "a reference that is not ours".into(),
        (None, None) => "no reference".into(),
    }
}

fn told(reason: &Reason) -> String {
    let parts = [reason.code.as_deref(), reason.text.as_deref()];
    let parts: Vec<&str> = parts.into_iter().flatten().collect();
    if parts.is_empty() { String::new() } else { format!(", reason {}", parts.join(" ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rails::files::settings::ProfileTable;
    use crate::rails::iso20022::Iso20022;

    fn entry(payout: &str, more: &str) -> String {
        format!(
            "<Ntry><Amt Ccy=\"INR\">100.00</Amt><CdtDbtInd>DBIT</CdtDbtInd><Sts>BOOK</Sts><BookgDt>\
             <Dt>2026-11-21</Dt></BookgDt><NtryDtls><TxDtls><Refs><EndToEndId>{payout}</EndToEndId>\
             {more}</Refs></TxDtls></NtryDtls></Ntry>"
        )
    }

    #[test]
    fn samples_are_explained_and_a_profile_is_proposed() {
        let ours = EndToEndId::of(crate::kernel::Id::from_u128(7)).to_string();
        let entries = [
            entry(&ours, "<AcctSvcrRef>S1234567890</AcctSvcrRef>"),
            entry(&ours, "<ClrSysRef>SBIN126166441955</ClrSysRef>"),
            entry("SOMEBODY", ""),
            "<Ntry><Amt Ccy=\"USD\">1</Amt><CdtDbtInd>DBIT</CdtDbtInd><Sts>BOOK</Sts></Ntry>"
                .into(),
        ];
        let file = format!(
            "<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:camt.054.001.02\">\
             <BkToCstmrDbtCdtNtfctn><GrpHdr><MsgId>N1</MsgId></GrpHdr><Ntfctn><Id>1</Id><Acct><Id>\
             <Othr><Id>XXXXXXXXXX5566</Id></Othr></Id></Acct>{}</Ntfctn></BkToCstmrDbtCdtNtfctn>\
             </Document>",
            entries.concat()
        );
        let profile = || BankProfile::try_from(ProfileTable::default()).unwrap();
        let mut found = Certification::new(Format(&Iso20022), profile());
        let lines = found.file("a.xml", file.as_bytes());
        let wanted = [
            "a.xml: movements N1",
            "  statement 1 page 1: opening none, closing none",
            "  Ntfctn 1, Ntry 1, TxDtls 1: debit 100.00 on 2026-11-21, payout \
             payout_00000000000000000000000007, no UTR",
            "  Ntfctn 1, Ntry 2, TxDtls 1: debit 100.00 on 2026-11-21, payout \
             payout_00000000000000000000000007, UTR SBIN126166441955 from ClrSysRef",
            "  Ntfctn 1, Ntry 3, TxDtls 1: debit 100.00 on 2026-11-21, a reference that is not \
             ours, no UTR",
            "  Ntfctn 1, Ntry 4: NOT READ: Amt is not in INR",
        ];
        assert_eq!(lines, wanted);
        assert!(found.file("b.xml", b"<html/>")[0].contains("refused"));
        let summary = found.summary();
        assert!(summary[0].starts_with("2 files, 1 refused; 3 reports, 1 parts not read"));
        assert_eq!(summary[1], "account ..........5566: 1 statements or notifications");
        assert_eq!(summary[4], "reference_elements = [\"AcctSvcrRef\"]");
        // With what it proposed, every payment has its reference.
        let table = toml::from_str::<ProfileTable>(&summary[4]).unwrap();
        let mut found = Certification::new(Format(&Iso20022), table.try_into().unwrap());
        found.file("a.xml", file.as_bytes());
        assert_eq!((found.debits_count, found.referenced_count), (2, 2));
    }
}
