//! kill -9 at random moments under concurrent load: nothing acknowledged is lost, nothing happens
//! twice, every event arrives. A negative control plants a fault and passes only if the same oracle
//! notices it.

mod support;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use support::load::{Journal, Kind, Load, Operation, Writer, follow_events};
use support::oracle::{
    self, Finding, PAYOUT_STATUSES, await_quiet, doubles, histories, losses, objects,
    paid_transfers, show,
};
use support::random::{number, seed};
use support::steps;
use support::{Answer, Client, Home, Random, Receiver, Server, until};

const WRITERS_COUNT: usize = 6;
/// Between two kills.
const LIFE_MILLISECONDS_MIN: u64 = 150;
const LIFE_MILLISECONDS_MAX: u64 = 900;
/// What the service promises of a restart.
const READY_MAX: Duration = Duration::from_secs(2);

/// The load under kills, and what is left of it: a server that runs, and the writers' journals.
struct Aftermath {
    server: Server,
    api_key: String,
    journals: Vec<Journal>,
    events_followed: Vec<String>,
    ready_slowest: Duration,
    kills_count: u64,
}

/// Runs the load and kills the server `kills_count` times. `settle` is called with the last server
/// while the followers still run.
fn storm_of_kills(
    home: &Home,
    receiver: &Receiver,
    kills_count: u64,
    seed: u64,
    settle: impl FnOnce(&Server, &str, &[Journal]),
) -> Aftermath {
    let mut random = Random::new(seed);
    let mut server = home.start_on_own_port();
    let address = server.address();
    let listen = address.to_string();
    let api_key = home.key();
    receiver.register(&mut server.client(&api_key));
    let load = Load::default();
    let following_is_over = AtomicBool::new(false);
    let mut ready_slowest = Duration::ZERO;
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS_COUNT)
            .map(|index| {
                let writer =
                    Writer::new(&load, seed ^ (index as u64 + 1) << 32, &[address], &api_key);
                scope.spawn(move || writer.run())
            })
            .collect();
        let follower =
            scope.spawn(|| follow_events(Client::new(address, &api_key), &following_is_over));
        // Whatever fails in here must not leave the writers running, or the scope never ends.
        let killed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for kill in 1..=kills_count {
                std::thread::sleep(Duration::from_millis(
                    random.between(LIFE_MILLISECONDS_MIN, LIFE_MILLISECONDS_MAX),
                ));
                take_down(home, &mut server, &mut random, kill, &listen);
                server = home.start_as(&[], &listen);
                ready_slowest = ready_slowest.max(server.ready_after);
            }
        }));
        load.end();
        let journals: Vec<Journal> =
            writers.into_iter().map(|writer| writer.join().expect("a writer")).collect();
        let settled = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            if killed.is_ok() {
                settle(&server, &api_key, &journals);
            }
        }));
        following_is_over.store(true, Ordering::Relaxed);
        let events_followed = follower.join().expect("the follower");
        for outcome in [killed, settled] {
            outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
        Aftermath {
            server,
            api_key: api_key.clone(),
            journals,
            events_followed,
            ready_slowest,
            kills_count,
        }
    })
}

/// Kills the server; sometimes the next one too, while it starts, and sometimes looks at what lies
/// there.
fn take_down(home: &Home, server: &mut Server, random: &mut Random, kill: u64, listen: &str) {
    server.kill_now();
    if random.chance(15) {
        let mut early = home.spawn(&[], listen);
        std::thread::sleep(Duration::from_millis(random.between(0, 120)));
        early.kill_now();
    }
    if kill.is_multiple_of(5) {
        home.check().expect_success(&format!("the check of the database after kill {kill}"));
    }
}

#[test]
fn kills_lose_nothing_and_double_nothing() {
    expect_sound(&quiet_home("crash"), number("HUNDI_CRASH_KILLS", 20));
}

