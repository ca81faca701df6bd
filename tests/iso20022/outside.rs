//! Files of banks that have nothing to do with us: read whole, and turned into dialects in which
//! the reference stands where Indian banks put it.

use std::path::Path;

use hundi::kernel::{Currency, Id, Money};
use hundi::rails::FILE_FORMATS;
use hundi::rails::PaymentMethod;
use hundi::rails::files::certify::Certification;
use hundi::rails::files::profile::{BankProfile, ProfileTable};
use hundi::rails::files::references::{ReferenceElement, UtrFinding};
use hundi::rails::files::reports::{Content, Incoming, Reason, Sign, StatusMeaning};
use hundi::rails::files::settings::FileFormatRef;
use hundi::rails::files::values::EndToEndId;
use hundi::rails::iso20022::reading;

use crate::bank::DEBIT_ACCOUNT;
use crate::money::{debit, statement};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/iso20022/outside");

/// A file with rupees in the place of its currency.
fn text(name: &str) -> String {
    let bytes = std::fs::read(Path::new(FOLDER).join(name)).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    ["EUR", "CHF", "SEK", "RON", "USD", "GBP"].iter().fold(text, |text, currency| {
        let text = text.replace(&format!("Ccy=\"{currency}\""), "Ccy=\"INR\"");
        text.replace(&format!("Ccy='{currency}'"), "Ccy='INR'")
    })
}

fn read(name: &str) -> Incoming {
    reading::read(text(name).as_bytes()).unwrap_or_else(|refused| panic!("{name}: {refused}"))
}

#[test]
fn every_file_from_outside_is_read() {
    let mut names: Vec<String> = std::fs::read_dir(FOLDER)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".xml"))
        .collect();
    names.sort();
    assert_eq!(names.len(), 45);
    let mut told = String::new();
    for name in &names {
        match reading::read(text(name).as_bytes()) {
            Err(refused) => told.push_str(&format!("{name}: {refused}\n")),
            Ok(found) => {
                let lines = match &found.content {
                    Content::Accounts(accounts) => {
                        accounts.iter().map(|account| account.lines.len()).sum()
                    }
                    Content::Statuses(report) => report.payments.len(),
                };
                told.push_str(&format!(
                    "{name}: {lines} read, {} passed over\n",
                    found.unread.count
                ));
            }
        }
    }
    assert_eq!(told, include_str!("outside/read.txt"));
}

#[test]
fn what_they_say_is_understood() {
    let Content::Statuses(report) = read("moov-pain002-group-rejected.xml").content else {
        panic!()
    };
    let whole = report.whole.unwrap();
    assert_eq!(
        (whole.meaning, whole.reason.code.as_deref()),
        (Some(StatusMeaning::Refused), Some("AM10"))
    );
    assert_eq!(whole.reason.text.as_deref(), Some("904114;ControlSum fehlerhaft"));
    let Content::Statuses(report) = read("moov-pain002-tx-rejected.xml").content else { panic!() };
    assert_eq!(report.payments[0].status.reason.code.as_deref(), Some("AC01"));

    let refused = [
        ("iso20022js-pain002-nordea-group-rejected.xml", "DU01", "ISO Duplicate Message ID"),
        (
            "iso20022js-pain002-nordea-batch-rejected.xml",
            "NARR",
            "CAP Invalid code or combinations in CategoryPurpose or ServiceLevel",
        ),
    ];
    for (name, code, words) in refused {
        let Content::Statuses(report) = read(name).content else { panic!() };
        let batch = report.batches.first().map(|(_, status)| status.clone());
        let status = report.whole.or(batch).unwrap();
        assert_eq!(status.meaning, Some(StatusMeaning::Refused), "{name}");
        let Reason { code: found, text } = status.reason;
        assert_eq!((found.as_deref(), text.as_deref()), (Some(code), Some(words)), "{name}");
    }
    // Accepted after a look at the file is not paid.
    for name in ["iso20022js-pain002-goldman-accepted.xml", "iso20022js-pain002-goldman-group.xml"]
    {
        let Content::Statuses(report) = read(name).content else { panic!() };
        let payment = report.payments.first().map(|payment| payment.status.clone());
        let status = report.whole.or(payment).unwrap();
        assert_eq!(status.meaning, Some(StatusMeaning::Processing), "{name}");
    }
    // A reversal by the bank, beside the debits of the same day.
    let Content::Accounts(accounts) = read("iso20022js-camt053-goldman-uk.xml").content else {
        panic!()
    };
    let undone: Vec<bool> = accounts[1].lines.iter().map(|line| line.is_reversal).collect();
    assert_eq!(undone, [false, false, true, false, false, false]);

    // This bank marks a return as a reversal.
    let Content::Accounts(accounts) = read("moov-camt054-returns.xml").content else { panic!() };
    let line = &accounts[0].lines[0];
    assert_eq!((line.sign, line.is_reversal), (Sign::Credit, false));
    let reversed =
        text("moov-camt054-returns.xml").replace("RRTN", "DMCT").replace("RtrInf", "Other");
    let Content::Accounts(accounts) = reading::read(reversed.as_bytes()).unwrap().content else {
        panic!()
    };
    assert!(accounts[0].lines[0].is_reversal, "the control");

    // Several statements of one account in a file.
    let Content::Accounts(accounts) = read("genkgo-camt053.v2.multi.statement.xml").content else {
        panic!()
    };
    assert!(accounts.len() > 1);
    // Another account beside ours is passed over and counted.
    let text = text("genkgo-camt053.v2.multi.statement.xml");
    let number = accounts[0].account_number.clone();
    let other = text.replacen(&format!("<IBAN>{number}"), "<IBAN>NL00OTHER0123456789", 1);
    let found = reading::read_for(other.as_bytes(), &|found| found == number).unwrap();
    assert_eq!(found.unread.count, 1);
    assert!(found.unread.shown[0].1.contains("another account"));
    let Content::Accounts(rest) = found.content else { panic!() };
    assert_eq!(rest.len(), accounts.len() - 1);
}

