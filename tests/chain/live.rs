//! Live mode as an operator runs it: the binary with every table of its configuration, a chain, a
//! bank that is a process of its own behind two folders, market rates over HTTP, sanctions lists
//! from files, and accounts looked at by hand.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};

use crate::anvil::{Anvil, FINALITY_BLOCKS, Token};
use crate::binary::{Home, Outcome, Receiver, Server};
use crate::callers::{Client, id, payout_id};
use crate::feed::Feed;
use crate::service::{ACCOUNT_KEY, Process, address, chain_with_token, eventually};
use crate::wire::nobody;

/// The simulated bank pays the first, and treats the others otherwise.
const PAID: &str = "50100012345678";
const REFUSED: &str = "50100012341001";
const RETURNED: &str = "50100012341002";
const SILENT: &str = "50100012341003";
const HOLDER: &str = "Asha Raghunathan";
const LISTED: &str = "Zubin Tarkhad";

/// A process that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Everything that live mode needs, on one machine.
struct Stage {
    chain: Anvil,
    token: Token,
    home: Home,
    feed: Feed,
    lists: PathBuf,
    bank: PathBuf,
    _simulated: Running,
}

impl Stage {
    /// `suspect` is an address on the operator's own list.
    async fn set() -> Stage {
        let (chain, token) = chain_with_token(Process::chain_now()).await;
        let mut home = Home::new("chain-live");
        let (lists, bank) = (home.directory.join("lists"), home.directory.join("bank"));
        let feed = Feed::start().await;
        feed.say("/inr", json!({"quote": {"mid": "88.412500"}}));
        feed.say("/usdt", json!({"price": 1.0}));

        let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/screening");
        fs::create_dir_all(&lists).unwrap();
        for name in ["sdn.csv", "alt.csv", "add.csv", "sdn_comments.csv"] {
            fs::write(lists.join(name), fs::read(format!("{fixtures}/{name}")).unwrap()).unwrap();
        }
        let suspect = chain.account(3);
        let own = format!(
            "id,name,aliases,date_of_birth,country,address,note\nown-1,{LISTED},,,,,\nown-2,,,,,{suspect},\n"
        );
        fs::write(lists.join("own.csv"), own).unwrap();

        let folders = ["outbox", "inbox"].map(|name| bank.join(name));
        folders.iter().for_each(|folder| fs::create_dir_all(folder).unwrap());
        let simulated = Command::new(env!("CARGO_BIN_EXE_hundi"))
            .args([
                "bank-simulator",
                "--seed",
                "3",
                "--behaviour",
                "duplicates,reordering",
                "--outbox",
            ])
            .arg(&folders[0])
            .arg("--inbox")
            .arg(&folders[1])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let text = format!(
            "issuer_name = 'Example Payments Ltd'\nsponsor_bank_name = 'Example Bank, \
             Mumbai'\nallow_loopback_webhooks = true\nmetrics = true\n\
             simulation_step_milliseconds = 5\nrate_limit_reads = 0\nrate_limit_writes = 0\n\
             [live_chain]\nname = 'tron'\nendpoints = ['{}']\nchain_id = {}\ntoken_contract = \
             '{}'\naccount_key = '{ACCOUNT_KEY}'\n\
             poll_milliseconds = 100\n\
             [bank]\nfolder = '{}'\ndebit_account_name = 'Example Payments \
             Ltd'\ndebit_account_number = '00112233445566'\n\
             debit_account_ifsc = 'YESB0000001'\nsupports_nre = true\npoll_seconds = 1\n\
             [rates]\npoll_seconds = 5\n[[rates.inr_per_usd]]\nurl = '{}'\npointer = '/quote/mid'\n\
             [[rates.usd_per_usdt]]\nurl = '{}'\npointer = '/price'\n\
             [checks]\nadapter = 'manual'\n\
             [screening]\nofac_directory = '{lists}'\nun_file = \
             '{lists}/consolidated.xml'\noperator_file = '{lists}/own.csv'\n",
            chain.url(),
            Process::chain_now().chain_id,
            token.address,
            bank.display(),
            feed.url("/inr"),
            feed.url("/usdt"),
            lists = lists.display(),
        );
        let config = home.directory.join("hundi.toml");
        fs::write(&config, text).unwrap();
        home.set("HUNDI_CONFIG", config.to_str().unwrap());
        home.set("HUNDI_ACTOR", "asha");
        let stage = Stage { chain, token, home, feed, lists, bank, _simulated: Running(simulated) };
        stage.date_lists(&jiff::Timestamp::now().to_string());
        stage
    }

