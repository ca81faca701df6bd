//! The proxy is healthy until told otherwise, and each fault does what it says and nothing else.

use std::time::{Duration, Instant};

use hundi::chains::tron_address::TronAddress;
use serde_json::{Value, json};

use crate::anvil::{Anvil, CHAIN_ID, FINALITY_BLOCKS, Token, TransferLog};
use crate::proxy::{Blocks, Faults, Fork, Garbage, Invented, Proxy, Sanction};
use crate::rpc::{Rpc, RpcError};
use crate::wire::{DEPRECATE_TOPIC, Hash, TRANSFER_TOPIC, evm, nobody, number_of, quantity, topic};

/// A chain with three transfers in its blocks `first`, `first + 1` and `first + 2`, and a proxy
/// before it.
struct Stage {
    chain: Anvil,
    token: Token,
    proxy: Proxy,
    rpc: Rpc,
    first: u64,
    sent: Vec<Hash>,
    to: TronAddress,
}

impl Stage {
    async fn set() -> Stage {
        let chain = Anvil::start().await;
        let token = chain.deploy_token().await;
        let (first, to) = (chain.head().await + 1, nobody(1));
        let mut sent = Vec::new();
        for units in [11, 22, 33] {
            sent.push(token.transfer(to, units).await);
            chain.mine(1).await;
        }
        let proxy = Proxy::start(&chain).await;
        let rpc = Rpc::new(proxy.endpoint());
        Stage { chain, token, proxy, rpc, first, sent, to }
    }

    fn filter(&self, from: u64, to: u64) -> Value {
        json!({"address": evm(self.token.address), "topics": [TRANSFER_TOPIC],
            "fromBlock": quantity(from), "toBlock": quantity(to)})
    }
    async fn logs(&self, from: u64, to: u64) -> Result<Vec<Value>, RpcError> {
        self.logs_by(self.filter(from, to)).await
    }
    async fn logs_by(&self, filter: Value) -> Result<Vec<Value>, RpcError> {
        Ok(self.rpc.call("eth_getLogs", json!([filter])).await?.as_array().expect("a list").clone())
    }
    /// The amounts of the transfers from `first` on.
    async fn units(&self) -> Vec<u64> {
        let logs = self.logs(self.first, self.first + 2).await.unwrap();
        logs.iter().map(|log| TransferLog::read(log).unwrap().units).collect()
    }
    async fn header(&self, tag: &str) -> Value {
        self.rpc.call("eth_getBlockByNumber", json!([tag, false])).await.unwrap()
    }
    async fn receipts(&self, number: u64) -> Result<Value, RpcError> {
        self.rpc.call("eth_getBlockReceipts", json!([quantity(number)])).await
    }
    async fn receipt(&self, transaction: Hash) -> Value {
        self.rpc.call("eth_getTransactionReceipt", json!([transaction.to_string()])).await.unwrap()
    }
    async fn refusal(&self, method: &str, params: Value) -> (i64, String) {
        match self.rpc.call(method, params).await {
            Err(RpcError::Refused { code, message }) => (code, message),
            other => panic!("{method} was not refused: {other:?}"),
        }
    }
    async fn unreachable(&self) -> String {
        match self.rpc.call("eth_blockNumber", json!([])).await {
            Err(RpcError::Unreachable(told)) => told,
            other => panic!("there is an answer: {other:?}"),
        }
    }
    async fn is_healthy(&self) -> bool {
        self.rpc.call("eth_blockNumber", json!([])).await
            == Ok(json!(quantity(self.chain.head().await)))
            && self.units().await == [11, 22, 33]
    }
}