/// On a quiet day a file can hold entries of other accounts only.
#[test]
fn a_day_without_entries_is_read_beside_another_account() {
    let entry = debit(Money::new(100, Currency::Inr), String::new());
    let [ours, busy] = [&[][..], &[entry][..]]
        .map(|entries| statement("D1", "DAY-1", "", 0, entries))
        .map(|text| text.replace("DAY-1", if text.contains("<Ntry>") { "OTHER" } else { "OURS" }));
    let (start, end) = (busy.find("<Stmt>").unwrap(), busy.find("</BkToCstmrStmt>").unwrap());
    let other = busy[start..end].replace(DEBIT_ACCOUNT, "99887766554433");
    let read = |text: &str| reading::read_for(text.as_bytes(), &|found| found == DEBIT_ACCOUNT);
    let both = ours.replace("</BkToCstmrStmt>", &format!("{other}</BkToCstmrStmt>"));
    let found = read(&both).unwrap();
    assert_eq!(found.unread.count, 1);
    let Content::Accounts(accounts) = found.content else { panic!() };
    let [ours_read] = &accounts[..] else { panic!("{accounts:?}") };
    assert_eq!((ours_read.id.as_str(), ours_read.lines.len()), ("OURS", 0));
    // Nothing of ours, and something of ours that cannot be read, are told.
    read(&busy.replace(DEBIT_ACCOUNT, "99887766554433")).unwrap_err();
    read(&both.replacen("<CdtDbtInd>CRDT", "<CdtDbtInd>NEITHER", 1)).unwrap_err();
}

