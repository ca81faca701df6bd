//! Whole payouts through the folders: paid, refused, returned, never answered; what reconciliation
//! says of them.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use hundi::kernel::{Currency, Id, Money, Now};
use hundi::operator::{self, OperatorDecision};
use hundi::rails::files::reports::StatementLine;
use hundi::rails::files::rows::{self, LinePlace, Matching};
use hundi::rails::files::values::{Day, date_time};
use hundi::rails::iso20022::simulator::Behaviour;
use hundi::reconcile::{self, DifferenceKind};
use hundi::store::Tx;
use hundi::values;
use hundi::workers::bank::Bank;
use serde_json::{Value, json};

use crate::bank::{PAID, REFUSED, RETURNED, SILENT, Scene, UNREFERENCED, now, settings, temporary};
use crate::support::{Server, WAIT, by, id, payout_id};

async fn shown(scene: &Scene, transfer: &Value) -> (Value, Value) {
    let transfer = scene.client.get(&format!("/v1/transfers/{}", id(transfer))).await.ok();
    let payout = scene.client.get(&format!("/v1/payouts/{}", payout_id(&transfer))).await.ok();
    (transfer, payout)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_at_the_sponsor_bank_gets_a_book_transfer() {
    let mut scene = Scene::at_branch("HDFC0000240", "").await;
    let (paid, payout_id) = scene.payout(PAID, "3000.00").await;
    let (returned, _) = scene.payout(RETURNED, "100.00").await;
    let sum = scene.exchange().await;
    assert_eq!((sum.published_count, sum.counts.unknown), (2, 0));
    scene.simulated.close_day(now());
    scene.exchange().await;
    let (transfer, payout) = shown(&scene, &paid).await;
    assert_eq!(
        (&transfer["status"], &payout["method"]),
        (&json!("payout_settled"), &json!("internal"))
    );
    // The bank's own reference of the entry, because no clearing system names the payment.
    let reference = payout["unique_transaction_reference"].as_str().unwrap().to_owned();
    assert!(reference.starts_with('S') && reference.len() == 7, "{reference}");
    let (transfer, payout) = shown(&scene, &returned).await;
    assert_eq!(
        (&transfer["status"], &payout["status"]),
        (&json!("refund_processing"), &json!("returned"))
    );
    assert_eq!(scene.differences().await, Vec::new());
    // By hand, a book transfer settles under 6 to 35 letters and digits.
    let (_, silent) = scene.payout(SILENT, "100.00").await;
    scene.exchange().await;
    let services = scene.server.app.state.services.clone();
    let decide = |reference: &str| {
        let (services, decision) =
            (services.clone(), OperatorDecision::Settle(reference.to_owned()));
        scene.server.app.state.store.write(move |tx: &mut dyn Tx, now: &mut Now| {
            operator::decide(tx, now, &services, silent.any(), &decision, &by())
        })
    };
    for refused in ["FT123", "FT-1234", &reference] {
        assert!(decide(refused).await.is_err(), "{refused}");
    }
    decide("ft1234").await.unwrap();
    let settled = scene.find(silent).await;
    assert_eq!(settled.unique_transaction_reference.as_deref(), Some("FT1234"));
    assert_eq!(scene.find(payout_id).await.amount.to_string(), "265237.50");
    scene.assert_book();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payout_outside_its_window_waits_and_says_until_when() {
    let today = Day::at(now()).unwrap();
    // Closed until the day after tomorrow, whatever the time is, and whether or not the day ends
    // meanwhile.
    let days: Vec<String> =
        [0, 1].iter().map(|ahead| format!("'{}'", today.plus_days(*ahead))).collect();
    let until = today.plus_days(2).begins_at();
    let profile = format!(
        "[profile]\nholidays = [{}]\n[profile.rtgs]\nopen_on_holidays = true\n",
        days.join(", ")
    );
    let mut scene = Scene::with(Vec::new(), &profile).await;
    let (neft, neft_id) = scene.payout(PAID, "100.00").await;
    let (rtgs, _) = scene.payout(PAID, "3000.00").await;
    assert_eq!(shown(&scene, &neft).await.1["waits_until"], json!(until));
    assert_eq!(scene.turn().await.published_count, 1, "the one whose method is open");
    let (transfer, payout) = shown(&scene, &neft).await;
    assert_eq!(
        (&transfer["status"], &payout["status"]),
        (&json!("payout_processing"), &json!("processing"))
    );
    assert_eq!(payout["waits_until"], json!(until));
    assert_eq!(shown(&scene, &rtgs).await.1["waits_until"], Value::Null);
    let listed = scene.client.get("/v1/payouts").await.ok();
    let waiting =
        listed["data"].as_array().unwrap().iter().filter(|one| one["waits_until"] == until);
    assert_eq!(waiting.count(), 1);

    // The operator's list says the same; it reads the profile from the configuration.
    let config = scene.settings.folder.join("hundi.toml");
    let bank = format!(
        "[bank]\nfolder = '{}'\ndebit_account_name = 'Hundi'\ndebit_account_number = \
         '00112233445566'\ndebit_account_ifsc = 'YESB0000240'\n{}",
        scene.settings.folder.display(),
        profile.replace("[profile", "[bank.profile")
    );
    fs::write(&config, bank).unwrap();
    let list = |more: &[&str]| {
        let mut command = scene.server.binary(&["payouts", "list", "--config"]);
        command.arg(&config).args(["--database", &scene.server.database_url]).args(more);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let told = list(&[]);
    let line = told.lines().find(|line| line.contains(&neft_id.to_string())).unwrap();
    assert!(line.ends_with(&format!("waits for the bank until {}", date_time(until))), "{line}");
    assert!(line.contains("\tneft\t8841.25\t-\t"), "{line}");
    assert!(told.contains("with the bank") && !told.contains("Ravi"), "{told}");
    assert!(list(&["--show-names"]).contains("\tAsha Rao\tRavi Rao"));

    // The window opens.
    let open = Arc::new(settings(scene.settings.folder.clone(), ""));
    scene.bank = Bank::open_in_boot(open, Some("boot-1".into())).unwrap();
    scene.exchange().await;
    let (transfer, payout) = shown(&scene, &neft).await;
    assert_eq!(
        (&transfer["status"], &payout["waits_until"]),
        (&json!("payout_settled"), &Value::Null)
    );
    scene.assert_book();
}

#[tokio::test(flavor = "multi_thread")]
async fn names_go_in_the_characters_of_neft_and_both_are_kept() {
    let mut scene = Scene::new(Vec::new()).await;
    let client = &scene.client;
    let beneficiary = |name: &str| {
        json!({ "name": name, "account_number": PAID,
        "ifsc": "HDFC0000001", "account_type": "nre" })
    };
    // A name of which nothing is left waits for the caller.
    let made = client.post("/v1/beneficiaries", beneficiary("王伟")).await.ok();
    let path = format!("/v1/beneficiaries/{}", id(&made));
    let held = client.wait_status(&path, "input_required").await;
    assert_eq!(held["requirements"][0]["field_name"], "name");
    assert_eq!(held["payouts_disabled_reason"], "name_mismatch");
    client.post(&path, json!({ "name": "राजेश कुमार शर्मा" })).await.ok();
    let active = client.wait_status(&path, "active").await;
    assert_eq!(active["name"], "राजेश कुमार शर्मा");

    // So does a sender of whom the bank would know too little.
    let lock = client.quote_lock("100.00").await;
    let address = json!({ "line1": "Calle 1", "city": "Málaga", "country": "ES" });
    let elsewhere = json!({ "line1": "1", "city": "東京", "country": "JP" });
    let mut sent = None;
    for (name, address, said) in [
        ("José Nuñez", Value::Null, "has no address"),
        ("José Nuñez", elsewhere, "cannot write the city"),
        ("محمد", address.clone(), "cannot write this sender's name"),
        ("José Nuñez", address, ""),
    ] {
        let is_taken = said.is_empty();
        let body = json!({ "name": name, "type": "individual", "country": "ES",
            "address": address });
        let sender = client.post("/v1/senders", body).await.ok();
        let body = json!({
            "sender_id": id(&sender), "beneficiary_id": id(&active), "quote_lock_id": id(&lock),
            "amount": "100.00", "currency": "USD", "payout_currency": "INR",
            "funding": { "rail": "stablecoin", "asset": "USDT", "chain": "tron" },
        });
        let answer = client.post("/v1/transfers", body).await;
        if is_taken {
            sent = Some(answer.ok());
        } else {
            let wanted = ("sender_not_eligible".to_owned(), Some("sender_id".to_owned()));
            assert_eq!(answer.errors(400), [wanted], "{name}");
            let body = answer.json();
            let message = body["errors"][0]["message"].as_str().unwrap();
            assert!(message.contains(said), "{message}");
        }
    }
    let transfer = sent.unwrap();
    client.deposit(&transfer, json!({})).await;
    let path = format!("/v1/transfers/{}", id(&transfer));
    let transfer = client.wait_status(&path, "payout_processing").await;
    let payout_id = Id::parse(&payout_id(&transfer)).unwrap();
    scene.turn().await;
    let files = scene.taken();
    let [file] = &files[..] else { panic!() };
    for wanted in ["<Nm>Rajesh Kumar Sharma</Nm>", "<Nm>Jose Nunez</Nm>", "<TwnNm>Malaga</TwnNm>"] {
        assert!(file.contains(wanted), "{wanted} is not in\n{file}");
    }
    assert!(file.is_ascii());
    let kept = move |tx: &mut dyn Tx, _: &mut Now| Ok(rows::names_written(tx, payout_id)?);
    let kept = scene.server.app.state.store.write(kept).await.unwrap().unwrap();
    assert_eq!(kept, ("Rajesh Kumar Sharma".to_owned(), "Jose Nunez".to_owned()));
}

/// Every behaviour of the bank ends the same: what arrives late, twice or turned round changes
/// nothing.
async fn run_through(behaviour: Vec<Behaviour>) {
    let what = format!("{behaviour:?}");
    let mut scene = Scene::new(behaviour.clone()).await;
    let (paid, _) = scene.payout(PAID, "100.00").await;
    let (large, _) = scene.payout(PAID, "3000.00").await;
    let (refused, _) = scene.payout(REFUSED, "100.00").await;
    let (returned, returned_id) = scene.payout(RETURNED, "100.00").await;
    let (silent, silent_id) = scene.payout(SILENT, "100.00").await;
    let (unreferenced, _) = scene.payout(UNREFERENCED, "100.00").await;
    let sum = scene.exchange().await;
    assert_eq!((sum.published_count, sum.refused_count), (6, 0), "{what}");
    scene.simulated.close_day(now());
    scene.exchange().await;
    assert_eq!(scene.simulated.paid.len(), 4, "{what}: nothing is paid twice");

    let (transfer, payout) = shown(&scene, &paid).await;
    assert_eq!(
        (&transfer["status"], &payout["method"]),
        (&json!("payout_settled"), &json!("neft")),
        "{what}"
    );
    assert!(
        payout["unique_transaction_reference"]
            .as_str()
            .is_some_and(|utr| utr.len() == 16 && utr.starts_with("TESTN")),
        "{payout}"
    );
    let (transfer, payout) = shown(&scene, &large).await;
    assert_eq!(
        (&transfer["status"], &payout["method"]),
        (&json!("payout_settled"), &json!("rtgs")),
        "{what}"
    );
    assert!(
        payout["unique_transaction_reference"]
            .as_str()
            .is_some_and(|utr| utr.len() == 22 && utr.starts_with("TESTR1")),
        "{payout}"
    );
    let (transfer, payout) = shown(&scene, &refused).await;
    assert_eq!(
        (&transfer["status"], &payout["failure"]["code"]),
        (&json!("refund_processing"), &json!("account_closed")),
        "{what}"
    );
    assert_eq!(payout["status"], "failed");
    let (transfer, payout) = shown(&scene, &returned).await;
    // A return that overtakes the settlement waits for the operator; in order it is a return.
    let is_overtaken = payout["status"] == "processing";
    if is_overtaken {
        assert!(
            behaviour.contains(&Behaviour::Delays) || behaviour.contains(&Behaviour::Reordering)
        );
        assert_eq!(payout["failure"]["code"], "outcome_unknown", "{what}");
    } else {
        assert_eq!(
            (&transfer["status"], &payout["failure"]["code"]),
            (&json!("refund_processing"), &json!("account_closed")),
            "{what}"
        );
        assert_eq!(payout["status"], "returned");
        let history: Vec<&str> = transfer["status_history"]
            .as_array()
            .unwrap()
            .iter()
            .map(|at| at["status"].as_str().unwrap())
            .collect();
        assert!(
            history.ends_with(&["payout_settled", "payout_returned", "refund_processing"]),
            "{history:?}"
        );
    }
    for open in [&silent, &unreferenced] {
        let (transfer, payout) = shown(&scene, open).await;
        assert_eq!(
            (&transfer["status"], &payout["failure"]),
            (&json!("payout_processing"), &Value::Null),
            "{what}"
        );
    }
    scene.assert_book();

    // Only the line that names nobody differs; the operator says whose it is, and the bank's
    // silence ends in his hands.
    let mut expected = vec![DifferenceKind::LineUnmatched];
    expected.extend(
        behaviour.contains(&Behaviour::StrayLines).then_some(DifferenceKind::LineUnmatched),
    );
    expected.extend(is_overtaken.then_some(DifferenceKind::OutcomeUnknown));
    assert_eq!(scene.differences().await, expected, "{what}");
    let mut impatient = (*scene.settings).clone();
    impatient.unanswered_hours_max = -1;
    scene.bank = Bank::open_in_boot(Arc::new(impatient), Some("boot-1".into())).unwrap();
    assert_eq!(scene.turn().await.alarms_count, 2, "{what}");
    expected.extend([DifferenceKind::OutcomeUnknown, DifferenceKind::OutcomeUnknown]);
    assert_eq!(scene.differences().await, expected, "{what}");
    let (_, payout) = shown(&scene, &silent).await;
    assert_eq!(
        (&payout["status"], &payout["failure"]["code"]),
        (&json!("processing"), &json!("outcome_unknown"))
    );
    assert_eq!(scene.turn().await.published_count, 0, "an unknown outcome is never sent again");
    assert!(scene.taken().is_empty());

    let services = scene.server.app.state.services.clone();
    let unreferenced_id = Id::parse(&payout_id(&unreferenced)).unwrap();
    let decide = move |tx: &mut dyn hundi::store::Tx, now: &mut hundi::kernel::Now| {
        let lines = rows::unmatched(tx, 10)?;
        let payout = rows::find(tx, unreferenced_id)?.unwrap();
        let other = rows::find(tx, silent_id)?.unwrap();
        let line = lines.iter().find(|line| line.units == payout.units).unwrap();
        let mut wrong = other.clone();
        wrong.units += 1;
        assert!(!rows::match_to_payout(tx, line.id, &wrong)?, "another amount");
        assert!(rows::match_to_payout(tx, line.id, &payout)?);
        assert!(!rows::explain_line(tx, now, line.id, None)?, "it is matched already");
        for line in lines.iter().filter(|line| line.units != payout.units) {
            assert!(rows::explain_line(tx, now, line.id, None)?);
        }
        operator::decide(
            tx,
            now,
            &services,
            unreferenced_id.any(),
            &OperatorDecision::Settle("TESTN26001000001".into()),
            &by(),
        )?;
        operator::decide(tx, now, &services, silent_id.any(), &OperatorDecision::Fail, &by())?;
        if is_overtaken {
            let fail = OperatorDecision::Fail;
            operator::decide(tx, now, &services, returned_id.any(), &fail, &by())?;
        }
        Ok(())
    };
    scene.server.app.state.store.write(decide).await.unwrap();
    assert_eq!(scene.differences().await, Vec::new(), "{what}");
    scene.assert_book();
    let inbox_left = fs::read_dir(&scene.bank.folders().inbox).unwrap().count();
    let refused_left = fs::read_dir(&scene.bank.folders().refused).unwrap().count();
    assert_eq!((inbox_left, refused_left), (0, 0), "{what}");
}

#[tokio::test(flavor = "multi_thread")]
async fn payouts_settle_fail_return_and_stay_unknown() {
    run_through(Vec::new()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_difficult_bank_changes_nothing_of_it() {
    for word in Behaviour::ALL {
        run_through(vec![*word]).await;
    }
    run_through(Behaviour::ALL.to_vec()).await;
}

/// Keeps a line of a statement, as if the bank had sent it.
async fn keep_line(
    scene: &Scene,
    line: StatementLine,
    number: i64,
    payout_id: Option<Id<hundi::kernel::id::kind::Payout>>,
) {
    let write = move |tx: &mut dyn hundi::store::Tx, now: &mut hundi::kernel::Now| {
        let payout = payout_id.map(|id| rows::find(tx, id)).transpose()?.flatten();
        let place = LinePlace { sha256: [9; 32], statement_number: 0, number };
        assert!(rows::insert_line(
            tx,
            now,
            &place,
            &line,
            Matching::Payout,
            payout.as_ref(),
            None
        )?);
        Ok(())
    };
    scene.server.app.state.store.write(write).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn every_difference_is_named_and_none_is_mended() {
    use DifferenceKind::*;
    let mut scene = Scene::new(Vec::new()).await;
    assert_eq!(scene.differences().await, Vec::new());

    // The agent delivers a file twice, and this bank pays it twice.
    let (_, twice) = scene.payout(PAID, "100.00").await;
    scene.turn().await;
    let file = scene.taken().pop().unwrap();
    scene.simulated.take(file.as_bytes(), now()).unwrap();
    scene.simulated.take(file.as_bytes(), now()).unwrap();
    scene.simulated.close_day(now());
    scene.exchange().await;
    assert_eq!(scene.differences().await, [PaidTwice]);

    // A statement whose amount was changed on the way: the line no longer fits, the sum no longer
    // adds up, and what was settled by its notification is on no statement.
    let (_, changed) = scene.payout(PAID, "110.00").await;
    let amount = scene.find(changed).await.amount;
    scene.exchange().await;
    scene.simulated.close_day(now());
    for file in scene.simulated.next_files() {
        let text = String::from_utf8(file.bytes).unwrap();
        let wrong = amount.plus(Money::new(1, Currency::Inr)).unwrap();
        let text = text.replace(&format!("\"INR\">{amount}<"), &format!("\"INR\">{wrong}<"));
        scene.put(&file.name, text.as_bytes());
    }
    scene.exchange().await;
    assert_eq!(
        scene.differences().await,
        [AmountDiffers, PaidTwice, SettledWithoutLine, StatementSum]
    );

    // A statement that never arrives leaves a gap.
    let (_, lost) = scene.payout(PAID, "120.00").await;
    scene.exchange().await;
    scene.simulated.close_day(now());
    assert_eq!(scene.simulated.next_files().len(), 1);
    scene.payout(PAID, "130.00").await;
    scene.exchange().await;
    scene.simulated.close_day(now());
    scene.exchange().await;
    let expected = [
        AmountDiffers,
        PaidTwice,
        SettledWithoutLine,
        SettledWithoutLine,
        StatementGap,
        StatementSum,
    ];
    assert_eq!(scene.differences().await, expected);
    assert_ne!(twice, lost);

    // The operator fails what the bank then shows as paid.
    let (_, failed) = scene.payout(PAID, "140.00").await;
    scene.turn().await;
    let services = scene.server.app.state.services.clone();
    let fail = move |tx: &mut dyn hundi::store::Tx, now: &mut hundi::kernel::Now| {
        operator::decide(tx, now, &services, failed.any(), &OperatorDecision::Fail, &by())
    };
    let declined = scene.server.app.state.store.write(fail.clone()).await;
    assert!(
        declined.is_err_and(|error| error.to_string().contains("may still pay it")),
        "its outcome is not unknown yet"
    );
    let mut impatient = (*scene.settings).clone();
    impatient.unanswered_hours_max = -1;
    let usual = std::mem::replace(
        &mut scene.bank,
        Bank::open_in_boot(Arc::new(impatient), Some("boot-1".into())).unwrap(),
    );
    scene.turn().await;
    scene.bank = usual;
    scene.server.app.state.store.write(fail).await.unwrap();
    scene.exchange().await;
    scene.simulated.close_day(now());
    scene.exchange().await;
    assert!(scene.differences().await.contains(&LineWithoutSettlement));
    scene.assert_book();

    // A credit that was kept while its payout is settled here, and a return that never came back.
    let report = scene.server.app.state.store.write(|tx, _| Ok(reconcile::run(tx)?)).await.unwrap();
    assert!(
        report
            .differences
            .iter()
            .all(|difference| !difference.to_string().contains("50100012345678"))
    );
    let template = {
        let bytes = fs::read(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/iso20022/corpus/camt.054-return.xml"
        ))
        .unwrap();
        let found = hundi::rails::iso20022::reading::read(&bytes).unwrap();
        let hundi::rails::files::reports::Content::Accounts(accounts) = found.content else {
            panic!()
        };
        accounts[0].lines[0].clone()
    };
    keep_line(&scene, template, 1, Some(lost)).await;
    assert!(scene.differences().await.contains(&ReturnedAtBank));
    let (returned, _) = scene.payout(PAID, "150.00").await;
    scene.exchange().await;
    scene.simulated.close_day(now());
    scene.exchange().await;
    let path = format!("/v1/test_helpers/payouts/{}/return", payout_id(&returned));
    scene.client.post(&path, json!({})).await.ok();
    assert!(scene.differences().await.contains(&ReturnedWithoutLine));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_whose_reading_was_stopped_is_read_to_its_end_once() {
    use hundi::rails::files::reports::ReportKind;
    use sha2::{Digest, Sha256};
    let mut scene = Scene::new(Vec::new()).await;
    let (paid, payout_id) = scene.payout(PAID, "100.00").await;
    scene.turn().await;
    scene.simulated.take(scene.taken()[0].as_bytes(), now()).unwrap();
    let files = scene.simulated.next_files();
    let notification = files.iter().find(|file| file.name.starts_with("camt.054")).unwrap();
    let message_id = hundi::rails::iso20022::reading::read(&notification.bytes).unwrap().message_id;
    let sha256: [u8; 32] = Sha256::digest(&notification.bytes).into();
    let begin = move |tx: &mut dyn hundi::store::Tx, now: &mut hundi::kernel::Now| {
        Ok(rows::begin_file(tx, now, &sha256, ReportKind::Notification, &message_id)?)
    };
    scene.server.app.state.store.write(begin).await.unwrap();
    for copy in ["first.xml", "second.xml"] {
        scene.put(copy, &notification.bytes);
    }
    scene.turn().await;
    let turn = scene.turn().await;
    assert_eq!((turn.files_count, turn.counts.applied, turn.refused_count), (1, 1, 0));
    assert_eq!(shown(&scene, &paid).await.0["status"], "payout_settled");
    let history = scene.find(payout_id).await.status_history.to_text();
    scene.exchange().await;
    assert_eq!(scene.find(payout_id).await.status_history.to_text(), history);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_return_is_found_by_the_reference_that_it_was_sent_under() {
    let mut scene = Scene::new(Vec::new()).await;
    let (first, _) = scene.payout(PAID, "100.00").await;
    let (second, _) = scene.payout(PAID, "100.00").await;
    scene.exchange().await;
    let reference =
        |payout: &Value| payout["unique_transaction_reference"].as_str().unwrap().to_owned();
    let (_, payout) = shown(&scene, &first).await;
    let (_, other) = shown(&scene, &second).await;
    let returned = |message: &str, amount: &str, narration: &str| {
        format!(
            "<Document \
             xmlns=\"urn:iso:std:iso:20022:tech:xsd:camt.054.001.08\"><BkToCstmrDbtCdtNtfctn><GrpHdr><MsgId>{message}</MsgId>\
             <CreDtTm>2026-11-21T10:00:00</CreDtTm></GrpHdr><Ntfctn><Id>1</Id><Acct><Id><Othr><Id>00112233445566</Id></Othr></Id></Acct><Ntry>\
             <Amt \
             Ccy=\"INR\">{amount}</Amt><CdtDbtInd>CRDT</CdtDbtInd><Sts><Cd>BOOK</Cd></Sts><BookgDt><Dt>2026-11-24</Dt></BookgDt><BkTxCd/>\
             <AddtlNtryInf>{narration}</AddtlNtryInf></Ntry></Ntfctn></BkToCstmrDbtCdtNtfctn></Document>"
        )
    };
    let amount = payout["amount"].as_str().unwrap();
    let (one, two) = (reference(&payout), reference(&other));
    // Another amount, two payments at once, and a reference that nobody has: none of them is
    // anybody's.
    scene.put("1.xml", returned("R1", "1.00", &format!("NEFT-RETURN-{one}")).as_bytes());
    scene.put("2.xml", returned("R2", amount, &format!("RETURN {one} {two}")).as_bytes());
    scene.put("3.xml", returned("R3", amount, "RETURN TESTN26001999999").as_bytes());
    scene.turn().await;
    assert_eq!(scene.turn().await.counts.unknown, 3);
    assert_eq!(shown(&scene, &first).await.0["status"], "payout_settled");
    // A text can be anybody's; the clearing system's element is the bank's.
    let narration = format!("NEFT-RETURN-{one}-CREDIT TO NRI ACCOUNT/R12");
    scene.put("4.xml", returned("R4", amount, &narration).as_bytes());
    scene.turn().await;
    assert_eq!(scene.turn().await.counts.unknown, 1);
    assert_eq!(shown(&scene, &first).await.0["status"], "payout_settled");
    let details = format!(
        "</AddtlNtryInf><NtryDtls><TxDtls><Refs><ClrSysRef>{one}</ClrSysRef></Refs></TxDtls></NtryDtls>"
    );
    let own = returned("R5", amount, &narration).replace("</AddtlNtryInf>", &details);
    scene.put("5.xml", own.as_bytes());
    scene.turn().await;
    assert_eq!(scene.turn().await.counts.applied, 1);
    let (_, payout) = shown(&scene, &first).await;
    assert_eq!(
        (&payout["status"], &payout["failure"]["code"]),
        (&json!("returned"), &json!("returned_by_beneficiary_bank"))
    );
    assert_eq!(shown(&scene, &second).await.0["status"], "payout_settled");
    scene.assert_book();
}

#[tokio::test(flavor = "multi_thread")]
async fn transfers_are_refused_where_the_bank_takes_no_nre_credits() {
    let mut settings = settings(temporary(), "");
    settings.supports_nre = false;
    let server = Server::start_bank(settings, false).await;
    let client = server.client().await;
    let body = client.transfer_body(PAID, "100.00").await;
    let answer = client.post("/v1/transfers", body.clone()).await;
    assert_eq!(answer.error(403), "action_unauthorized");
    assert!(String::from_utf8_lossy(&answer.body).contains("foreign inward remittance"));
    let lock = client
        .get(&format!("/v1/quote_locks/{}", body["quote_lock_id"].as_str().unwrap()))
        .await
        .ok();
    assert_eq!(lock["status"], "active", "nothing was taken");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_goes_from_the_deposit_to_the_reference_and_adds_up() {
    let mut scene = Scene::new(Vec::new()).await;
    let (paid, _) = scene.payout(PAID, "100.00").await;
    let (refused, _) = scene.payout(REFUSED, "200.00").await;
    scene.exchange().await;
    let partial = scene
        .client
        .post("/v1/transfers", scene.client.transfer_body(PAID, "50.00").await)
        .await
        .ok();
    scene.client.deposit(&partial, json!({ "amount": "7.00" })).await;
    scene
        .client
        .wait_until(&format!("/v1/transfers/{}", id(&partial)), |found| {
            found["funding"]["amount_received"] == "7.00"
        })
        .await;

    let (_, payout) = shown(&scene, &paid).await;
    let statement = scene.client.get("/v1/statements").await.ok();
    assert_eq!(
        (&statement["object"], &statement["livemode"]),
        (&json!("statement"), &json!(false))
    );
    let rows = statement["data"].as_array().unwrap();
    assert_eq!(rows.len(), 3);
    let row = rows.iter().find(|row| row["transfer_id"] == paid["id"]).unwrap();
    assert_eq!(row["unique_transaction_reference"], payout["unique_transaction_reference"]);
    assert_eq!(
        (&row["usdt_in"], &row["usdt_out"], &row["inr_in"], &row["inr_out"]),
        (&json!("100.00"), &json!("100.00"), &json!("8841.25"), &json!("8841.25"))
    );
    assert_eq!(row["deposit_transaction_hashes"].as_array().unwrap().len(), 1);
    let row = rows.iter().find(|row| row["transfer_id"] == refused["id"]).unwrap();
    assert_eq!(
        (&row["usdt_in"], &row["usdt_out"], &row["refunded"]),
        (&json!("400.00"), &json!("200.00"), &json!("0.00"))
    );
    assert_eq!(
        statement["totals"],
        json!([
            { "currency": "INR", "opening": "0.00", "movements": "0.00", "closing": "0.00" },
            { "currency": "USDT", "opening": "0.00", "movements": "207.00", "closing": "207.00" },
        ])
    );
    // The next period begins where this one ended.
    let (to, later) =
        (statement["to"].as_i64().unwrap(), statement["to"].as_i64().unwrap() + 86_400);
    let next = scene.client.get(&format!("/v1/statements?from={to}&to={later}")).await.ok();
    assert_eq!(next["data"], json!([]));
    assert_eq!(
        next["totals"][1],
        json!({ "currency": "USDT", "opening": "207.00", "movements": "0.00", "closing": "207.00" })
    );

    let csv = scene.client.get("/v1/statements?format=csv").await;
    assert_eq!((csv.status, csv.header("content-type")), (200, Some("text/csv; charset=utf-8")));
    let text = String::from_utf8(csv.body.to_vec()).unwrap();
    let lines: Vec<&str> = text.split_terminator("\r\n").collect();
    assert_eq!(lines.len(), 1 + 3 + 2);
    let columns = lines[0].split(',').count();
    assert!(lines.iter().all(|line| line.split(',').count() == columns), "{text}");
    assert!(lines[5].ends_with(",USDT,0.00,207.00,207.00,,"), "{text}");

    for (query, field) in [
        ("from=5&to=5", "from"),
        ("from=0&to=253402300799", "from"),
        ("from=x", "from"),
        ("format=pdf", "format"),
        ("limit=5", "limit"),
        ("to=1&to=2", "to"),
    ] {
        let errors = scene.client.get(&format!("/v1/statements?{query}")).await.errors(400);
        assert_eq!(
            errors,
            [("request_query_parameter_invalid".to_owned(), Some(field.to_owned()))],
            "{query}"
        );
    }
    let restricted =
        scene.server.client_of("default", hundi::kernel::Mode::Test, "transfers:read").await;
    assert_eq!(restricted.get("/v1/statements").await.error(403), "action_unauthorized");
    let permitted =
        scene.server.client_of("default", hundi::kernel::Mode::Test, "statements:read").await;
    permitted.get("/v1/statements").await.ok();
    let other = scene.server.client_of("other", hundi::kernel::Mode::Test, "").await;
    assert_eq!(other.get("/v1/statements").await.ok()["data"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_book_is_compared_at_every_change_of_day_and_the_difference_is_shown() {
    let folder = temporary();
    let server = Server::start_bank_manual(settings(folder.clone(), "")).await;
    let compared = async |wanted: [u64; 3]| {
        let metrics = &server.app.state.metrics;
        let until = tokio::time::Instant::now() + WAIT;
        loop {
            let counted = ["agreed", "differed", "failed"]
                .map(|outcome| metrics.bank_comparisons.counted(outcome));
            if counted == wanted {
                return metrics.bank_differences.get();
            }
            assert!(tokio::time::Instant::now() < until, "{counted:?} and not {wanted:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    assert_eq!(compared([1, 0, 0]).await, 0, "at the start");
    server.advance_seconds(24 * 3600);
    assert_eq!(compared([2, 0, 0]).await, 0, "on the next day");
    let line = "INSERT INTO bank_statement_lines (id, sha256, statement_number, number, \
     booking_day, units, sign, matching) \
                VALUES (?1, ?2, 1, 1, '2026-09-22', 100, 'debit', 'no_reference')";
    let plant = move |tx: &mut dyn Tx, _: &mut Now| {
        Ok(tx.execute_one(line, values![&[1_u8; 16], &[2_u8; 32]])?)
    };
    server.app.state.store.write(plant).await.unwrap();
    server.advance_seconds(24 * 3600);
    assert_eq!(compared([2, 1, 0]).await, 1, "a payment that nobody knows");
    std::fs::remove_dir_all(folder).unwrap();
}