/// The lane runs a group again when one of its requests has to be undone: here it does so with
/// every group.
#[test]
#[cfg_attr(not(debug_assertions), ignore = "optimised builds do not contain the planted fault")]
fn groups_that_run_twice_double_nothing() {
    const KILLS_COUNT: u64 = 4;
    expect_sound(&quiet_home("crash-again").with_fault("groups_run_again"), KILLS_COUNT);
}

/// Load, kills and the oracle's verdict.
fn expect_sound(home: &Home, kills_count: u64) {
    let seed = seed("HUNDI_CRASH_SEED");
    let receiver = Receiver::start();
    let aftermath =
        storm_of_kills(home, &receiver, kills_count, seed, |server, api_key, journals| {
            await_quiet(&mut server.client(api_key), journals, &receiver);
        });
    let Aftermath { server, api_key, journals, events_followed, ready_slowest, .. } = aftermath;
    let mut client = server.client(&api_key);
    let events_count = events_followed.len();
    let operations_count: usize = journals.iter().map(|journal| journal.operations.len()).sum();
    let paid_count = paid_transfers(&journals).len();
    println!(
        "{} kills, {operations_count} operations, {paid_count} payments settled, {events_count} \
         events, slowest start {ready_slowest:?}",
        aftermath.kills_count,
    );

    let mut findings = oracle::verdict(
        &mut client,
        &journals,
        &receiver,
        &events_followed,
        &mut Random::new(seed),
    );
    findings.extend(home.panics().into_iter().map(Finding::Wrong));
    assert!(
        findings.is_empty(),
        "HUNDI_CRASH_SEED={seed}: {} findings\n{}",
        findings.len(),
        show(&findings)
    );

    // A run in which next to nothing happened would prove next to nothing.
    assert!(
        paid_count as u64 >= kills_count,
        "only {paid_count} payments in {kills_count} lives of the server"
    );
    home.check().expect_success("the check beside the running server");
    assert!(server.stop().success(), "the server did not end well");
    home.check().expect_success("the check of the stopped server's database");
    assert!(
        ready_slowest <= READY_MAX,
        "ready after {ready_slowest:?}: a restart after kill -9 is promised within {READY_MAX:?}"
    );
}

/// A home whose servers do not spend the load's time on rate limits.
fn quiet_home(name: &str) -> Home {
    Home::new(name).with("HUNDI_RATE_LIMIT_READS", "0").with("HUNDI_RATE_LIMIT_WRITES", "0")
}

/// The same load, kills and oracle over a server that answers before it commits: an oracle that
/// stays silent here would prove nothing above.
#[test]
#[cfg_attr(not(debug_assertions), ignore = "optimised builds do not contain the planted fault")]
fn oracle_notices_an_answer_before_the_commit() {
    const ROUNDS_MAX: u64 = 5;
    const KILLS_PER_ROUND: u64 = 3;
    let seed = seed("HUNDI_CRASH_SEED");
    for round in 0..ROUNDS_MAX {
        let home = quiet_home("crash-control").with_fault("answer_before_commit");
        let receiver = Receiver::start();
        let aftermath = storm_of_kills(
            &home,
            &receiver,
            KILLS_PER_ROUND,
            seed.wrapping_add(round),
            |_, _, _| {},
        );
        let mut client = aftermath.server.client(&aftermath.api_key);
        let objects = objects(&mut client);
        let findings = losses(&mut client, &aftermath.journals, &objects, &mut Random::new(seed));
        let lost = findings.iter().filter(|finding| matches!(finding, Finding::Lost(_))).count();
        println!("round {round}: the oracle reports {lost} losses");
        if lost > 0 {
            return;
        }
    }
    panic!(
        "HUNDI_CRASH_SEED={seed}: the server answered before its commits and was killed {} times, \
         and the oracle noticed nothing",
        ROUNDS_MAX * KILLS_PER_ROUND
    );
}

