//! Files that are written, and files that are kept, against the public schemas; what is read from
//! the kept ones.

use std::path::{Path, PathBuf};
use std::process::Command;

use hundi::kernel::{Currency, Id, Money};
use hundi::rails::PaymentMethod;
use hundi::rails::files::characters::Characters;
use hundi::rails::files::encoding;
use hundi::rails::files::format::{IdentityDocument, PaymentOrder, Remitter};
use hundi::rails::files::references::UtrFinding;
use hundi::rails::files::reports::{Content, Incoming, Sign, StatusMeaning};
use hundi::rails::files::settings::BankSettings;
use hundi::rails::files::values::{EndToEndId, MessageId};
use hundi::rails::iso20022::simulator::{self, SimulatedIsoBank};
use hundi::rails::iso20022::{instruct, reading};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::bank::{DEBIT_ACCOUNT, settings, temporary};

pub const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/iso20022/corpus");

pub fn corpus() -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = std::fs::read_dir(CORPUS)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            (
                path.file_name().unwrap().to_string_lossy().into_owned(),
                std::fs::read(&path).unwrap(),
            )
        })
        .collect();
    files.sort();
    files
}

/// Where the schemas are, or `None` after telling how to get them.
fn schemas() -> Option<PathBuf> {
    let target = std::env::var("CARGO_TARGET_DIR")
        .unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/target").into());
    let folder = Path::new(&target).join("iso20022-xsd");
    let has_xmllint = Command::new("xmllint").arg("--version").output().is_ok();
    if folder.join("pain.001.001.03.xsd").exists() && has_xmllint {
        return Some(folder);
    }
    let told =
        "NOT CHECKED against the schemas: run tests/iso20022/xsd.sh, which brings them and xmllint";
    assert!(std::env::var_os("HUNDI_TEST_SCHEMAS_REQUIRED").is_none(), "{told}");
    eprintln!("{told}");
    None
}

