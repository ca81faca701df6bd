//! Four eyes: what one person asks for and another one approves, by every way there is.

use std::io::Write;
use std::process::{Output, Stdio};

use hundi::chains::address::ChainAddress;
use hundi::kernel::{AnyId, DecidedBy, Id, Mode, Now, OperationError, Scope, Via};
use hundi::keys;
use hundi::operator::four_eyes::{self, RequestStatus, rows};
use hundi::operator::{self, OperatorDecision};
use hundi::pauses::{self, Operation};
use hundi::screening::Screening;
use hundi::senders;
use hundi::staff::{self, Role};
use hundi::store::{Cost, Tx};
use serde_json::json;

use crate::console::{Browser, PASSWORD, console_with, signed_in};
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

/// An account that nothing else of a test needs; the second one.
const SHOP: &str = "shop";

async fn suspend(server: &Server) {
    let suspended = write(server, |tx, _| Ok(keys::rows::suspend(tx, SHOP, true)?));
    suspended.await.unwrap();
}

async fn is_suspended(server: &Server) -> bool {
    let read =
        server.app.state.store.read(Cost::Point, |tx| Ok(keys::rows::is_suspended(tx, SHOP)?));
    read.await.unwrap().expect("the account")
}

async fn is_paused(server: &Server) -> bool {
    let read = server.app.state.store.read(Cost::Point, |tx| Ok(pauses::rows::all(tx)?));
    !read.await.unwrap().is_empty()
}

/// What screening and operators found of a sender.
async fn screening(server: &Server, sender: &str) -> Screening {
    let (id, scope) = (Id::parse(sender).unwrap(), Scope::new(1, Mode::Test));
    let read =
        server.app.state.store.read(Cost::Point, move |tx| Ok(senders::rows::find(tx, scope, id)?));
    read.await.unwrap().expect("a sender").screening
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

/// What takes two persons, each kind of it once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Case {
    /// The end of a pause.
    Resume,
    /// A clearance of somebody whom an operator confirmed to be on a list.
    Clearance,
    /// A decision above the amount.
    Amount,
    /// Where a refund goes.
    RefundAddress,
    /// The end of an account's suspension.
    Account,
}

const CASES: [Case; 5] =
    [Case::Resume, Case::Clearance, Case::Amount, Case::RefundAddress, Case::Account];
const REFUNDS: usize = 4;
const GOES_TO: &str = "TMVQGm1qAQYVdetCeGRRkTWYYrLXuHK2HC";

/// Objects that all of it is tried on, and people who try.
struct Trial<'a> {
    server: &'a Server,
    client: crate::support::Client,
    sender: String,
    transfer: String,
    /// Those without an address; the last one is next.
    refunds: Vec<String>,
    people: Vec<(Browser<'a>, String)>,
}