/// The parts of the oracle that no planted fault of the server reaches: one small world that is
/// sound, and the same world with one thing wrong at a time.
#[test]
fn oracle_notices_planted_contradictions() {
    struct World {
        journal: Journal,
        objects: HashMap<Kind, HashMap<String, Value>>,
        payouts: Vec<Value>,
        events: Vec<Value>,
    }
    fn answer(status: u16, body: &Value, is_replay: bool) -> Answer {
        let headers = if is_replay {
            vec![("Idempotent-Replayed".to_owned(), "true".to_owned())]
        } else {
            Vec::new()
        };
        Answer { status, headers, body: body.to_string().into_bytes() }
    }
    fn operation(number: u64, kind: Kind, path: &str, answers: Vec<Answer>) -> Operation {
        let key = format!("key-{number}");
        Operation {
            number,
            kind,
            path: path.to_owned(),
            key,
            body: json!({}),
            rival: None,
            answers,
            reuse_answers: Vec::new(),
        }
    }
    fn transfer(id: &str, number: u64, quote_lock: &str, address: &str) -> Value {
        let history = ["funding", "funded", "payout_processing", "payout_settled"];
        let history: Vec<Value> = history
            .iter()
            .enumerate()
            .map(|(index, status)| json!({ "status": status, "at": index }))
            .collect();
        json!({
            "id": id, "status": "payout_settled", "payout_amount": "1.00",
                "quote_lock_id": quote_lock, "status_history": history,
            "funding": { "deposit_address": address },
                "metadata": { "operation": number.to_string() },
        })
    }
    fn sound() -> World {
        let made = [
            transfer("transfer_1", 1, "quote_lock_1", "T1"),
            transfer("transfer_2", 2, "quote_lock_2", "T2"),
        ];
        let mut objects: HashMap<Kind, HashMap<String, Value>> =
            Kind::ALL.iter().map(|kind| (*kind, HashMap::new())).collect();
        let mut journal = Journal::default();
        let mut events = Vec::new();
        for (index, body) in made.iter().enumerate() {
            let answers = vec![answer(200, body, false), answer(200, body, true)];
            journal.operations.push(operation(
                index as u64 + 1,
                Kind::Transfer,
                "/v1/transfers",
                answers,
            ));
            for entry in body["status_history"].as_array().unwrap() {
                events.push(json!({ "linked_id": body["id"], "type": format!("transfer.status.{}",
                    entry["status"].as_str().unwrap()) }));
            }
            objects.get_mut(&Kind::Transfer).unwrap().insert(steps::text(body, "id"), body.clone());
        }
        let deposit = json!({ "id": "deposit_1", "transfer_id": "transfer_1" });
        let path = "/v1/test_helpers/transfers/transfer_1/deposit";
        journal.operations.push(operation(
            3,
            Kind::Deposit,
            path,
            vec![answer(200, &deposit, false)],
        ));
        objects.get_mut(&Kind::Deposit).unwrap().insert("deposit_1".into(), deposit);
        let payouts =
            vec![json!({ "id": "payout_1", "transfer_id": "transfer_1", "amount": "1.00",
                "status": "settled" })];
        events.extend(PAYOUT_STATUSES.iter().map(
            |status| json!({ "linked_id": "payout_1", "type": format!("payout.status.{status}") }),
        ));
        journal.sightings.push(("transfer_1".into(), "funded".into()));
        World { journal, objects, payouts, events }
    }
    fn findings(world: World) -> Vec<Finding> {
        let journals = [world.journal];
        let mut findings = doubles(&journals, &world.objects);
        findings.extend(histories(
            &journals,
            &world.objects[&Kind::Transfer],
            &world.payouts,
            &world.events,
        ));
        findings
    }
    assert_eq!(findings(sound()), [], "the sound world is not found sound");

    type Plant = fn(&mut World);
    let wrongs: &[(&str, Plant)] = &[
        ("two effects of one key", |world| {
            world.journal.operations[0].answers.push(answer(
                200,
                &json!({ "id": "transfer_9" }),
                false,
            ))
        }),
        ("two answers to one key", |world| {
            world.journal.operations[0].answers[1] =
                answer(200, &json!({ "id": "transfer_9" }), true)
        }),
        ("a refusal of a sound request", |world| {
            world.journal.operations[0].answers = vec![answer(
                400,
                &json!({ "errors": [{ "code": "beneficiary_not_payable" }] }),
                false,
            )];
        }),
        ("a fault of the service", |world| {
            world.journal.operations[0].answers.push(answer(500, &json!({}), false))
        }),
        ("a reused key that is carried out", |world| {
            world.journal.operations[0].reuse_answers.push(answer(200, &json!({}), false))
        }),
        ("two winners of one lock", |world| {
            world.journal.operations[0].rival = Some(2);
            world.journal.operations[1].rival = Some(1);
        }),
        ("an operation without an end", |world| world.journal.stuck.push("operation 7".into())),
        ("one number in two objects", |world| {
            let again = transfer("transfer_3", 1, "quote_lock_3", "T3");
            world.objects.get_mut(&Kind::Transfer).unwrap().insert("transfer_3".into(), again);
        }),
        ("a shared quote lock", |world| {
            world.objects.get_mut(&Kind::Transfer).unwrap().get_mut("transfer_2").unwrap()["quote_lock_id"] =
                json!("quote_lock_1")
        }),
        ("a shared address", |world| {
            world.objects.get_mut(&Kind::Transfer).unwrap().get_mut("transfer_2").unwrap()["funding"]
                ["deposit_address"] = json!("T1")
        }),
        ("a deposit nobody sent", |world| {
            let again = json!({ "id": "deposit_2", "transfer_id": "transfer_1" });
            world.objects.get_mut(&Kind::Deposit).unwrap().insert("deposit_2".into(), again);
        }),
        ("a second payout", |world| {
            world.payouts.push(json!({ "id": "payout_2", "transfer_id": "transfer_1",
                "amount": "1.00", "status": "initialized" }))
        }),
        ("a payout of another amount", |world| world.payouts[0]["amount"] = json!("2.00")),
        ("a history that jumps", |world| {
            world.objects.get_mut(&Kind::Transfer).unwrap().get_mut("transfer_1").unwrap()["status_history"]
                [1]["status"] = json!("payout_failed");
        }),
        ("a status that its history does not end in", |world| {
            world.objects.get_mut(&Kind::Transfer).unwrap().get_mut("transfer_1").unwrap()["status"] =
                json!("payout_processing");
        }),
        ("a step without an event", |world| drop(world.events.remove(1))),
        ("an event told twice", |world| world.events.push(world.events[2].clone())),
        ("a payout's step told twice", |world| {
            world.events.push(world.events.last().unwrap().clone())
        }),
        ("a step back", |world| {
            world.journal.sightings.push(("transfer_1".into(), "funding".into()))
        }),
    ];
    for (what, plant) in wrongs {
        let mut world = sound();
        plant(&mut world);
        assert!(!findings(world).is_empty(), "{what} was not noticed");
    }
}

