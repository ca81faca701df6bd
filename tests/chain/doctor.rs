//! A payer asks what became of a payment on a real chain, and the operator sends a refund and
//! empties an address.

use std::time::{Duration, Instant};

use hundi::chains::tron_address::TronAddress;
use hundi::kernel::Mode;
use serde_json::{Value, json};

use crate::anvil::{Anvil, BLOCK_SECONDS, FINALITY_BLOCKS, Options, Token};
use crate::binary::Home;
use crate::callers::{Answer, Client, Server, id};
use crate::proxy::Proxy;
use crate::wire::{Hash, nobody};

/// The account key of the test vectors.
const ACCOUNT_KEY: &str = "xpub6D1AabNHCupeiLM65ZR9UStMhJ1vCpyV4XbZdyhMZBiJXALQtmn9p42VTQckoHVn8WNqS7dqnJokZHAHcHGoaQgmv8D45oNUKx6DZMNZBCd";
const SETTLES: &str = "50100012345678";
/// The simulated bank refuses payouts to this account.
const REFUSED: &str = "50100012341001";
const BLOCKS_BEFORE: u64 = 40;
const PATIENCE: Duration = Duration::from_secs(240);

struct Stage {
    chain: Anvil,
    token: Token,
    proxy: Proxy,
    server: Server,
    client: Client,
    variables: Vec<(String, String)>,
}

impl Stage {
    /// A chain whose blocks end about now, a service that follows it, and a caller.
    async fn set() -> Stage {
        let now =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
                as i64;
        let genesis_time = now - (BLOCKS_BEFORE as i64 + 4) * BLOCK_SECONDS;
        let chain = Anvil::start_with(Options { genesis_time, ..Options::default() }).await;
        let token = chain.deploy_token().await;
        chain.mine(BLOCKS_BEFORE).await;
        let proxy = Proxy::start(&chain).await;
        let variables: Vec<(String, String)> = [
            ("NAME", "tron".to_owned()),
            ("ENDPOINTS", proxy.url()),
            ("CHAIN_ID", "728126428".to_owned()),
            ("TOKEN_CONTRACT", token.address.to_string()),
            ("ACCOUNT_KEY", ACCOUNT_KEY.to_owned()),
            ("POLL_MILLISECONDS", "100".to_owned()),
        ]
        .map(|(key, value)| (format!("HUNDI_TEST_CHAIN_{key}"), value))
        .into();
        let lent: Vec<(&str, &str)> =
            variables.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let server = Server::start_with(&lent).await;
        let client = server.client().await;
        let stage = Stage { chain, token, proxy, server, client, variables };
        stage.followed().await;
        stage
    }

