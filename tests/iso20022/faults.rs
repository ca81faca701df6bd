//! A crash at every point of writing a file: no payout is sent twice, and none is lost without the
//! operator being told.

use std::fs;

use crate::support::by;
use hundi::kernel::Id;
use hundi::kernel::id::kind;
use hundi::payouts::state::PayoutStatus;
use hundi::rails::FailureCode;
use hundi::rails::files::profile::ProfileTable;
use hundi::rails::files::reports::ReportKind;
use hundi::rails::files::rows::{self, Counts};
use hundi::rails::files::values::EndToEndId;
use hundi::workers::bank::Bank;
use hundi::workers::bank::publish::{FaultPoint, ORDER, PublishStep, Stopped};

use crate::bank::{PAID, Scene};

/// What the world does around a crash.
#[derive(Clone, Copy, Debug)]
struct Case {
    fault: FaultPoint,
    /// The agent takes the file before the restart, or after it.
    is_taken_at_once: bool,
    /// The machine went down too.
    is_reboot: bool,
    /// The power cut undid the last rename.
    is_rename_undone: bool,
}

fn cases(order: &[PublishStep]) -> Vec<Case> {
    let mut faults: Vec<FaultPoint> = order.iter().map(|step| FaultPoint::After(*step)).collect();
    faults.push(FaultPoint::WithinStage);
    let mut cases = Vec::new();
    for fault in faults {
        for is_taken_at_once in [true, false] {
            for (is_reboot, is_rename_undone) in [(false, false), (true, false), (true, true)] {
                cases.push(Case { fault, is_taken_at_once, is_reboot, is_rename_undone });
            }
        }
    }
    cases
}

async fn is_unknown(scene: &Scene, payout_id: Id<kind::Payout>) -> bool {
    let payout = scene.find(payout_id).await;
    assert_eq!(payout.status, PayoutStatus::Processing);
    payout.failure.is_some_and(|failure| failure.code == FailureCode::OutcomeUnknown)
}

/// Runs an order of steps through a case and answers what went wrong, if anything did.
async fn violation(
    scene: &mut Scene,
    order: &[PublishStep],
    case: Case,
    number: usize,
) -> Option<String> {
    let (_, payout_id) = scene.payout(PAID, "100.00").await;
    let name = EndToEndId::of(payout_id).to_string();
    let stopped = scene.publish_in(order, Some(case.fault)).await;
    assert!(
        matches!(stopped, Err(Stopped::FaultPoint)),
        "{case:?}: the fault point is reached: {stopped:?}"
    );
    let mut taken = Vec::new();
    let in_outbox: Vec<_> = fs::read_dir(&scene.bank.folders().outbox)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    let undone: Vec<(String, Vec<u8>)> = in_outbox
        .iter()
        .filter(|_| case.is_rename_undone)
        .map(|path| {
            (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read(path).unwrap())
        })
        .collect();
    if case.is_taken_at_once {
        taken.extend(scene.taken());
    }
    for (name, bytes) in undone {
        let _ = fs::remove_file(scene.bank.folders().outbox.join(&name));
        scene.bank.folders().stage(&name, &bytes).unwrap();
    }
    let boot = if case.is_reboot { format!("boot-{number}-after") } else { "boot-1".into() };
    let mut restarted = Bank::open_in_boot(scene.settings.clone(), Some(boot)).unwrap();
    for _ in 0..3 {
        restarted.turn(&scene.server.app.state).await.unwrap();
        taken.extend(scene.taken());
    }
    let sent_count = taken
        .iter()
        .filter(|file| file.contains(&format!("<EndToEndId>{name}</EndToEndId>")))
        .count();
    let is_whole = taken.iter().all(|file| file.trim_end().ends_with("</Document>"));
    let is_unknown = is_unknown(scene, payout_id).await;
    let left = fs::read_dir(&scene.bank.folders().staging).unwrap().count();
    match (sent_count, is_unknown) {
        _ if !is_whole => Some(format!("{case:?}: a file was sent in part")),
        _ if left > 0 => Some(format!("{case:?}: a file stays in staging")),
        (1, false) => None,
        // Without a power cut everything is certain.
        (0 | 1, true) if case.is_reboot => None,
        (count, unknown) => Some(format!("{case:?}: sent {count} times, unknown: {unknown}")),
    }
}

