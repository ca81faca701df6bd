//! Files that were cut, mixed up or made up: a clear reason, nothing changed, nothing lost.

use std::fs;
use std::time::Instant;

use hundi::payouts::state::PayoutStatus;
use hundi::rails::files::reports::Content;
use hundi::rails::files::values::EndToEndId;
use hundi::rails::iso20022::reading;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};

use crate::bank::{PAID, Scene};
use crate::messages::corpus;

/// Pieces that do not belong into a bank's file.
const PIECES: &[&str] = &[
    "<!DOCTYPE Document [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;\">]>",
    "&b;",
    "&#0;",
    "<?xml-stylesheet href='http://169.254.169.254/'?>",
    "<![CDATA[",
    "]]>",
    "<!--",
    "xmlns=\"urn:iso:std:iso:20022:tech:xsd:pain.001.001.09\"",
    "<Amt Ccy=\"INR\">-1</Amt>",
    "99999999999999999999",
    "RJCT",
    "CRDT",
    "\u{0}",
    "\u{FEFF}",
    "</Document>",
    "<A>",
    "\"",
];

/// One change of a file.
#[derive(Clone, Debug)]
enum Mutation {
    Cut(usize),
    Remove(usize, usize),
    Repeat(usize, usize),
    Insert(usize, usize),
    Byte(usize, u8),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    prop_oneof![
        any::<usize>().prop_map(Mutation::Cut),
        (any::<usize>(), 1..400_usize).prop_map(|(at, length)| Mutation::Remove(at, length)),
        (any::<usize>(), 1..400_usize).prop_map(|(at, length)| Mutation::Repeat(at, length)),
        (any::<usize>(), 0..PIECES.len()).prop_map(|(at, piece)| Mutation::Insert(at, piece)),
        (any::<usize>(), any::<u8>()).prop_map(|(at, byte)| Mutation::Byte(at, byte)),
    ]
}

fn apply(bytes: &mut Vec<u8>, mutation: &Mutation) {
    let length = bytes.len();
    if length == 0 {
        return;
    }
    match mutation {
        Mutation::Cut(at) => bytes.truncate(at % length),
        Mutation::Remove(at, count) => {
            let from = at % length;
            bytes.drain(from..(from + count).min(length));
        }
        Mutation::Repeat(at, count) => {
            let from = at % length;
            let piece = bytes[from..(from + count).min(length)].to_vec();
            bytes.splice(from..from, piece);
        }
        Mutation::Insert(at, piece) => {
            let at = at % length;
            bytes.splice(at..at, PIECES[*piece].bytes());
        }
        Mutation::Byte(at, byte) => bytes[at % length] = *byte,
    }
}

/// What holds for anything that is read, whatever the file held.
fn assert_sound(bytes: &[u8]) -> Result<bool, TestCaseError> {
    match reading::read(bytes) {
        Err(refused) => {
            prop_assert!(!refused.reason.is_empty() && refused.reason.len() < 300, "{}", refused);
            Ok(false)
        }
        Ok(found) => {
            prop_assert!((1..=35).contains(&found.message_id.chars().count()));
            if let Content::Accounts(accounts) = found.content {
                for line in accounts.iter().flat_map(|account| &account.lines) {
                    prop_assert!(line.amount.units >= 0);
                }
            }
            Ok(true)
        }
    }
}

#[test]
fn no_mutation_of_a_kept_file_breaks_the_reader() {
    let seconds: u64 = std::env::var("HUNDI_TEST_MUTATION_SECONDS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(3);
    let files = corpus();
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::default() });
    let strategy = (0..files.len(), proptest::collection::vec(mutation(), 1..5));
    let (started, mut count, mut taken) = (Instant::now(), 0_u64, 0_u64);
    while started.elapsed().as_secs() < seconds {
        let (file, mutations) = strategy.new_tree(&mut runner).unwrap().current();
        let mut bytes = files[file].1.clone();
        for mutation in &mutations {
            apply(&mut bytes, mutation);
        }
        taken += u64::from(
            assert_sound(&bytes)
                .unwrap_or_else(|fault| panic!("{}: {mutations:?}: {fault}", files[file].0)),
        );
        count += 1;
    }
    println!("{count} mutated files in {seconds} s, {taken} of them read");
    assert!(count > 100 && taken > 0, "{count} files, {taken} read");
}