    /// Lets the UN's list say when it was made.
    fn date_lists(&self, at: &str) {
        let fixture = include_str!("../fixtures/screening/consolidated.xml");
        let made_at = fixture
            .split("dateGenerated=\"")
            .nth(1)
            .and_then(|rest| rest.split('"').next())
            .unwrap();
        fs::write(self.lists.join("consolidated.xml"), fixture.replacen(made_at, at, 1)).unwrap();
    }

    fn rewrite(&self, from: &str, to: &str) {
        let path = self.home.directory.join("hundi.toml");
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{from} is not in the configuration");
        fs::write(path, text.replacen(from, to, 1)).unwrap();
    }

    fn run(&self, arguments: &[&str]) -> Outcome {
        tokio::task::block_in_place(|| self.home.run(arguments))
    }
    fn done(&self, arguments: &[&str]) -> String {
        self.run(arguments).expect_success(&arguments.join(" ")).stdout
    }
    fn refused(&self, arguments: &[&str], words: &str) {
        let outcome = self.run(arguments);
        let told = format!("{}{}", outcome.stdout, outcome.stderr);
        assert!(!outcome.status.success() && told.contains(words), "{arguments:?}: {told}");
    }
    fn start(&self) -> Server {
        tokio::task::block_in_place(|| self.home.start_on_own_port())
    }
    fn stop(server: Server) {
        assert!(tokio::task::block_in_place(|| server.stop()).success());
    }

    /// What waits goes into a block, which becomes final.
    async fn settle(&self) {
        self.chain.mine(1 + FINALITY_BLOCKS).await;
    }

    /// How often a payout was in a file for the bank: the bank says of each that it has it.
    fn sent_count(&self, payout: &str) -> usize {
        let reference = payout.trim_start_matches("payout_");
        let mut texts: Vec<String> = fs::read_dir(self.bank.join("archive"))
            .unwrap()
            .map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap())
            .filter(|text| text.contains("<TxSts>ACTC</TxSts>") && text.contains(reference))
            .collect();
        texts.sort();
        texts.dedup();
        texts.len()
    }
    /// Puts a file into the inbox as an agent does.
    fn put(&self, name: &str, text: &str) {
        let partial = self.bank.join("inbox").join(format!("{name}.part"));
        fs::write(&partial, text).unwrap();
        fs::rename(partial, self.bank.join("inbox").join(name)).unwrap();
    }
}

/// A live caller and its objects.
struct Caller<'a> {
    stage: &'a Stage,
    client: Client,
    sender_id: String,
}

