//! Four eyes: what one person asks for and another one approves, by every way there is.

use std::io::Write;
use std::process::{Output, Stdio};

use hundi::beneficiaries;
use hundi::beneficiaries::state::PayoutsDisabledReason;
use hundi::chains::ChainName;
use hundi::chains::address::ChainAddress;
use hundi::kernel::{AnyId, Currency, DecidedBy, Id, Mode, Money, Now, OperationError, Scope, Via};
use hundi::keys;
use hundi::operator::four_eyes::{self, RequestCheck, RequestStatus, rows};
use hundi::operator::{self, OperatorDecision};
use hundi::pauses::{self, Operation};
use hundi::rails::files::reports::{Sign, StatementLine};
use hundi::rails::files::rows::{self as journal, LinePlace, Matching};
use hundi::rails::files::values::Day;
use hundi::reconcile::DifferenceKind;
use hundi::reconcile::chain::{FoundDifference, rows as chain_differences};
use hundi::refunds::{self, Refund};
use hundi::screening::Screening;
use hundi::senders;
use hundi::staff::{self, Role};
use hundi::store::{Cost, Tx};
use serde_json::json;

use crate::console::{Browser, PASSWORD, console_with, signed_in};
use crate::support::{Client, Server, id, is_on_postgres, payout_id};

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
    let suspended = write(server, |tx, _| Ok(keys::rows::set_suspended(tx, SHOP, true)?));
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

/// What the chain shows and the book has not, in units of a USDT; answers its number.
async fn plant_difference(server: &Server, units: i64) -> String {
    let known = open_differences(server).await;
    let planted = write(server, move |tx, now| {
        let subject = hundi::kernel::hex::encode(now.random_bytes::<32>());
        let kind = DifferenceKind::MovementNotInBook;
        let found = FoundDifference { kind, subject, units, block_number: Some(70) };
        Ok(chain_differences::insert(tx, now, Mode::Test, ChainName::Tron, &found)?)
    });
    planted.await.unwrap();
    let open = open_differences(server).await;
    open.into_iter().find(|id| !known.contains(id)).expect("a new difference")
}

async fn open_differences(server: &Server) -> Vec<String> {
    let read = server.app.state.store.read(Cost::Point, |tx| {
        Ok(chain_differences::open(tx, Mode::Test, ChainName::Tron, 1_000)?)
    });
    read.await.unwrap().into_iter().map(|(id, _)| id.to_string()).collect()
}

async fn refund(server: &Server, id: &str) -> Refund {
    let (id, scope) = (Id::parse(id).unwrap(), Scope::new(1, Mode::Test));
    let read =
        server.app.state.store.read(Cost::Point, move |tx| Ok(refunds::rows::find(tx, scope, id)?));
    read.await.unwrap().expect("a refund")
}

/// A deposit that nothing waited for.
async fn unmatched(client: &Client, paid: &serde_json::Value, amount: &str) -> String {
    let extra = client.deposit(paid, json!({ "amount": amount })).await;
    let path = format!("/v1/deposits/{}", id(&extra));
    let extra = client.wait_status(&path, "completed").await;
    assert_eq!(extra["classification"], "unmatched");
    id(&extra)
}

/// A transfer that was paid out.
async fn paid(client: &Client) -> serde_json::Value {
    let made =
        client.post("/v1/transfers", client.transfer_body("50100012345678", "20.00").await).await;
    let made = made.ok();
    client.deposit(&made, json!({})).await;
    client.wait_status(&format!("/v1/transfers/{}", id(&made)), "payout_settled").await
}

/// The refund of an unmatched deposit, without an address.
async fn refund_of(server: &Server, deposit: &str) -> String {
    let (asked, services) = (AnyId::parse(deposit).unwrap(), server.app.state.services.clone());
    let decided = write(server, move |tx, now| {
        let by = person(Role::Operator, Via::Shell).approved("admin");
        operator::decide(tx, now, &services, asked, &OperatorDecision::Refund(None), &by)
    });
    named_first(&decided.await.unwrap())
}

