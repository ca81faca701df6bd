//! `hundi bank certify`: shows what the service would make of a bank's sample files, without
//! touching the book.

use std::collections::BTreeMap;

use super::profile::{BankProfile, MASK_CHARACTERS, Pain001, shows_enough};
use super::references::{ReferenceElement, References, UtrFinding};
use super::reports::{CHARGES, Content, PaymentStatus, Reason, Sign, StatementLine, StatusMeaning};
use super::settings::FileFormatRef;
use super::values::{AccountNumber, EndToEndId, MessageId, Utr};
use crate::kernel::Money;
use crate::rails::port::PaymentMethod;

/// What was read so far, and what this shows about the profile that the bank needs.
pub struct Certification {
    format: FileFormatRef,
    profile: BankProfile,
    /// The debit account, if one is configured. Its number never counts as a reference.
    debit_account_number: Option<String>,
    pub files_count: usize,
    pub refused_count: usize,
    pub reports_count: usize,
    pub unread_count: usize,
    /// Our payments that were made according to the files, each with whether any report gives its
    /// reference.
    payments: BTreeMap<EndToEndId, bool>,
    /// One entry for each report that calls a payment of ours made but gives no reference, or
    /// several: the payment, and the texts that could be its reference, by element.
    missing: Vec<(EndToEndId, Vec<(ReferenceElement, Utr)>)>,
    /// Versions of pain.001 that status reports name.
    versions: Vec<Pain001>,
    /// The account numbers of statements and notifications, as the bank writes them, each with how
    /// often it occurs.
    accounts: BTreeMap<String, usize>,
}

impl Certification {
    pub fn new(format: FileFormatRef, profile: BankProfile) -> Certification {
        Certification {
            format,
            profile,
            debit_account_number: None,
            files_count: 0,
            refused_count: 0,
            reports_count: 0,
            unread_count: 0,
            payments: BTreeMap::new(),
            missing: Vec::new(),
            versions: Vec::new(),
            accounts: BTreeMap::new(),
        }
    }

    /// Adds the debit account of the settings.
    pub fn with_account(self, number: &str) -> Certification {
        Certification { debit_account_number: Some(number.to_owned()), ..self }
    }

    /// How many of our payments were made according to the files.
    pub fn payments_count(&self) -> usize {
        self.payments.len()
    }

    /// How many of our payments have a reference in the files.
    pub fn referenced_count(&self) -> usize {
        self.payments.values().filter(|is_referenced| **is_referenced).count()
    }

