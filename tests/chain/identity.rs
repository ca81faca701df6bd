//! What a database belongs to: the network, the token's contract and the chain's name may change in
//! the configuration, and no payment is lost for it, nor anything told that is not so.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hundi::app::App;
use hundi::chains::address::ChainAddress;
use hundi::chains::derivation::AccountXpub;
use hundi::chains::pool;
use hundi::http::server;
use hundi::kernel::Clock;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::anvil::{Anvil, FINALITY_BLOCKS, Options, Token};
use crate::binary::Home;
use crate::callers::{Client, id, test_key};
use crate::proxy::Proxy;
use crate::service::{
    ACCOUNT_KEY, Caller, Process, Setup, Stage, address, chain_with_token, config, eventually,
    set_variables, variables,
};
use crate::wire::nobody;

fn setup() -> Setup {
    Setup { chain: Process::chain_now(), ..Setup::default() }
}

/// Makes what waits final and lets the service read it.
async fn settle(chain: &Anvil, process: &Process) {
    chain.mine(1 + FINALITY_BLOCKS).await;
    process.followed_to(chain.finalized().await as i64).await;
}

async fn awaits(process: &Process, transfer: &Value, status: &str) -> Value {
    eventually(&format!("{} to be {status}", id(transfer)), async || {
        let shown = process.caller.shown(transfer).await;
        (shown["status"] == status).then_some(shown)
    })
    .await
}

/// A transfer with one of the addresses that a new database hands out first. One that is created
/// before the first batch of addresses is derived has another.
async fn transfer_with_first_address(process: &Process, setup: &Setup) -> Value {
    let key = AccountXpub::parse(ACCOUNT_KEY).unwrap();
    let first = pool::first_addresses(hundi::chains::kind_named(setup.name), &key, 12);
    eventually("a transfer with one of the first addresses", async || {
        let transfer = process.caller.transfer("100.00").await;
        let text = transfer["funding"]["deposit_address"].as_str().unwrap();
        let address = ChainAddress::parse(text).unwrap();
        first.contains(address.bytes()).then_some(transfer)
    })
    .await
}