async fn violations(scene: &mut Scene, order: &[PublishStep]) -> Vec<String> {
    let mut found = Vec::new();
    for (number, case) in cases(order).into_iter().enumerate() {
        found.extend(violation(scene, order, case, number).await);
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn no_crash_sends_twice_or_loses() {
    let mut scene = Scene::new(Vec::new()).await;
    assert_eq!(violations(&mut scene, &ORDER).await, Vec::<String>::new());
    scene.assert_book();
}

/// Names as an Indian bank wants them: code of the customer, day and month, number of the day.
const NUMBERED: &str =
    "[profile]\ncustomer_id = 'ABCD'\nfile_name = '{customer_id}{ddmm}.{daily:3}'\n";

/// The names of all files that were begun, in the order in which they were.
async fn names(scene: &Scene) -> Vec<String> {
    let sql = "SELECT file_name FROM bank_messages ORDER BY id";
    let read = scene.server.app.state.store.write(move |tx, _| {
        let names = tx.rows(sql, &[])?.into_iter().map(|mut row| row.text());
        Ok(names.collect::<Result<Vec<String>, _>>()?)
    });
    read.await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_crash_gives_a_file_number_twice() {
    let mut scene = Scene::with(Vec::new(), NUMBERED).await;
    assert_eq!(violations(&mut scene, &ORDER).await, Vec::<String>::new());
    scene.assert_book();
    let names = names(&scene).await;
    assert!(names.len() >= cases(&ORDER).len());
    let (day, _) = names[0].split_at(8);
    // A night within the run begins a series anew.
    for (at, name) in names.iter().enumerate().take_while(|(_, name)| name.starts_with(day)) {
        assert_eq!(*name, format!("{day}.{:03}", at + 1), "a given-up file keeps its number");
    }
    assert!(day.starts_with("ABCD") && day[4..].bytes().all(|byte| byte.is_ascii_digit()));
    assert_eq!(names.iter().collect::<std::collections::HashSet<_>>().len(), names.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_begin_where_the_bank_says_and_end_with_their_digits() {
    let more = "[profile]\nfile_name = 'PAY{number:1}.xml'\nfile_number_first = 8\n";
    let mut scene = Scene::with(Vec::new(), more).await;
    for _ in 0..2 {
        scene.payout(PAID, "100.00").await;
        scene.turn().await;
    }
    assert_eq!(names(&scene).await, ["PAY8.xml", "PAY9.xml"]);
    let (_, payout_id) = scene.payout(PAID, "100.00").await;
    let stopped = scene.publish_in(&ORDER, None).await;
    let Err(Stopped::Error(reason)) = stopped else { panic!("{stopped:?}") };
    assert!(reason.contains("file numbers are used up"), "{reason}");
    // Nothing of the attempt is kept, and a longer number sends the payout.
    assert_eq!(names(&scene).await.len(), 2);
    let mut settings = (*scene.settings).clone();
    let longer = "file_name = 'PAY{number:2}.xml'\n".to_owned();
    settings.profile = toml::from_str::<ProfileTable>(&longer).unwrap().try_into().unwrap();
    let bank = Bank::open_in_boot(settings.into(), Some("boot-1".into())).unwrap();
    scene.bank = bank;
    assert_eq!(scene.publish_in(&ORDER, None).await.unwrap(), 1);
    assert_eq!(names(&scene).await[2], "PAY10.xml");
    let name = EndToEndId::of(payout_id).to_string();
    assert!(scene.taken().iter().any(|file| file.contains(&name)));
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_that_double_or_lose_are_noticed() {
    let mut scene = Scene::new(Vec::new()).await;
    // Renamed before that is prepared for: a restart takes the claim for unsent.
    let doubling = [
        PublishStep::Claim,
        PublishStep::Stage,
        PublishStep::Rename,
        PublishStep::RecordStaged,
        PublishStep::RecordPublished,
    ];
    let found = violations(&mut scene, &doubling).await;
    assert!(found.iter().any(|violation| violation.contains("sent 2 times")), "{found:?}");
    // Recorded before it is done: a restart takes it for sent.
    let mut scene = Scene::new(Vec::new()).await;
    let losing = [
        PublishStep::Claim,
        PublishStep::RecordStaged,
        PublishStep::RecordPublished,
        PublishStep::Stage,
        PublishStep::Rename,
    ];
    let found = violations(&mut scene, &losing).await;
    assert!(
        found.iter().any(|violation| violation.contains("sent 0 times, unknown: false")),
        "{found:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rename_that_a_power_cut_undid_is_never_done_again() {
    let mut scene = Scene::new(Vec::new()).await;
    for step in [PublishStep::Rename, PublishStep::RecordPublished] {
        let (_, payout_id) = scene.payout(PAID, "100.00").await;
        let stopped = scene.publish_in(&ORDER, Some(FaultPoint::After(step))).await;
        assert!(matches!(stopped, Err(Stopped::FaultPoint)));
        let path =
            fs::read_dir(&scene.bank.folders().outbox).unwrap().next().unwrap().unwrap().path();
        let (name, bytes) =
            (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read(&path).unwrap());
        assert_eq!(scene.taken().len(), 1);
        scene.bank.folders().stage(&name, &bytes).unwrap();
        scene.bank =
            Bank::open_in_boot(scene.settings.clone(), Some(format!("boot-{step:?}"))).unwrap();
        assert_eq!(scene.turn().await.alarms_count, 1, "{step:?}");
        assert!(scene.taken().is_empty(), "{step:?}: it is not sent again");
        assert!(is_unknown(&scene, payout_id).await, "{step:?}");
        assert_eq!(scene.turn().await.alarms_count, 0, "{step:?}: it is told once");
        assert!(scene.taken().is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payout_that_the_operator_ends_is_not_sent_and_one_being_written_is_not_ended() {
    use hundi::operator::{self, OperatorDecision};
    let mut scene = Scene::new(Vec::new()).await;
    let decide = async |scene: &Scene, payout_id: Id<kind::Payout>| {
        let services = scene.server.app.state.services.clone();
        let decided = scene.server.app.state.store.write(move |tx, now| {
            operator::decide(tx, now, &services, payout_id.any(), &OperatorDecision::Fail, &by())
        });
        decided.await.map_err(|error| error.to_string())
    };
    let (_, queued) = scene.payout(PAID, "100.00").await;
    decide(&scene, queued).await.unwrap();
    assert_eq!(scene.turn().await.published_count, 0);
    assert_eq!(scene.find(queued).await.status, PayoutStatus::Failed);

    let (_, writing) = scene.payout(PAID, "100.00").await;
    let fault = Some(FaultPoint::After(PublishStep::RecordStaged));
    assert!(scene.publish_in(&ORDER, fault).await.is_err());
    assert!(decide(&scene, writing).await.unwrap_err().contains("being written"));
    scene.turn().await;
    assert_eq!(scene.taken().len(), 1);
    assert_eq!(scene.find(writing).await.status, PayoutStatus::Processing);
}

#[tokio::test(flavor = "multi_thread")]
async fn files_keep_to_their_limits() {
    let mut scene = Scene::new(Vec::new()).await;
    for _ in 0..5 {
        scene.payout(PAID, "100.00").await;
    }
    let mut small = (*scene.settings).clone();
    small.batch_instructions_max = 2;
    scene.bank = Bank::open_in_boot(small.into(), Some("boot-1".into())).unwrap();
    assert_eq!(scene.turn().await.published_count, 5);
    assert_eq!(scene.taken().len(), 3);
    for _ in 0..3 {
        scene.payout(PAID, "100.00").await;
    }
    let mut small = (*scene.settings).clone();
    // Each payment is larger than a file may be, so each goes alone.
    small.batch_amount_max.units = 100;
    scene.bank = Bank::open_in_boot(small.into(), Some("boot-1".into())).unwrap();
    assert_eq!(scene.turn().await.published_count, 3);
    assert_eq!(scene.taken().len(), 3);
}

/// A worker whose lease ended within its turn and the next one may both read a file to its end.
#[tokio::test(flavor = "multi_thread")]
async fn the_counts_of_a_file_are_those_of_who_read_it_first() {
    let scene = Scene::new(Vec::new()).await;
    let read = scene.server.app.state.store.write(move |tx, now| {
        rows::begin_file(tx, now, &[7; 32], ReportKind::Status, "S1")?;
        rows::end_file(tx, &[7; 32], Counts { applied: 2, ..Counts::default() })?;
        rows::end_file(tx, &[7; 32], Counts { ignored: 2, ..Counts::default() })?;
        let row = tx.row("SELECT status, applied_count, ignored_count FROM bank_files", &[])?;
        let mut row = row.unwrap();
        Ok((row.text()?, row.int()?, row.int()?))
    });
    assert_eq!(read.await.unwrap(), ("applied".into(), 2, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payout_that_cannot_be_written_is_given_to_the_operator_and_keeps_none_waiting() {
    let mut scene = Scene::new(Vec::new()).await;
    let (_, nameless) = scene.payout(PAID, "100.00").await;
    let rename = scene
        .server
        .app
        .state
        .store
        .write(move |tx, _| Ok(tx.execute("UPDATE beneficiaries SET name = '王伟'", &[])?));
    rename.await.unwrap();
    let (_, other) = scene.payout(PAID, "100.00").await;
    let turn = scene.turn().await;
    assert_eq!((turn.published_count, turn.alarms_count), (1, 1));
    let file = scene.taken().pop().unwrap();
    assert!(file.contains(&EndToEndId::of(other).to_string()));
    assert!(!file.contains(&EndToEndId::of(nameless).to_string()));
    assert!(is_unknown(&scene, nameless).await);
    assert_eq!(scene.turn().await.alarms_count, 0, "it is told once");
}