/// The very first start makes the schema, the key file and a key: a kill in the middle of it must
/// not leave a database that cannot be started.
#[test]
fn first_start_survives_a_kill() {
    const STARTS_COUNT: u64 = 12;
    let mut random = Random::new(seed("HUNDI_CRASH_SEED"));
    let mut slowest = Duration::ZERO;
    for start in 0..STARTS_COUNT {
        let home = quiet_home("crash-first-start");
        let mut early = home.spawn(&[], "127.0.0.1:0");
        let pause = Duration::from_millis(random.between(0, 150));
        std::thread::sleep(pause);
        early.kill_now();
        let server = home.try_start(&[], "127.0.0.1:0").unwrap_or_else(|problem| {
            panic!("start {start}, killed after {pause:?}: {problem}\n{}", home.log())
        });
        slowest = slowest.max(server.ready_after);
        let mut client = server.client(&home.key());
        until("the first write", Duration::from_secs(5), || {
            client.post("/v1/senders", &steps::sender_body()).is_success().then_some(())
        });
        home.check().expect_success("the check after a first start that was killed");
    }
    assert!(
        slowest <= READY_MAX,
        "ready after {slowest:?}: a start is promised within {READY_MAX:?}"
    );
}

/// Of Debian's `faketime`, which tests/postgres/install.sh installs.
fn faketime_library() -> Option<String> {
    let folders = std::fs::read_dir("/usr/lib").ok()?;
    let library = |folder: std::fs::DirEntry| folder.path().join("faketime/libfaketimeMT.so.1");
    folders.flatten().map(library).find(|path| path.exists()).map(|path| path.display().to_string())
}