    /// Reads one file, and answers lines that say what it holds.
    pub fn explain_file(&mut self, name: &str, bytes: &[u8]) -> Vec<String> {
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
                let version = report.original_version.as_deref().and_then(Pain001::parse);
                self.versions.extend(version.filter(|version| !self.versions.contains(version)));
                if let Some(status) = &report.whole {
                    let meaning = meaning(status.meaning);
                    lines.push(format!("  whole file: {meaning}{}", reason_text(&status.reason)));
                }
                for (batch, status) in &report.batches {
                    let meaning = meaning(status.meaning);
                    lines
                        .push(format!("  batch {batch}: {meaning}{}", reason_text(&status.reason)));
                }
                lines.extend(report.payments.iter().map(|payment| self.explain_payment(payment)));
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
                    let number = account.account_number.as_str();
                    lines.extend(account.lines.iter().map(|line| self.explain_line(line, number)));
                }
            }
        }
        self.unread_count += found.unread.count;
        for (place, reason) in &found.unread.shown {
            lines.push(format!("  {place}: NOT READ: {reason}"));
        }
        lines
    }

    fn explain_payment(&mut self, payment: &PaymentStatus) -> String {
        self.reports_count += 1;
        let is_paid = payment.status.meaning == Some(StatusMeaning::Paid);
        let paid_id = payment.end_to_end_id.filter(|_| is_paid);
        let reference = self.explain_reference(&payment.references, paid_id, payment.amount, None);
        format!(
            "  {}: {}, {}, {reference}{}",
            payment.place,
            meaning(payment.status.meaning),
            name(payment.end_to_end_id, None),
            reason_text(&payment.status.reason)
        )
    }

    fn explain_line(&mut self, line: &StatementLine, account_number: &str) -> String {
        self.reports_count += 1;
        let what = match (line.sign, line.is_reversal) {
            (Sign::Debit, false) => "debit",
            (Sign::Debit, true) => "debit that undoes a credit",
            (Sign::Credit, false) => "credit",
            (Sign::Credit, true) => "credit that undoes a debit",
        };
        let is_payment = line.sign == Sign::Debit && !line.is_reversal;
        let paid_id = line.end_to_end_id.filter(|_| is_payment);
        let amount = Some(line.amount);
        let reference =
            self.explain_reference(&line.references, paid_id, amount, Some(account_number));
        let members = match line.members.len() {
            0 => String::new(),
            count => format!(", booked for {count} payouts together"),
        };
        format!(
            "  {}: {what} {} on {}, {}{members}, {reference}{}",
            line.place,
            line.amount,
            line.booking_day,
            name(line.end_to_end_id, line.other_reference.as_deref()),
            reason_text(&line.reason)
        )
    }

    /// Says which reference would be used, and which element has it. Also notes `paid_id`, our
    /// payment if the report says that it was made. The method is taken from the amount, because a
    /// sample does not say which payments are book transfers.
    fn explain_reference(
        &mut self,
        references: &References,
        paid_id: Option<EndToEndId>,
        amount: Option<Money>,
        account_number: Option<&str>,
    ) -> String {
        let method = amount.map_or(PaymentMethod::Neft, PaymentMethod::for_amount);
        let configured = self.debit_account_number.as_deref();
        let own: Vec<&str> = account_number.into_iter().chain(configured).collect();
        let finding = references.utr(method, &self.profile.reference_elements, &own);
        if let Some(id) = paid_id {
            *self.payments.entry(id).or_default() |= matches!(finding, UtrFinding::One(..));
        }
        if let UtrFinding::One(utr, element) = &finding {
            return format!("UTR {} from {}", utr.as_str(), element.as_str());
        }
        self.missing.extend(paid_id.map(|id| (id, references.single_candidates(&own))));
        match finding {
            UtrFinding::Ambiguous => "several UTRs: the operator would decide".into(),
            _ => "no UTR".into(),
        }
    }

    /// The elements that would give the missing references. The first gives the most of them, and
    /// each further one the most of those that are then still missing. A text that several payments
    /// share is no reference.
    fn elements_for_missing(&self) -> Vec<ReferenceElement> {
        let is_shared = |id: EndToEndId, utr: &Utr| {
            let others = self.missing.iter().filter(|(other, _)| *other != id);
            others.flat_map(|(_, candidates)| candidates).any(|(_, other)| other == utr)
        };
        // A payment counts only if no report gives its reference.
        let is_unreferenced = |id: &EndToEndId| self.payments.get(id) != Some(&true);
        let mut remaining: Vec<Vec<ReferenceElement>> = self
            .missing
            .iter()
            .filter(|(id, _)| is_unreferenced(id))
            .map(|(id, candidates)| {
                let unshared = candidates.iter().filter(|(_, utr)| !is_shared(*id, utr));
                unshared.map(|(element, _)| *element).collect()
            })
            .collect();
        let mut found = Vec::new();
        loop {
            let count = |element: &ReferenceElement| {
                remaining.iter().filter(|elements| elements.contains(element)).count()
            };
            // If several elements give equally many, the first of them in `ALL` is taken.
            let best = ReferenceElement::ALL.iter().rev().max_by_key(|element| count(element));
            let Some(best) = best.copied().filter(|best| count(best) > 0) else { return found };
            found.push(best);
            remaining.retain(|elements| !elements.contains(&best));
        }
    }

    /// The settings of `[bank.profile]` that the files suggest, each as a whole line that replaces
    /// the current one.
    pub fn proposal(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let missing = self.elements_for_missing();
        if !missing.is_empty() {
            let known = self.profile.reference_elements.iter().filter(|one| !missing.contains(one));
            let all: Vec<&str> = known.chain(&missing).map(|element| element.as_str()).collect();
            lines.push(format!("reference_elements = {all:?}"));
        }
        let known = self.profile.debit_account_masks.iter().map(AccountNumber::text);
        let mut masks: Vec<&str> = known.collect();
        let known_count = masks.len();
        let written = self.accounts.keys().map(String::as_str);
        masks.extend(
            written.filter(|account| account.contains(MASK_CHARACTERS) && shows_enough(account)),
        );
        if masks.len() > known_count {
            lines.push(format!("debit_account_masks = {masks:?}"));
        }
        if let [version] = self.versions.as_slice()
            && *version != self.profile.pain_001
        {
            lines.push(format!("pain_001 = {:?}", version.as_str()));
        }
        lines
    }

    /// The figures of all files together, and the settings that they suggest.
    pub fn summary(&self) -> Vec<String> {
        let mut lines = vec![format!(
            "{} files, {} refused; {} reports, {} parts not read; payments of ours: {}, with a \
             UTR: {}",
            self.files_count,
            self.refused_count,
            self.reports_count,
            self.unread_count,
            self.payments_count(),
            self.referenced_count()
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
        let missing = self.payments_count() - self.referenced_count();
        let have = if missing == 1 { "payment has" } else { "payments have" };
        let elements = self.elements_for_missing();
        if missing > 0 && elements.is_empty() {
            lines.push(format!(
                "{missing} {have} no UTR: ask the bank in which element it writes the UTR"
            ));
        } else if missing > 0 {
            let words: Vec<&str> = elements.iter().map(|element| element.as_str()).collect();
            lines.push(format!(
                "{missing} {have} no UTR, but texts that could be the UTR in {}",
                words.join(", ")
            ));
        }
        let proposal = self.proposal();
        if !proposal.is_empty() {
            lines.push("if the bank confirms it, write:".into());
            lines.push("[bank.profile]".into());
            lines.extend(proposal);
        }
        lines
    }
}

const fn meaning(meaning: Option<StatusMeaning>) -> &'static str {
    match meaning {
        Some(StatusMeaning::Processing) => "processing",
        Some(StatusMeaning::Paid) => "paid",
        Some(StatusMeaning::Refused) => "refused",
        None => "a status that is not known",
    }
}