impl Caller<'_> {
    async fn sender(&self, name: &str) -> Value {
        let address = json!({"line1": "1 Main Street", "city": "Dubai", "country": "AE"});
        self.client
            .post(
                "/v1/senders",
                json!({"name": name, "type": "individual", "country": "AE", "address": address}),
            )
            .await
            .ok()
    }

    /// A beneficiary that the operator looked up and found right.
    async fn beneficiary(&self, account_number: &str) -> String {
        let body = json!({"name": HOLDER, "account_number": account_number, "ifsc": "HDFC0000001",
            "account_type": "nre"});
        let made = self.client.post("/v1/beneficiaries", body).await.ok();
        let (id, path) = (id(&made), format!("/v1/beneficiaries/{}", id(&made)));
        assert_eq!(
            (made["status"].as_str(), made["livemode"].as_bool()),
            (Some("verifying"), Some(true))
        );
        assert!(made["bank_name"].as_str().is_some_and(|name| name.contains("HDFC")), "{made}");
        let listed = self.stage.done(&[
            "beneficiaries",
            "list",
            "--status",
            "verifying",
            "--show-account-numbers",
            "--reason",
            "a test",
        ]);
        assert!(listed.contains(&id) && listed.contains(account_number), "{listed}");
        self.stage.done(&["beneficiaries", "review", &id, "--match", "--reason", "a test"]);
        let found = self.client.wait_status(&path, "active").await;
        assert_eq!(
            (found["payouts_enabled"].as_bool(), found["verification"]["name_match"].as_str()),
            (Some(true), Some("match"))
        );
        id
    }

    async fn body(&self, beneficiary_id: &str, amount: &str) -> Value {
        let lock = eventually("a rate", async || {
            let asked = json!({"sell_currency": "USD", "buy_currency": "INR", "amount": amount});
            let answer = self.client.post("/v1/quote_locks", asked).await;
            (answer.status != 503).then(|| answer.ok())
        })
        .await;
        assert_eq!(lock["rate"], "88.412500");
        json!({
            "sender_id": self.sender_id, "beneficiary_id": beneficiary_id,
                "quote_lock_id": id(&lock),
            "amount": amount, "currency": "USD", "payout_currency": "INR",
            "funding": {"rail": "stablecoin", "asset": "USDT", "chain": "tron",
                "refund_address": nobody(77).to_string()},
        })
    }

    async fn transfer(&self, account_number: &str, amount: &str) -> Value {
        let body = self.body(&self.beneficiary(account_number).await, amount).await;
        eventually("a transfer to be taken", async || {
            let answer = self.client.post("/v1/transfers", body.clone()).await;
            (answer.status != 503).then(|| answer.ok())
        })
        .await
    }

    async fn awaits(&self, transfer: &Value, status: &str) -> Value {
        let path = format!("/v1/transfers/{}", id(transfer));
        eventually(&format!("{} to be {status}", id(transfer)), async || {
            let found = self.client.get(&path).await.ok();
            (found["status"] == status).then_some(found)
        })
        .await
    }

    async fn payout(&self, transfer: &Value) -> Value {
        let found = self.client.get(&format!("/v1/transfers/{}", id(transfer))).await.ok();
        self.client.get(&format!("/v1/payouts/{}", payout_id(&found))).await.ok()
    }
}

/// A client with the same key of a server that started elsewhere; it repeats no idempotency key.
fn moved(client: &Client, server: &Server) -> Client {
    let mut moved = client.twin();
    moved.address = server.address().to_string();
    moved
}

fn statuses(transfer: &Value) -> Vec<&str> {
    transfer["status_history"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|step| step["status"].as_str())
        .collect()
}