/// Where a bank writes the UTR of a debit, as it is put into the files from outside.
const DIALECTS: &[(&str, &str, &str)] = &[
    ("SBIN126166441955", "Refs", "<ClrSysRef>{}</ClrSysRef>"),
    ("AXISP00494478733", "Refs", "<AcctSvcrRef>{}</AcctSvcrRef>"),
    ("AXNH261850049792", "Refs", "<TxId>{}</TxId>"),
    ("YESAP61641609940", "Refs", "<Prtry><Tp>UTR</Tp><Ref>{}</Ref></Prtry>"),
    ("RATNN24200329588", "Refs", "<InstrId>{}</InstrId>"),
    ("KKBK210073463539", "TxDtls", "<AddtlTxInf>NEFT/{}/ASHA RAO</AddtlTxInf>"),
    ("CMS0902411872332", "TxDtls", "<AddtlTxInf>UTR NO {}</AddtlTxInf>"),
    ("N351200478962883", "TxDtls", "<RmtInf><Ustrd>NEFT DR-{}-ASHA</Ustrd></RmtInf>"),
    (
        "CITIN18956860937",
        "TxDtls",
        "<RmtInf><Strd><CdtrRefInf><Ref>{}</Ref></CdtrRefInf></Strd></RmtInf>",
    ),
    ("UTIBR72026050100131060", "TxDtls", "<AddtlTxInf>RTGS-{}-ASHA RAO-0841</AddtlTxInf>"),
    (
        "SBIN126166441955",
        "Ntry",
        "<AddtlNtryInf>BY TRANSFER-NEFT*HDFC0000001*{}*ASHA--</AddtlNtryInf>",
    ),
    ("BARBN52025040226217799", "Ntry", "<AddtlNtryInf>UTR:{}</AddtlNtryInf>"),
    ("YESIG62440270133", "Ntry", "<AddtlNtryInf>NEFT Cr-YESB0000001-{}.Avl bal</AddtlNtryInf>"),
    (
        "AXISP00629663007",
        "Ntry",
        "<AddtlNtryInf>NEFT*UTIB0001550*AXISP00629663 007*ASHA {}</AddtlNtryInf>",
    ),
    ("HDFCN52026112100000001", "Ntry", "<NtryRef>{}</NtryRef>"),
    ("AB12345678", "Refs", "<ClrSysRef>{}</ClrSysRef>"),
    ("AB12345678", "Ntry", "<AddtlNtryInf>UTR {} PAID</AddtlNtryInf>"),
    ("IDFBH22033461032", "TxDtls", "<AddtlTxInf>utr{}</AddtlTxInf>"),
    ("RATNH24197288086", "Ntry", "<AcctSvcrRef>{}</AcctSvcrRef>"),
    ("PUNBH26325100200", "TxDtls", "<RmtInf><Ustrd>PAYMENT</Ustrd><Ustrd>{}</Ustrd></RmtInf>"),
];

/// One debit of ours in each of the versions that are read, with the reference in its place.
fn dialect(version: &str, utr: &str, parent: &str, element: &str) -> String {
    let name = EndToEndId::of(Id::from_u128(77));
    let part = element.replace("{}", if element.contains("629663 007") { "" } else { utr });
    let at = |wanted: &str| if parent == wanted { part.as_str() } else { "" };
    let status = if version < "06" { "BOOK" } else { "<Cd>BOOK</Cd>" };
    format!(
        "<Document xmlns=\"urn:iso:std:iso:20022:tech:xsd:camt.053.001.{version}\"><BkToCstmrStmt>\
         <GrpHdr><MsgId>1</MsgId><CreDtTm>2026-11-21T10:00:00</CreDtTm></GrpHdr><Stmt><Id>1</Id>\
         <Acct><Id><Othr><Id>00112233445566</Id></Othr></Id></Acct><Ntry>\
         <Amt Ccy=\"INR\">100.00</Amt><CdtDbtInd>DBIT</CdtDbtInd><Sts>{status}</Sts>\
         <BkTxCd/>{}<NtryDtls><TxDtls><Refs><EndToEndId>{name}</EndToEndId>{}</Refs>\
         <RltdPties><Cdtr><Nm>ASHA RAO</Nm></Cdtr></RltdPties>{}</TxDtls></NtryDtls></Ntry></Stmt>\
         </BkToCstmrStmt></Document>",
        at("Ntry"),
        at("Refs"),
        at("TxDtls"),
    )
}

#[test]
fn the_reference_is_found_in_every_dialect_and_version() {
    assert_eq!(DIALECTS.len(), 20);
    for version in ["02", "04", "06", "08", "10"] {
        for (utr, parent, element) in DIALECTS {
            let file = dialect(version, utr, parent, element);
            let found = reading::read(file.as_bytes()).unwrap();
            let Content::Accounts(accounts) = found.content else { panic!() };
            let line = &accounts[0].lines[0];
            assert_eq!(line.end_to_end_id, Some(EndToEndId::of(Id::from_u128(77))));
            let method = if utr.len() == 22 { PaymentMethod::Rtgs } else { PaymentMethod::Neft };
            match line.references.utr(method, &[], &["00112233445566"]) {
                UtrFinding::One(found, _) => assert_eq!(found.as_str(), *utr, "{element}"),
                other => panic!("{version} {element}: {other:?}"),
            }
        }
    }
    // A form that nobody knows counts where the bank's setting says that it stands.
    let file = dialect("08", "S1234567890123", "Ntry", "<AcctSvcrRef>{}</AcctSvcrRef>");
    let Content::Accounts(accounts) = reading::read(file.as_bytes()).unwrap().content else {
        panic!()
    };
    let references = &accounts[0].lines[0].references;
    assert_eq!(references.utr(PaymentMethod::Neft, &[], &[]), UtrFinding::None);
    let element = ReferenceElement::AcctSvcrRef;
    assert!(matches!(references.utr(PaymentMethod::Neft, &[element], &[]), UtrFinding::One(..)));
}