#[tokio::test]
async fn without_faults_it_is_a_tron_node_and_shows_the_chain() {
    let stage = Stage::set().await;
    stage.chain.mine(30).await;
    let head = stage.chain.head().await;
    assert!(stage.is_healthy().await);
    assert_eq!(stage.rpc.call("eth_chainId", json!([])).await, Ok(json!(quantity(CHAIN_ID))));
    assert_eq!(number_of(&stage.header("latest").await["number"]), head);
    assert_eq!(number_of(&stage.header("finalized").await["number"]), head - FINALITY_BLOCKS);
    assert_eq!(number_of(&stage.header("earliest").await["number"]), 0);
    let header = stage.header(&quantity(stage.first)).await;
    let block = stage.chain.block(stage.first).await.unwrap();
    assert_eq!(
        (Hash::of(&header["hash"]), Hash::of(&header["parentHash"])),
        (block.hash, block.parent_hash)
    );
    assert_eq!(
        stage.rpc.call("eth_getBlockByHash", json!([block.hash.to_string(), false])).await,
        Ok(header.clone())
    );
    let deprecated = json!([{"to": evm(stage.token.address), "data": "0x0e136b19"}, "latest"]);
    assert_eq!(
        stage.rpc.call("eth_call", deprecated.clone()).await,
        Ok(json!(format!("0x{}", "0".repeat(64))))
    );

    // What is odd about TRON.
    assert_eq!(header["stateRoot"], "0x");
    assert_eq!(
        stage.receipt(stage.sent[0]).await["logsBloom"],
        json!(format!("0x{}", "0".repeat(512)))
    );
    let log = &stage.logs(stage.first, stage.first).await.unwrap()[0];
    assert!(log.get("blockTimestamp").is_none() && log["removed"] == json!(false), "{log}");
    stage.proxy.change(|faults| faults.is_time_in_logs = true);
    assert_eq!(
        number_of(&stage.logs(stage.first, stage.first).await.unwrap()[0]["blockTimestamp"]) as i64,
        block.time
    );
    assert_eq!(stage.logs(head + 1, head + 5).await, Ok(vec![]));
    assert_eq!(stage.logs(head + 5, head + 5).await, Ok(vec![]));
    assert_eq!(stage.logs(stage.first, head + 5).await.unwrap().len(), 3);
    assert_eq!(
        stage.rpc.call("eth_getBlockByNumber", json!([quantity(head + 1), false])).await,
        Ok(Value::Null)
    );
    assert_eq!(stage.receipts(head + 1).await, Ok(Value::Null));
    for (method, params, code) in [
        ("eth_getBlockByNumber", json!(["safe", false]), -32602),
        ("eth_getBlockByNumber", json!(["pending", false]), -32602),
        ("eth_getLogs", json!([{"fromBlock": "0x2", "toBlock": "0x1"}]), -32602),
        ("eth_getLogs", json!([{"blockHash": Hash([7; 32]).to_string()}]), -32602),
        ("eth_call", json!([deprecated[0], "0x1"]), -32602),
        ("eth_sendRawTransaction", json!(["0x00"]), -32601),
        ("anvil_mine", json!([1]), -32601),
        ("eth_subscribe", json!(["logs"]), -32601),
    ] {
        assert_eq!(stage.refusal(method, params).await.0, code, "{method}");
    }
    let by_hash = json!({"address": evm(stage.token.address), "blockHash": block.hash.to_string()});
    assert_eq!(stage.logs_by(by_hash).await.unwrap().len(), 1);
    let waiting = stage.token.transfer(stage.to, 1).await;
    assert_eq!(stage.receipt(waiting).await, Value::Null);

    let now = stage.rpc.get("/walletsolidity/getnowblock").await.unwrap();
    let solid = stage.chain.block(head - FINALITY_BLOCKS).await.unwrap();
    let raw = &now["block_header"]["raw_data"];
    assert_eq!(
        (raw["number"].as_u64(), raw["timestamp"].as_i64()),
        (Some(solid.number), Some(solid.time * 1_000))
    );
    assert_eq!(
        (now["blockID"].as_str(), raw["parentHash"].as_str()),
        (Some(&*solid.hash.plain()), Some(&*solid.parent_hash.plain()))
    );
    assert_eq!(
        stage.rpc.get("/wallet/getnowblock").await.unwrap()["block_header"]["raw_data"]["number"],
        json!(head)
    );
    assert_eq!(stage.rpc.get("/v1/accounts").await, Err(RpcError::Unreachable("HTTP 404".into())));
}