#[test]
fn every_cut_of_a_kept_file_is_refused_whole() {
    for (name, bytes) in corpus() {
        let end = bytes.iter().rposition(|byte| *byte == b'>').unwrap();
        for cut in 0..=end {
            let refused = reading::read(&bytes[..cut]).expect_err("a cut file");
            assert!(refused.is_truncated, "{name} cut at {cut}: {refused}");
        }
    }
}

/// The payout, the book and the files after many tampered answers.
#[tokio::test(flavor = "multi_thread")]
async fn tampered_answers_change_nothing_and_are_kept() {
    let mut scene = Scene::new(Vec::new()).await;
    let (_, payout_id) = scene.payout(PAID, "100.00").await;
    assert_eq!(scene.turn().await.published_count, 1);
    let before = scene.find(payout_id).await;
    let name = EndToEndId::of(payout_id).to_string();
    let amount = before.amount.to_string();
    // A right answer, so that what is tested is the tampering.
    let answer = |message: &str, reference: &str, amount: &str, sign: &str| {
        format!(
            "<Document \
             xmlns=\"urn:iso:std:iso:20022:tech:xsd:camt.054.001.08\"><BkToCstmrDbtCdtNtfctn><GrpHdr><MsgId>{message}</MsgId>\
             <CreDtTm>2026-11-21T10:00:00</CreDtTm></GrpHdr><Ntfctn><Id>1</Id><Acct><Id><Othr><Id>00112233445566</Id></Othr></Id></Acct><Ntry>\
             <Amt \
             Ccy=\"INR\">{amount}</Amt><CdtDbtInd>{sign}</CdtDbtInd><Sts><Cd>BOOK</Cd></Sts><BookgDt><Dt>2026-11-21</Dt></BookgDt>\
             <BkTxCd/><NtryDtls><TxDtls><Refs><EndToEndId>{reference}</EndToEndId><ClrSysRef>TESTN26325000001</ClrSysRef></Refs></TxDtls></NtryDtls>\
             </Ntry></Ntfctn></BkToCstmrDbtCdtNtfctn></Document>"
        )
    };
    let right = answer("M-right", &name, &amount, "DBIT");
    let status = |message: &str, original: &str| {
        format!(
            "<Document \
             xmlns=\"urn:iso:std:iso:20022:tech:xsd:pain.002.001.10\"><CstmrPmtStsRpt><GrpHdr><MsgId>{message}</MsgId>\
             <CreDtTm>2026-11-21T10:00:00</CreDtTm></GrpHdr><OrgnlGrpInfAndSts><OrgnlMsgId>{original}</OrgnlMsgId>\
             <OrgnlMsgNmId>pain.001</OrgnlMsgNmId><GrpSts>RJCT</GrpSts></OrgnlGrpInfAndSts></CstmrPmtStsRpt></Document>"
        )
    };
    let applied = [
        answer("M1", &name, "8841.26", "DBIT"),
        answer("M2", &name, "0.01", "CRDT"),
        answer("M3", "01K5ZZZZZZ7Q2X7N4V6T9R0ABC", &amount, "DBIT"),
        answer("M4", "SOMEBODY ELSE", &amount, "CRDT"),
        answer("M5", "", &amount, "DBIT"),
        status("M6", "01K5ZZZZZZ7Q2X7N4V6T9R0ABC"),
        status("M7", "NOTOURS"),
    ];
    let refused = [
        right.replace("00112233445566", "00112233445567"),
        right.replace("camt.054.001.08", "camt.052.001.08"),
        right.replace("Ccy=\"INR\"", "Ccy=\"USD\""),
        right.replace("<BkTxCd/>", "<BkTxCd/><x:Y xmlns:x='urn:x'/>"),
        format!("<!DOCTYPE x [<!ENTITY e SYSTEM \"file:///etc/passwd\">]>{right}"),
        right.replace("<Id>1</Id>", "<Id>&e;</Id>"),
        right.replace(
            "<CdtDbtInd>DBIT</CdtDbtInd>",
            "<CdtDbtInd>DBIT</CdtDbtInd><CdtDbtInd>CRDT</CdtDbtInd>",
        ),
    ];
    for (index, text) in applied.iter().chain(&refused).enumerate() {
        scene.put(&format!("{index:02}.xml"), text.as_bytes());
    }
    scene.put("growing.xml", &right.as_bytes()[..right.len() / 2]);
    scene.turn().await;
    let turn = scene.turn().await;
    assert_eq!((turn.files_count, turn.refused_count), (applied.len(), refused.len()));
    assert_eq!((turn.counts.applied, turn.counts.unknown), (0, 5));
    let metrics = &scene.server.app.state.metrics;
    assert_eq!(
        ["applied", "refused", "again"].map(|word| metrics.bank_files.counted(word)),
        [applied.len() as u64, refused.len() as u64, 0]
    );
    assert_eq!(["applied", "unknown"].map(|word| metrics.bank_reports.counted(word)), [0, 5]);
    let after = scene.find(payout_id).await;
    assert_eq!(
        (after.status, after.version, &after.failure),
        (PayoutStatus::Processing, before.version, &None)
    );
    let count = |folder: &std::path::Path| fs::read_dir(folder).unwrap().count();
    assert_eq!(count(&scene.bank.folders().archive), applied.len());
    assert_eq!(count(&scene.bank.folders().refused), refused.len() * 2, "each beside its reason");
    assert_eq!(count(&scene.bank.folders().inbox), 1, "what still grows is left alone");
    for entry in fs::read_dir(&scene.bank.folders().refused).unwrap() {
        let path = entry.unwrap().path();
        if path.to_string_lossy().ends_with(".reason.txt") {
            let reason = fs::read_to_string(path).unwrap();
            assert!(
                reason.len() > 10 && !reason.contains("0011223344") && !reason.contains(&name),
                "{reason}"
            );
        }
    }

    // Mutations of a right answer: the payout is settled with the reference that the file holds, or
    // not at all.
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::default() });
    for round in 0..150 {
        let mutations =
            proptest::collection::vec(mutation(), 1..4).new_tree(&mut runner).unwrap().current();
        // The name of the payment is cut out, so that no mutation can leave it a right answer.
        let mut bytes =
            right.replace(&name, &name[..25]).replace("M-right", "M-mutated").into_bytes();
        for mutation in &mutations {
            apply(&mut bytes, mutation);
        }
        scene.put(&format!("mutated-{round}.xml"), &bytes);
    }
    scene.turn().await;
    scene.turn().await;
    let after = scene.find(payout_id).await;
    assert_eq!((after.status, after.version), (PayoutStatus::Processing, before.version));
    let kept = count(&scene.bank.folders().archive)
        + count(&scene.bank.folders().refused)
        + count(&scene.bank.folders().inbox);
    assert!(kept >= 150, "no file is lost");

    // When the rest of the growing file arrives, it counts; the same file again, or its identity
    // again, does not.
    scene.put("growing.xml", right.as_bytes());
    scene.turn().await;
    let turn = scene.turn().await;
    assert_eq!(turn.counts.applied, 1);
    let settled = scene.find(payout_id).await;
    assert_eq!(
        (settled.status, settled.unique_transaction_reference.as_deref()),
        (PayoutStatus::Settled, Some("TESTN26325000001"))
    );
    scene.put("again.xml", right.as_bytes());
    scene.put("same-identity.xml", right.replace("DBIT", "CRDT").as_bytes());
    scene.put("other-identity.xml", right.replace("M-right", "M-other").as_bytes());
    scene.turn().await;
    let turn = scene.turn().await;
    assert_eq!((turn.counts.applied, turn.counts.ignored, turn.refused_count), (0, 1, 1));
    let after = scene.find(payout_id).await;
    assert_eq!(
        (after.status, after.unique_transaction_reference),
        (settled.status, settled.unique_transaction_reference)
    );
    scene.assert_book();
}