/// Days can lie between a beneficiary's check and the operator's look at its account.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_beneficiary_whom_a_list_names_meanwhile_is_not_payable() {
    let stage = Stage::set().await;
    let key = stage.done(&["keys", "create", "--mode", "live"]).trim().to_owned();
    let server = stage.start();
    let caller = Caller {
        stage: &stage,
        client: Client::of(&server.address().to_string(), &key),
        sender_id: String::new(),
    };
    // The control: nobody is named.
    caller.beneficiary(PAID).await;
    let body = json!({"name": HOLDER, "account_number": RETURNED, "ifsc": "HDFC0000001",
        "account_type": "nre"});
    let made = caller.client.post("/v1/beneficiaries", body).await.ok();
    let (id, path) = (id(&made), format!("/v1/beneficiaries/{}", id(&made)));
    let own = stage.lists.join("own.csv");
    fs::write(&own, format!("{}own-3,{HOLDER},,,,,\n", fs::read_to_string(&own).unwrap())).unwrap();
    let told = stage.done(&["beneficiaries", "review", &id, "--match", "--reason", "a test"]);
    assert!(told.contains("is verifying; screening holds it"), "{told}");
    let held = caller.client.get(&path).await.ok();
    assert_eq!(
        (held["status"].as_str(), held["payouts_enabled"].as_bool()),
        (Some("verifying"), Some(false)),
        "{held}"
    );
    assert_eq!(held["payouts_disabled_reason"], "compliance_hold");
    assert!(stage.done(&["screening", "hits"]).contains("operator own-3"));
    for command in [&["decide", &id, "approve"][..], &["pause", "payouts"]] {
        stage.refused(command, "needs --actor NAME and --reason TEXT");
    }
    stage.refused(
        &["beneficiaries", "review", &id, "--match", "--reason", "a test"],
        "screening holds it",
    );
    stage.done(&["decide", &id, "approve", "--reason", "a test"]);
    stage.done(&["beneficiaries", "review", &id, "--match", "--reason", "a test"]);
    caller.client.wait_status(&path, "active").await;
    Stage::stop(server);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_live_payout_goes_all_the_way() {
    let stage = Stage::set().await;
    let told = stage.done(&["doctor"]);
    assert!(told.contains("live mode starts with this configuration"), "{told}");
    let parts: Vec<(&str, &str)> = told
        .lines()
        .skip(1)
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            Some((words.next()?, words.next()?))
        })
        .filter(|(part, _)| *part != "live")
        .collect();
    let wanted = ["disk", "disk", "live_chain", "bank", "rates", "checks", "screening"];
    assert_eq!(parts, wanted.map(|part| (part, "ok")), "{told}");

    let key = stage.done(&["keys", "create", "--mode", "live"]).trim().to_owned();
    assert!(key.starts_with("sk_live_"));
    let mut server = stage.start();
    let client = Client::of(&server.address().to_string(), &key);
    let mut caller = Caller { stage: &stage, client, sender_id: String::new() };
    caller.sender_id = id(&caller.sender("Ravi Raghunathan").await);

    // Live webhooks go to public https addresses alone, so here they are only written down. The
    // same worker delivers test mode's.
    let hooks = "/v1/webhook_endpoints";
    assert_eq!(
        caller.client.post(hooks, json!({"url": "http://127.0.0.1:9/hooks"})).await.error(400),
        "parameter_value_invalid"
    );
    let endpoint =
        caller.client.post(hooks, json!({"url": "https://hooks.example.com/hundi"})).await.ok();
    let receiver = tokio::task::block_in_place(Receiver::start);
    let test_key = tokio::task::block_in_place(|| stage.home.key());
    tokio::task::block_in_place(|| receiver.register(&mut server.client(&test_key)));
    Client::of(&server.address().to_string(), &test_key).active_beneficiary(PAID).await;
    eventually("a delivery with a right signature", async || {
        (receiver.events_count() > 0).then_some(())
    })
    .await;
    assert_eq!(receiver.problems(), (0, Vec::new()));

    // A sender who may be on a list sends nothing until the operator has decided.
    let listed = caller.sender(LISTED).await;
    let beneficiary_id = caller.beneficiary(PAID).await;
    let mut body = caller.body(&beneficiary_id, "50.00").await;
    body["sender_id"] = listed["id"].clone();
    assert_eq!(caller.client.post("/v1/transfers", body).await.error(400), "sender_not_eligible");
    assert!(stage.done(&["screening", "hits"]).contains("operator own-1"));

    // One below the limit of NEFT and one above, one the bank refuses, one that comes back, one it
    // is silent about, and one that is paid from an address on a list.
    let mut transfers = Vec::new();
    for (account_number, amount) in [
        (PAID, "100.00"),
        (PAID, "3000.00"),
        (REFUSED, "110.00"),
        (RETURNED, "120.00"),
        (SILENT, "130.00"),
    ] {
        let transfer = caller.transfer(account_number, amount).await;
        assert_eq!(transfer["livemode"], true);
        stage
            .token
            .transfer(address(&transfer), amount.replace('.', "").parse::<u64>().unwrap() * 10_000)
            .await;
        transfers.push(transfer);
    }
    let suspect = caller.transfer(PAID, "140.00").await;
    stage.token.transfer_from(stage.chain.account(3), address(&suspect), 140_000_000).await;
    stage.settle().await;
    let [neft, rtgs, refused, returned, silent] = transfers.as_slice() else {
        panic!("five transfers")
    };

    for (transfer, method, utr_characters) in [(neft, "neft", 16), (rtgs, "rtgs", 22)] {
        let settled = caller.awaits(transfer, "payout_settled").await;
        assert_eq!(
            statuses(&settled),
            ["funding", "funded", "payout_processing", "payout_settled"]
        );
        assert_eq!(caller.payout(transfer).await["method"], method);
        assert_eq!(
            settled["payout"]["unique_transaction_reference"].as_str().map(str::len),
            Some(utr_characters),
            "{settled}"
        );
        let payout = payout_id(&settled);
        eventually("the bank's receipt", async || (stage.sent_count(&payout) == 1).then_some(()))
            .await;
    }
    let failed = caller.awaits(refused, "refund_processing").await;
    assert_eq!(
        statuses(&failed),
        ["funding", "funded", "payout_processing", "payout_failed", "refund_processing"]
    );
    assert_eq!(caller.payout(refused).await["failure"]["code"], "account_closed");
    // This bank reorders its files. What came back before it was known to have arrived is held,
    // because nobody knows whether it was paid: the operator says so.
    let (back, is_held) = eventually("the returned money", async || {
        let path = format!("/v1/transfers/{}", id(returned));
        let found = caller.client.get(&path).await.ok();
        let is_held = found["status"] == "payout_processing"
            && caller.payout(returned).await["failure"]["code"] == "outcome_unknown";
        (is_held || found["status"] == "refund_processing").then_some((found, is_held))
    })
    .await;
    let (ending, payout_status): (&[&str], _) = if is_held {
        stage.done(&["decide", &payout_id(&back), "fail", "--reason", "it came back"]);
        (&["payout_processing", "payout_failed", "refund_processing"], "failed")
    } else {
        (&["payout_settled", "payout_returned", "refund_processing"], "returned")
    };
    let back = caller.awaits(returned, "refund_processing").await;
    assert!(statuses(&back).ends_with(ending), "{back}");
    assert_eq!(caller.payout(returned).await["status"], payout_status);

    // The payer who is on a list waits for the operator, and is paid once that one says so.
    let held = caller.awaits(&suspect, "funding_hold").await;
    assert_eq!(held["status_reason"], "compliance_review");
    stage.done(&["decide", &id(&suspect), "approve", "--reason", "a test"]);
    caller.awaits(&suspect, "payout_settled").await;

    // The bank says of the silent one that it may be a copy: nobody knows what became of it. It is
    // the operator's, also after the server was killed, and is not sent again.
    let waiting = caller.awaits(silent, "payout_processing").await;
    let payout = payout_id(&waiting);
    let status = format!(
        "<?xml version='1.0' encoding='UTF-8'?><Document \
         xmlns=\"urn:iso:std:iso:20022:tech:xsd:pain.002.001.10\"><CstmrPmtStsRpt>\
         <GrpHdr><MsgId>BANK-1</MsgId><CreDtTm>{}</CreDtTm></GrpHdr>\
         <OrgnlGrpInfAndSts><OrgnlMsgId>UNKNOWN</OrgnlMsgId><OrgnlMsgNmId>pain.001.001.09</OrgnlMsgNmId></OrgnlGrpInfAndSts>\
         <OrgnlPmtInfAndSts><OrgnlPmtInfId>UNKNOWN</OrgnlPmtInfId><TxInfAndSts><OrgnlEndToEndId>{}</OrgnlEndToEndId>\
         <TxSts>RJCT</TxSts><StsRsnInf><Rsn><Cd>AM05</Cd></Rsn></StsRsnInf></TxInfAndSts></OrgnlPmtInfAndSts></CstmrPmtStsRpt></Document>",
        jiff::Timestamp::now(),
        payout.trim_start_matches("payout_"),
    );
    stage.put("copy.xml", &status);
    caller
        .client
        .wait_until(&format!("/v1/payouts/{payout}"), |found| {
            found["failure"]["code"] == "outcome_unknown"
        })
        .await;
    let listen = server.address().to_string();
    tokio::task::block_in_place(|| server.kill_now());
    server = tokio::task::block_in_place(|| stage.home.start_as(&[], &listen));
    // Another payout after the kill: the worker has made its turns.
    let after = caller.transfer(PAID, "150.00").await;
    stage.token.transfer(address(&after), 150_000_000).await;
    stage.settle().await;
    caller.awaits(&after, "payout_settled").await;
    assert_eq!(
        (stage.sent_count(&payout), caller.payout(silent).await["status"].as_str()),
        (1, Some("processing"))
    );
    stage.refused(&["reconcile"], "outcome_unknown");
    stage.done(&["decide", &payout, "fail", "--reason", "a test"]);
    caller.awaits(silent, "refund_processing").await;

    // What is owed back is sent by the operator and confirmed by the chain.
    let refund = id(&failed["refund"]);
    let hash = stage.token.transfer(nobody(77), 110_000_000).await;
    stage.settle().await;
    stage.done(&["refunds", "complete", &refund, "--hash", &hash.plain(), "--reason", "a test"]);
    assert_eq!(
        caller.awaits(refused, "refunded").await["refund"]["transaction_hash"],
        hash.plain()
    );

    advice_is_evidence(&stage, &caller, neft, &server).await;

    // The statement has a row for each, and its sums close.
    let shown = caller.client.get(&format!("/v1/transfers/{}", id(neft))).await.ok();
    let statement = caller.client.get("/v1/statements").await.ok();
    let row = statement["data"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["transfer_id"] == neft["id"])
        .unwrap();
    for (member, wanted) in [
        ("usdt_in", json!("100.00")),
        ("rate", json!("88.412500")),
        ("payout_amount", json!("8841.25")),
    ] {
        assert_eq!(row[member], wanted, "{row}");
    }
    assert_eq!(
        row["unique_transaction_reference"],
        shown["payout"]["unique_transaction_reference"]
    );
    assert_eq!(row["deposit_transaction_hashes"].as_array().map(Vec::len), Some(1));
    assert_eq!(statement["data"].as_array().map(Vec::len), Some(7));
    let csv = caller.client.get("/v1/statements?format=csv").await;
    assert!(String::from_utf8_lossy(&csv.body).contains(&id(neft)));

    // Every event is of live mode and waits for the live endpoint; nothing of test mode is among
    // them.
    let events = caller.client.get("/v1/events?limit=100").await.ok();
    let events = events["data"].as_array().unwrap();
    assert!(
        events.iter().all(|event| event["livemode"] == true)
            && events.iter().any(|event| event["linked_id"] == neft["id"])
    );
    let deliveries =
        caller.client.get(&format!("{hooks}/{}/deliveries?limit=100", id(&endpoint))).await.ok();
    assert!(deliveries["data"].as_array().unwrap().len() > 50, "{deliveries}");

    let compared = eventually("the statements", async || {
        let outcome = stage.run(&["reconcile"]);
        outcome.status.success().then_some(outcome.stdout)
    });
    assert!(compared.await.contains("no differences"));
    assert!(
        stage.home.log().contains("the book agrees with the bank's statements"),
        "compared by the service itself too"
    );
    assert!(stage.done(&["check"]).contains("the book and all histories are right"));
    assert!(stage.done(&["doctor"]).contains("live mode starts with this configuration"));
    // Every file of the bank's was understood, and what is not ours was not there.
    let metrics = caller.client.send(Method::GET, "/metrics", &[], Bytes::new()).await;
    let metrics = String::from_utf8_lossy(&metrics.body);
    assert!(
        metrics.contains("hundi_bank_files_total{reason=\"applied\"}")
            && !metrics.contains("reason=\"refused\""),
        "{metrics}"
    );
    assert!(
        metrics.contains("hundi_sanctions_list_age_seconds{list=\"un_consolidated\"}"),
        "{metrics}"
    );
    assert!(fs::read_dir(stage.bank.join("refused")).unwrap().next().is_none());
    assert_eq!(stage.home.panics(), Vec::<String>::new());
    Stage::stop(server);
}

