//! Four eyes: what one person asks for and another one approves, by every way there is.

use std::io::Write;
use std::process::{Output, Stdio};

use hundi::kernel::{AnyId, DecidedBy, Now, OperationError, Via};
use hundi::operator::four_eyes::{self, RequestStatus, rows};
use hundi::operator::{self, OperatorDecision};
use hundi::pauses::{self, Operation};
use hundi::staff::{self, Role};
use hundi::store::{Cost, Tx};
use serde_json::json;

use crate::console::{PASSWORD, console_with, signed_in};
use crate::support::{Server, id};

const ABOVE: (&str, &str) = ("HUNDI_FOUR_EYES_ABOVE", "100.00");

/// An operator of `make_operators`, numbered as the roles are, who proved who it is.
fn person(role: Role, via: Via) -> DecidedBy {
    let by = DecidedBy::new(role.as_str(), "a test").unwrap();
    by.proven(role as i64 + 1, via)
}

async fn write<T: Send + 'static>(
    server: &Server,
    work: impl FnMut(&mut dyn Tx, &mut Now) -> Result<T, OperationError> + Send + 'static,
) -> Result<T, String> {
    server.app.state.store.write(work).await.map_err(|error| error.to_string())
}

async fn pause(server: &Server) {
    let paused = write(server, |tx, now| {
        Ok(pauses::pause(tx, now, Operation::Quotes, None, &DecidedBy::default())?)
    });
    paused.await.unwrap();
}

async fn is_paused(server: &Server) -> bool {
    let read = server.app.state.store.read(Cost::Point, |tx| Ok(pauses::rows::all(tx)?));
    !read.await.unwrap().is_empty()
}

async fn resume(server: &Server, by: DecidedBy) -> Result<String, String> {
    let settings = server.app.state.services.settings.clone();
    write(server, move |tx, now| operator::resume(tx, now, &settings, Operation::Quotes, None, &by))
        .await
}

async fn approve(server: &Server, number: i64, by: DecidedBy) -> Result<String, String> {
    let services = server.app.state.services.clone();
    write(server, move |tx, now| four_eyes::approve(tx, now, &services, number, &by)).await
}

async fn pending(server: &Server) -> Vec<i64> {
    let read = server.app.state.store.read(Cost::Point, |tx| Ok(rows::pending(tx, 100)?));
    read.await.unwrap().iter().map(|request| request.number).collect()
}

/// Without the setting nothing waits, and whatever way is taken one person is enough.
#[tokio::test]
async fn without_the_setting_one_person_decides() {
    let server = console_with(&[]).await;
    pause(&server).await;
    let said = resume(&server, person(Role::Operator, Via::Shell)).await.unwrap();
    assert!(said.contains("go on"), "{said}");
    assert!(!is_paused(&server).await);
}

/// Random sequences of everything that anybody could try. A pause ends only in the step in which a
/// second person who may approve it does, and that person is not who asked.
#[tokio::test]
async fn no_sequence_lets_one_person_do_what_takes_two() {
    const SEQUENCES: u64 = 24;
    const STEPS: usize = 40;
    let server = console_with(&[ABOVE]).await;
    let (mut random, mut ended, mut refused) = (0x9E37_79B9_7F4A_7C15_u64, 0, 0);
    let mut draw = |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % below
    };
    let mut enabled = [true; 4];
    for sequence in 0..SEQUENCES {
        for step in 0..STEPS {
            if !is_paused(&server).await {
                pause(&server).await;
            }
            let role = Role::ALL[draw(4) as usize];
            let via = [Via::Console, Via::Shell][draw(2) as usize];
            let what = format!("sequence {sequence}, step {step}: {role:?} {via:?}");
            let open = pending(&server).await;
            let number = match open.is_empty() || draw(8) == 0 {
                true => draw(9) as i64,
                false => open[draw(open.len() as u64) as usize],
            };
            let read =
                server.app.state.store.read(Cost::Point, move |tx| Ok(rows::find(tx, number)?));
            let request = read.await.unwrap();
            match draw(7) {
                0 | 1 => {
                    let done = resume(&server, person(role, via)).await;
                    let may = enabled[role as usize] && role.includes(Role::Operator);
                    assert_eq!(done.is_ok(), may && open.is_empty(), "{what}: {done:?}");
                    assert!(is_paused(&server).await, "{what}: ended by one");
                }
                2 => {
                    // Only named, as on a command line without a password.
                    let by = DecidedBy::new(role.as_str(), "a test").unwrap();
                    assert!(resume(&server, by.clone()).await.is_err(), "{what}");
                    assert!(approve(&server, number, by).await.is_err(), "{what}");
                    assert!(is_paused(&server).await, "{what}: ended by nobody");
                }
                3 | 4 => {
                    let done = approve(&server, number, person(role, via)).await;
                    let by = |request: &four_eyes::Request| request.requested_by - 1;
                    let may = request.as_ref().is_some_and(|request| {
                        request.status == RequestStatus::Pending
                            && by(request) != role as i64
                            && enabled[role as usize]
                            && enabled[by(request) as usize]
                            && role.includes(Role::Approver)
                    });
                    assert_eq!(done.is_ok(), may, "{what}: {done:?} {request:?}");
                    assert_eq!(is_paused(&server).await, !may, "{what}");
                    ended += usize::from(may);
                    refused += usize::from(!may);
                }
                5 => {
                    let by = person(role, via);
                    let _ = write(&server, move |tx, now| four_eyes::reject(tx, now, number, &by))
                        .await;
                    assert!(is_paused(&server).await, "{what}: ended by a rejection");
                }
                _ => {
                    let (name, index) = (role.as_str(), role as usize);
                    let is_disabled = enabled[index] && draw(3) == 0;
                    let number = index as i64 + 1;
                    write(&server, move |tx, _| {
                        Ok(staff::rows::set_disabled(tx, number, is_disabled)?)
                    })
                    .await
                    .unwrap_or_else(|error| panic!("{name}: {error}"));
                    enabled[index] = !is_disabled;
                }
            }
        }
    }
    assert!(ended > 10 && refused > 10, "the sequences reach both: {ended} {refused}");
    server.assert_book();
}