fn contract(token: &Token) -> String {
    token.address.to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_contract_loses_no_payment_in_the_one_before() {
    let setup = setup();
    let (chain, token) = chain_with_token(setup.chain.clone()).await;
    let successor = chain.deploy_token().await;
    let proxy = Proxy::start(&chain).await;
    let mut process = Process::start(&[proxy.url()], &token, &setup, None).await;
    let while_stopped = process.caller.transfer("100.00").await;
    let later = process.caller.transfer("100.00").await;
    let in_new = process.caller.transfer("100.00").await;
    let hidden = process.caller.transfer("100.00").await;
    process.followed_to(chain.finalized().await as i64).await;
    process.kill();
    token.transfer(address(&while_stopped), 100_000_000).await;
    chain.mine(1 + FINALITY_BLOCKS).await;
    process.home.set("HUNDI_TEST_CHAIN_TOKEN_CONTRACT", &contract(&successor));
    process.resume();
    awaits(&process, &while_stopped, "payout_settled").await;

    // Those that were told the former contract are paid with it after the change too, or with its
    // successor.
    token.transfer(address(&later), 100_000_000).await;
    successor.transfer(address(&in_new), 100_000_000).await;
    // Whoever is told the new one is not: the former may be worth nothing by now.
    let new = process.caller.transfer("100.00").await;
    token.transfer(address(&new), 100_000_000).await;
    settle(&chain, &process).await;
    let later = awaits(&process, &later, "payout_settled").await;
    awaits(&process, &in_new, "payout_settled").await;
    assert_eq!(later["funding"]["token_contract"], contract(&token), "what it was created with");
    let new = process.caller.shown(&new).await;
    assert_eq!(
        (&new["status"], &new["funding"]["amount_received"]),
        (&json!("funding"), &json!("0.00"))
    );
    assert_eq!(new["funding"]["token_contract"], contract(&successor));
    assert_eq!(process.caller.deposits(&new).await, Vec::<Value>::new());

    // The doctor tells the same, and the comparison with the chain sees both contracts.
    let ask = async |transfer: &Value, hash: String| {
        let path = format!("/v1/transfers/{}/funding/diagnose", id(transfer));
        process.caller.client.post(&path, json!({ "transaction_hash": hash })).await.ok()["code"]
            .clone()
    };
    let wrong = token
        .transfers(0, u64::MAX)
        .await
        .into_iter()
        .find(|log| log.to == address(&new))
        .expect("it was sent");
    assert_eq!(ask(&new, wrong.transaction.to_string()).await, "look_alike_token");
    let run = |arguments: &[&str]| tokio::task::block_in_place(|| process.home.run(arguments));
    let told = run(&["reconcile", "--mode", "test"]).expect_success("no differences");
    assert!(
        told.stdout.contains("5 addresses should hold 300.00 USDT and hold 300.00 USDT"),
        "{}",
        told.stdout
    );

    // So are a sweep, and a payment that the node hid from the follower: it is found, and taken
    // over.
    token.transfer_from(address(&later), nobody(5), 40_000_000).await;
    settle(&chain, &process).await;
    let paid = token.transfer(address(&hidden), 100_000_000).await;
    successor.noise(5).await;
    proxy.change(|faults| faults.short = [(paid, 0)].into());
    settle(&chain, &process).await;
    proxy.heal();
    let told = run(&["reconcile", "--mode", "test"]);
    assert!(
        told.status.code() == Some(1) && told.stderr.contains("2 differences were found"),
        "{}{}",
        told.stdout,
        told.stderr
    );
    assert!(
        told.stdout.contains("5 addresses should hold 260.00 USDT and hold 360.00 USDT"),
        "{}",
        told.stdout
    );
    run(&["deposits", "credit", &paid.plain(), "--mode", "test"])
        .expect_success("a deposit taken over");
    awaits(&process, &hidden, "payout_settled").await;
    let last = process.height().to_string();
    // The balance alone is left; comparing all settles it too.
    run(&["reconcile", "--mode", "test", "--from-block", "1", "--to-block", &last]);
    let told = run(&["reconcile", "--mode", "test"]).expect_success("no differences");
    assert!(told.stdout.contains("hold 360.00 USDT and hold 360.00 USDT"), "{}", told.stdout);

    // The export has a row for each contract in which something came or went.
    let told = run(&["addresses", "export", "--format", "json"]).expect_success("the export");
    let lines: Value = serde_json::from_str(&told.stdout).unwrap();
    let of = |transfer: &Value| -> Vec<Value> {
        let lines = lines.as_array().unwrap().iter();
        lines
            .filter(|line| line["transfer_id"] == transfer["id"])
            .map(|line| {
                assert_eq!(line["address"], transfer["funding"]["deposit_address"]);
                json!([line["token_contract"], line["received"], line["swept"], line["balance"]])
            })
            .collect()
    };
    let (former, latter) = (contract(&token), contract(&successor));
    assert_eq!(of(&later), [json!([former, "100.00", "40.00", "60.00"])]);
    let both =
        [json!([former, "0.00", "0.00", "0.00"]), json!([latter, "100.00", "0.00", "100.00"])];
    assert_eq!(of(&in_new), both);
    assert_eq!(of(&new), [json!([latter, "0.00", "0.00", "0.00"])]);

    // Back to the former one: each transfer goes on with its own.
    process.kill();
    process.home.set("HUNDI_TEST_CHAIN_TOKEN_CONTRACT", &contract(&token));
    process.resume();
    successor.transfer(address(&new), 100_000_000).await;
    settle(&chain, &process).await;
    awaits(&process, &new, "payout_settled").await;
}

/// The service of a stage that was stopped, again on its database and with its clock.
struct Again {
    app: Arc<App>,
    client: Client,
    stop: watch::Sender<bool>,
}

impl Again {
    async fn open(stage: &Stage, variables: &[(String, String)]) -> Again {
        let app =
            App::open(&config(&stage.database(), variables), Clock::Manual(stage.clock.clone()))
                .await
                .expect("it opens");
        let (listener, address) = server::bind("127.0.0.1:0").await.expect("a port");
        let (stop, stopping) = watch::channel(false);
        tokio::spawn(app.clone().run(listener, stopping));
        let key = test_key(&app).await;
        Again { app, client: Client::of(&address.to_string(), &key), stop }
    }
    async fn ended(stop: impl FnOnce(), app: &App) {
        stop();
        let stats = &app.state.chains[0].stats;
        eventually("the follower to end", async || {
            (!stats.is_followed.load(Ordering::Relaxed)).then_some(())
        })
        .await;
    }
    async fn shown(&self, transfer: &Value) -> Value {
        self.client.get(&format!("/v1/transfers/{}", id(transfer))).await.ok()
    }
}

#[tokio::test]
async fn another_chain_expires_nothing_and_answers_for_nothing_of_this_one() {
    let stage = Stage::set().await;
    let other_setup = Setup {
        name: "polygon",
        chain: Options { chain_id: 137, ..stage.setup.chain.clone() },
        ..Setup::default()
    };
    let (other, others_token) = chain_with_token(other_setup.chain.clone()).await;
    let others_proxy = Proxy::start(&other).await;
    let transfer = stage.transfer("100.00").await;
    stage.followed().await;
    Again::ended(|| stage.stop(), &stage.app).await;
    let paid = stage.token.transfer(address(&transfer), 100_000_000).await;
    stage.mine(1 + FINALITY_BLOCKS).await;

    let again =
        Again::open(&stage, &variables(&[others_proxy.url()], &others_token, &other_setup)).await;
    // The other chain's final view passes the time to pay, and so does the clock.
    let expires_at = transfer["funding"]["expires_at"].as_i64().unwrap();
    stage.advance_seconds(expires_at + 1_000 - stage.now());
    other.mine_at(&[expires_at + 500]).await;
    other.mine(1 + FINALITY_BLOCKS).await;
    let stats = &again.app.state.chains[0].stats;
    let is_past = || stats.block_time.load(Ordering::Relaxed) > expires_at;
    eventually("the other chain to be followed", async || is_past().then_some(())).await;
    // Expiries are judged every minute at most where the final view has to be waited for.
    for _ in 0..5 {
        stage.advance_seconds(61);
        again.app.state.store.signals.tasks.notify_one();
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    let shown = again.shown(&transfer).await;
    assert_eq!(
        (&shown["status"], &shown["funding"]["status"]),
        (&json!("funding"), &json!("awaiting_funds"))
    );
    assert_eq!(
        shown["funding"]["token_contract"],
        contract(&stage.token),
        "what it was created with"
    );
    let page = shown["funding"]["instructions_url"].as_str().unwrap();
    let path = &page[page.find("/pay/").unwrap()..];
    let page = again
        .client
        .send(
            http::Method::GET,
            path,
            &[("accept", "text/html"), ("authorization", "")],
            bytes::Bytes::new(),
        )
        .await;
    let html = String::from_utf8(page.body.to_vec()).unwrap();
    let foreign = ChainAddress::of_chain("polygon", others_token.address.bytes()).to_string();
    assert!(!html.contains(&foreign), "{html}");
    let path = format!("/v1/transfers/{}/funding/diagnose", id(&transfer));
    let asked = again.client.post(&path, json!({ "transaction_hash": paid.to_string() })).await;
    assert_eq!(asked.error(503), "service_unavailable");
    let stop = again.stop;
    Again::ended(|| stop.send(true).expect("a service that runs"), &again.app).await;

    // Back on its own chain it was paid in time.
    let urls: Vec<String> = stage.proxies.iter().map(Proxy::url).collect();
    let back = Again::open(&stage, &variables(&urls, &stage.token, &stage.setup)).await;
    eventually("the payment to be found", async || {
        stage.advance_seconds(1);
        back.app.state.store.signals.tasks.notify_one();
        (back.shown(&transfer).await["status"] == "payout_settled").then_some(())
    })
    .await;
    let told = back.client.post(&path, json!({ "transaction_hash": paid.to_string() })).await.ok();
    assert_eq!(
        (&told["code"], &told["token_contract"]),
        (&json!("credited"), &json!(contract(&stage.token)))
    );
    back.stop.send(true).unwrap();
}

/// Test mode without its test net simulates a chain of the same name, which knows nothing of what
/// was paid on the net.
#[tokio::test]
async fn a_test_net_that_is_left_out_expires_nothing_of_its_own() {
    let stage = Stage::set().await;
    let transfer = stage.transfer("100.00").await;
    Again::ended(|| stage.stop(), &stage.app).await;
    let simulated: Vec<_> = variables(&[], &stage.token, &stage.setup);
    let simulated: Vec<_> =
        simulated.into_iter().filter(|(name, _)| !name.starts_with("HUNDI_TEST_CHAIN_")).collect();
    let Again { app, client, stop } = Again::open(&stage, &simulated).await;
    let Caller { chain, beneficiary_id, sender_id, .. } = &stage.caller;
    let caller = Caller {
        client,
        chain,
        beneficiary_id: beneficiary_id.clone(),
        sender_id: sender_id.clone(),
    };
    let control = caller.transfer("100.00").await;
    let expires_at = control["funding"]["expires_at"].as_i64().unwrap();
    stage.advance_seconds(expires_at + 300 - stage.now());
    eventually("the simulated transfer to expire", async || {
        app.state.store.signals.tasks.notify_one();
        (caller.shown(&control).await["status"] == "expired").then_some(())
    })
    .await;
    assert_eq!(caller.shown(&transfer).await["status"], "funding");
    let path = format!("/v1/transfers/{}/funding/diagnose", id(&transfer));
    let asked = caller.client.post(&path, json!({ "transaction_hash": "ab".repeat(32) })).await;
    assert_eq!(asked.error(503), "service_unavailable");
    stop.send(true).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_network_of_the_same_name_is_refused() {
    let setup = setup();
    let (chain, token) = chain_with_token(setup.chain.clone()).await;
    let (main, mains_token) =
        chain_with_token(Options { chain_id: 728_126_429, ..setup.chain.clone() }).await;
    let (proxy, mains_proxy) = (Proxy::start(&chain).await, Proxy::start(&main).await);
    let mut process = Process::start(&[proxy.url()], &token, &setup, None).await;
    process.caller.transfer("100.00").await;
    process.kill();
    process.home.set("HUNDI_TEST_CHAIN_CHAIN_ID", "728126429");
    process.home.set("HUNDI_TEST_CHAIN_ENDPOINTS", &mains_proxy.url());
    process.home.set("HUNDI_TEST_CHAIN_TOKEN_CONTRACT", &contract(&mains_token));
    let started = tokio::task::block_in_place(|| process.home.try_start(&[], "127.0.0.1:0"));
    assert!(started.is_err_and(|told| told.starts_with("it ended with exit status: 1")));
    let log = process.home.log();
    assert!(
        log.contains("728126428")
            && log.contains("728126429")
            && log.contains("a database of its own"),
        "{log}"
    );
    let told = tokio::task::block_in_place(|| process.home.run(&["reconcile", "--mode", "test"]));
    assert!(
        told.status.code() == Some(1) && told.stderr.contains("a database of its own"),
        "{}{}",
        told.stdout,
        told.stderr
    );

    // The control: the network that it was begun on is followed on.
    process.home.set("HUNDI_TEST_CHAIN_CHAIN_ID", "728126428");
    process.home.set("HUNDI_TEST_CHAIN_ENDPOINTS", &proxy.url());
    process.home.set("HUNDI_TEST_CHAIN_TOKEN_CONTRACT", &contract(&token));
    process.resume();
    settle(&chain, &process).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_export_tells_which_account_key_an_address_is_below_of() {
    let setup = setup();
    let (chain, token) = chain_with_token(setup.chain.clone()).await;
    let proxy = Proxy::start(&chain).await;
    let mut process = Process::start(&[proxy.url()], &token, &setup, None).await;
    let mut wanted = Vec::new();
    let next = AccountXpub::generate_for_test_mode(&[9; 64]);
    for key in [
        AccountXpub::parse(ACCOUNT_KEY).unwrap(),
        next.clone(),
        AccountXpub::parse(ACCOUNT_KEY).unwrap(),
    ] {
        process.kill();
        process.home.set("HUNDI_TEST_CHAIN_ACCOUNT_KEY", &key.to_string());
        process.resume();
        let transfer = process.caller.transfer("100.00").await;
        wanted.push((transfer, key));
    }
    let told = tokio::task::block_in_place(|| {
        process.home.run(&["addresses", "export", "--format", "json"])
    })
    .expect_success("the export");
    let lines: Value = serde_json::from_str(&told.stdout).unwrap();
    for (transfer, key) in &wanted {
        let line = lines
            .as_array()
            .unwrap()
            .iter()
            .find(|line| line["transfer_id"] == transfer["id"])
            .expect("its address");
        let shown = line["account_key"].as_str().expect("the account key").to_owned();
        assert_eq!(format!("AccountXpub(fingerprint {shown})"), format!("{key:?}"));
        let index = u32::try_from(line["derivation_index"].as_u64().unwrap()).unwrap();
        assert_eq!(key.address(index).unwrap(), address(transfer), "it is the key's own address");
        assert!(!told.stdout.contains(&key.to_string()), "the key itself is not told");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_database_refuses_an_account_key_that_was_used_before() {
    let setup = setup();
    let (chain, token) = chain_with_token(setup.chain.clone()).await;
    let proxy = Proxy::start(&chain).await;
    let mut process = Process::start(&[proxy.url()], &token, &setup, None).await;
    let paid = transfer_with_first_address(&process, &setup).await;
    token.transfer(address(&paid), 100_000_000).await;
    settle(&chain, &process).await;
    awaits(&process, &paid, "payout_settled").await;
    process.kill();

    let another = || {
        let mut home = Home::new("chain-used-key");
        set_variables(&mut home, &[proxy.url()], &token, &setup);
        home
    };
    // Where the node does not answer the first questions, the start goes on and the log tells it.
    let refused = async |home: &Home, what: &str| {
        let started = tokio::task::block_in_place(|| home.try_start(&[], "127.0.0.1:0"));
        eventually(&format!("the key to be refused: {what}"), async || {
            let log = home.log();
            let told = log.contains(WAS_USED) && log.contains(&address(&paid).to_string());
            (told && log.contains("addresses skip")).then_some(())
        })
        .await;
        tokio::task::block_in_place(|| drop(started));
    };
    refused(&another(), "an address that holds money").await;
    // It is told after a sweep too, when the address holds nothing.
    token.transfer_from(address(&paid), nobody(5), 100_000_000).await;
    chain.mine(1).await;
    let home = another();
    refused(&home, "an address that was emptied").await;

    let skipped = tokio::task::block_in_place(|| home.run(&["addresses", "skip"]));
    skipped.expect_success("addresses skip");
    let key = tokio::task::block_in_place(|| home.key());
    let server = tokio::task::block_in_place(|| home.start());
    let caller =
        Caller::prepare(Client::of(&server.address().to_string(), &key), setup.name, || ()).await;
    let transfer = caller.transfer("100.00").await;
    assert_ne!(address(&transfer), address(&paid));
    tokio::task::block_in_place(|| drop(server));

    let height = process.height();
    proxy.change(|faults| faults.is_dropping_connections = true);
    // A database that followed the chain before tells how far, after a start without a node too.
    process.home.set("HUNDI_METRICS", "true");
    process.resume();
    let page = async |path: &str| {
        String::from_utf8(process.caller.client.get(path).await.body.to_vec()).expect("a text")
    };
    let ready = page("/readyz").await;
    assert!(ready.contains(&format!("chain tron (test): block {height}, ")), "{ready}");
    let line = format!("hundi_chain_height{{chain=\"tron\",mode=\"test\"}} {height}\n");
    eventually("the stored cursor in the metrics", async || {
        page("/metrics").await.contains(&line).then_some(())
    })
    .await;
}

/// What the log says of a key that was used before.
const WAS_USED: &str = "have a history on the chain";

/// While no node answers, nobody knows whether the account key was used before. Then no address is
/// handed out, until one tells.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_address_is_handed_out_until_a_node_tells_whether_the_key_was_used() {
    let setup = setup();
    let (chain, token) = chain_with_token(setup.chain.clone()).await;
    let proxy = Proxy::start(&chain).await;
    let mut process = Process::start(&[proxy.url()], &token, &setup, None).await;
    let paid = transfer_with_first_address(&process, &setup).await;
    token.transfer(address(&paid), 100_000_000).await;
    settle(&chain, &process).await;
    process.kill();

    let unused = AccountXpub::generate_for_test_mode(&[9; 64]).to_string();
    for (account_key, was_used) in [(ACCOUNT_KEY, true), (unused.as_str(), false)] {
        proxy.change(|faults| faults.is_dropping_connections = true);
        let mut home = Home::new("chain-late-answer");
        set_variables(&mut home, &[proxy.url()], &token, &setup);
        home.set("HUNDI_TEST_CHAIN_ACCOUNT_KEY", account_key);
        let key = tokio::task::block_in_place(|| home.key());
        let server = tokio::task::block_in_place(|| home.start());
        let log = home.log();
        assert!(log.contains("not known whether the account key was used before"), "{log}");
        let client = Client::of(&server.address().to_string(), &key);
        let caller = Caller::prepare(client, setup.name, || ()).await;
        caller.expect_no_transfer("100.00").await;
        proxy.change(|faults| faults.is_dropping_connections = false);
        if was_used {
            let taken = eventually("the key to be refused", async || {
                let is_told = home.log().contains(WAS_USED);
                is_told.then_some(None).or(caller.try_transfer("100.00").await.map(Some))
            })
            .await;
            assert!(taken.is_none(), "a used address may be handed out: {taken:?}");
            // Also once the chain is followed.
            let followed = async || home.log().contains("the chain is followed").then_some(());
            eventually("the chain to be followed", followed).await;
            caller.expect_no_transfer("100.00").await;
        } else {
            // The control: a key that was not used before is used then.
            caller.transfer("100.00").await;
            assert!(!home.log().contains(WAS_USED), "{}", home.log());
        }
        tokio::task::block_in_place(|| drop(server));
    }
}