#[test]
fn charges_within_a_debit_are_a_line_of_their_own() {
    let file = dialect("08", "SBIN126166441955", "Refs", "<ClrSysRef>{}</ClrSysRef>");
    let with = |charges: &str| {
        file.replace("100.00</Amt><CdtDbtInd>", "105.90</Amt><CdtDbtInd>").replace(
            "<RltdPties>",
            &format!("<AmtDtls><TxAmt><Amt Ccy=\"INR\">100.00</Amt></TxAmt></AmtDtls>{charges}<RltdPties>"),
        )
    };
    for charges in [
        "<Chrgs><Amt Ccy=\"INR\">5.90</Amt></Chrgs>",
        "<Chrgs><Rcrd><Amt Ccy=\"INR\">5.00</Amt></Rcrd>\
         <Rcrd><Amt Ccy=\"INR\">0.90</Amt></Rcrd></Chrgs>",
    ] {
        let found = reading::read(with(charges).as_bytes()).unwrap();
        let Content::Accounts(accounts) = found.content else { panic!() };
        let units: Vec<i64> = accounts[0].lines.iter().map(|line| line.amount.units).collect();
        assert_eq!(units, [10_000, 590], "{charges}");
        assert!(accounts[0].lines[1].end_to_end_id.is_none());
    }
    // Without charges that explain it, the entry's amount stands, and differs from the payout's.
    // The line is read whatever the currency of a charge.
    for charges in ["", "<Chrgs><Amt Ccy=\"USD\">0.07</Amt></Chrgs>"] {
        let found = reading::read(with(charges).as_bytes()).unwrap();
        let Content::Accounts(accounts) = found.content else { panic!() };
        let units: Vec<i64> = accounts[0].lines.iter().map(|line| line.amount.units).collect();
        assert_eq!(units, [10_590], "{charges}");
    }
}

/// A debit can include charges that were taken with it. Of a credit, all came in.
#[test]
fn charges_within_a_credit_are_no_line_wherever_its_sign_stands() {
    let file = dialect("08", "SBIN126166441955", "Refs", "<ClrSysRef>{}</ClrSysRef>");
    for (sign, own_sign, expected) in [
        ("DBIT", "", vec![10_000, 590]),
        ("DBIT", "<CdtDbtInd>DBIT</CdtDbtInd>", vec![10_000, 590]),
        ("CRDT", "<CdtDbtInd>CRDT</CdtDbtInd>", vec![10_590]),
        ("CRDT", "", vec![10_590]),
    ] {
        let entry = format!("105.90</Amt><CdtDbtInd>{sign}</CdtDbtInd>");
        let with = file.replace("100.00</Amt><CdtDbtInd>DBIT</CdtDbtInd>", &entry).replace(
            "<RltdPties>",
            &format!(
                "<Amt Ccy=\"INR\">100.00</Amt>{own_sign}\
                     <Chrgs><Amt Ccy=\"INR\">5.90</Amt></Chrgs><RltdPties>"
            ),
        );
        let found = reading::read(with.as_bytes()).unwrap();
        let Content::Accounts(accounts) = found.content else { panic!() };
        let units: Vec<i64> = accounts[0].lines.iter().map(|line| line.amount.units).collect();
        assert_eq!(units, expected, "{sign} {own_sign}");
    }
}

/// One dialect: where the bank writes the reference, in what, and what its profile will say.
struct Mutation {
    element: ReferenceElement,
    /// Where in the entry it stands, and its XML.
    parent: &'static str,
    xml: &'static str,
    /// The number's digits follow.
    prefix: &'static str,
    is_known: bool,
}