#[tokio::test(flavor = "multi_thread")]
async fn two_who_decide_at_once_are_told_apart() {
    let server = console_with(&[ABOVE]).await;
    pause(&server).await;
    resume(&server, person(Role::Operator, Via::Console)).await.unwrap();
    let number = pending(&server).await[0];
    let mut one = signed_in(&server, "approver").await;
    let mut other = signed_in(&server, "admin").await;
    let path = format!("/console/approvals/{number}/approve");
    let reject = format!("/console/approvals/{number}/reject");
    let (first, second) = tokio::join!(
        one.submit("/console/approvals", &path, &[]),
        other.submit("/console/approvals", &reject, &[("reason", "not yet")])
    );
    let statuses = [first.status, second.status];
    assert!(statuses == [303, 409] || statuses == [409, 303], "{statuses:?}");
    let told = if first.status == 409 { &first } else { &second };
    assert!(told.body.contains("already"), "{}", told.body);
    assert_eq!(is_paused(&server).await, second.status == 303);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_console_asks_a_second_person() {
    let server = console_with(&[ABOVE]).await;
    pause(&server).await;
    resume(&server, person(Role::Approver, Via::Console)).await.unwrap();
    let number = pending(&server).await[0];
    let path = format!("/console/approvals/{number}/approve");
    let mut own = signed_in(&server, "approver").await;
    let page = own.get("/console/approvals").await;
    assert!(page.body.contains("You asked for this") && !page.body.contains(&path));
    let refused = own.submit("/console/approvals", &path, &[]).await;
    assert_eq!(refused.status, 409);
    assert!(refused.body.contains("who asked for it cannot approve it"), "{}", refused.body);
    let mut low = signed_in(&server, "operator").await;
    assert_eq!(low.submit("/console/approvals", &path, &[]).await.status, 403);
    assert!(is_paused(&server).await);
    let mut other = signed_in(&server, "admin").await;
    assert!(other.get("/console/approvals").await.body.contains(&path));
    let done = other.submit("/console/approvals", &path, &[]).await;
    assert_eq!(done.status, 303, "{}", done.body);
    assert!(!is_paused(&server).await);
    let read = server
        .app
        .state
        .store
        .read(Cost::Point, |tx| Ok(hundi::decisions::rows::of_subject(tx, "quotes", 10)?));
    let kept = &read.await.unwrap()[0];
    assert_eq!((kept.by.actor(), kept.by.approved_by()), ("approver", "admin"));
}

/// Runs a command with lines on its standard input.
fn run(server: &Server, arguments: &[&str], input: &str) -> Output {
    let all = [arguments, &["--database", &server.database_url]].concat();
    let mut command = server.binary(&all);
    command.env(ABOVE.0, ABOVE.1).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    // It may end without reading.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

fn said(output: &Output) -> String {
    [&output.stdout[..], &output.stderr[..]].map(String::from_utf8_lossy).concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_shell_asks_two_persons_who_prove_who_they_are() {
    let server = console_with(&[ABOVE]).await;
    pause(&server).await;
    let by = |name| ["--actor", name, "--reason", "a test"];
    let password = format!("{PASSWORD}\n");
    for (name, input) in [
        ("operator", ""),
        ("operator", "wrong password\n"),
        ("viewer", &password),
        ("nobody", &password),
    ] {
        let output = run(&server, &[&["resume", "quotes"], &by(name)[..]].concat(), input);
        assert!(!output.status.success(), "{name}: {}", said(&output));
    }
    let asked = run(&server, &[&["resume", "quotes"], &by("approver")[..]].concat(), &password);
    assert!(said(&asked).contains("waits for a second person: request 1"), "{}", said(&asked));
    assert!(is_paused(&server).await);
    for (name, input) in
        [("approver", password.as_str()), ("operator", &password), ("admin", "x\n")]
    {
        let all = [&["approvals", "approve", "1"], &by(name)[..]].concat();
        let output = run(&server, &all, input);
        assert!(!output.status.success(), "{name}: {}", said(&output));
    }
    assert!(is_paused(&server).await);
    let all = [&["approvals", "approve", "1"], &by("admin")[..]].concat();
    let done = run(&server, &all, &password);
    assert!(done.status.success(), "{}", said(&done));
    assert!(!is_paused(&server).await);
    let listed = said(&run(&server, &["approvals", "list"], ""));
    assert!(listed.contains("quotes\tresume\tresume\tapproved\tapprover\tadmin"), "{listed}");
    server.assert_book();
}

/// Refund addresses, clearances of confirmed hits and amounts above the limit wait; what is below
/// the limit does not.
#[tokio::test(flavor = "multi_thread")]
async fn what_moves_much_or_undoes_a_refusal_waits() {
    let server = console_with(&[ABOVE]).await;
    let client = server.client().await;
    let decide = async |id: &str, decision: OperatorDecision, by: DecidedBy| {
        let (id, services) = (AnyId::parse(id).unwrap(), server.app.state.services.clone());
        write(&server, move |tx, now| operator::decide(tx, now, &services, id, &decision, &by))
            .await
    };
    let sender = id(&client.sender().await);
    let by = || person(Role::Approver, Via::Console);
    // Nobody confirmed anything of this sender: one person is enough to refuse, and from then on
    // two to clear.
    let done = decide(&sender, OperatorDecision::Refuse, by()).await.unwrap();
    assert!(!done.contains("second person"), "{done}");
    let waits = decide(&sender, OperatorDecision::Approve, by()).await.unwrap();
    assert!(waits.contains("waits for a second person"), "{waits}");
    let screened = client.get(&format!("/v1/senders/{sender}")).await.ok();
    assert_ne!(screened["screening"], json!("clear"), "{screened}");
    let again = decide(&sender, OperatorDecision::Approve, by()).await.unwrap_err();
    assert!(again.contains("already"), "{again}");
    let number = pending(&server).await[0];
    assert!(approve(&server, number, by()).await.is_err());
    approve(&server, number, person(Role::Admin, Via::Shell)).await.unwrap();
    assert_eq!(pending(&server).await, Vec::<i64>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_account_number_takes_a_reason_and_leaves_a_trace() {
    let server = console_with(&[]).await;
    let client = server.client().await;
    let beneficiary = client.beneficiary("50100012345678").await;
    let path = format!("/console/beneficiaries/{}/account_number", id(&beneficiary));
    let mut browser = signed_in(&server, "operator").await;
    let refused = browser.submit("/console/account", &path, &[("reason", " ")]).await;
    assert_eq!(refused.status, 409);
    assert!(!refused.body.contains("50100012345678"));
    let reason = [("reason", "the bank asks for it")];
    let shown = browser.submit("/console/account", &path, &reason).await;
    assert!(shown.body.contains("50100012345678"), "{}", shown.body);
    let mut viewer = signed_in(&server, "viewer").await;
    assert_eq!(viewer.submit("/console/account", &path, &reason).await.status, 403);
    let read = server
        .app
        .state
        .store
        .read(Cost::Point, |tx| Ok(hundi::audit::rows::newest_of(tx, "account_number_seen")?));
    let entry = read.await.unwrap().expect("an entry");
    assert_eq!(
        (entry.actor.as_str(), entry.subject.as_str()),
        ("operator", id(&beneficiary).as_str())
    );
    assert!(entry.details.contains("the bank asks for it"), "{}", entry.details);
    for (place, bytes) in server.stored_bytes() {
        assert!(!bytes.windows(14).any(|part| part == b"50100012345678"), "{place}");
    }
}