/// What an outcome begins with.
fn named_first(outcome: &str) -> String {
    outcome.split(' ').next().expect("an ID").to_owned()
}

/// A refund that the operator has to send: its chain is not the simulated one.
async fn refund_to_send(
    server: &Server,
    client: &Client,
    paid: &serde_json::Value,
    amount: &str,
) -> String {
    const TO: &str = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";
    let deposit = unmatched(client, paid, amount).await;
    let refund = refund_of(server, &deposit).await;
    let (asked, services) = (Id::parse(&refund).unwrap(), server.app.state.services.clone());
    let declared = write(server, move |tx, now| {
        let by = person(Role::Operator, Via::Shell).approved("admin");
        let sql = "UPDATE refunds SET chain = 'ethereum' WHERE id = ?1";
        tx.execute_one(sql, hundi::values![asked])?;
        let to = ChainAddress::parse(TO).unwrap();
        operator::set_refund_address(tx, now, &services, asked, to, &by)
    });
    declared.await.unwrap();
    refund
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
    /// The transaction of a refund above the amount.
    RefundSent,
    /// A difference above the amount that is explained.
    Difference,
}

const CASES: [Case; 7] = [
    Case::Resume,
    Case::Clearance,
    Case::Amount,
    Case::RefundAddress,
    Case::Account,
    Case::RefundSent,
    Case::Difference,
];
const REFUNDS: usize = 4;
const GOES_TO: &str = "TMVQGm1qAQYVdetCeGRRkTWYYrLXuHK2HC";