const fn mutation(
    element: ReferenceElement,
    parent: &'static str,
    xml: &'static str,
    prefix: &'static str,
    is_known: bool,
) -> Mutation {
    Mutation { element, parent, xml, prefix, is_known }
}

/// Twenty ways to write a reference; half of them have a form that nobody knows.
const MUTATIONS: &[Mutation] = {
    use ReferenceElement as R;
    &[
        mutation(R::ClrSysRef, "Refs", "<ClrSysRef>{}</ClrSysRef>", "SBIN", true),
        mutation(R::ClrSysRef, "Refs", "<ClrSysRef>{}</ClrSysRef>", "Q7", true),
        mutation(R::AcctSvcrRef, "Refs", "<AcctSvcrRef>{}</AcctSvcrRef>", "AXNH", true),
        mutation(R::AcctSvcrRef, "Refs", "<AcctSvcrRef>{}</AcctSvcrRef>", "HB", false),
        mutation(R::AcctSvcrRef, "Ntry", "<AcctSvcrRef>{}</AcctSvcrRef>", "HB9", false),
        mutation(R::TxId, "Refs", "<TxId>{}</TxId>", "KKBK", true),
        mutation(R::TxId, "Refs", "<TxId>{}</TxId>", "TX", false),
        mutation(R::Prtry, "Refs", "<Prtry><Tp>BANK</Tp><Ref>{}</Ref></Prtry>", "YESB", true),
        mutation(R::Prtry, "Refs", "<Prtry><Tp>BANK</Tp><Ref>{}</Ref></Prtry>", "P", false),
        mutation(R::NtryRef, "Ntry", "<NtryRef>{}</NtryRef>", "HDFC", true),
        mutation(R::NtryRef, "Ntry", "<NtryRef>{}</NtryRef>", "", false),
        mutation(R::AddtlTxInf, "TxDtls", "<AddtlTxInf>NEFT/{}/ASHA</AddtlTxInf>", "IDFB", true),
        mutation(R::AddtlTxInf, "TxDtls", "<AddtlTxInf>TRF {} DONE</AddtlTxInf>", "ZQ", false),
        mutation(R::AddtlTxInf, "TxDtls", "<AddtlTxInf>UTR NO {}</AddtlTxInf>", "ZQ", true),
        mutation(R::AddtlNtryInf, "Ntry", "<AddtlNtryInf>TPT*{}*</AddtlNtryInf>", "PUNB", true),
        mutation(R::AddtlNtryInf, "Ntry", "<AddtlNtryInf>BY {} ASHA</AddtlNtryInf>", "X", false),
        mutation(R::Ustrd, "TxDtls", "<RmtInf><Ustrd>DR-{}-RAO</Ustrd></RmtInf>", "BARB", true),
        mutation(R::Ustrd, "TxDtls", "<RmtInf><Ustrd>{}</Ustrd></RmtInf>", "R0", false),
        mutation(
            R::Strd,
            "TxDtls",
            "<RmtInf><Strd><CdtrRefInf><Ref>{}</Ref></CdtrRefInf></Strd></RmtInf>",
            "CMS0",
            true,
        ),
        mutation(
            R::Strd,
            "TxDtls",
            "<RmtInf><Strd><CdtrRefInf><Ref>{}</Ref></CdtrRefInf></Strd></RmtInf>",
            "REF7",
            false,
        ),
    ]
};

/// The first part of a text between two marks, with them, and where it stands.
fn between<'a>(text: &'a str, from: &str, to: &str) -> Option<(usize, &'a str)> {
    let start = text.find(from)?;
    let end = text[start..].find(to)? + start + to.len();
    Some((start, &text[start..end]))
}

/// Leaves out every element of a name.
fn without(text: &str, name: &str) -> String {
    let mut text = text.to_owned();
    for open in [format!("<{name}>"), format!("<{name} ")] {
        while let Some((at, part)) = between(&text, &open, &format!("</{name}>")) {
            let length = part.len();
            text.replace_range(at..at + length, "");
        }
    }
    text
}