/// Checks files against the schema of their message.
#[track_caller]
fn assert_valid(files: &[(String, Vec<u8>)]) {
    let Some(schemas) = schemas() else { return };
    let folder = temporary();
    std::fs::create_dir(&folder).unwrap();
    for message in [
        "pain.001.001.03",
        "pain.001.001.09",
        "pain.002.001.10",
        "camt.053.001.08",
        "camt.054.001.08",
    ] {
        let mut paths = Vec::new();
        for (index, (name, bytes)) in files.iter().enumerate() {
            if String::from_utf8_lossy(bytes).contains(message) && name.starts_with(&message[..8]) {
                let path = folder.join(format!("{index}-{name}"));
                std::fs::write(&path, bytes).unwrap();
                paths.push(path);
            }
        }
        if paths.is_empty() {
            continue;
        }
        let schema = schemas.join(format!("{message}.xsd"));
        let checked = Command::new("xmllint")
            .args(["--nonet", "--noout", "--schema"])
            .arg(schema)
            .args(&paths)
            .output()
            .unwrap();
        assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

fn order(value: u128, units: i64, name: String) -> PaymentOrder {
    let amount = Money::new(units, Currency::Inr);
    PaymentOrder {
        end_to_end_id: EndToEndId::of(Id::from_u128(value)),
        amount,
        method: PaymentMethod::for_amount(amount),
        purpose_code: "P1301".into(),
        sender: Remitter {
            name: name.clone(),
            country: "AE".into(),
            street: (units % 2 == 0).then(|| name.repeat(3)),
            postal_code: (units % 5 == 0).then(|| name.clone()),
            town: (units % 3 == 0).then(|| "Dubai".into()),
            region: (units % 7 == 0).then(|| name.clone()),
            date_of_birth: (units % 4 < 2).then(|| "1990-01-31".into()),
            identification: (units % 4 < 3).then(|| (IdentityDocument::Passport, name.clone())),
        },
        beneficiary_name: name,
        account_number: "50100012345678".into(),
        ifsc: "HDFC0000001".into(),
    }
}

#[test]
fn instructions_validate_whatever_the_names_hold() {
    let mut runner =
        TestRunner::new(Config { cases: 40, failure_persistence: None, ..Config::default() });
    // A name has a letter that is left when it is written; the border sees to that. × and ÷, which
    // stand among the letters of ISO-8859-1, are none.
    let names = "[A-Za-zÀ-ÖØ-öø-ÿक-ह][^\\p{C}]{0,139}";
    let orders = proptest::collection::vec((any::<u128>(), 1..99_999_999_i64, names), 1..6);
    let files = std::cell::RefCell::new(Vec::new());
    runner
        .run(&orders, |orders| {
            let orders: Vec<PaymentOrder> =
                orders.into_iter().map(|(value, units, name)| order(value, units, name)).collect();
            for settings in [
                settings(temporary(), ""),
                settings(temporary(), "[profile]\npain_001 = 'pain.001.001.03'\n"),
                settings(temporary(), "[profile]\ncharacters = 'unicode'\n"),
                settings(temporary(), "[profile]\ncharacters = 'latin'\nencoding = 'iso-8859-1'\n"),
                settings(temporary(), "[profile]\ncharacters = 'unicode'\nencoding = 'utf-16'\n"),
            ] {
                let message_id = MessageId(Id::from_u128(1));
                let bytes = instruct::write(&settings, message_id, 1_795_285_800, &orders).unwrap();
                prop_assert_eq!(
                    &bytes,
                    &instruct::write(&settings, message_id, 1_795_285_800, &orders).unwrap(),
                    "the same bytes again"
                );
                let text = encoding::text(&bytes).unwrap();
                let declared = settings.profile.encoding.declared();
                let start = format!("<?xml version=\"1.0\" encoding=\"{declared}\"?>");
                prop_assert!(text.starts_with(&start));
                let names: usize = text.matches("<Nm>").count();
                prop_assert_eq!(names, text.matches("</Nm>").count());
                let is_restricted = settings.profile.characters == Characters::Neft;
                prop_assert!(!is_restricted || text.is_ascii());
                files.borrow_mut().push(("pain.001.xml".to_owned(), bytes));
            }
            Ok(())
        })
        .unwrap();
    assert_valid(&files.into_inner());
}

#[test]
fn one_method_makes_one_batch_with_its_total() {
    let orders = [
        order(1, 19_999_999, "A".into()),
        order(2, 20_000_000, "B".into()),
        order(3, 100, "C".into()),
    ];
    let bytes = instruct::write(
        &settings(temporary(), ""),
        MessageId(Id::from_u128(9)),
        1_795_285_799,
        &orders,
    )
    .unwrap();
    let text = String::from_utf8(bytes).unwrap();
    for wanted in [
        "<NbOfTxs>3</NbOfTxs>",
        "<CtrlSum>400000.99</CtrlSum>",
        "<Prtry>NEFT</Prtry>",
        "<CtrlSum>200000.99</CtrlSum>",
        "<Prtry>RTGS</Prtry>",
        "<CtrlSum>200000.00</CtrlSum>",
        "<Dt>2026-11-21</Dt>",
        "<InstdAmt Ccy=\"INR\">199999.99</InstdAmt>",
        "<Nm>Hundi and Co</Nm>",
        DEBIT_ACCOUNT,
    ] {
        assert!(text.contains(wanted), "{wanted} is not in\n{text}");
    }
    assert!(!text.contains("IMPS"));
    let older = settings(temporary(), "[profile]\npain_001 = 'pain.001.001.03'\n");
    let bytes =
        instruct::write(&older, MessageId(Id::from_u128(9)), 1_795_285_799, &orders).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    assert!(text.contains("pain.001.001.03\"") && text.contains("<ReqdExctnDt>2026-11-21<"));
    assert_valid(&[("pain.001.xml".into(), text.into_bytes())]);
}

/// A file without the white space between its elements.
fn flat(bytes: &[u8]) -> String {
    let text = std::str::from_utf8(bytes).unwrap();
    text.lines().map(str::trim).collect()
}

/// The settings of a bank whose profile is one of the examples.
fn example(name: &str) -> BankSettings {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/banks").join(name);
    settings(temporary(), &format!("profile_file = '{}'\n", path.display()))
}

#[test]
fn the_profiles_that_ship_are_read_and_their_files_validate() {
    let mut orders: Vec<PaymentOrder> = [100, 20_000_000, 300]
        .iter()
        .zip(["राजेश शर्मा", "José Nuñez", "Subrahmanya Venkataraman Gopalakrishnan Iyer"])
        .enumerate()
        .map(|(at, (units, name))| order(at as u128, *units, name.into()))
        .collect();
    orders[2].method = PaymentMethod::Internal;
    let id = MessageId(Id::from_u128(u128::from(1_795_285_800_000_u64) << 80));
    let mut files = Vec::new();
    for (name, wanted, file_name) in [
        (
            "generic.toml",
            &[
                "pain.001.001.09\"",
                "<Nm>Rajesh Sharma</Nm>",
                "<Nm>Jose Nunez</Nm>",
                "<Cd>BKTR</Cd>",
                "<Tp><Prtry>NRE</Prtry></Tp>",
                "<Purp><Prtry>P1301</Prtry></Purp>",
                "<ChrgBr>DEBT</ChrgBr>",
            ][..],
            format!("pain.001-{id}.xml"),
        ),
        (
            "india-host-to-host.toml",
            &[
                "pain.001.001.03\"",
                "<InitgPty><Nm>EXAMPLE PAYMENTS LTD</Nm><Id><OrgId><Othr><Id>EXMPL001</Id>\
                 <SchmeNm><Prtry>CORPORATE ID</Prtry></SchmeNm></Othr></OrgId></Id></InitgPty>",
                "<Nm>Subrahmanya Venkataraman Gopalakris</Nm>",
                "<LclInstrm><Prtry>WIB</Prtry></LclInstrm>",
                "<Tp><Cd>NREX</Cd></Tp>",
                "<Purp><Cd>PC02</Cd></Purp>",
                "<RgltryRptg><DbtCdtRptgInd>CRED</DbtCdtRptgInd><Dtls><Cd>P1301</Cd>",
                "<ChrgBr>SLEV</ChrgBr>",
                "-INTERNAL</PmtInfId>",
            ],
            "EXMPL0012211.007".to_owned(),
        ),
    ] {
        let settings = example(name);
        // A name with a number is found in the book.
        let known = file_name.contains(&id.to_string()).then_some(id);
        assert_eq!(
            (settings.file_name(id, 7), settings.message_id(&file_name)),
            (file_name, known)
        );
        let bytes = instruct::write(&settings, id, 1_795_285_800, &orders).unwrap();
        let text = flat(&bytes);
        for wanted in wanted {
            assert!(text.contains(wanted), "{name}: {wanted} is not in\n{text}");
        }
        files.push(("pain.001.xml".to_owned(), bytes));
    }
    assert_eq!(example("india-host-to-host.toml").batch_instructions_max, 500);
    assert_valid(&files);
    // The control: the older message has no place for the newer one's date.
    if schemas().is_some() {
        let text = String::from_utf8(files[1].1.clone()).unwrap();
        let broken = text.replace("<ReqdExctnDt>", "<ReqdExctnDt><Dt>");
        let broken = broken.replace("</ReqdExctnDt>", "</Dt></ReqdExctnDt>");
        let broken = vec![("pain.001.xml".to_owned(), broken.into_bytes())];
        assert!(std::panic::catch_unwind(|| assert_valid(&broken)).is_err());
    }
}

#[test]
fn a_remitter_is_written_with_all_that_is_known() {
    let mut order = order(1, 100, "Asha Rao".into());
    order.sender = Remitter {
        name: "Ravi Rao".into(),
        country: "AE".into(),
        street: Some("1, Creek Road".into()),
        postal_code: Some("00000".into()),
        town: Some("दुबई".into()),
        region: Some("Dubai".into()),
        date_of_birth: Some("1990-01-31".into()),
        identification: Some((IdentityDocument::Passport, "Z1234567".into())),
    };
    let more = "debit_account_town = 'Mumbai'\ndebit_account_country = 'IN'\n";
    let id = MessageId(Id::from_u128(9));
    let mut files = Vec::new();
    for version in ["pain.001.001.03", "pain.001.001.09"] {
        let more = format!("{more}[profile]\npain_001 = '{version}'\n");
        let settings = settings(temporary(), &more);
        let bytes = instruct::write(&settings, id, 1_795_285_800, &[order.clone()]).unwrap();
        let text = flat(&bytes);
        for wanted in [
            "<Dbtr><Nm>Hundi and Co</Nm><PstlAdr><TwnNm>Mumbai</TwnNm><Ctry>IN</Ctry></PstlAdr>",
            "<UltmtDbtr><Nm>Ravi Rao</Nm><PstlAdr><StrtNm>1, Creek Road</StrtNm>\
             <PstCd>00000</PstCd><TwnNm>Dubai</TwnNm><CtrySubDvsn>Dubai</CtrySubDvsn>\
             <Ctry>AE</Ctry></PstlAdr><Id><PrvtId><DtAndPlcOfBirth><BirthDt>1990-01-31</BirthDt>",
            "<Othr><Id>Z1234567</Id><SchmeNm><Cd>CCPT</Cd></SchmeNm></Othr>",
        ] {
            assert!(text.contains(wanted), "{wanted} is not in\n{text}");
        }
        files.push(("pain.001.xml".to_owned(), bytes));
    }
    assert_valid(&files);
}

#[test]
fn kept_and_simulated_files_validate() {
    let mut files = corpus();
    let behaviour = simulator::parse_behaviour("stray_lines,duplicates").unwrap();
    let mut bank = SimulatedIsoBank::new(3, 1_795_285_000, behaviour);
    let accounts = ["50100012345678", "50100012341001", "50100012341002", "50100012341004"];
    let orders: Vec<PaymentOrder> = accounts
        .iter()
        .enumerate()
        .map(|(at, account)| PaymentOrder {
            account_number: (*account).into(),
            ..order(at as u128, 10_000_000 * (at as i64 + 1), "A".into())
        })
        .collect();
    let bytes = instruct::write(
        &settings(temporary(), ""),
        MessageId(Id::from_u128(9)),
        1_795_285_799,
        &orders,
    )
    .unwrap();
    bank.take(&bytes, 1_795_285_799).unwrap();
    bank.close_day(1_795_285_799);
    let simulated: Vec<(String, Vec<u8>)> =
        bank.next_files().into_iter().map(|file| (file.name, file.bytes)).collect();
    assert!(simulated.len() > 10);
    for (name, bytes) in &simulated {
        reading::read(bytes).unwrap_or_else(|refused| panic!("{name}: {refused}"));
    }
    files.extend(simulated);
    files.push(("pain.001.xml".into(), bytes));
    assert_valid(&files);
    // The control: a schema that everything passes would prove nothing.
    if schemas().is_some() {
        let broken = files.iter().map(|(name, bytes)| {
            (name.clone(), String::from_utf8_lossy(bytes).replace("MsgId", "MsgIdx").into_bytes())
        });
        let broken: Vec<_> = broken.collect();
        assert!(std::panic::catch_unwind(|| assert_valid(&broken)).is_err());
    }
}

fn utr(references: &hundi::rails::files::references::References, method: PaymentMethod) -> String {
    match references.utr(method, &[], &[]) {
        UtrFinding::One(utr, _) => utr.as_str().to_owned(),
        other => panic!("{other:?}"),
    }
}

fn read(name: &str) -> Incoming {
    reading::read(&std::fs::read(Path::new(CORPUS).join(name)).unwrap()).unwrap()
}

#[test]
fn a_statement_is_read_into_its_lines() {
    let found = read("camt.053-batch.xml");
    assert_eq!(found.message_id, "STMT/2026/11/21-1");
    let Content::Accounts(accounts) = found.content else { panic!() };
    let [account] = &accounts[..] else { panic!() };
    assert_eq!((account.account_number.as_str(), account.sequence), (DEBIT_ACCOUNT, Some(123)));
    assert_eq!(
        (account.opening.unwrap().0.units, account.closing.unwrap().0.units),
        (100_000_000, 69_999_410)
    );
    let [first, second, charges] = &account.lines[..] else { panic!("{:?}", account.lines) };
    assert_eq!(
        (first.amount.units, first.sign, first.booking_day.to_string().as_str()),
        (10_000_000, Sign::Debit, "2026-11-21")
    );
    assert_eq!(utr(&first.references, PaymentMethod::Neft), "RATNN24200329588");
    assert_eq!(
        utr(&second.references, PaymentMethod::Rtgs),
        "YESBR12025031200013998",
        "from the remittance text"
    );
    assert!(
        first.end_to_end_id.is_some()
            && second.end_to_end_id.is_some()
            && charges.end_to_end_id.is_none()
    );
    assert_eq!(charges.references.shown(), Some("CHG0099"));
    assert_eq!(
        charges.references.utr(PaymentMethod::Neft, &[], &[]),
        UtrFinding::None,
        "a bank's own reference is no clearing reference"
    );
}

#[test]
fn a_status_report_is_read_payment_by_payment() {
    let Content::Statuses(report) = read("pain.002-mixed.xml").content else { panic!() };
    assert!(report.original.is_some());
    assert_eq!(report.batches.len(), 1);
    assert_eq!(report.batches[0].1.reason.code.as_deref(), Some("DUPL"));
    let [paid, refused, strange] = &report.payments[..] else { panic!() };
    assert_eq!(
        (paid.status.meaning, paid.amount.unwrap().units),
        (Some(StatusMeaning::Paid), 884_125)
    );
    assert_eq!(utr(&paid.references, PaymentMethod::Neft), "N351200478962883");
    assert_eq!(
        (refused.status.meaning, refused.status.reason.code.as_deref()),
        (Some(StatusMeaning::Refused), Some("AC04"))
    );
    assert_eq!(refused.status.reason.text.as_deref(), Some("Account closed"));
    assert_eq!((strange.status.meaning, strange.end_to_end_id), (None, None));
    let Content::Accounts(accounts) = read("camt.054-return.xml").content else { panic!() };
    let line = &accounts[0].lines[0];
    assert_eq!((line.sign, line.reason.code.as_deref()), (Sign::Credit, Some("R12")));
}

#[test]
fn the_simulated_bank_names_the_version_that_it_answers() {
    for version in ["pain.001.001.03", "pain.001.001.09"] {
        let settings = settings(temporary(), &format!("[profile]\npain_001 = '{version}'\n"));
        let id = MessageId(Id::from_u128(9));
        let orders = [order(1, 100, "A".into())];
        let bytes = instruct::write(&settings, id, 1_795_285_799, &orders).unwrap();
        let mut bank = SimulatedIsoBank::new(3, 1_795_285_000, Vec::new());
        bank.take(&bytes, 1_795_285_799).unwrap();
        let files = bank.next_files();
        let answer = files.iter().find(|file| file.name.starts_with("pain.002")).unwrap();
        let Content::Statuses(report) = reading::read(&answer.bytes).unwrap().content else {
            panic!()
        };
        assert_eq!(report.original_version.as_deref(), Some(version));
    }
}

fn changed(name: &str, from: &str, to: &str) -> Vec<u8> {
    let text = String::from_utf8(std::fs::read(Path::new(CORPUS).join(name)).unwrap()).unwrap();
    assert!(text.contains(from), "{from}");
    text.replacen(from, to, 1).into_bytes()
}

#[test]
fn files_that_contradict_themselves_are_refused_with_a_reason() {
    for (name, from, to, reason) in [
        ("camt.053-batch.xml", "<n:MsgId>STMT/2026/11/21-1</n:MsgId>", "", "MsgId"),
        (
            "camt.053-batch.xml",
            "STMT/2026/11/21-1",
            "STMT/2026/11/21-1-and-more-than-35-characters",
            "35",
        ),
        ("camt.053-batch.xml", "camt.053.001.08", "camt.052.001.08", "no message"),
        ("camt.053-batch.xml", "camt.053.001.08", "camt.054.001.08", "no message"),
        ("camt.054-return.xml", "<Ntfctn>", "<Ntfctn><Id>twice</Id>", "more than once"),
        (
            "pain.002-mixed.xml",
            "<OrgnlMsgId>01K5ZZZZZZ7Q2X7N4V6T9R0MSG</OrgnlMsgId>",
            "",
            "OrgnlMsgId",
        ),
    ] {
        let refused = reading::read(&changed(name, from, to)).expect_err(to);
        assert!(refused.reason.contains(reason), "{from} -> {to}: {refused}");
        assert!(!refused.is_truncated);
    }
}

#[test]
fn an_entry_that_contradicts_itself_is_passed_over_and_the_rest_counts() {
    for (from, to, reason) in [
        ("100000.0<", "100000.001<", "two decimals"),
        ("100000.0<", "100001.0<", "add up"),
        ("100000.0<", "-100000.0<", "two decimals"),
        ("Ccy=\"INR\">5.90", "Ccy=\"USD\">5.90", "INR"),
        (">DBIT<", ">DEBIT<", "CdtDbtInd"),
        ("<n:BookgDt><n:Dt>2026-11-21", "<n:BookgDt><n:Dt>2026-11-31", "date"),
        ("<n:Sts><n:Cd>BOOK</n:Cd></n:Sts>", "", "lacks Sts"),
        ("<n:Cd>BOOK</n:Cd>", "<n:Prtry>POSTED</n:Prtry>", "Sts is none"),
    ] {
        let found = reading::read(&changed("camt.053-batch.xml", from, to)).unwrap();
        let [(place, told)] = &found.unread.shown[..] else { panic!("{:?}", found.unread) };
        assert!(told.contains(reason), "{from} -> {to}: {told}");
        assert!(place.starts_with("Stmt 1, Ntry "), "{place}");
        let Content::Accounts(accounts) = found.content else { panic!() };
        let count = accounts[0].lines.len();
        assert!(matches!(count, 1 | 2), "{from} -> {to}: {count} lines are left");
    }
}

#[test]
fn a_balance_that_cannot_be_read_is_told_and_every_entry_counts() {
    let whole = reading::read(&changed("camt.053-batch.xml", "", "")).unwrap();
    let Content::Accounts(wanted) = whole.content else { panic!() };
    for (from, to, reason) in [
        ("<n:CdtDbtInd>CRDT</n:CdtDbtInd>", "", "Bal lacks CdtDbtInd"),
        ("<n:Amt Ccy=\"INR\">", "<n:Amt Ccy=\"USD\">", "INR"),
    ] {
        let found = reading::read(&changed("camt.053-batch.xml", from, to)).unwrap();
        let [(place, told)] = &found.unread.shown[..] else { panic!("{:?}", found.unread) };
        assert_eq!(place, "Stmt 1, Bal");
        assert!(told.contains(reason), "{from} -> {to}: {told}");
        let Content::Accounts(accounts) = found.content else { panic!() };
        assert_eq!(accounts[0].opening, None);
        assert_eq!(accounts[0].closing, wanted[0].closing);
        assert_eq!(accounts[0].lines.len(), wanted[0].lines.len());
    }
}

/// The elements of a file that later versions have and earlier ones do not, in either direction.
#[test]
fn every_version_and_wrapping_says_the_same() {
    let lines = |bytes: &[u8]| {
        let found = reading::read(bytes).unwrap();
        assert_eq!((found.unread.count, found.message_id.as_str()), (0, "STMT/2026/11/21-1"));
        let Content::Accounts(accounts) = found.content else { panic!() };
        let mut text = format!("{:?}{:?}", accounts[0].opening, accounts[0].closing);
        for line in &accounts[0].lines {
            let (id, day) = (line.end_to_end_id, line.booking_day);
            text.push_str(&format!(
                "{id:?}{}{:?}{day}{:?}",
                line.amount, line.sign, line.references
            ));
        }
        text
    };
    let text =
        String::from_utf8(std::fs::read(Path::new(CORPUS).join("camt.053-batch.xml")).unwrap());
    let text = text.unwrap();
    let wanted = lines(text.as_bytes());
    for version in ["02", "04", "06", "10", "13"] {
        let other = text.replace("camt.053.001.08", &format!("camt.053.001.{version}"));
        // Up to .04 the status is a text, and later a code.
        let other = other.replace("<n:Sts><n:Cd>BOOK</n:Cd></n:Sts>", "<n:Sts>BOOK</n:Sts>");
        assert_eq!(lines(other.as_bytes()), wanted, "{version}");
    }
    let national = text.replace(
        "urn:iso:std:iso:20022:tech:xsd:camt.053.001.08",
        "http://www.six-interbank-clearing.com/de/camt.053.001.08.ch.02.xsd",
    );
    assert_eq!(lines(national.as_bytes()), wanted);
    let bare = text.replace(" xmlns:n=\"urn:iso:std:iso:20022:tech:xsd:camt.053.001.08\"", "");
    let bare = bare.replace("<n:", "<").replace("</n:", "</");
    assert_eq!(lines(bare.as_bytes()), wanted, "without a namespace");
    let (declaration, message) = text.split_once('\n').unwrap();
    let wrapped = format!(
        "{declaration}<BusMsg><AppHdr \
         xmlns=\"urn:iso:std:iso:20022:tech:xsd:head.001.001.02\"><BizMsgIdr>1</BizMsgIdr></AppHdr>\
         {message}</BusMsg>"
    );
    assert_eq!(lines(wrapped.as_bytes()), wanted, "within an envelope");
    let utf16 = text.replace("utf-8", "UTF-16");
    let utf16: Vec<u8> =
        [0xFEFF].into_iter().chain(utf16.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    assert_eq!(lines(&utf16), wanted, "in UTF-16");
    let latin = text.replace("utf-8", "ISO-8859-1").replace("GST", "GST \u{e9}");
    let latin: Vec<u8> = latin.chars().map(|character| character as u8).collect();
    assert_eq!(lines(&latin), wanted, "in ISO-8859-1");
    let undated = text.replace("<n:BookgDt><n:Dt>2026-11-21</n:Dt></n:BookgDt>", "");
    assert_eq!(lines(undated.as_bytes()), wanted, "the statement's day");
}