/// The payment advice as a bank and a tax adviser take it: the signed document, and the page.
async fn advice_is_evidence(stage: &Stage, caller: &Caller<'_>, transfer: &Value, server: &Server) {
    let payout = caller.payout(transfer).await;
    let path = format!("/v1/payouts/{}", id(&payout));
    caller.client.wait_until(&path, |found| found["payment_advice"]["status"] == "available").await;
    let fetch = async |kind: &str| {
        let answer = caller
            .client
            .send(Method::GET, &format!("{path}/payment_advice"), &[("accept", kind)], Bytes::new())
            .await;
        assert_eq!((answer.status, answer.header("content-type")), (200, Some(kind)));
        answer.body
    };
    let (document, page) = (fetch("application/json").await, fetch("application/pdf").await);
    let file = |name: &str, bytes: &[u8]| {
        let path = stage.home.directory.join(name);
        fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let keys = Client::of(&server.address().to_string(), "")
        .get("/.well-known/hundi-advice-keys.json")
        .await;
    let (advice, keys, pdf) =
        (file("advice.json", &document), file("keys.json", &keys.body), file("advice.pdf", &page));
    // With the keys of the database, and anywhere else with the published ones.
    for arguments in
        [vec!["advice", "verify", &advice], vec!["advice", "verify", &advice, "--keys", &keys]]
    {
        let told = stage.done(&arguments);
        assert!(
            told.contains("valid") && told.contains("(live)") && !told.contains("TEST:"),
            "{told}"
        );
    }
    let forged = file(
        "forged.json",
        String::from_utf8_lossy(&document).replace("8841.25", "8841.26").as_bytes(),
    );
    stage.refused(&["advice", "verify", &forged], "invalid");
    let json: Value = serde_json::from_slice(&document).unwrap();
    assert_eq!(
        (&json["livemode"], &json["unique_transaction_reference"]),
        (&json!(true), &payout["unique_transaction_reference"])
    );
    assert!(!String::from_utf8_lossy(&document).contains(PAID));
    assert_eq!(
        (&json["sponsor_bank"], &json["debited_account_last4"]),
        (&json!("Example Bank, Mumbai"), &json!("5566"))
    );
    // The page, for whoever wants to look at it.
    if let Ok(folder) = std::env::var("HUNDI_TEST_PAGES") {
        fs::write(format!("{folder}/live.pdf"), &page).unwrap();
    }
    let shown =
        Command::new("pdftotext").args([&pdf, "-"]).output().expect("pdftotext, of poppler-utils");
    let text = String::from_utf8(shown.stdout).unwrap();
    for part in [HOLDER, "8,841.25", "Example Bank, Mumbai, account ending in 5566"] {
        assert!(text.contains(part) && !text.contains(PAID), "{text}");
    }
    assert!(!text.contains("made in test mode"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_right_is_told_and_stops_only_what_it_must() {
    let stage = Stage::set().await;
    let server = stage.start();
    let key = stage.done(&["keys", "create", "--mode", "live"]).trim().to_owned();
    let mut caller = Caller {
        stage: &stage,
        client: Client::of(&server.address().to_string(), &key),
        sender_id: String::new(),
    };
    caller.sender_id = id(&caller.sender("Ravi Raghunathan").await);
    let beneficiary_id = caller.beneficiary(PAID).await;
    let waiting = caller.client.beneficiary(PAID).await;
    let body = caller.body(&beneficiary_id, "50.00").await;
    let over = eventually("a transfer to be taken", async || {
        let answer = caller.client.post("/v1/transfers", body.clone()).await;
        (answer.status != 503).then(|| answer.ok())
    })
    .await;
    Stage::stop(server);
    let starts = || tokio::task::block_in_place(|| stage.home.try_start(&[], "127.0.0.1:0"));
    let doctor = |state: &str, verdict: &str| {
        let outcome = stage.run(&["doctor"]);
        let told = format!("{}{}", outcome.stdout, outcome.stderr);
        assert!(
            !outcome.status.success() && told.contains(state) && told.contains(verdict),
            "{told}"
        );
    };

    // A bank that has not marked the account: the service starts and refuses transfers.
    stage.rewrite("supports_nre = true", "supports_nre = false");
    doctor(
        "bank         fails        supports_nre is false",
        "the service starts, and refuses what needs the parts that fail (1 part)",
    );
    let server = starts().expect("a start");
    caller.client = moved(&caller.client, &server);
    let body = caller.body(&beneficiary_id, "50.00").await;
    assert_eq!(caller.client.post("/v1/transfers", body).await.error(403), "action_unauthorized");
    Stage::stop(server);
    stage.rewrite("supports_nre = false", "supports_nre = true");

    // A test net that is another chain: the service does not start.
    stage.rewrite(
        "[live_chain]",
        &format!(
            "[test_chain]\nname = 'tron'\nendpoints = ['{}']\nchain_id = 1\ntoken_contract = \
         '{}'\naccount_key = '{ACCOUNT_KEY}'\n[live_chain]",
            stage.chain.url(),
            stage.token.address
        ),
    );
    doctor("test_chain   stops", "the service does not start: 1 part has a fault");
    assert!(starts().is_err());
    stage.rewrite("chain_id = 1\n", &format!("chain_id = {}\n", Process::chain_now().chain_id));
    assert!(stage.done(&["doctor"]).contains("live mode starts with this configuration"));

    // No node: the service starts, and sees nothing.
    let url = format!("endpoints = ['{}']", stage.chain.url());
    stage.rewrite(&url, "endpoints = ['http://127.0.0.1:9']");
    stage.rewrite(&url, "endpoints = ['http://127.0.0.1:9']");
    doctor("live_chain   fails        no node answers", "the parts that fail (2 parts)");
    Stage::stop(starts().expect("a start"));
    stage.rewrite("endpoints = ['http://127.0.0.1:9']", &url);
    stage.rewrite("endpoints = ['http://127.0.0.1:9']", &url);

    // Rates that contradict themselves: the service starts, and quotes nothing.
    stage.feed.say("/usdt", json!({"price": 0.9}));
    doctor(
        "rates        fails        no rate that can be quoted: ",
        "the service starts, and refuses what needs",
    );
    stage.feed.say("/usdt", json!({"price": 1.0}));

    // Folders that cannot be made: payouts would wait for nobody, so the service does not start.
    stage.rewrite("bank'\n", "hundi.toml'\n");
    doctor("bank         stops", "the service does not start");
    assert!(starts().is_err());
    stage.rewrite("hundi.toml'\n", "bank'\n");

    // A table that is left out: no live mode.
    stage.rewrite("[checks]\nadapter = 'manual'\n", "");
    doctor("checks       missing", "the service starts without live mode: 1 part missing");
    let server = starts().expect("a start");
    let client = moved(&caller.client, &server);
    let asked = json!({"sell_currency": "USD", "buy_currency": "INR", "amount": "50.00"});
    assert_eq!(client.post("/v1/quote_locks", asked).await.error(403), "action_unauthorized");
    // Its chain is followed all the same, whatever the money means: the excess goes back once the
    // operator sends it.
    stage.token.transfer(address(&over), 55_000_000).await;
    stage.settle().await;
    let refunds = client
        .wait_until("/v1/refunds", |found| {
            found["data"].as_array().is_some_and(|refunds| !refunds.is_empty())
        })
        .await;
    let refund = &refunds["data"][0];
    let told = [&refund["transfer_id"], &refund["amount"], &refund["status"], &refund["kind"]]
        .map(|word| word.as_str());
    assert_eq!(told, [over["id"].as_str(), Some("5.00"), Some("processing"), Some("excess")]);
    assert!(
        !tokio::task::block_in_place(|| stage.home.log())
            .contains("the store could not be read or written")
    );
    Stage::stop(server);
    stage.rewrite("[rates]", "[checks]\nadapter = 'manual'\n[rates]");

    // Lists that name somebody new: everybody is screened again, and who may be meant is not paid
    // until the operator decides.
    fs::write(
        stage.lists.join("own.csv"),
        format!("id,name,aliases,date_of_birth,country,address,note\nown-3,{HOLDER},,,,,\n"),
    )
    .unwrap();
    let server = starts().expect("a start");
    let client = moved(&caller.client, &server);
    let path = format!("/v1/beneficiaries/{beneficiary_id}");
    let held = client.wait_until(&path, |found| found["payouts_enabled"] == false).await;
    assert_eq!(held["payouts_disabled_reason"], "compliance_hold");
    stage.done(&["decide", &beneficiary_id, "approve", "--reason", "a test"]);
    client.wait_until(&path, |found| found["payouts_enabled"] == true).await;
    Stage::stop(server);

    // Lists that are too old stop the server, and not the operator's decisions beside it.
    stage.date_lists("2020-01-01T00:00:00Z");
    doctor("screening    stops", "the service does not start: 1 part has a fault");
    assert!(starts().is_err());
    stage.done(&["beneficiaries", "review", &id(&waiting), "--not-nre", "--reason", "a test"]);
    assert!(stage.done(&["beneficiaries", "list"]).contains("rejected"));
    stage.done(&["decide", &caller.sender_id, "refuse", "--reason", "a test"]);
}