/// A server whose clock is as far from the truth as a file says, in seconds.
struct SteppedClock {
    home: Home,
    offset_file: std::path::PathBuf,
    library: String,
}

impl SteppedClock {
    fn new(name: &str) -> Option<SteppedClock> {
        let Some(library) = faketime_library() else {
            println!("skipped: faketime is not installed (tests/postgres/install.sh)");
            return None;
        };
        let home = Home::new(name).with("HUNDI_METRICS", "true");
        let offset_file = home.database_path().with_extension("offset");
        let clock = SteppedClock { home, offset_file, library };
        clock.step_to(0);
        Some(clock)
    }
    fn step_to(&self, seconds: i64) {
        std::fs::write(&self.offset_file, format!("{seconds:+}\n")).expect("the offset");
    }
    fn start(&self) -> Server {
        let preload = format!("LD_PRELOAD={}", self.library);
        let offset = format!("FAKETIME_TIMESTAMP_FILE={}", self.offset_file.display());
        let wrapper = [
            "env",
            &preload,
            &offset,
            "FAKETIME_NO_CACHE=1",
            "DONT_FAKE_MONOTONIC=1",
            "FAKETIME_DONT_FAKE_MONOTONIC=1",
        ];
        self.home.start_as(&wrapper, "127.0.0.1:0")
    }
}

#[test]
fn a_step_of_the_machines_clock_stops_nothing_and_expires_nothing() {
    side_by_side([-180, -7_200, 180, 7_200, 30 * 3_600], |step_seconds| {
        let Some(clock) = SteppedClock::new("clock-step") else { return };
        let server = clock.start();
        let api_key = clock.home.key();
        let mut client = server.client(&api_key);
        let receiver = Receiver::start();
        receiver.register(&mut client);
        let (beneficiary, sender) =
            (steps::beneficiary_payable(&mut client), steps::sender(&mut client));
        let lock = steps::quote_lock(&mut client, "100.00");
        let first =
            client.post_with("/v1/senders", "before-the-step-of-the-clock", &steps::sender_body());
        let first = steps::text(&first.expect_success("a sender"), "id");
        clock.step_to(step_seconds);
        until("the alarm", Duration::from_secs(20), || {
            clock.home.log().contains("clock_step").then_some(())
        });
        let again =
            client.post_with("/v1/senders", "before-the-step-of-the-clock", &steps::sender_body());
        assert_eq!(again.id(), first, "{step_seconds}: a key was freed: {}", again.text());
        let body = steps::transfer_body(&sender, &beneficiary, &lock, "100.00");
        let transfer = client.post("/v1/transfers", &body).expect_success("the lock still holds");
        let transfer_id = steps::text(&transfer, "id");
        steps::deposit(&mut client, &transfer_id);
        steps::settlement(&mut client, &transfer_id);
        until("its events to be delivered", Duration::from_secs(20), || {
            let settled = client.list("/v1/events", &format!("&linked_id={transfer_id}"));
            let ids = settled.iter().map(|event| steps::text(event, "id"));
            ids.collect::<Vec<_>>().iter().all(|id| receiver.valid_count(id) > 0).then_some(())
        });
        // A lock still ends after its time: no rate is free for as long as the step.
        let fresh = steps::quote_lock(&mut client, "100.00");
        let most = json!({ "advance_seconds": 298 });
        client.post("/v1/test_helpers/clock", &most).expect_success("most of its time");
        until("the lock to end", Duration::from_secs(20), || {
            let lock = client.get(&format!("/v1/quote_locks/{fresh}")).expect_success("the lock");
            (lock["status"] == "expired").then_some(())
        });
        let told = clock_step_metric(&server);
        assert!((told - step_seconds).abs() <= 2, "{step_seconds}: the metric says {told}");
        assert_eq!(server.panics(), Vec::<String>::new());
    });
}