#[tokio::test]
async fn limits_are_enforced() {
    let stage = Stage::set().await;
    let (first, filter) = (stage.first, stage.filter(stage.first, stage.first + 2));
    stage.proxy.change(|faults| faults.range_blocks_max = Some(2));
    assert_eq!(stage.logs(first, first + 2).await.unwrap().len(), 3, "the limit itself is allowed");
    assert_eq!(
        stage.refusal("eth_getLogs", json!([stage.filter(first - 1, first + 2)])).await,
        (-32602, "exceed max block range: 2".to_owned())
    );
    stage.proxy.heal();
    assert_eq!(
        stage.refusal("eth_getLogs", json!([stage.filter(0, 5_001)])).await.0,
        -32602,
        "5000 is the node's own"
    );

    stage.proxy.change(|faults| faults.results_max = Some(3));
    assert_eq!(stage.units().await.len(), 3);
    stage.proxy.change(|faults| faults.results_max = Some(2));
    let told = (-32005, "query returned more than 2 results".to_owned());
    assert_eq!(stage.refusal("eth_getLogs", json!([filter])).await, told);
    stage.proxy.heal();

    stage.proxy.change(|faults| faults.response_bytes_max = Some(1_000));
    assert_eq!(stage.logs(first, first).await.unwrap().len(), 1);
    assert_eq!(stage.refusal("eth_getLogs", json!([filter])).await.0, -32003);
    let batch = [
        ("eth_blockNumber", json!([])),
        ("eth_getLogs", json!([filter])),
        ("eth_blockNumber", json!([])),
    ];
    let answers = stage.rpc.batch(&batch).await.unwrap();
    let codes: Vec<_> =
        answers.iter().map(|answer| answer.as_ref().err().and_then(RpcError::code)).collect();
    assert_eq!(codes, [None, Some(-32003), Some(-32003)], "a batch is measured as a whole");
    stage.proxy.heal();

    let calls = vec![("eth_blockNumber", json!([])); 101];
    assert_eq!(
        stage.rpc.batch(&calls).await.unwrap_err().code(),
        Some(-32005),
        "100 is the node's own"
    );
    stage.proxy.change(|faults| faults.batch_calls_max = Some(2));
    assert_eq!(stage.rpc.batch(&calls[..2]).await.unwrap().len(), 2);
    assert_eq!(stage.rpc.batch(&calls[..3]).await.unwrap_err().code(), Some(-32005));
    stage.proxy.heal();
    assert!(stage.is_healthy().await);
}

#[tokio::test]
async fn calls_are_counted_and_batches_answered_in_either_order() {
    let stage = Stage::set().await;
    stage.proxy.forget_calls();
    let filter = stage.filter(stage.first, stage.first);
    let batch = [
        ("eth_getLogs", json!([filter])),
        ("eth_getBlockByNumber", json!(["latest", false])),
        ("eth_getBlockByNumber", json!(["0x1", false])),
    ];
    let straight = stage.rpc.batch(&batch).await.unwrap();
    stage.proxy.change(|faults| faults.is_batch_reversed = true);
    assert_eq!(stage.rpc.batch(&batch).await.unwrap(), straight, "the ids tell");
    let raw = json!([{"jsonrpc": "2.0", "id": "a", "method": "eth_chainId"}, {"jsonrpc": "2.0",
        "id": "b", "method": "eth_chainId"}]);
    let answers = stage.rpc.post(&raw).await.unwrap();
    assert_eq!((&answers[0]["id"], &answers[1]["id"]), (&json!("b"), &json!("a")));
    assert_eq!(
        (
            stage.proxy.calls("eth_getLogs"),
            stage.proxy.calls("eth_getBlockByNumber"),
            stage.proxy.requests()
        ),
        (2, 4, 3)
    );
    assert_eq!(stage.proxy.calls_seen()[0].params, json!([filter]));
    stage.proxy.forget_calls();
    assert_eq!((stage.proxy.calls("eth_getLogs"), stage.proxy.requests()), (0, 0));

    let late = stage.rpc.clone();
    let calling = tokio::spawn(async move { late.call("eth_chainId", json!([])).await });
    stage.proxy.await_calls("eth_chainId", 1).await;
    calling.await.unwrap().unwrap();
    assert_eq!(stage.rpc.post(&json!([])).await.unwrap()["error"]["code"], json!(-32600));
    assert_eq!(stage.rpc.post(&json!("text")).await.unwrap()["error"]["code"], json!(-32600));
}