/// A file from outside whose first entry is a debit of ours with its reference where the dialect
/// has it; `None` for a file whose first entry has no single transaction.
fn mutated(name: &str, number: usize, mutation: &Mutation, utr: &str) -> Option<String> {
    let text = text(name);
    let (at, entry) = between(&text, "<Ntry>", "</Ntry>")?;
    if entry.matches("<TxDtls>").count() != 1 || entry.contains("<Btch>") {
        return None;
    }
    let length = entry.len();
    let mut entry = entry.replace(">CRDT<", ">DBIT<");
    // The bank writes nothing else that could be a reference, but the rest of the file stays.
    let refused = ["Refs", "RvslInd", "RtrInf", "RmtInf", "AddtlTxInf", "AddtlNtryInf", "NtryRef"];
    for name in refused.into_iter().chain(["AcctSvcrRef"]) {
        entry = without(&entry, name);
    }
    let ours = EndToEndId::of(Id::from_u128(number as u128 + 1));
    let part = mutation.xml.replace("{}", utr);
    let at_parent = |parent| if mutation.parent == parent { part.as_str() } else { "" };
    let refs = format!("<Refs><EndToEndId>{ours}</EndToEndId>{}</Refs>", at_parent("Refs"));
    let entry = entry
        .replace("<TxDtls>", &format!("<TxDtls>{refs}"))
        .replace("</TxDtls>", &format!("{}</TxDtls>", at_parent("TxDtls")))
        .replace("</Ntry>", &format!("{}</Ntry>", at_parent("Ntry")));
    let mut text = text.clone();
    text.replace_range(at..at + length, &entry);
    Some(text)
}

/// `bank certify` and the lines of a profile that it proposes are all that a new bank needs.
#[test]
fn a_profile_is_proposed_for_every_dialect_of_files_from_outside() {
    assert_eq!(MUTATIONS.len(), 20);
    let mut names: Vec<String> = std::fs::read_dir(FOLDER)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("camt05") && name.ends_with(".xml"))
        .collect();
    names.sort();
    let certified = |profile: BankProfile, files: &[(String, String, String)]| {
        let mut found = Certification::new(FileFormatRef(FILE_FORMATS[0]), profile);
        let lines: Vec<String> = files
            .iter()
            .flat_map(|(name, text, _)| found.explain_file(name, text.as_bytes()))
            .filter(|line| line.contains("payout_"))
            .collect();
        (found, lines)
    };
    let mut files_count = 0;
    for (number, mutation) in MUTATIONS.iter().enumerate() {
        let what = format!("dialect {}: {}", number + 1, mutation.element.as_str());
        let mut files = Vec::new();
        for (at, name) in names.iter().enumerate() {
            // 16 characters where the form is a known one.
            let digits = if mutation.is_known { 16 } else { 13 } - mutation.prefix.len();
            let serial = 261_020_000_000_u64 + (number * 100 + at) as u64;
            let serial = format!("{serial:012}");
            let utr = format!("{}{}", mutation.prefix, &serial[12 - digits.min(12)..]);
            if let Some(text) = mutated(name, at, mutation, &utr) {
                files.push((name.clone(), text, utr));
            }
        }
        assert!(files.len() >= 8, "{what}: {} files", files.len());
        files_count += files.len();
        let plain = BankProfile::try_from(ProfileTable::default()).unwrap();
        let (first, _) = certified(plain, &files);
        assert_eq!((first.refused_count, first.payments_count()), (0, files.len()), "{what}");
        if mutation.is_known {
            assert_eq!(first.referenced_count(), files.len(), "{what}");
        } else {
            assert_eq!(first.referenced_count(), 0, "{what}: the control");
        }
        let proposal = first.proposal().join("\n");
        let table = toml::from_str::<ProfileTable>(&proposal).unwrap();
        let wanted = vec![mutation.element.as_str().to_owned()];
        let wanted = (!mutation.is_known).then_some(wanted);
        assert_eq!(table.reference_elements, wanted, "{what}");
        let (second, lines) = certified(table.try_into().unwrap(), &files);
        assert_eq!(second.referenced_count(), files.len(), "{what}");
        assert!(second.proposal().iter().all(|line| !line.starts_with("reference")), "{what}");
        for ((name, _, utr), line) in files.iter().zip(&lines) {
            let told = format!("UTR {utr} from {}", mutation.element.as_str());
            assert!(line.contains(&told), "{what}, {name}: {line}");
        }
    }
    assert!(files_count >= 160, "{files_count}");
}