impl<'a> Trial<'a> {
    async fn new(server: &'a Server) -> Trial<'a> {
        let client = server.client().await;
        let sender = id(&client.sender().await);
        server.client_of(SHOP, Mode::Test, "").await;
        let mut people = Vec::new();
        for role in Role::ALL {
            let mut browser = signed_in(server, role.as_str()).await;
            let token = browser.get("/console/account").await.token();
            people.push((browser, token));
        }
        let mut trial =
            Trial { server, client, sender, transfer: String::new(), refunds: Vec::new(), people };
        // Below the amount one person puts them back.
        for _ in 0..REFUNDS {
            let small = trial.under_review("50.00").await;
            trial.decide(&small, OperatorDecision::Refuse, Role::Operator).await.unwrap();
            let path = format!("/v1/refunds?transfer_id={small}");
            let is_there = |found: &serde_json::Value| found["data"][0]["id"].is_string();
            let found = trial.client.wait_until(&path, is_there).await;
            assert_eq!(found["data"][0]["status"], "requires_address");
            trial.refunds.push(id(&found["data"][0]));
        }
        trial.transfer = trial.under_review("200.00").await;
        trial
    }

    /// A transfer whose money is too little, put under review.
    async fn under_review(&self, amount: &str) -> String {
        let client = &self.client;
        let body = client.transfer_body("50100012345678", amount).await;
        let made = client.post("/v1/transfers", body).await.ok();
        client.deposit(&made, json!({ "amount": "40.00" })).await;
        let path = format!("/v1/transfers/{}", id(&made));
        client.wait_until(&path, |found| found["funding"]["amount_received"] == "40.00").await;
        self.decide(&id(&made), OperatorDecision::Review, Role::Operator).await.unwrap();
        id(&made)
    }

    async fn decide(
        &self,
        id: &str,
        decision: OperatorDecision,
        role: Role,
    ) -> Result<String, String> {
        let services = self.server.app.state.services.clone();
        let (id, by) = (AnyId::parse(id).unwrap(), person(role, Via::Shell));
        write(self.server, move |tx, now| operator::decide(tx, now, &services, id, &decision, &by))
            .await
    }

    /// What a case is about now; `None` where nothing is left of it.
    fn subject(&self, case: Case) -> Option<String> {
        match case {
            Case::Resume => Some("quotes".into()),
            Case::Clearance => Some(self.sender.clone()),
            Case::Amount => Some(self.transfer.clone()),
            Case::RefundAddress => self.refunds.last().cloned(),
            Case::Account => Some(operator::account_subject(SHOP)),
        }
    }

    /// Whether it was carried out.
    async fn is_done(&self, case: Case) -> bool {
        let Some(subject) = self.subject(case) else { return false };
        let shown = async |path: &str| self.client.get(&format!("/v1/{path}/{subject}")).await.ok();
        match case {
            Case::Resume => !is_paused(self.server).await,
            Case::Clearance => screening(self.server, &subject).await == Screening::Clear,
            Case::Amount => shown("transfers").await["status_reason"] != "compliance_review",
            Case::RefundAddress => shown("refunds").await["status"] != "requires_address",
            Case::Account => !is_suspended(self.server).await,
        }
    }

    /// Brings it back to where it needs two persons, which takes one.
    async fn renew(&mut self, case: Case) {
        let (sender, transfer) = (self.sender.clone(), self.transfer.clone());
        let done = match case {
            Case::Resume => {
                pause(self.server).await;
                return;
            }
            Case::Clearance => self.decide(&sender, OperatorDecision::Refuse, Role::Operator).await,
            Case::Amount => self.decide(&transfer, OperatorDecision::Review, Role::Operator).await,
            Case::RefundAddress => {
                self.refunds.pop();
                return;
            }
            Case::Account => {
                suspend(self.server).await;
                return;
            }
        };
        let done = done.unwrap_or_else(|error| panic!("{case:?}: {error}"));
        assert!(!four_eyes::is_waiting(&done), "{case:?}: {done}");
    }

    /// Asks for it in the browser; whether that was taken.
    async fn ask_in_browser(&mut self, case: Case, subject: &str, role: Role) -> bool {
        let (browser, token) = &mut self.people[role as usize];
        let (path, fields) = match case {
            Case::Resume => (
                "/console/pauses/set",
                vec![("operation", "quotes"), ("account", "0"), ("decision", "resume")],
            ),
            Case::Account => ("/console/accounts/2/suspend", vec![("decision", "resume")]),
            Case::RefundAddress => (
                "/console/decide",
                vec![("object", subject), ("decision", "address"), ("to", GOES_TO)],
            ),
            Case::Clearance | Case::Amount => {
                ("/console/decide", vec![("object", subject), ("decision", "approve")])
            }
        };
        let common = [("token", token.as_str()), ("reason", "a test")];
        let answer = browser.post(path, &[&fields[..], &common].concat()).await;
        let is_taken = answer.header("location").contains("notice.waits_second");
        assert_eq!(is_taken, answer.status == 303, "{case:?}: {} {}", answer.status, answer.body);
        is_taken
    }

    /// Asks for it as the shell does; whether that was taken.
    async fn ask_in_shell(&self, case: Case, subject: &str, by: DecidedBy) -> bool {
        let services = self.server.app.state.services.clone();
        let outcome = match case {
            Case::Resume => resume(self.server, by).await,
            Case::Account => {
                write(self.server, move |tx, now| {
                    operator::resume_account(tx, now, &services.settings, SHOP, &by)
                })
                .await
            }
            Case::RefundAddress => {
                let (id, to) = (Id::parse(subject).unwrap(), ChainAddress::parse(GOES_TO).unwrap());
                write(self.server, move |tx, now| {
                    operator::set_refund_address(tx, now, &services, id, to, &by)
                })
                .await
            }
            Case::Clearance | Case::Amount => {
                let id = AnyId::parse(subject).unwrap();
                let decision = OperatorDecision::Approve;
                write(self.server, move |tx, now| {
                    operator::decide(tx, now, &services, id, &decision, &by)
                })
                .await
            }
        };
        match outcome {
            Ok(said) => {
                assert!(four_eyes::is_waiting(&said), "{case:?} by one person: {said}");
                true
            }
            Err(_) => false,
        }
    }

    /// The same by a process of the command line.
    fn ask_by_command(&self, case: Case, subject: &str, role: Role) -> bool {
        let by = ["--actor", role.as_str(), "--reason", "a test"];
        let words: Vec<&str> = match case {
            Case::Resume => vec!["resume", "quotes"],
            Case::Account => vec!["accounts", "resume", SHOP],
            Case::RefundAddress => vec!["refunds", "address", subject, "--to", GOES_TO],
            Case::Clearance | Case::Amount => vec!["decide", subject, "approve"],
        };
        let output = run(self.server, &[&words[..], &by].concat(), &format!("{PASSWORD}\n"));
        let said = said(&output);
        let is_taken = said.contains("waits for a second person: request");
        assert_eq!(is_taken, output.status.success(), "{case:?}: {said}");
        is_taken
    }

    async fn approve_in_browser(&mut self, number: i64, role: Role) -> bool {
        let (browser, token) = &mut self.people[role as usize];
        let path = format!("/console/approvals/{number}/approve");
        let answer = browser.post(&path, &[("token", token.as_str())]).await;
        answer.header("location").contains("notice.request_approved")
    }

    fn approve_by_command(&self, number: i64, role: Role) -> bool {
        let number = number.to_string();
        let words = ["approvals", "approve", number.as_str(), "--actor", role.as_str()];
        run(self.server, &words, &format!("{PASSWORD}\n")).status.success()
    }
}

/// Random sequences of everything that anybody could try, in the browser, in the shell and by the
/// functions below both. What takes two persons is carried out only in the step in which a second
/// person who may approve it does, and that person is not who asked.
#[tokio::test(flavor = "multi_thread")]
async fn no_sequence_lets_one_person_do_what_takes_two() {
    const SEQUENCES: u64 = 30;
    const STEPS: usize = 40;
    let server = console_with(&[ABOVE]).await;
    let mut trial = Trial::new(&server).await;
    let mut random = 0x9E37_79B9_7F4A_7C15_u64;
    let (mut ended, mut refused) = ([0; CASES.len()], [0; CASES.len()]);
    let mut draw = |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % below
    };
    let mut enabled = [true; 4];
    // What is carried out and was not brought back yet.
    let mut before = [true, true, false, false, true];
    for sequence in 0..SEQUENCES {
        for step in 0..STEPS {
            for (index, case) in CASES.into_iter().enumerate() {
                // Decided by the operator, who therefore has to be one.
                if before[index] && (enabled[1] || matches!(case, Case::Resume | Case::Account)) {
                    trial.renew(case).await;
                    before[index] = trial.is_done(case).await;
                }
            }
            let role = Role::ALL[draw(4) as usize];
            let way = draw(16);
            let case = CASES[draw(CASES.len() as u64) as usize];
            let what = format!("sequence {sequence}, step {step}: {case:?} by {role:?}, way {way}");
            let open = pending(&server).await;
            let number = match open.is_empty() || draw(8) == 0 {
                true => draw(9) as i64,
                false => open[draw(open.len() as u64) as usize],
            };
            let read =
                server.app.state.store.read(Cost::Point, move |tx| Ok(rows::find(tx, number)?));
            let request = read.await.unwrap();
            let mut carried_out = None;
            match draw(7) {
                0 | 1 => {
                    let index = CASES.iter().position(|known| *known == case).unwrap();
                    let Some(subject) = trial.subject(case).filter(|_| !before[index]) else {
                        continue;
                    };
                    let wanted = subject.clone();
                    let read = server
                        .app
                        .state
                        .store
                        .read(Cost::Point, move |tx| Ok(rows::pending_about(tx, &wanted)?));
                    let is_open = read.await.unwrap().is_some();
                    let is_taken = match way {
                        0 => trial.ask_by_command(case, &subject, role),
                        1..8 => trial.ask_in_browser(case, &subject, role).await,
                        _ => trial.ask_in_shell(case, &subject, person(role, Via::Shell)).await,
                    };
                    let may = enabled[role as usize] && role.includes(Role::Operator);
                    assert_eq!(is_taken, may && !is_open, "{what}");
                }
                2 => {
                    // Only named, as on a command line without a password.
                    let by = DecidedBy::new(role.as_str(), "a test").unwrap();
                    let index = CASES.iter().position(|known| *known == case).unwrap();
                    if let Some(subject) = trial.subject(case).filter(|_| !before[index]) {
                        assert!(!trial.ask_in_shell(case, &subject, by.clone()).await, "{what}");
                    }
                    assert!(approve(&server, number, by).await.is_err(), "{what}");
                }
                3 | 4 => {
                    let by = |request: &four_eyes::ApprovalRequest| request.requested_by - 1;
                    let may = request.as_ref().is_some_and(|request| {
                        request.status == RequestStatus::Pending
                            && by(request) != role as i64
                            && enabled[role as usize]
                            && enabled[by(request) as usize]
                            && role.includes(Role::Approver)
                    });
                    let is_done = match way {
                        0 => trial.approve_by_command(number, role),
                        1..8 => trial.approve_in_browser(number, role).await,
                        _ => approve(&server, number, person(role, Via::Shell)).await.is_ok(),
                    };
                    assert_eq!(is_done, may, "{what}: {request:?}");
                    let subject = request.map(|request| request.subject);
                    let found = CASES.iter().position(|case| trial.subject(*case) == subject);
                    match (may, found) {
                        (true, found) => {
                            carried_out = found;
                            ended[found.expect("what was approved is one of them")] += 1;
                        }
                        (false, Some(found)) => refused[found] += 1,
                        (false, None) => {}
                    }
                }
                5 => {
                    let by = person(role, Via::Shell);
                    let _ = write(&server, move |tx, now| four_eyes::reject(tx, now, number, &by))
                        .await;
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
            for (index, case) in CASES.into_iter().enumerate() {
                before[index] |= carried_out == Some(index);
                assert_eq!(trial.is_done(case).await, before[index], "{case:?} after {what}");
            }
        }
    }
    for (index, case) in CASES.into_iter().enumerate() {
        let least = if case == Case::RefundAddress { REFUNDS - 1 } else { 5 };
        let reached = (ended[index], refused[index]);
        assert!(ended[index] >= least && refused[index] > 5, "{case:?}: {reached:?}");
    }
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
    assert_eq!(screening(&server, &sender).await, Screening::ConfirmedMatch);
    let again = decide(&sender, OperatorDecision::Approve, by()).await.unwrap_err();
    assert!(again.contains("already"), "{again}");
    let number = pending(&server).await[0];
    assert!(approve(&server, number, by()).await.is_err());
    approve(&server, number, person(Role::Admin, Via::Shell)).await.unwrap();
    assert_eq!(pending(&server).await, Vec::<i64>::new());
    assert_eq!(screening(&server, &sender).await, Screening::Clear);
}

/// What a decision of one person comes to.
async fn decided(server: &Server, id: &str, decision: OperatorDecision) -> String {
    let (id, services) = (AnyId::parse(id).unwrap(), server.app.state.services.clone());
    let decided = write(server, move |tx, now| {
        let by = person(Role::Operator, Via::Console);
        operator::decide(tx, now, &services, id, &decision, &by)
    });
    decided.await.unwrap()
}

/// Whether that waits for a second person.
async fn waits(server: &Server, id: &str, decision: OperatorDecision) -> bool {
    four_eyes::is_waiting(&decided(server, id, decision).await)
}

/// What waits about a transfer stands on its page, and the audit log finds who approved it.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_seen_where_it_belongs() {
    let server = console_with(&[ABOVE]).await;
    let client = server.client().await;
    let body = client.transfer_body("50100012345678", "200.00").await;
    let made = client.post("/v1/transfers", body).await.ok();
    client.deposit(&made, json!({ "amount": "40.00" })).await;
    let path = format!("/v1/transfers/{}", id(&made));
    client.wait_until(&path, |found| found["funding"]["amount_received"] == "40.00").await;
    let page = format!("/console/transfers/{}", id(&made));
    assert!(!waits(&server, &id(&made), OperatorDecision::Review).await);
    let mut browser = signed_in(&server, "viewer").await;
    let note = "Approve: asked by operator";
    assert!(!browser.get(&page).await.body.contains(note));
    assert!(waits(&server, &id(&made), OperatorDecision::Approve).await);
    let shown = browser.get(&page).await.body;
    assert!(shown.contains(note), "the request is not on the page: {shown}");
    let number = pending(&server).await[0];
    approve(&server, number, person(Role::Approver, Via::Console)).await.unwrap();
    assert!(!browser.get(&page).await.body.contains(note));
    for name in ["operator", "approver"] {
        let log = browser.get(&format!("/console/audit?actor={name}")).await.body;
        let table = log.split("<tbody").nth(1).expect("a table");
        assert!(table.contains(&id(&made)), "{name}: {table}");
    }
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