#[tokio::test]
async fn the_bloom_hole_hides_logs_and_not_receipts() {
    let stage = Stage::set().await;
    stage.proxy.change(|faults| faults.logs_hidden = Blocks::only([stage.first + 1]));
    assert_eq!(stage.units().await, [11, 33]);
    stage.proxy.change(|faults| faults.logs_hidden = Blocks::Range(stage.first + 1..=u64::MAX));
    assert_eq!(stage.units().await, [11]);
    stage.proxy.change(|faults| faults.logs_hidden = Blocks::All);
    assert_eq!(stage.units().await, Vec::<u64>::new());
    let by_topic = json!({"topics": [null, null, topic(stage.to)],
        "fromBlock": quantity(stage.first), "toBlock": "latest"});
    assert_eq!(stage.logs_by(by_topic).await, Ok(vec![]));
    // Without a filter the node does not use the index.
    assert_eq!(
        stage
            .logs_by(json!({"fromBlock": quantity(stage.first), "toBlock": "latest"}))
            .await
            .unwrap()
            .len(),
        3
    );
    let receipts = stage.receipts(stage.first).await.unwrap();
    assert_eq!(TransferLog::read(&receipts[0]["logs"][0]).unwrap().units, 11);
    stage.proxy.heal();
    assert!(stage.is_healthy().await);
}

#[tokio::test]
async fn a_stale_replica_knows_nothing_of_the_last_blocks() {
    let stage = Stage::set().await;
    stage.chain.mine(20).await;
    let head = stage.chain.head().await;
    let last = stage.token.transfer(stage.to, 44).await;
    stage.chain.mine(1).await;
    stage.proxy.change(|faults| faults.behind_blocks = 1);
    assert_eq!(stage.rpc.call("eth_blockNumber", json!([])).await, Ok(json!(quantity(head))));
    assert_eq!(number_of(&stage.header("latest").await["number"]), head);
    assert_eq!(number_of(&stage.header("finalized").await["number"]), head - FINALITY_BLOCKS);
    assert_eq!(stage.header(&quantity(head + 1)).await, Value::Null);
    let hash = stage.chain.head_block().await.hash;
    assert_eq!(
        stage.rpc.call("eth_getBlockByHash", json!([hash.to_string(), false])).await,
        Ok(Value::Null)
    );
    assert_eq!(stage.logs(head + 1, head + 1).await, Ok(vec![]));
    assert_eq!(stage.logs(stage.first, head + 1).await.unwrap().len(), 3, "cut without a word");
    assert_eq!(
        (stage.receipts(head + 1).await, stage.receipt(last).await),
        (Ok(Value::Null), Value::Null)
    );
    let now = stage.rpc.get("/walletsolidity/getnowblock").await.unwrap();
    assert_eq!(now["block_header"]["raw_data"]["number"], json!(head - FINALITY_BLOCKS));

    // Behind a load balancer: the logs come from the stale node, the headers from another.
    stage.proxy.change(|faults| faults.behind_methods = Some(["eth_getLogs"].into()));
    assert_eq!(number_of(&stage.header("latest").await["number"]), head + 1);
    assert_eq!(stage.logs(head + 1, head + 1).await, Ok(vec![]));
    stage.proxy.heal();
    assert_eq!(stage.logs(head + 1, head + 1).await.unwrap().len(), 1);

    stage.proxy.change(|faults| faults.finality_behind_blocks = 2);
    assert_eq!(
        number_of(&stage.header("finalized").await["number"]),
        head + 1 - FINALITY_BLOCKS - 2
    );
    assert_eq!(number_of(&stage.header("latest").await["number"]), head + 1);
    stage.proxy.change(|faults| faults.behind_blocks = 1_000);
    assert_eq!(
        number_of(&stage.header("latest").await["number"]),
        0,
        "no further back than the first block"
    );
}