    /// Waits until the service has read all that is final.
    async fn followed(&self) {
        let wanted = self.chain.finalized().await as i64;
        let stats = &self.server.app.state.chains[0].stats;
        let started = Instant::now();
        while stats.height.load(std::sync::atomic::Ordering::Relaxed) < wanted {
            assert!(started.elapsed() < PATIENCE, "the service does not follow");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Makes what waits final, and lets the service read it.
    async fn settle(&self) {
        self.chain.mine(FINALITY_BLOCKS + 1).await;
        self.followed().await;
    }

    async fn transfer(&self, account_number: &str, funding: Value) -> Value {
        let mut body = self.client.transfer_body(account_number, "100.00").await;
        for (name, value) in funding.as_object().unwrap() {
            body["funding"][name] = value.clone();
        }
        self.client.post("/v1/transfers", body).await.ok()
    }

    async fn ask(&self, transfer: &Value, hash: Hash) -> Answer {
        self.ask_with(transfer, hash, &self.client.fresh_key()).await
    }
    async fn ask_with(&self, transfer: &Value, hash: Hash, key: &str) -> Answer {
        let path = format!("/v1/transfers/{}/funding/diagnose", id(transfer));
        self.client.post_with(&path, key, json!({ "transaction_hash": hash.to_string() })).await
    }

    async fn awaits(&self, path: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        self.client.wait_until(path, |found| wanted(found)).await
    }
}

fn address(transfer: &Value) -> TronAddress {
    TronAddress::parse(transfer["funding"]["deposit_address"].as_str().unwrap()).unwrap()
}

/// The members of a diagnosis that a test names.
fn facts<const N: usize>(told: &Value, names: [&str; N]) -> [Value; N] {
    names.map(|name| told[name].clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_payment_is_told() {
    let stage = Stage::set().await;
    let Stage { chain, token, .. } = &stage;
    let look_alike = chain.deploy_token().await;
    let other = chain.deploy_token_named("USD Coin", "USDC").await;
    let transfer = stage.transfer(SETTLES, json!({})).await;
    let to = address(&transfer);

    // In one block: a payment, and everything that is none.
    let paid = token.transfer(to, 40_000_000).await;
    assert_eq!(stage.ask(&transfer, paid).await.ok()["code"], "not_found", "in no block yet");
    let elsewhere = token.transfer(nobody(1), 40_000_000).await;
    let alike = look_alike.transfer(to, 100_000_000).await;
    let foreign = other.transfer(to, 7_500_000).await;
    let unrelated = other.transfer(nobody(2), 7_500_000).await;
    let reverted = token.transfer_reverted(to, 100_000_000).await;
    let nothing = token.transfer_nothing_as_stranger(nobody(3), chain.account(4), to).await;
    let coin = chain.submit(chain.treasury(), Some(to), "0x".to_owned(), 30_000).await;
    let both = token.transfer_many(&[(nobody(5), 1), (to, 10_000_000), (nobody(6), 1)]).await;
    chain.mine(1).await;

    let head = chain.head_block().await;
    let names =
        ["code", "amount", "currency", "short_by", "confirmations", "to_address", "token_contract"];
    let (ours, at) = (json!(token.address.to_string()), json!(to.to_string()));
    let (usdt, none, one) = (json!("USDT"), Value::Null, json!(1));
    for (hash, wanted) in [
        (
            paid,
            [
                json!("confirming"),
                json!("40.00"),
                usdt.clone(),
                json!("60.00"),
                one.clone(),
                at.clone(),
                ours.clone(),
            ],
        ),
        (
            both,
            [
                json!("confirming"),
                json!("10.00"),
                usdt.clone(),
                json!("90.00"),
                one.clone(),
                at.clone(),
                ours.clone(),
            ],
        ),
        (
            elsewhere,
            [
                json!("wrong_address"),
                json!("40.00"),
                usdt.clone(),
                none.clone(),
                one.clone(),
                json!(nobody(1).to_string()),
                ours.clone(),
            ],
        ),
        (
            alike,
            [
                json!("look_alike_token"),
                none.clone(),
                none.clone(),
                none.clone(),
                one.clone(),
                at.clone(),
                json!(look_alike.address.to_string()),
            ],
        ),
        (
            foreign,
            [
                json!("wrong_token"),
                json!("7.50"),
                json!("USDC"),
                none.clone(),
                one.clone(),
                at.clone(),
                json!(other.address.to_string()),
            ],
        ),
        (
            unrelated,
            [
                json!("unrelated"),
                none.clone(),
                none.clone(),
                none.clone(),
                one.clone(),
                none.clone(),
                none.clone(),
            ],
        ),
        (
            reverted,
            [
                json!("reverted"),
                none.clone(),
                none.clone(),
                none.clone(),
                one.clone(),
                none.clone(),
                none.clone(),
            ],
        ),
        (nothing, [json!("zero_value"), json!("0.00"), usdt, none.clone(), one.clone(), at, ours]),
        (
            coin,
            [json!("no_token"), none.clone(), none.clone(), none.clone(), one, none.clone(), none],
        ),
    ] {
        let told = stage.ask(&transfer, hash).await.ok();
        assert_eq!(facts(&told, names), wanted, "{told}");
        assert_eq!(
            facts(&told, ["block_number", "block_time"]),
            [json!(head.number), json!(head.time)],
            "{told}"
        );
    }

    stage.settle().await;
    let told = stage.ask(&transfer, paid).await.ok();
    assert_eq!(facts(&told, ["code", "short_by"]), [json!("short_by"), json!("50.00")], "{told}");
    let deposits =
        stage.client.get(&format!("/v1/deposits?transaction_hash={}", paid.plain())).await.ok();
    assert_eq!(told["deposit_id"], deposits["data"][0]["id"]);

    // Late: the transfer's time ends before the block. It ends soon, because nobody believes a
    // block from minutes to come.
    let expires_at = chain.head_block().await.time + 3;
    let end = move |tx: &mut dyn hundi::store::Tx, _: &mut hundi::kernel::Now| {
        Ok(tx.execute("UPDATE transfers SET expires_at = ?1", hundi::values![expires_at])?)
    };
    assert_eq!(stage.server.app.state.store.write(end).await.unwrap(), 1);
    let late_block = expires_at + 61;
    let late = token.transfer(to, 50_000_000).await;
    chain.mine_at(&[late_block]).await;
    let foreseen = stage.ask(&transfer, late).await.ok();
    assert_eq!(
        facts(&foreseen, ["code", "late_by_seconds"]),
        [json!("confirming"), json!(61)],
        "{foreseen}"
    );
    stage.settle().await;
    let told = stage.ask(&transfer, late).await.ok();
    assert_eq!(facts(&told, ["code", "late_by_seconds"]), [json!("late_by"), json!(61)], "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_node_is_asked_only_where_it_matters_and_waited_for_five_seconds() {
    let stage = Stage::set().await;
    let Stage { chain, token, proxy, client, .. } = &stage;
    let transfer = stage.transfer(SETTLES, json!({})).await;
    let paid = token.transfer(address(&transfer), 100_000_000).await;
    let elsewhere = token.transfer(nobody(1), 5).await;
    stage.settle().await;
    let answered_key = client.fresh_key();
    stage.ask_with(&transfer, elsewhere, &answered_key).await.ok();

    // A node that hangs: whatever asks it waits in vain, so what answers did not ask it.
    let held = proxy.hold("eth_getTransactionReceipt");
    let key = client.fresh_key();
    let (asked, began) = (stage.ask_with(&transfer, elsewhere, &key).await, Instant::now());
    assert_eq!(asked.error(503), "service_unavailable");
    assert!(asked.header("retry-after").is_some() && began.elapsed() < Duration::from_secs(3));
    held.release();
    assert_eq!(
        stage.ask_with(&transfer, elsewhere, &key).await.ok()["code"],
        "wrong_address",
        "the same key, later"
    );

    chain.stop().await;
    let calls = || proxy.calls("eth_getTransactionReceipt");
    let before = calls();
    assert_eq!(stage.ask(&transfer, paid).await.ok()["code"], "credited", "the book knows it");
    let replayed = stage.ask_with(&transfer, elsewhere, &answered_key).await;
    assert_eq!(
        (replayed.ok()["code"].as_str(), replayed.header("idempotent-replayed")),
        (Some("wrong_address"), Some("true"))
    );
    let path = format!("/v1/transfers/{}/funding/diagnose", id(&transfer));
    let body = json!({ "transaction_hash": elsewhere.to_string() });
    let reader = stage.server.client_of("default", Mode::Test, "transfers:read").await;
    assert_eq!(reader.post(&path, body.clone()).await.error(403), "action_unauthorized");
    let stranger = stage.server.client_of("stranger", Mode::Test, "").await;
    assert_eq!(stranger.post(&path, body.clone()).await.error(404), "object_not_found");
    assert_eq!(
        client.post(&path, json!({ "transaction_hash": "ab" })).await.error(400),
        "parameter_min_length_invalid"
    );
    assert_eq!(
        client.post(&format!("{path}?a=b"), body.clone()).await.error(400),
        "request_query_parameter_invalid"
    );
    assert_eq!(
        client
            .post_with(&path, &answered_key, json!({ "transaction_hash": "ab".repeat(32) }))
            .await
            .error(409),
        "idempotency_key_reuse"
    );
    assert_eq!(calls(), before, "nobody asked the node");
    // The control: this one has to ask, and learns nothing.
    let key = client.fresh_key();
    assert_eq!(stage.ask_with(&transfer, elsewhere, &key).await.error(503), "service_unavailable");
    chain.resume().await;
    let started = Instant::now();
    let told = loop {
        let answer = stage.ask_with(&transfer, elsewhere, &key).await;
        if answer.status == 200 {
            break answer.ok();
        }
        // The node rests for some seconds after its faults.
        assert!(answer.status == 503 && started.elapsed() < PATIENCE, "{answer:?}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    };
    assert_eq!(told["code"], "wrong_address", "nothing was stored under the key");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refund_is_sent_confirmed_and_its_address_emptied() {
    let stage = Stage::set().await;
    let Stage { chain, token, client, .. } = &stage;
    let mut home = Home::new("chain-refunds");
    for (name, value) in &stage.variables {
        home.set(name, value);
    }
    let database = format!("sqlite:{}", stage.server.folder.join("test.db").display());
    let run = |arguments: &[&str]| {
        let mut all = arguments.to_vec();
        all.extend(["--database", &database]);
        home.run_plain(&all)
    };
    let refused = |arguments: &[&str], words: &str| {
        let outcome = run(arguments);
        assert!(
            !outcome.status.success() && outcome.stderr.contains(words),
            "{arguments:?}: {}{}",
            outcome.stdout,
            outcome.stderr
        );
    };
    let line = |refund_id: &str| -> Vec<String> {
        let listed = run(&["refunds", "list"]).expect_success("refunds list").stdout;
        let found = listed
            .lines()
            .find(|line| line.starts_with(refund_id))
            .map(|line| line.split('\t').map(str::to_owned).collect());
        found.unwrap_or_else(|| panic!("{refund_id} is not in {listed}"))
    };

    let back = nobody(77);
    let mut owed = Vec::new();
    for _ in 0..2 {
        let transfer = stage.transfer(REFUSED, json!({ "refund_address": back.to_string() })).await;
        token.transfer(address(&transfer), 100_000_000).await;
        owed.push(transfer);
    }
    let waiting = stage.transfer(REFUSED, json!({})).await;
    token.transfer(address(&waiting), 100_000_000).await;
    stage.settle().await;
    let mut refunds = Vec::new();
    for transfer in owed.iter().chain([&waiting]) {
        let shown = stage
            .awaits(&format!("/v1/transfers/{}", id(transfer)), |found| {
                found["status"] == "refund_processing"
            })
            .await;
        refunds.push(id(&shown["refund"]));
    }
    let [first, second, unaddressed] = refunds.try_into().unwrap();
    assert_eq!(
        line(&first)[3..9],
        ["100.00", "USDT", "tron", &back.to_string(), "processing", "-"]
    );

    // Somebody else's hand, then a wrong amount, then the right one.
    refused(&["refunds", "complete", &first, "--hash", "12"], "64 hexadecimal digits");
    refused(&["refunds", "complete", &unaddressed, "--hash", &"ab".repeat(32)], "requires_address");
    let wrong = token.transfer(back, 99_000_000).await;
    let right = token.transfer(back, 100_000_000).await;
    stage.settle().await;
    let told = run(&["refunds", "complete", &first, "--hash", &wrong.to_string()])
        .expect_success("complete")
        .stdout;
    assert!(told.contains(&wrong.plain()), "{told}");
    let started = Instant::now();
    while line(&first)[9] != "no_such_movement" {
        assert!(started.elapsed() < PATIENCE, "{:?}", line(&first));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    run(&["refunds", "complete", &first, "--hash", &right.plain()]).expect_success("complete");
    let done =
        stage.awaits(&format!("/v1/refunds/{first}"), |found| found["status"] == "completed").await;
    assert_eq!(done["transaction_hash"], right.plain());
    stage
        .awaits(&format!("/v1/transfers/{}", id(&owed[0])), |found| found["status"] == "refunded")
        .await;
    assert_eq!(line(&first)[7..10], ["completed".to_owned(), right.plain(), "-".to_owned()]);
    refused(&["refunds", "complete", &first, "--hash", &right.plain()], "completed");

    // One movement pays one refund, also where the operator calls it a batch.
    refused(&["refunds", "complete", &second, "--hash", &right.plain()], &first);
    assert_eq!(line(&second)[8], "-", "what was refused is not kept");
    run(&["refunds", "complete", &second, "--hash", &right.plain(), "--batch"])
        .expect_success("complete");
    let started = Instant::now();
    while line(&second)[9] != "already_used" {
        assert!(started.elapsed() < PATIENCE, "{:?}", line(&second));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // A batch that pays two, of which one is open.
    let batch = token.transfer_many(&[(back, 100_000_000), (nobody(78), 3)]).await;
    stage.settle().await;
    run(&["refunds", "complete", &second, "--hash", &batch.plain()]).expect_success("complete");
    stage.awaits(&format!("/v1/refunds/{second}"), |found| found["status"] == "completed").await;

    // The operator empties the first address, and a part of the second.
    token.transfer_from(address(&owed[0]), chain.treasury(), 100_000_000).await;
    token.transfer_from(address(&owed[1]), chain.treasury(), 30_500_000).await;
    stage.settle().await;
    let exported =
        run(&["addresses", "export", "--format", "json"]).expect_success("addresses export").stdout;
    let exported: Value = serde_json::from_str(&exported).unwrap();
    let of = |transfer: &Value| {
        let found =
            exported.as_array().unwrap().iter().find(|line| line["transfer_id"] == transfer["id"]);
        facts(
            found.unwrap_or_else(|| panic!("not in {exported}")),
            ["address", "received", "swept", "balance"],
        )
    };
    let wanted = |transfer: &Value, swept: &str, balance: &str| {
        [
            transfer["funding"]["deposit_address"].clone(),
            json!("100.00"),
            json!(swept),
            json!(balance),
        ]
    };
    assert_eq!(of(&owed[0]), wanted(&owed[0], "100.00", "0.00"));
    assert_eq!(of(&owed[1]), wanted(&owed[1], "30.50", "69.50"));
    assert_eq!(of(&waiting), wanted(&waiting, "0.00", "100.00"));
    assert!(
        client.get("/v1/deposits?limit=100").await.ok()["data"].as_array().unwrap().len() == 3,
        "a sweep is no deposit"
    );
}