/// Most of such a test is waiting, so its cases run at the same time.
fn side_by_side<const N: usize>(cases: [i64; N], test: impl Fn(i64) + Sync) {
    std::thread::scope(|scope| {
        let test = &test;
        cases.into_iter().for_each(|case| drop(scope.spawn(move || test(case))));
    });
}

fn clock_step_metric(server: &Server) -> i64 {
    let page = server.client("").get("/metrics").text();
    let line = page.lines().find_map(|line| line.strip_prefix("hundi_clock_step_seconds "));
    line.and_then(|figure| figure.parse().ok()).expect("hundi_clock_step_seconds")
}

#[test]
fn a_start_with_a_clock_that_went_back_or_forth_works_at_once() {
    side_by_side([-300, -7_200, 300, 7_200, 30 * 3_600], |step_seconds| {
        let Some(clock) = SteppedClock::new("clock-restart") else { return };
        let mut server = clock.start();
        let api_key = clock.home.key();
        let mut client = server.client(&api_key);
        let receiver = Receiver::start();
        receiver.register(&mut client);
        let key = "before-the-start-of-the-clock";
        let made = client.post_with("/v1/beneficiaries", key, &steps::beneficiary_body());
        let id = steps::text(&made.expect_success("a beneficiary"), "id");
        server.kill_now();
        clock.step_to(step_seconds);
        let server = clock.start();
        let mut client = server.client(&api_key);
        let again = client.post_with("/v1/beneficiaries", key, &steps::beneficiary_body());
        assert!(again.is_replay(), "{step_seconds}: a key was freed: {}", again.text());
        assert!(clock.home.log().contains("clock_step"), "{step_seconds}: no alarm");
        until("the task of before to run", Duration::from_secs(20), || {
            let seen = client.get(&format!("/v1/beneficiaries/{id}")).json();
            (seen["status"] == "active").then_some(())
        });
        steps::six_steps(&mut client, "100.00");
        // The receiver's clock is right, so it may find their timestamps too old.
        until("all events to arrive", Duration::from_secs(20), || {
            let events = client.list("/v1/events", "");
            let ids = events.iter().map(|event| steps::text(event, "id"));
            ids.collect::<Vec<_>>().iter().all(|id| receiver.record(id).is_some()).then_some(())
        });
    });
}

/// The control of both: a service that goes by the machine's clock loses locks and keys.
#[test]
fn a_service_that_goes_by_the_machines_clock_is_found_out() {
    let Some(mut clock) = SteppedClock::new("clock-control") else { return };
    clock.home = clock.home.with_fault("clock_follows_the_machine");
    let mut server = clock.start();
    let api_key = clock.home.key();
    let mut client = server.client(&api_key);
    let (beneficiary, sender) =
        (steps::beneficiary_payable(&mut client), steps::sender(&mut client));
    let lock = steps::quote_lock(&mut client, "100.00");
    let key = "before-the-step-of-the-clock";
    client.post_with("/v1/senders", key, &steps::sender_body()).expect_success("a sender");
    clock.step_to(7_200);
    let body = steps::transfer_body(&sender, &beneficiary, &lock, "100.00");
    client.post("/v1/transfers", &body).expect_refusal(400, "quote_lock_expired", "a lost lock");
    server.kill_now();
    clock.step_to(30 * 3_600);
    let server = clock.start();
    let mut client = server.client(&api_key);
    let again = client.post_with("/v1/senders", key, &steps::sender_body());
    assert!(again.is_success() && !again.is_replay(), "the control freed no key");
}