fn name(end_to_end_id: Option<EndToEndId>, other: Option<&str>) -> String {
    match (end_to_end_id, other) {
        (Some(id), _) => format!("payout {}", id.payout_id()),
        (None, Some(CHARGES)) => "charges".into(),
        (None, Some(text)) if MessageId::of_batch(text).is_some() => format!("our batch {text}"),
        (None, Some(_)) => "a reference that is not ours".into(),
        (None, None) => "no reference".into(),
    }
}

fn reason_text(reason: &Reason) -> String {
    let parts = [reason.code.as_deref(), reason.text.as_deref()];
    let parts: Vec<&str> = parts.into_iter().flatten().collect();
    if parts.is_empty() { String::new() } else { format!(", reason {}", parts.join(" ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rails::files::profile::ProfileTable;
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
        let [ours, other] =
            [7, 8].map(|value| EndToEndId::of(crate::kernel::Id::from_u128(value)).to_string());
        let entries = [
            entry(&ours, "<AcctSvcrRef>S1234567890</AcctSvcrRef>"),
            entry(&other, "<ClrSysRef>SBIN126166441955</ClrSysRef>"),
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
        let mut found = Certification::new(FileFormatRef(&Iso20022), profile());
        let lines = found.explain_file("a.xml", file.as_bytes());
        let wanted = [
            "a.xml: movements N1",
            "  statement 1 page 1: opening none, closing none",
            "  Ntfctn 1, Ntry 1, TxDtls 1: debit 100.00 on 2026-11-21, payout \
             payout_00000000000000000000000007, no UTR",
            "  Ntfctn 1, Ntry 2, TxDtls 1: debit 100.00 on 2026-11-21, payout \
             payout_00000000000000000000000008, UTR SBIN126166441955 from ClrSysRef",
            "  Ntfctn 1, Ntry 3, TxDtls 1: debit 100.00 on 2026-11-21, a reference that is not \
             ours, no UTR",
            "  Ntfctn 1, Ntry 4: NOT READ: Amt is not in INR",
        ];
        assert_eq!(lines, wanted);
        assert!(found.explain_file("b.xml", b"<html/>")[0].contains("refused"));
        let summary = found.summary();
        assert!(summary[0].starts_with("2 files, 1 refused; 3 reports, 1 parts not read"));
        assert_eq!(summary[1], "account ..........5566: 1 statements or notifications");
        assert_eq!(summary[4], "[bank.profile]");
        assert_eq!(summary[5], "reference_elements = [\"AcctSvcrRef\"]");
        assert_eq!(summary[6], "debit_account_masks = [\"XXXXXXXXXX5566\"]");
        // With the proposed profile, every payment has its reference.
        let table = toml::from_str::<ProfileTable>(&found.proposal().join("\n")).unwrap();
        let mut found = Certification::new(FileFormatRef(&Iso20022), table.try_into().unwrap());
        found.explain_file("a.xml", file.as_bytes());
        assert_eq!((found.payments_count(), found.referenced_count()), (2, 2));
    }

    #[test]
    fn a_debit_that_undoes_a_credit_is_no_payment() {
        let ours = EndToEndId::of(crate::kernel::Id::from_u128(7)).to_string();
        let payment = entry(&ours, "<ClrSysRef>SBIN126166441955</ClrSysRef>");
        let undone = payment.replace("</CdtDbtInd>", "</CdtDbtInd><RvslInd>true</RvslInd>");
        for (entry, counts) in [(payment, (1, 1)), (undone, (0, 0))] {
            let file = format!(
                "<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:camt.054.001.02\">\
                 <BkToCstmrDbtCdtNtfctn><GrpHdr><MsgId>N1</MsgId></GrpHdr><Ntfctn><Id>1</Id><Acct>\
                 <Id><Othr><Id>XXXXXXXXXX5566</Id></Othr></Id></Acct>{entry}</Ntfctn>\
                 </BkToCstmrDbtCdtNtfctn></Document>"
            );
            let profile = BankProfile::try_from(ProfileTable::default()).unwrap();
            let mut found = Certification::new(FileFormatRef(&Iso20022), profile);
            let lines = found.explain_file("a.xml", file.as_bytes());
            assert_eq!((found.payments_count(), found.referenced_count()), counts, "{lines:?}");
        }
    }

    #[test]
    fn a_reference_is_judged_by_the_method_and_is_not_the_account() {
        let ours = EndToEndId::of(crate::kernel::Id::from_u128(7)).to_string();
        let status = format!(
            "<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:pain.002.001.10\"><CstmrPmtStsRpt>\
             <GrpHdr><MsgId>S1</MsgId></GrpHdr><OrgnlGrpInfAndSts><OrgnlMsgId>1</OrgnlMsgId>\
             </OrgnlGrpInfAndSts><OrgnlPmtInfAndSts><OrgnlPmtInfId>1</OrgnlPmtInfId><TxInfAndSts>\
             <OrgnlEndToEndId>{ours}</OrgnlEndToEndId><TxSts>ACSC</TxSts><StsRsnInf><AddtlInf>\
             SBIN126166441955 HDFCR52026112100000001</AddtlInf></StsRsnInf><OrgnlTxRef><Amt>\
             <InstdAmt Ccy=\"INR\">300000.00</InstdAmt></Amt></OrgnlTxRef></TxInfAndSts>\
             </OrgnlPmtInfAndSts></CstmrPmtStsRpt></Document>"
        );
        let profile = || BankProfile::try_from(ProfileTable::default()).unwrap();
        let mut found = Certification::new(FileFormatRef(&Iso20022), profile());
        let lines = found.explain_file("a.xml", status.as_bytes()).join("\n");
        assert!(lines.contains("UTR HDFCR52026112100000001 from AddtlInf"), "{lines}");

        let account = "00112233445566";
        let notification = format!(
            "<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:camt.054.001.02\">\
             <BkToCstmrDbtCdtNtfctn><GrpHdr><MsgId>N1</MsgId></GrpHdr><Ntfctn><Id>1</Id><Acct><Id>\
             <Othr><Id>{account}</Id></Othr></Id></Acct>{}</Ntfctn></BkToCstmrDbtCdtNtfctn></Document>",
            entry(&ours, &format!("<AcctSvcrRef>{account}</AcctSvcrRef>"))
        );
        let mut found = Certification::new(FileFormatRef(&Iso20022), profile());
        let lines = found.explain_file("b.xml", notification.as_bytes()).join("\n");
        assert!(lines.ends_with("no UTR"), "{lines}");
        assert_eq!(found.proposal(), Vec::<String>::new());
        let batch = format!("{}-NEFT", MessageId(crate::kernel::Id::from_u128(9)));
        let details = format!(
            "<TxDtls><Refs><EndToEndId>{ours}</EndToEndId><AcctSvcrRef>{account}\
             </AcctSvcrRef></Refs></TxDtls>"
        );
        let of_batch = format!("<Btch><PmtInfId>{batch}</PmtInfId></Btch>");
        assert!(notification.contains(&details));
        let notification = notification.replace(&details, &of_batch);
        let lines = found.explain_file("c.xml", notification.as_bytes()).join("\n");
        assert!(lines.ends_with(&format!("our batch {batch}, no UTR")), "{lines}");
    }

    #[test]
    fn a_reference_that_another_file_gives_is_not_asked_for() {
        let ours = EndToEndId::of(crate::kernel::Id::from_u128(7)).to_string();
        let status = format!(
            "<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:pain.002.001.10\"><CstmrPmtStsRpt>\
             <GrpHdr><MsgId>S1</MsgId></GrpHdr><OrgnlGrpInfAndSts><OrgnlMsgId>1</OrgnlMsgId>\
             <OrgnlMsgNmId>pain.001.001.09</OrgnlMsgNmId></OrgnlGrpInfAndSts><OrgnlPmtInfAndSts>\
             <OrgnlPmtInfId>1</OrgnlPmtInfId><TxInfAndSts><OrgnlEndToEndId>{ours}\
             </OrgnlEndToEndId><TxSts>ACSC</TxSts></TxInfAndSts></OrgnlPmtInfAndSts>\
             </CstmrPmtStsRpt></Document>"
        );
        let notification = format!(
            "<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:camt.054.001.02\">\
             <BkToCstmrDbtCdtNtfctn><GrpHdr><MsgId>N1</MsgId></GrpHdr><Ntfctn><Id>1</Id><Acct><Id>\
             <Othr><Id>5566</Id></Othr></Id></Acct>{}</Ntfctn></BkToCstmrDbtCdtNtfctn></Document>",
            entry(&ours, "<ClrSysRef>SBIN126166441955</ClrSysRef>")
        );
        let profile = BankProfile::try_from(ProfileTable::default()).unwrap();
        let mut found = Certification::new(FileFormatRef(&Iso20022), profile);
        found.explain_file("a.xml", status.as_bytes());
        let summary = found.summary();
        assert!(summary[0].ends_with("payments of ours: 1, with a UTR: 0"), "{summary:?}");
        assert!(summary[1].starts_with("1 payment has no UTR"), "{summary:?}");
        found.explain_file("b.xml", notification.as_bytes());
        let summary = found.summary();
        assert!(summary[0].ends_with("payments of ours: 1, with a UTR: 1"), "{summary:?}");
        assert_eq!(summary.len(), 2, "{summary:?}");
    }
}