/// Objects that all of it is tried on, and people who try.
struct Trial<'a> {
    server: &'a Server,
    client: Client,
    sender: String,
    transfer: String,
    /// Those without an address; the last one is next.
    refunds: Vec<String>,
    /// One above the amount, and which transaction is named next.
    large_refund: String,
    sent_count: usize,
    /// The last one that was planted.
    difference: String,
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
        let mut trial = Trial {
            server,
            client,
            sender,
            transfer: String::new(),
            refunds: Vec::new(),
            large_refund: String::new(),
            sent_count: 0,
            difference: String::new(),
            people,
        };
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
        let paid = paid(&trial.client).await;
        trial.large_refund = refund_to_send(server, &trial.client, &paid, "150.00").await;
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

    /// The transaction that is named of the large refund.
    fn hash(&self) -> String {
        format!("{:064x}", self.sent_count)
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
            Case::RefundSent => Some(self.large_refund.clone()),
            Case::Difference => Some(self.difference.clone()),
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
            Case::RefundSent => {
                let sent = refund(self.server, &subject).await.sent_transaction_hash;
                sent.is_some_and(|sent| sent.ends_with(&self.hash()))
            }
            Case::Difference => !open_differences(self.server).await.contains(&subject),
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
            Case::RefundSent => {
                self.sent_count += 1;
                return;
            }
            Case::Difference => {
                self.difference = plant_difference(self.server, 250_000_000).await;
                return;
            }
        };
        let done = done.unwrap_or_else(|error| panic!("{case:?}: {error}"));
        assert!(!four_eyes::is_waiting(&done), "{case:?}: {done}");
    }

    /// Asks for it in the browser; whether that was taken.
    async fn ask_in_browser(&mut self, case: Case, subject: &str, role: Role) -> bool {
        let hash = self.hash();
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
            Case::RefundSent => (
                "/console/decide",
                vec![("object", subject), ("decision", "sent"), ("hash", hash.as_str())],
            ),
            Case::Difference => {
                ("/console/decide", vec![("object", subject), ("decision", "accept")])
            }
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
            Case::RefundSent => {
                let (id, hash) = (Id::parse(subject).unwrap(), self.hash());
                write(self.server, move |tx, now| {
                    operator::mark_refund_sent(tx, now, &services, id, &hash, false, &by)
                })
                .await
            }
            Case::Difference => {
                let asked = operator::ExplainedDifference {
                    what: subject.to_owned(),
                    payouts: Vec::new(),
                    kind: None,
                };
                write(self.server, move |tx, now| {
                    operator::explain(tx, now, &services.settings, &asked, &by)
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
        let hash = self.hash();
        let words: Vec<&str> = match case {
            Case::Resume => vec!["resume", "quotes"],
            Case::Account => vec!["accounts", "resume", SHOP],
            Case::RefundAddress => vec!["refunds", "address", subject, "--to", GOES_TO],
            Case::RefundSent => vec!["refunds", "complete", subject, "--hash", &hash],
            Case::Difference => vec!["reconcile", "--accept", subject],
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
    const SEQUENCES_MAX: u64 = 3 * SEQUENCES;
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
    let mut before = [true, true, false, false, true, true, true];
    // Which requests are open, and so which steps are drawn, is not the same on every store. More
    // sequences are drawn until each case has come up often enough.
    let is_reached = |case: Case, ended: usize, refused: usize| {
        let least = if case == Case::RefundAddress { REFUNDS - 1 } else { 5 };
        ended >= least && refused > 5
    };
    for sequence in 0..SEQUENCES_MAX {
        let mut reached = CASES.into_iter().zip(ended.into_iter().zip(refused));
        if sequence >= SEQUENCES
            && reached.all(|(case, (ended, refused))| is_reached(case, ended, refused))
        {
            break;
        }
        for step in 0..STEPS {
            for (index, case) in CASES.into_iter().enumerate() {
                // Decided by the operator, who therefore has to be one.
                let takes_operator = matches!(case, Case::Clearance | Case::Amount);
                if before[index] && (enabled[1] || !takes_operator) {
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
        let reached = (ended[index], refused[index]);
        assert!(is_reached(case, ended[index], refused[index]), "{case:?}: {reached:?}");
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

/// How many decisions and entries of the audit log there are.
async fn entries(server: &Server) -> Vec<i64> {
    let read = server.app.state.store.read(Cost::Scan, |tx| {
        let mut counts = Vec::new();
        for table in ["decisions", "audit_log", "decision_requests", "refunds", "ledger_postings"] {
            let row = tx.row(&format!("SELECT COUNT(*) FROM {table}"), &[])?;
            counts.push(row.expect("a count").int()?);
        }
        Ok(counts)
    });
    read.await.unwrap()
}

/// What somebody asked for who was disabled waits no longer: it ends with the command that disables
/// them, and otherwise when the service looks.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_disabled_operator_asked_for_ends() {
    let server = console_with(&[ABOVE]).await;
    let ask = async || {
        pause(&server).await;
        resume(&server, person(Role::Operator, Via::Console)).await.unwrap();
        let [number] = pending(&server).await[..] else { panic!("one") };
        number
    };
    let status = async |number: i64| {
        let read = server.app.state.store.read(Cost::Point, move |tx| Ok(rows::find(tx, number)?));
        read.await.unwrap().expect("a request").status
    };
    let newest = async || {
        let read = server.app.state.store.read(Cost::Point, |tx| {
            Ok(hundi::audit::rows::newest_of(tx, "decision_ended")?.expect("an entry"))
        });
        read.await.unwrap()
    };
    let first = ask().await;
    let words = ["operators", "disable", "operator", "--actor", "admin", "--reason", "left"];
    let all = [&words[..], &["--database", &server.database_url]].concat();
    let output = server.binary(&all).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("ended: 1"), "{output:?}");
    assert_eq!(status(first).await, RequestStatus::Outdated);
    let ended = newest().await;
    assert_eq!((ended.subject.as_str(), ended.actor.as_str()), ("quotes", "admin"));
    assert_eq!(ended.detail("reason").as_deref(), Some("who asked for it is disabled"));
    // Somebody who was disabled in another way.
    let disable = |is_disabled: bool| {
        write(&server, move |tx, _| {
            let operator = staff::named(tx, "operator")?;
            Ok(staff::rows::set_disabled(tx, operator.identity.number, is_disabled)?)
        })
    };
    disable(false).await.unwrap();
    let second = ask().await;
    disable(true).await.unwrap();
    assert_eq!(status(second).await, RequestStatus::Pending);
    hundi::workers::housekeeping::Purger::default().run_once(&server.app.state).await;
    assert_eq!(status(second).await, RequestStatus::Outdated);
    assert_eq!(newest().await.via, "service");
}

/// A request whose object was decided about otherwise, or that nobody decides about, tells so to
/// who approves it, and waits no longer.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_about_what_moved_on_ends_by_itself() {
    let server = console_with(&[ABOVE]).await;
    let mut trial = Trial::new(&server).await;
    let mut purger = hundi::workers::housekeeping::Purger::default();
    let check = async |number: i64, was_declined: bool| {
        let services = server.app.state.services.clone();
        let checked = write(&server, move |tx, now| {
            four_eyes::check(tx, now, &services, number, was_declined)
        });
        checked.await.unwrap()
    };
    let status = async |number: i64| {
        let read = server.app.state.store.read(Cost::Point, move |tx| Ok(rows::find(tx, number)?));
        read.await.unwrap().expect("a request").status
    };
    // Each is asked for, and then happens in another way.
    pause(&server).await;
    resume(&server, person(Role::Operator, Via::Console)).await.unwrap();
    let transfer = trial.transfer.clone();
    trial.decide(&transfer, OperatorDecision::Approve, Role::Operator).await.unwrap();
    // This one stays as it is.
    let refund = trial.refunds.last().unwrap().clone();
    assert!(trial.ask_in_browser(Case::RefundAddress, &refund, Role::Operator).await);
    let [of_pause, of_transfer, of_refund] = pending(&server).await[..] else { panic!("three") };
    for number in [of_pause, of_transfer, of_refund] {
        // To try one out changes nothing, however often.
        let before = entries(&server).await;
        assert_eq!(check(number, true).await, RequestCheck::Unchanged);
        assert_eq!(entries(&server).await, before);
    }
    let ended = write(&server, |tx, _| Ok(pauses::resume(tx, Operation::Quotes, None)?));
    ended.await.unwrap();
    let (asked, services) = (AnyId::parse(&transfer).unwrap(), server.app.state.services.clone());
    let refused = write(&server, move |tx, now| {
        let by = person(Role::Operator, Via::Shell).approved("admin");
        operator::decide(tx, now, &services, asked, &OperatorDecision::Refuse, &by)
    });
    refused.await.unwrap();
    for (number, told) in
        [(of_pause, "were not paused"), (of_transfer, "does not take this decision")]
    {
        let mut admin = signed_in(&server, "admin").await;
        let path = format!("/console/approvals/{number}/approve");
        let answer = admin.submit("/console/approvals", &path, &[]).await;
        assert_eq!(answer.status, 409);
        assert!(answer.body.contains(told), "{}", answer.body);
        // It may be declined only for the moment, so the first check leaves it.
        assert_eq!(check(number, false).await, RequestCheck::Declined);
        assert_eq!(status(number).await, RequestStatus::Pending);
    }
    for _ in 0..2 {
        purger.run_once(&server.app.state).await;
    }
    assert_eq!(status(of_pause).await, RequestStatus::Outdated);
    assert_eq!(status(of_transfer).await, RequestStatus::Outdated);
    assert_eq!(pending(&server).await, [of_refund]);
    let late = approve(&server, of_pause, person(Role::Admin, Via::Shell)).await.unwrap_err();
    assert!(late.contains("it is outdated already"), "{late}");
    let newest = write(&server, |tx, _| {
        Ok(hundi::audit::rows::newest_of(tx, "decision_ended")?.expect("an entry"))
    });
    let newest = newest.await.unwrap();
    assert_eq!((newest.subject, newest.via), (transfer.clone(), "service".to_owned()));
    let mut viewer = signed_in(&server, "viewer").await;
    let page = viewer.get("/console/approvals").await.body;
    assert!(!page.contains(&format!("id=\"request-{of_pause}\"")), "{page}");
    assert!(page.contains(&format!("id=\"request-{of_refund}\"")), "{page}");
    assert_eq!(page.matches("No longer possible").count(), 2, "{page}");
    // Nobody decides in time: another request takes its place at once, or it ends by itself.
    let age = async || {
        let aged = write(&server, |tx, _| {
            let sql = "UPDATE decision_requests SET requested_at = requested_at - ?1 WHERE status \
                       = 'pending'";
            Ok(tx.execute(sql, hundi::values![four_eyes::REQUEST_SECONDS_MAX])?)
        });
        assert_eq!(aged.await.unwrap(), 1);
    };
    age().await;
    assert!(trial.ask_in_browser(Case::RefundAddress, &refund, Role::Approver).await);
    assert_eq!(status(of_refund).await, RequestStatus::Expired);
    age().await;
    purger.run_once(&server.app.state).await;
    assert_eq!(pending(&server).await, [0; 0]);
    server.assert_book();
}

/// A request that cannot be read keeps no other one from its check.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_cannot_be_checked_does_not_stop_the_checks() {
    let server = console_with(&[ABOVE]).await;
    pause(&server).await;
    resume(&server, person(Role::Operator, Via::Console)).await.unwrap();
    let [number] = pending(&server).await[..] else { panic!("one") };
    let plant = write(&server, |tx, _| {
        let copied = "INSERT INTO decision_requests (number, subject, word, cause, status, \
                      requested_by, requester, reason, requested_at, asked) SELECT number - 1, \
                      'damaged', word, 'damaged', status, requested_by, requester, reason, \
                      requested_at, asked FROM decision_requests";
        tx.execute(copied, &[])?;
        let aged = "UPDATE decision_requests SET requested_at = requested_at - ?1";
        Ok(tx.execute(aged, hundi::values![four_eyes::REQUEST_SECONDS_MAX])?)
    });
    assert_eq!(plant.await.unwrap(), 2);
    hundi::workers::housekeeping::Purger::default().run_once(&server.app.state).await;
    let statuses = server.app.state.store.read(Cost::Point, |tx| {
        let rows = tx.rows("SELECT status FROM decision_requests ORDER BY number", &[])?;
        Ok(rows.into_iter().map(|mut row| row.text()).collect::<Result<Vec<_>, _>>()?)
    });
    assert_eq!(statuses.await.unwrap(), ["pending", "expired"]);
    let found = server.app.state.store.read(Cost::Point, move |tx| Ok(rows::find(tx, number)?));
    assert_eq!(found.await.unwrap().expect("a request").status, RequestStatus::Expired);
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

/// Below the limit and at it one person decides; above it, by the smallest unit too, two do: about
/// payouts, deposits, the release of a refund, and the transaction in which one was sent.
#[tokio::test(flavor = "multi_thread")]
async fn an_amount_waits_above_the_limit_alone() {
    let server = console_with(&[ABOVE, ("HUNDI_ACCOUNT_DAY_INR_MAX", "2000.00")]).await;
    let client = server.client().await;
    let paid = paid(&client).await;
    for (amount, is_above) in [("99.99", false), ("100.00", false), ("100.01", true)] {
        let body = client.transfer_body("50100012345678", amount).await;
        let made = client.post("/v1/transfers", body).await.ok();
        client.deposit(&made, json!({})).await;
        let path = format!("/v1/transfers/{}", id(&made));
        let payout = payout_id(&client.wait_until(&path, |t| t["payout_id"].is_string()).await);
        client.wait_status(&format!("/v1/payouts/{payout}"), "hold").await;
        for decision in [OperatorDecision::Approve, OperatorDecision::Refuse] {
            // The one that is refused is above the limit, or was approved before.
            if matches!(decision, OperatorDecision::Refuse) && !is_above {
                continue;
            }
            if is_above {
                reject_all(&server).await;
            }
            assert_eq!(waits(&server, &payout, decision).await, is_above, "payout of {amount}");
        }
        let status = client.get(&format!("/v1/payouts/{payout}")).await.ok()["status"].clone();
        assert_eq!(status == "hold", is_above, "{amount}: {status}");
    }
    for (amount, is_above) in [("99.99", false), ("100.00", false), ("100.000001", true)] {
        let deposit = unmatched(&client, &paid, amount).await;
        let said = decided(&server, &deposit, OperatorDecision::Refund(None)).await;
        assert_eq!(four_eyes::is_waiting(&said), is_above, "deposit of {amount}: {said}");
        reject_all(&server).await;
        let refund = match is_above {
            true => refund_of(&server, &deposit).await,
            false => named_first(&said),
        };
        let (asked, services) = (Id::parse(&refund).unwrap(), server.app.state.services.clone());
        let released = write(&server, move |tx, now| {
            let scope = Scope::new(1, Mode::Test);
            let mut refund = refunds::rows::find(tx, scope, asked)?.expect("a refund");
            refunds::hold_for_bank(tx, &mut refund, "a test")?;
            let by = person(Role::Operator, Via::Console);
            operator::release_refund(tx, now, &services, asked, &by)
        });
        let said = released.await.unwrap();
        assert_eq!(four_eyes::is_waiting(&said), is_above, "release of {amount}: {said}");
        let is_held = self::refund(&server, &refund).await.bank_hold_reason.is_some();
        assert_eq!(is_held, is_above, "{amount}");
        reject_all(&server).await;
    }
    for (amount, is_above) in [("99.99", false), ("100.00", false), ("100.000001", true)] {
        let refund = refund_to_send(&server, &client, &paid, amount).await;
        let mut browser = signed_in(&server, "operator").await;
        let hash = "ab".repeat(32);
        let fields = [
            ("object", refund.as_str()),
            ("decision", "sent"),
            ("hash", hash.as_str()),
            ("reason", "a test"),
        ];
        let done = browser.submit("/console/account", "/console/decide", &fields).await;
        assert_eq!(done.status, 303, "{}", done.body);
        let is_named = self::refund(&server, &refund).await.sent_transaction_hash.is_some();
        assert_eq!(is_named, !is_above, "{amount}");
        reject_all(&server).await;
        if is_above {
            // The shell asks for the password, and one person is not enough.
            let words = ["refunds", "complete", &refund, "--hash", &hash];
            let all = [&words[..], &["--actor", "operator", "--reason", "a test"]].concat();
            let output = run(&server, &all, "");
            assert!(!output.status.success(), "without a password: {}", said(&output));
            let output = run(&server, &all, &format!("{PASSWORD}\n"));
            assert!(said(&output).contains("waits for a second person"), "{}", said(&output));
            assert!(self::refund(&server, &refund).await.sent_transaction_hash.is_none());
            let number = pending(&server).await[0];
            approve(&server, number, person(Role::Approver, Via::Console)).await.unwrap();
            let sent = self::refund(&server, &refund).await.sent_transaction_hash;
            assert!(sent.is_some_and(|sent| sent.ends_with(&hash)));
        }
    }
}

async fn reject_all(server: &Server) {
    for number in pending(server).await {
        let rejected = write(server, move |tx, now| {
            four_eyes::reject(tx, now, number, &person(Role::Admin, Via::Console))
        });
        rejected.await.unwrap();
    }
}

/// A difference above the limit takes two: one in a dollar's token as it is, one in rupees at the
/// last market rate, and without a rate any of them.
#[tokio::test(flavor = "multi_thread")]
async fn a_difference_above_the_limit_takes_two_to_explain() {
    let server = console_with(&[ABOVE]).await;
    let mut browser = signed_in(&server, "operator").await;
    let mut accept = async |difference: &str| {
        let fields = [("object", difference), ("decision", "accept"), ("reason", "a test")];
        let done = browser.submit("/console/account", "/console/decide", &fields).await;
        assert_eq!(done.status, 303, "{}", done.body);
        done.header("location").contains("notice.waits_second")
    };
    for (units, is_above) in [(99_999_999, false), (100_000_000, false), (100_000_001, true)] {
        let difference = plant_difference(&server, units).await;
        assert_eq!(accept(&difference).await, is_above, "{units}");
        assert_eq!(open_differences(&server).await.contains(&difference), is_above, "{units}");
        if is_above {
            let output = run(
                &server,
                &["reconcile", "--accept", &difference, "--actor", "operator", "--reason", "no"],
                "",
            );
            assert!(!output.status.success(), "without a password: {}", said(&output));
            let number = pending(&server).await[0];
            approve(&server, number, person(Role::Approver, Via::Console)).await.unwrap();
            assert!(!open_differences(&server).await.contains(&difference));
        }
    }
    // At 88.00 INR for a dollar, 8800.00 INR are the limit.
    for (rate, number, units, is_above) in [
        (None, 1, 100, true),
        (Some(88_000_000), 2, 880_000, false),
        (Some(88_000_000), 3, 880_001, true),
    ] {
        let planted = write(&server, move |tx, now| {
            if let Some(rate) = rate {
                let sql = "INSERT INTO market_rates (source, inr_per_usd, usd_per_usdt, \
                           observed_at, anchor, anchor_day) VALUES ('http', ?1, 1000000, 1, ?1, 1) \
                           ON CONFLICT (source) DO NOTHING";
                tx.execute(sql, hundi::values![rate])?;
            }
            let mut line = StatementLine::zero(Sign::Credit, Day::parse("2026-11-20").unwrap());
            line.amount = Money::new(units, Currency::Inr);
            let place = LinePlace { sha256: [number; 32], statement_number: 1, number: 1 };
            journal::insert_line(tx, now, &place, &line, Matching::NoReference, None, None)?;
            let waiting = journal::unmatched(tx, 100)?;
            Ok(waiting.last().expect("the line").id.to_string())
        });
        let line = planted.await.unwrap();
        assert_eq!(accept(&line).await, is_above, "{units} paise at {rate:?}");
        let read = server.app.state.store.read(Cost::Point, |tx| Ok(journal::unmatched(tx, 100)?));
        let is_open = read.await.unwrap().iter().any(|waiting| waiting.id.to_string() == line);
        assert_eq!(is_open, is_above, "{units}");
    }
}

/// Approving a beneficiary lets its held payouts go out: the largest of them is its amount.
#[tokio::test(flavor = "multi_thread")]
async fn a_beneficiary_s_approval_is_worth_its_held_payouts() {
    let server = console_with(&[ABOVE]).await;
    let client = server.client().await;
    for (account_number, amounts, is_above) in [
        ("50100012345678", &["60.00", "60.00"][..], false),
        ("50100012345679", &["60.00", "100.01"], true),
        ("50100012345680", &[], false),
    ] {
        let mut transfers = Vec::new();
        let beneficiary = id(&client.active_beneficiary(account_number).await);
        for amount in amounts {
            let mut body = client.transfer_body(account_number, amount).await;
            body["beneficiary_id"] = json!(beneficiary);
            transfers.push(client.post("/v1/transfers", body).await.ok());
        }
        let disabled = Id::parse(&beneficiary).unwrap();
        write(&server, move |tx, now| {
            let scope = Scope::new(1, Mode::Test);
            now.enter_account(keys::rows::clock_offset_seconds(tx, scope)?);
            let mut found = beneficiaries::rows::find(tx, scope, disabled)?.expect("one");
            let reason = PayoutsDisabledReason::ReturnedPayout;
            Ok(beneficiaries::disable_payouts(tx, now, &mut found, reason)?)
        })
        .await
        .unwrap();
        for transfer in &transfers {
            client.deposit(transfer, json!({})).await;
            let path = format!("/v1/transfers/{}", id(transfer));
            let shown = client.wait_until(&path, |t| t["payout_id"].is_string()).await;
            client.wait_status(&format!("/v1/payouts/{}", payout_id(&shown)), "hold").await;
        }
        let is_waiting = waits(&server, &beneficiary, OperatorDecision::Approve).await;
        assert_eq!(is_waiting, is_above, "{amounts:?}");
        if is_above {
            let number = pending(&server).await[0];
            approve(&server, number, person(Role::Approver, Via::Console)).await.unwrap();
        }
        for transfer in &transfers {
            client.wait_status(&format!("/v1/transfers/{}", id(transfer)), "payout_settled").await;
        }
    }
}

/// Two commands act outside the transaction that a second person could approve: both persons prove
/// who they are in one call.
#[tokio::test(flavor = "multi_thread")]
async fn two_commands_take_both_persons_at_once() {
    let server = console_with(&[ABOVE]).await;
    let hash = "ab".repeat(32);
    let credit = ["deposits", "credit", &hash, "--mode", "test"];
    let both = format!("{PASSWORD}\n{PASSWORD}\n");
    for words in [&credit[..], &["resume", "database"]] {
        let kept = async || {
            let read = server
                .app
                .state
                .store
                .read(Cost::Scan, |tx| Ok(hundi::decisions::rows::newest(tx, 100)?));
            read.await.unwrap()
        };
        let before = kept().await.len();
        for (actor, approver, input) in [
            ("operator", None, both.as_str()),
            ("operator", Some("operator"), &both),
            ("approver", Some("approver"), &both),
            ("operator", Some("viewer"), &both),
            ("approver", Some("operator"), &both),
            ("viewer", Some("approver"), &both),
            ("nobody", Some("approver"), &both),
            ("operator", Some("approver"), &format!("{PASSWORD}\nwrong password\n")),
            ("operator", Some("approver"), &format!("wrong password\n{PASSWORD}\n")),
            ("operator", Some("approver"), &format!("{PASSWORD}\n")),
        ] {
            let mut all = [words, &["--actor", actor, "--reason", "a test"]].concat();
            all.extend(approver.iter().flat_map(|name| ["--approver", name]));
            let output = run(&server, &all, input);
            let what = format!("{words:?} {actor} {approver:?}: {}", said(&output));
            assert!(!output.status.success(), "{what}");
            // Refused for who asked, before anything was looked at.
            let told = ["--approver", "password", "may not", "operator who may decide"];
            assert!(told.iter().any(|told| what.contains(told)), "{what}");
            assert!(!what.contains("no chain is configured"), "{what}");
            assert!(!what.contains("this database is SQLite"), "{what}");
        }
        assert_eq!(kept().await.len(), before, "{words:?}");
        let by = ["--actor", "operator", "--approver", "approver", "--reason", "a test"];
        let output = run(&server, &[words, &by].concat(), &both);
        if words == credit {
            assert!(said(&output).contains("no chain is configured"), "{}", said(&output));
        } else if is_on_postgres() {
            assert!(output.status.success(), "{}", said(&output));
        } else {
            assert!(said(&output).contains("this database is SQLite"), "{}", said(&output));
            continue;
        }
        let newest = &kept().await[0];
        assert_eq!((newest.by.actor(), newest.by.approved_by()), ("operator", "approver"));
    }
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