#[tokio::test]
async fn nodes_tell_other_times_and_finality_and_more_than_they_were_asked() {
    let stage = Stage::set().await;
    stage.chain.mine(20).await;
    let (head, number) = (stage.chain.head().await, quantity(stage.first));
    let time = number_of(&stage.header(&number).await["timestamp"]);
    stage.proxy.change(|faults| {
        (faults.is_head_final, faults.time_shift) = (true, Some((Blocks::only([stage.first]), -5)))
    });
    assert_eq!(number_of(&stage.header("finalized").await["number"]), head);
    assert_eq!(number_of(&stage.header(&number).await["timestamp"]), time - 5);
    assert_eq!(number_of(&stage.header(&quantity(stage.first + 1)).await["timestamp"]), time + 3);
    stage.proxy.heal();

    stage.token.approve(stage.to, 5).await;
    stage.chain.mine(1).await;
    assert_eq!(stage.logs(head + 1, head + 1).await, Ok(vec![]));
    stage.proxy.change(|faults| faults.is_ignoring_topics = true);
    assert_eq!(stage.logs(head + 1, head + 1).await.unwrap().len(), 1);
    stage.proxy.heal();

    stage.proxy.change(|faults| faults.is_rate_limited = true);
    assert_eq!(stage.refusal("eth_chainId", json!([])).await.0, -32005);
    stage.proxy.heal();
    assert!(stage.is_healthy().await);
}

