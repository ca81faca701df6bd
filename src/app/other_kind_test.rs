//! Takes a chain that is not of Ethereum's kind through the whole service. `chains/stub.rs` and a
//! few lines in `chains/mod.rs` are all that is added for it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use secrecy::SecretString;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{ACCOUNT_DEFAULT, App, KeyRequest, create_key};
use crate::chain_following::audit::{self, AuditExtent};
use crate::chains::address::ChainAddress;
use crate::chains::derivation::AccountXpub;
use crate::chains::stub::{self, address, mine, pay};
use crate::cli::caller::ApiCaller;
use crate::config::{Config, Flags};
use crate::http::server;
use crate::kernel::id::kind;
use crate::kernel::{Clock, Id, Mode, Scope, system_random};
use crate::keys::Permissions;
use crate::refunds;

/// One USDT in the smallest units of the stub's token.
const USDT: u128 = 10_u128.pow(stub::DECIMALS as u32);

struct Stage {
    app: Arc<App>,
    caller: ApiCaller,
    folder: std::path::PathBuf,
    stop: watch::Sender<bool>,
    serving: tokio::task::JoinHandle<()>,
}

impl Stage {
    async fn set() -> Stage {
        mine(10, seconds());
        let folder = std::env::temp_dir()
            .join(format!("hundi-stub-{:016x}", u64::from_be_bytes(system_random().unwrap())));
        std::fs::create_dir_all(&folder).unwrap();
        let flags = Flags {
            database: Some(format!("sqlite:{}", folder.join("hundi.db").display())),
            listen: Some("127.0.0.1:0".into()),
            ..Flags::default()
        };
        let contract = ChainAddress::of_chain("stub", address(0)).to_string();
        let account_key = AccountXpub::generate_for_test_mode(&[7; 64]).to_string();
        let config = Config::read(&flags, &|name| {
            let value = match name {
                "HUNDI_TEST_CHAIN_NAME" => "stub",
                // Nobody listens there: the stub's nodes are in memory.
                "HUNDI_TEST_CHAIN_ENDPOINTS" => "http://127.0.0.1:9,http://127.0.0.2:9",
                "HUNDI_TEST_CHAIN_CHAIN_ID" => "77",
                "HUNDI_TEST_CHAIN_DECIMALS" => "9",
                "HUNDI_TEST_CHAIN_TOKEN_CONTRACT" => &contract,
                "HUNDI_TEST_CHAIN_ACCOUNT_KEY" => &account_key,
                "HUNDI_TEST_CHAIN_POLL_MILLISECONDS" => "100",
                "HUNDI_SIMULATION_STEP_MILLISECONDS" => "5",
                _ => return None,
            };
            Some(value.to_owned())
        });
        let mut config = config.unwrap();
        let (listener, bound) = server::bind(&config.listen).await.unwrap();
        config.set_bound_address(bound);
        let app = App::open(&config, Clock::System).await.unwrap();
        app.check_chains().await.unwrap();
        let request = KeyRequest {
            account: ACCOUNT_DEFAULT.into(),
            mode: Mode::Test,
            permissions: Permissions::All,
            expires_at: None,
        };
        let key = app.state.store.write(move |tx, now| Ok(create_key(tx, now, &request)?)).await;
        let caller = ApiCaller::of(&format!("http://{bound}"), SecretString::from(key.unwrap()));
        let (stop, stopping) = watch::channel(false);
        let serving = tokio::spawn(app.clone().run(listener, stopping));
        Stage { app, caller: caller.unwrap(), folder, stop, serving }
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        self.caller.post(path, &body).await.unwrap()
    }