#[tokio::test]
async fn providers_refuse_in_their_ways() {
    let stage = Stage::set().await;
    stage.proxy.change(|faults| faults.is_overloaded = true);
    let told = stage
        .rpc
        .post(&json!({"jsonrpc": "2.0", "id": 1, "method": "eth_blockNumber"}))
        .await
        .unwrap();
    assert!(
        told["Error"].as_str().is_some_and(|text| text.ends_with("lack of computing resources")),
        "{told}"
    );
    assert!(told.get("id").is_none() && told.get("error").is_none());
    stage.proxy.heal();

    stage.proxy.change(|faults| faults.too_many_retry_after_seconds = Some(7));
    assert!(stage.unreachable().await.starts_with("HTTP 429 retry-after Some(7)"));
    stage.proxy.heal();
    assert!(stage.is_healthy().await);

    stage.proxy.ban(Duration::from_millis(150));
    let started = Instant::now();
    assert!(stage.unreachable().await.starts_with("HTTP 403"));
    while stage.proxy.is_banned() {
        assert!(
            stage.rpc.call("eth_chainId", json!([])).await.is_err() || !stage.proxy.is_banned()
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(started.elapsed() >= Duration::from_millis(150));
    assert!(stage.is_healthy().await);

    // Too many calls within a second, those of a batch included.
    stage.proxy.heal();
    let ban = Sanction::Ban { duration: Duration::from_secs(30) };
    stage.proxy.change(|faults| faults.calls_per_second_max = Some((4, ban)));
    assert!(stage.rpc.batch(&vec![("eth_blockNumber", json!([])); 4]).await.is_ok());
    assert!(stage.unreachable().await.starts_with("HTTP 403"));
    assert!(stage.proxy.is_banned());
    stage.proxy.heal();
    stage.proxy.change(|faults| {
        faults.calls_per_second_max = Some((1, Sanction::TooMany { retry_after_seconds: 1 }))
    });
    assert!(stage.rpc.call("eth_blockNumber", json!([])).await.is_ok());
    assert!(stage.unreachable().await.starts_with("HTTP 429 retry-after Some(1)"));
    stage.proxy.heal();
    assert!(stage.is_healthy().await);
}

#[tokio::test]
async fn old_versions_lack_what_came_later() {
    let stage = Stage::set().await;
    stage.chain.mine(20).await;
    let solid = stage.chain.finalized().await;
    stage
        .proxy
        .change(|faults| (faults.is_finalized_refused, faults.is_receipts_missing) = (true, true));
    assert_eq!(stage.refusal("eth_getBlockByNumber", json!(["finalized", false])).await.0, -32602);
    assert_eq!(
        stage.refusal("eth_getLogs", json!([{"fromBlock": "0x1", "toBlock": "finalized"}])).await.0,
        -32602
    );
    assert_eq!(stage.refusal("eth_getBlockReceipts", json!(["0x1"])).await.0, -32601);
    let now = stage.rpc.get("/walletsolidity/getnowblock").await.unwrap();
    assert_eq!(now["block_header"]["raw_data"]["number"], json!(solid));
    assert!(stage.is_healthy().await);
}

#[tokio::test]
async fn a_poison_block_answers_nothing_that_touches_it() {
    let stage = Stage::set().await;
    let poisoned = stage.first + 1;
    let hash = stage.chain.block(poisoned).await.unwrap().hash.to_string();
    stage.proxy.change(|faults| faults.poison = Blocks::only([poisoned]));
    for (method, params) in [
        ("eth_getBlockByNumber", json!([quantity(poisoned), false])),
        ("eth_getBlockByHash", json!([hash, false])),
        ("eth_getBlockReceipts", json!([quantity(poisoned)])),
        ("eth_getLogs", json!([stage.filter(stage.first, stage.first + 2)])),
        ("eth_getLogs", json!([{"blockHash": hash}])),
        ("eth_getTransactionReceipt", json!([stage.sent[1].to_string()])),
        ("eth_getTransactionByHash", json!([stage.sent[1].to_string()])),
    ] {
        assert_eq!(
            stage.refusal(method, params).await,
            (-32000, "illegal state. 0".to_owned()),
            "{method}"
        );
    }
    assert_eq!(stage.logs(stage.first, stage.first).await.unwrap().len(), 1);
    assert_eq!(stage.logs(stage.first + 2, stage.first + 2).await.unwrap().len(), 1);
    assert!(stage.header(&quantity(poisoned + 1)).await.is_object());
}

#[tokio::test]
async fn another_chain_and_another_branch_can_be_shown() {
    let stage = Stage::set().await;
    stage.proxy.change(|faults| faults.chain_id = Some(1));
    assert_eq!(stage.rpc.call("eth_chainId", json!([])).await, Ok(json!("0x1")));
    assert_eq!(stage.rpc.call("net_version", json!([])).await, Ok(json!("1")));
    stage.proxy.heal();

    let first = stage.first;
    stage.proxy.change(|faults| faults.fork = Some(Fork { blocks: first..=first + 1, mark: 0x5a }));
    let mut parent = stage.chain.block(first - 1).await.unwrap().hash;
    for number in first..=first + 2 {
        let (shown, real) =
            (stage.header(&quantity(number)).await, stage.chain.block(number).await.unwrap());
        let hash = Hash::of(&shown["hash"]);
        assert_eq!(Hash::of(&shown["parentHash"]), parent, "the branch hangs together at {number}");
        assert_eq!(hash != real.hash, number <= first + 1);
        let log = &stage.logs(number, number).await.unwrap()[0];
        let receipts = stage.receipts(number).await.unwrap();
        let receipt = stage.receipt(stage.sent[(number - first) as usize]).await;
        for found in [
            &log["blockHash"],
            &receipts[0]["blockHash"],
            &receipts[0]["logs"][0]["blockHash"],
            &receipt["blockHash"],
        ] {
            assert_eq!(Hash::of(found), hash);
        }
        assert_eq!(
            stage.rpc.call("eth_getBlockByHash", json!([hash.to_string(), false])).await,
            Ok(shown)
        );
        let by_hash = json!({"address": evm(stage.token.address), "blockHash": hash.to_string()});
        assert_eq!(stage.logs_by(by_hash).await, Ok(vec![log.clone()]));
        if number <= first + 1 {
            let unknown =
                stage.rpc.call("eth_getBlockByHash", json!([real.hash.to_string(), false])).await;
            assert_eq!(unknown, Ok(Value::Null), "the chain's own block is not on this branch");
        }
        parent = hash;
    }
    stage.proxy.change(|faults| faults.fork = Some(Fork { blocks: 0..=u64::MAX, mark: 1 }));
    let now = stage.rpc.get("/wallet/getnowblock").await.unwrap();
    assert_ne!(now["blockID"], json!(stage.chain.head_block().await.hash.plain()));
    assert_eq!(
        format!("0x{}", now["blockID"].as_str().unwrap()),
        stage.header("latest").await["hash"].as_str().unwrap()
    );
}

#[tokio::test]
async fn the_way_can_be_slow_broken_and_full_of_garbage() {
    let stage = Stage::set().await;
    stage.proxy.change(|faults| faults.is_dropping_connections = true);
    assert!(!stage.unreachable().await.starts_with("HTTP"));
    stage.proxy.heal();
    stage.proxy.change(|faults| faults.delay = Duration::from_millis(80));
    let started = Instant::now();
    stage.rpc.call("eth_chainId", json!([])).await.unwrap();
    assert!(started.elapsed() >= Duration::from_millis(80));
    stage.proxy.heal();

    for garbage in [Garbage::Page, Garbage::Truncated, Garbage::Empty, Garbage::Bytes] {
        stage.proxy.change(|faults| faults.garbage = Some(garbage));
        assert!(stage.unreachable().await.starts_with("no JSON"), "{garbage:?}");
    }
    stage.proxy.change(|faults| faults.garbage = Some(Garbage::OtherIds));
    let calls = vec![("eth_blockNumber", json!([])); 2];
    assert!(stage.rpc.batch(&calls).await.unwrap().iter().all(Result::is_err));
    stage.proxy.change(|faults| faults.garbage = Some(Garbage::WrongTypes));
    assert!(stage.rpc.call("eth_blockNumber", json!([])).await.unwrap().is_object());
    stage.proxy.heal();

    // Faults for a number of requests only, on top of those that stay.
    stage.proxy.change(|faults| faults.chain_id = Some(5));
    stage.proxy.fail_next(2, |faults| faults.too_many_retry_after_seconds = Some(1));
    for _ in 0..2 {
        assert!(stage.unreachable().await.starts_with("HTTP 429"));
    }
    assert_eq!(stage.rpc.call("eth_chainId", json!([])).await, Ok(json!("0x5")));
    stage.proxy.heal();
    assert!(stage.is_healthy().await);

    let address = stage.proxy.endpoint();
    drop(stage.proxy);
    tokio::task::yield_now().await;
    assert!(
        matches!(
            Rpc::new(address).call("eth_chainId", json!([])).await,
            Err(RpcError::Unreachable(_))
        ),
        "it ends with its handle"
    );
}

#[tokio::test]
async fn logs_can_be_failed_removed_short_and_invented() {
    let stage = Stage::set().await;
    let [one, two, three] = [stage.sent[0], stage.sent[1], stage.sent[2]];
    stage.proxy.change(|faults| faults.failed = [one].into());
    assert_eq!(
        (stage.receipt(one).await["status"].clone(), stage.receipt(two).await["status"].clone()),
        (json!("0x0"), json!("0x1"))
    );
    assert_eq!(stage.receipts(stage.first).await.unwrap()[0]["status"], "0x0");
    assert_eq!(stage.units().await, [11, 22, 33], "its log is still there");
    stage.proxy.heal();

    stage.proxy.change(|faults| faults.removed = [two].into());
    let logs = stage.logs(stage.first, stage.first + 2).await.unwrap();
    assert_eq!(
        logs.iter().map(|log| log["removed"] == json!(true)).collect::<Vec<_>>(),
        [false, true, false]
    );
    stage.proxy.heal();

    let pair = stage.token.transfer_many(&[(stage.to, 5), (stage.to, 6)]).await;
    stage.chain.mine(1).await;
    let last = stage.chain.head().await;
    stage.proxy.change(|faults| faults.short = [(pair, 0), (three, 0)].into());
    assert_eq!(stage.units().await, [11, 22]);
    let logs = stage.logs(last, last).await.unwrap();
    assert_eq!(
        logs.iter().map(|log| TransferLog::read(log).unwrap().units).collect::<Vec<_>>(),
        [6],
        "one of two"
    );
    assert_eq!(stage.receipts(last).await.unwrap()[0]["logs"].as_array().unwrap().len(), 2);
    stage.proxy.heal();

    let invented = Invented {
        block: stage.first + 1,
        contract: stage.token.address,
        from: stage.chain.treasury(),
        to: stage.to,
        units: 1_000_000,
        transaction: Hash([0xab; 32]),
        log_index: 1,
        is_deprecation: false,
    };
    stage.proxy.change(|faults| faults.invented = vec![invented.clone()]);
    assert_eq!(stage.units().await, [11, 22, 1_000_000, 33]);
    let shown =
        TransferLog::read(&stage.logs(invented.block, invented.block).await.unwrap()[1]).unwrap();
    assert_eq!(shown.block_hash, stage.chain.block(invented.block).await.unwrap().hash);
    assert_eq!(stage.receipt(invented.transaction).await, Value::Null);
    assert_eq!(stage.receipts(invented.block).await.unwrap().as_array().unwrap().len(), 1);
    // It meets filters as a real one does.
    for (topics, count) in [
        (json!([[TRANSFER_TOPIC, DEPRECATE_TOPIC], null, [topic(stage.to)]]), 2),
        (json!([TRANSFER_TOPIC, topic(stage.to)]), 0),
        (json!([DEPRECATE_TOPIC]), 0),
    ] {
        let mut filter = stage.filter(invented.block, invented.block);
        filter["topics"] = topics;
        assert_eq!(stage.logs_by(filter).await.unwrap().len(), count);
    }
    let mut elsewhere = stage.filter(invented.block, invented.block);
    elsewhere["address"] = json!([evm(nobody(3))]);
    assert_eq!(stage.logs_by(elsewhere).await, Ok(vec![]));
}

#[tokio::test]
async fn faults_combine() {
    let stage = Stage::set().await;
    let head = stage.chain.head().await;
    stage.proxy.change(|faults| {
        *faults = Faults {
            behind_blocks: 1,
            results_max: Some(1),
            logs_hidden: Blocks::only([stage.first]),
            fork: Some(Fork { blocks: 0..=u64::MAX, mark: 9 }),
            ..Faults::default()
        };
    });
    let logs = stage.logs(stage.first, head).await.unwrap();
    assert_eq!(
        logs.iter().map(|log| TransferLog::read(log).unwrap().units).collect::<Vec<_>>(),
        [22],
        "one hidden, one beyond the head"
    );
    assert_eq!(logs[0]["blockHash"], stage.header(&quantity(stage.first + 1)).await["hash"]);
    stage.proxy.change(|faults| faults.logs_hidden = Blocks::None);
    assert_eq!(
        stage.refusal("eth_getLogs", json!([stage.filter(stage.first, head)])).await.0,
        -32005
    );
}

#[tokio::test]
async fn an_answer_can_be_held_while_the_chain_moves() {
    let stage = Stage::set().await;
    let mut held = stage.proxy.hold("eth_getLogs");
    let (rpc, filter) = (stage.rpc.clone(), stage.filter(stage.first, stage.first + 2));
    let calling = tokio::spawn(async move { rpc.call("eth_getLogs", json!([filter])).await });
    held.arrived().await;
    stage.chain.reorg(3, &[]).await;
    assert!(!calling.is_finished());
    held.release();
    assert_eq!(
        calling.await.unwrap().unwrap().as_array().unwrap().len(),
        3,
        "made before the reorganisation"
    );
    assert_eq!(stage.units().await, Vec::<u64>::new(), "only one answer is held");
    drop(stage.proxy.hold("eth_chainId"));
    assert!(
        stage.rpc.call("eth_chainId", json!([])).await.is_ok(),
        "a dropped handle holds nothing"
    );
}