    /// Asks until the answer has what is looked for, for half a minute.
    async fn until(&self, path: &str, found: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let answer = self.caller.get(path, 0).await.map_err(|error| error.message()).unwrap();
            if found(&answer) {
                return answer;
            }
            assert!(begun.elapsed() < Duration::from_secs(30), "{path} still is {answer}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// The body of a request for a transfer of 100.00 USD.
    async fn body(&self, refund_address: &str) -> Value {
        let sender = json!({"name": "Ravi Rao", "type": "individual", "country": "AE"});
        let sender = self.post("/v1/senders", sender).await;
        let beneficiary = json!({"name": "Asha Rao", "account_number": "50100012345678",
            "ifsc": "HDFC0000001", "account_type": "nre"});
        let beneficiary = self.post("/v1/beneficiaries", beneficiary).await;
        let path = format!("/v1/beneficiaries/{}", text(&beneficiary["id"]));
        self.until(&path, |answer| answer["payouts_enabled"] == true).await;
        let lock = json!({"sell_currency": "USD", "buy_currency": "INR", "amount": "100.00"});
        let lock = self.post("/v1/quote_locks", lock).await;
        json!({
            "sender_id": sender["id"], "beneficiary_id": beneficiary["id"],
            "quote_lock_id": lock["id"], "amount": "100.00", "currency": "USD",
            "payout_currency": "INR",
            "funding": {"rail": "stablecoin", "asset": "USDT", "chain": "stub",
                "refund_address": refund_address, "policy": {"overpaid": "refund_excess"}},
        })
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text"))
}

fn seconds() -> i64 {
    Clock::System.milliseconds() / 1000
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_of_another_kind_funds_a_transfer_and_confirms_its_refund() {
    let stage = Stage::set().await;
    let payer = ChainAddress::of_chain("stub", address(1)).to_string();

    // The form of an address is judged by its chain.
    let body = stage.body("TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t").await;
    let refused = stage.caller.post("/v1/transfers", &body).await.unwrap_err();
    assert!(refused.contains("must be an address that begins with stub1."), "{refused}");
    let wrong = stage.body(&payer[..68]).await;
    assert!(stage.caller.post("/v1/transfers", &wrong).await.is_err());

    let transfer = stage.post("/v1/transfers", stage.body(&payer).await).await;
    let path = format!("/v1/transfers/{}", text(&transfer["id"]));
    let given = text(&transfer["funding"]["deposit_address"]);
    let deposit_address = *ChainAddress::parse(given).unwrap().bytes();
    assert_eq!((deposit_address.as_slice().len(), &given[..5]), (32, "stub1"));

    // A block above the final view is shown, and not credited.
    let paid = pay(seconds(), &[(deposit_address, 105 * USDT)]);
    let deposits = format!("/v1/deposits?transfer_id={}", text(&transfer["id"]));
    let seen = stage.until(&deposits, |answer| answer["data"][0]["status"] == "processing").await;
    let seen = &seen["data"][0];
    assert_eq!(
        (text(&seen["from_address"]), text(&seen["to_address"]), text(&seen["amount"])),
        (payer.as_str(), given, "105.00")
    );
    let waiting = stage.until(&path, |_| true).await;
    assert_eq!(waiting["status"], "funding");
    mine(stub::FINAL_DEPTH, seconds());
    stage.until(&path, |answer| answer["status"] == "payout_settled").await;
    let completed = stage.until(&deposits, |answer| answer["data"][0]["status"] == "completed");
    assert_eq!(completed.await["data"][0]["transaction_hash"], paid.to_string());

    // What was too much goes back, and the chain confirms it.
    let owed = format!("/v1/refunds?transfer_id={}", text(&transfer["id"]));
    let owed = stage.until(&owed, |answer| answer["data"][0]["status"] == "processing").await;
    let refund = text(&owed["data"][0]["id"]).to_owned();
    let sent = pay(seconds(), &[(address(1), 5 * USDT)]);
    let id: Id<kind::Refund> = Id::parse(&refund).unwrap();
    let work = stage.app.state.store.write(move |tx, _| {
        let mut refund = refunds::rows::find(tx, Scope::new(1, Mode::Test), id)?.unwrap();
        refunds::mark_sent(tx, &mut refund, &sent.to_string())
    });
    work.await.unwrap();
    mine(stub::FINAL_DEPTH, seconds());
    let path = format!("/v1/refunds/{refund}");
    let refunded = stage.until(&path, |answer| answer["status"] == "completed").await;
    assert_eq!(refunded["transaction_hash"], sent.to_string());

    // A payment that went elsewhere is explained, and the book agrees with the chain.
    let second = stage.post("/v1/transfers", stage.body(&payer).await).await;
    let astray = pay(seconds(), &[(address(9), 100 * USDT)]);
    let path = format!("/v1/transfers/{}/funding/diagnose", text(&second["id"]));
    let diagnosis = stage.post(&path, json!({"transaction_hash": astray.to_string()})).await;
    assert_eq!(
        (text(&diagnosis["code"]), text(&diagnosis["to_address"])),
        ("wrong_address", ChainAddress::of_chain("stub", address(9)).to_string().as_str())
    );
    let extent = AuditExtent { blocks: None, all_addresses: true };
    let chain = &stage.app.state.chains[0];
    let compared = audit::run_once(&stage.app.state.store, chain, extent).await.unwrap();
    assert_eq!((compared.movements_count, compared.refunds_count), (1, 1));
    assert_eq!(compared.expected, compared.balance);

    stage.stop.send(true).unwrap();
    stage.serving.await.unwrap();
    std::fs::remove_dir_all(&stage.folder).unwrap();
}
