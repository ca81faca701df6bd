//! One node, asked over the Ethereum JSON-RPC.
//!
//! Answers are not judged here, but in `verify`. `transport` sends the questions within the limits
//! of the node's gateway, `error` classifies refusals, and `block_info` reads a block's receipts as
//! TRON's own interface writes them.

mod block_info;
mod error;
mod port;
#[cfg(test)]
pub(super) mod scripted_gateway;
mod transport;

use std::sync::atomic::{AtomicBool, Ordering};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use transport::{Answered, RpcQuestion, Transport};

use super::address_bytes::AddressBytes;
use super::blocks::{DEPRECATE_TOPIC, Data, Hash, Header, Log, Quantity, Receipt, TRANSFER_TOPIC};
use super::budget::RequestLimits;
use super::port::{BlockRange, ChainNode, FinalBlock, NodeError};
use super::timer::Timer;
use crate::outbound::{Client, OutboundEndpoint};

/// One node with the Ethereum JSON-RPC.
pub struct RpcNode {
    transport: Transport,
    is_tron: bool,
    /// See [`ChainNode::fits`].
    fits: AtomicBool,
    /// Whether the node is known to lack the tag `finalized`; then the tag is not tried again.
    lacks_finalized: AtomicBool,
    lacks_block_receipts: AtomicBool,
    /// Whether the node is known to lack [`block_info::PATH`] of TRON's own interface; true on
    /// other chains.
    lacks_block_info: AtomicBool,
}

/// A number as the JSON-RPC writes it.
fn quantity(number: i64) -> String {
    format!("{number:#x}")
}

/// Bytes in hexadecimal with `0x`, as the JSON-RPC writes them.
fn prefixed(bytes: impl AsRef<[u8]>) -> String {
    format!("0x{}", crate::kernel::hex::encode(bytes))
}

/// Reads an answer to a question that can be asked in another way. If the answer cannot be read,
/// the node is asked in the other way at once, so it gets no rest (see `transport`).
fn parsed<T: DeserializeOwned>(answer: Answered) -> Result<T, NodeError> {
    serde_json::from_str(answer?.get()).map_err(|error| NodeError::Garbage(error.to_string()))
}

/// `None` if the node refused the question, or its answer made no sense: asking again would not
/// help.
fn unless_refused<T>(answer: Result<T, NodeError>) -> Result<Option<T>, NodeError> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(fault) if fault.is_refusal() => Ok(None),
        Err(fault) => Err(fault),
    }
}

impl RpcNode {
    /// `is_tron` says whether the node may also have TRON's own interface.
    pub fn new(
        client: Client,
        endpoint: OutboundEndpoint,
        limits: RequestLimits,
        timer: Timer,
        is_tron: bool,
    ) -> RpcNode {
        RpcNode {
            transport: Transport::new(client, endpoint, limits, timer),
            is_tron,
            fits: false.into(),
            lacks_finalized: false.into(),
            lacks_block_receipts: false.into(),
            lacks_block_info: (!is_tron).into(),
        }
    }

    /// Reads an answer. If it cannot be read, the node rests.
    fn read<T: DeserializeOwned>(&self, answer: Answered) -> Result<T, NodeError> {
        match parsed(answer) {
            Err(garbage @ NodeError::Garbage(_)) => self.transport.note_result(Err(garbage), None),
            read => read,
        }
    }

    /// Asks many questions whose answers have the same type. If the node refuses for a while, this
    /// waits as [`Transport::ask`] does, because otherwise everything that the caller read before
    /// would be lost.
    async fn many<T: DeserializeOwned>(
        &self,
        questions: &[RpcQuestion],
    ) -> Result<Vec<T>, NodeError> {
        let answers = self.transport.ask(questions, true).await?;
        answers.into_iter().map(|answer| self.read(answer)).collect()
    }

    async fn one<T: DeserializeOwned>(
        &self,
        method: &'static str,
        params: Value,
    ) -> Result<T, NodeError> {
        let mut answers = self.transport.ask(&[RpcQuestion::new(method, params)], false).await?;
        self.read(answers.pop().unwrap_or(Err(NodeError::Garbage("no answer".into()))))
    }

    async fn chain_id(&self) -> Result<u64, NodeError> {
        let id: Quantity = self.one("eth_chainId", json!([])).await?;
        Ok(id.0.unsigned_abs())
    }

    /// Calls a contract's function that has no arguments. `None` if it returned neither a number
    /// nor a truth value.
    async fn call_number(
        &self,
        contract: &AddressBytes,
        selector: [u8; 4],
    ) -> Result<Option<u128>, NodeError> {
        let data = self.call_data(contract, selector).await?;
        Ok(data.as_number())
    }

    /// Calls a contract's function that has no arguments, and answers what it returned.
    async fn call_data(
        &self,
        contract: &AddressBytes,
        selector: [u8; 4],
    ) -> Result<Data, NodeError> {
        self.one(
            "eth_call",
            json!([{ "to": prefixed(contract), "data": prefixed(selector) }, "latest"]),
        )
        .await
    }

    /// What several addresses hold of a contract's token at the newest block, in its smallest
    /// units. Nodes of TRON answer for no other block.
    async fn balances(
        &self,
        contract: &AddressBytes,
        addresses: &[AddressBytes],
    ) -> Result<Vec<u128>, NodeError> {
        /// `balanceOf(address)`.
        const BALANCE_SELECTOR: [u8; 4] = [0x70, 0xa0, 0x82, 0x31];
        let question = |address: &AddressBytes| {
            let data = [&BALANCE_SELECTOR[..], &[0; 12], address.as_slice()].concat();
            RpcQuestion::new(
                "eth_call",
                json!([{ "to": prefixed(contract), "data": prefixed(data) }, "latest"]),
            )
        };
        let answers: Vec<Data> =
            self.many(&addresses.iter().map(question).collect::<Vec<_>>()).await?;
        let read = |answer: Data| {
            answer.as_number().ok_or_else(|| NodeError::Garbage("a balance cannot be read".into()))
        };
        answers.into_iter().map(read).collect()
    }

    /// Whether each address holds some of the chain's own coin, or has sent a transaction (on TRON:
    /// is an activated account). Received tokens show only in [`RpcNode::balances`].
    async fn known_accounts(&self, addresses: &[AddressBytes]) -> Result<Vec<bool>, NodeError> {
        let asked = async |method: &'static str| {
            let question = |address: &AddressBytes| {
                RpcQuestion::new(method, json!([prefixed(address), "latest"]))
            };
            let questions: Vec<_> = addresses.iter().map(question).collect();
            let answers = unless_refused(self.transport.ask(&questions, true).await)?;
            let is_known = |answer: Answered| -> Result<bool, NodeError> {
                let number: Option<BigQuantity> = unless_refused(parsed(answer))?;
                Ok(number.is_some_and(|number| !number.is_zero()))
            };
            let answers = answers.unwrap_or_default().into_iter();
            answers.map(is_known).collect::<Result<Vec<bool>, NodeError>>()
        };
        let mut is_known = asked("eth_getBalance").await?;
        is_known.resize(addresses.len(), false);
        if self.is_tron {
            for (address, is_known) in addresses.iter().zip(&mut is_known) {
                let text = format!("41{}", crate::kernel::hex::encode(address));
                let question = json!({ "address": text });
                let answer = self.transport.post("/wallet/getaccount", question, true);
                let body = unless_refused(answer.await)?;
                let account = body.and_then(|body| serde_json::from_slice(&body).ok());
                // An address that was never activated is answered with an empty object.
                *is_known |= account.is_some_and(|account: Value| account.get("address").is_some());
            }
        } else {
            let sent = asked("eth_getTransactionCount").await?;
            is_known.iter_mut().zip(sent).for_each(|(is_known, sent)| *is_known |= sent);
        }
        Ok(is_known)
    }

    /// The newest block.
    async fn head(&self) -> Result<Header, NodeError> {
        let header: Option<Header> =
            self.one("eth_getBlockByNumber", json!(["latest", false])).await?;
        header.ok_or_else(|| NodeError::Garbage("there is no newest block".into()))
    }

    /// The newest block that cannot be replaced. Nodes of TRON before java-tron 4.8.0 lack the tag
    /// `finalized`. They are asked over TRON's own interface on the same host for the last
    /// solidified block, which is TRON's word for final. Nodes of other chains have to know the
    /// tag.
    async fn final_block(&self) -> Result<FinalBlock, NodeError> {
        if !self.lacks_finalized.load(Ordering::Relaxed) {
            let header: Result<Option<Header>, NodeError> =
                self.one("eth_getBlockByNumber", json!(["finalized", false])).await;
            match header {
                Ok(Some(header)) => {
                    return Ok(FinalBlock {
                        number: header.number.0,
                        time: header.timestamp.0,
                        header: Some(header),
                    });
                }
                Ok(None) => return Err(NodeError::Refused("no block is final yet".into())),
                Err(NodeError::MethodMissing(_) | NodeError::Refused(_)) if self.is_tron => {}
                Err(NodeError::MethodMissing(words)) => {
                    return Err(NodeError::MethodMissing(format!(
                        "it lacks the tag `finalized`: {words}"
                    )));
                }
                Err(fault) => return Err(fault),
            }
        }
        let solid = self.solid_block().await?;
        self.lacks_finalized.store(true, Ordering::Relaxed);
        Ok(solid)
    }

    async fn solid_block(&self) -> Result<FinalBlock, NodeError> {
        #[derive(Deserialize)]
        struct SolidBlock {
            block_header: BlockHeader,
        }
        #[derive(Deserialize)]
        struct BlockHeader {
            raw_data: RawData,
        }
        #[derive(Deserialize)]
        struct RawData {
            #[serde(default)]
            number: i64,
            /// Milliseconds since 1970.
            #[serde(default)]
            timestamp: i64,
        }
        let body = self.transport.post("/walletsolidity/getnowblock", json!({}), false).await?;
        match serde_json::from_slice::<SolidBlock>(&body) {
            Ok(solid) => self.transport.note_result(
                Ok(FinalBlock {
                    number: solid.block_header.raw_data.number,
                    time: solid.block_header.raw_data.timestamp / 1000,
                    header: None,
                }),
                None,
            ),
            Err(error) => self.transport.note_result(
                Err(NodeError::Garbage(format!("the solidified block cannot be read: {error}"))),
                None,
            ),
        }
    }

    /// The header of a block; `None` if the node does not have it (yet).
    async fn header(&self, number: i64) -> Result<Option<Header>, NodeError> {
        self.one("eth_getBlockByNumber", json!([quantity(number), false])).await
    }

    /// The headers of several blocks.
    async fn headers(&self, numbers: &[i64]) -> Result<Vec<Option<Header>>, NodeError> {
        let questions: Vec<_> = numbers
            .iter()
            .map(|number| {
                RpcQuestion::new("eth_getBlockByNumber", json!([quantity(*number), false]))
            })
            .collect();
        self.many(&questions).await
    }

    /// Logs of the contracts in a range of blocks, with the headers of its first and last block.
    /// See [`ChainNode::range`].
    async fn range(
        &self,
        contracts: &[AddressBytes],
        from: i64,
        to: i64,
        last: Option<&Header>,
    ) -> Result<Option<BlockRange>, NodeError> {
        let addresses: Vec<String> = contracts.iter().map(prefixed).collect();
        let topics = [TRANSFER_TOPIC.to_string(), DEPRECATE_TOPIC.to_string()];
        let filter = json!([{ "fromBlock": quantity(from), "toBlock": quantity(to),
            "address": addresses, "topics": [topics] }]);
        let header_question = |number: i64| {
            RpcQuestion::new("eth_getBlockByNumber", json!([quantity(number), false]))
        };
        let last = last.filter(|last| last.number.0 == to).cloned();
        let mut questions = Vec::with_capacity(3);
        let is_first_known = from == to && last.is_some();
        if !is_first_known {
            questions.push(header_question(from));
        }
        questions.push(RpcQuestion::new("eth_getLogs", filter));
        if last.is_none() {
            questions.push(header_question(to));
        }
        let mut answers = self.transport.ask(&questions, false).await?.into_iter();
        let mut next = || answers.next().unwrap_or(Err(NodeError::Garbage("no answer".into())));
        // The headers first: a node that lacks them may answer anything to the filter.
        let first: Option<Header> = if is_first_known { last.clone() } else { self.read(next())? };
        let logs = next();
        let last: Option<Header> = match last {
            Some(last) => Some(last),
            None => self.read(next())?,
        };
        let (Some(first), Some(last)) = (first, last) else { return Ok(None) };
        // Nodes that do not support lists of topics show the contracts' other logs too.
        let mut logs: Vec<Log> = self.read(logs)?;
        logs.retain(|log| log.is_transfer() || log.is_deprecation());
        Ok(Some(BlockRange { first, last, logs }))
    }

    /// What became of one transaction; `None` if the node does not know it.
    async fn receipt(&self, transaction: &Hash) -> Result<Option<Receipt>, NodeError> {
        self.one("eth_getTransactionReceipt", json!([transaction])).await
    }

    /// What became of several transactions.
    async fn receipts_of(&self, transactions: &[Hash]) -> Result<Vec<Option<Receipt>>, NodeError> {
        let questions: Vec<_> = transactions
            .iter()
            .map(|hash| RpcQuestion::new("eth_getTransactionReceipt", json!([hash])))
            .collect();
        self.many(&questions).await
    }

    /// The receipts of all transactions of a block, without a filter. If `eth_getBlockReceipts`
    /// does not give the whole block, TRON's own interface is asked (for a block with several
    /// transactions), and finally each transaction by itself. `None` if the node does not know all
    /// of the transactions.
    async fn receipts_in(&self, block: &Header) -> Result<Option<Vec<Receipt>>, NodeError> {
        let is_whole = |receipts: &[Receipt]| {
            block.transactions.iter().all(|transaction| {
                receipts.iter().any(|receipt| receipt.transaction_hash == *transaction)
            })
        };
        if !self.lacks_block_receipts.load(Ordering::Relaxed) {
            let question =
                RpcQuestion::new("eth_getBlockReceipts", json!([quantity(block.number.0)]));
            let answer = self.transport.ask(&[question], true).await;
            let answer = answer.map(|mut answers| answers.pop().map(parsed));
            match answer.and_then(|answer| answer.transpose()) {
                Ok(Some(Some::<Vec<Receipt>>(receipts))) if is_whole(&receipts) => {
                    return Ok(Some(receipts));
                }
                Err(NodeError::MethodMissing(words)) => {
                    tracing::info!(
                        node = self.label(),
                        words,
                        "a node lacks eth_getBlockReceipts; its blocks are read in another way"
                    );
                    self.lacks_block_receipts.store(true, Ordering::Relaxed);
                }
                Err(error) if !error.is_refusal() => return Err(error),
                _ => {}
            }
        }
        if block.transactions.len() > 1 && !self.lacks_block_info.load(Ordering::Relaxed) {
            let question = json!({ "num": block.number.0 });
            match self.transport.post(block_info::PATH, question, true).await {
                Ok(body) => {
                    if let Some(receipts) = block_info::receipts(&body, block)
                        && is_whole(&receipts)
                    {
                        return Ok(Some(receipts));
                    }
                }
                Err(NodeError::MethodMissing(_)) => {
                    self.lacks_block_info.store(true, Ordering::Relaxed);
                }
                Err(error) if !error.is_refusal() => return Err(error),
                Err(_) => {}
            }
        }
        Ok(self.receipts_of(&block.transactions).await?.into_iter().collect())
    }
}

/// A number that may exceed an `i64`, such as a balance in wei.
#[derive(Deserialize)]
struct BigQuantity(String);

impl BigQuantity {
    fn is_zero(&self) -> bool {
        self.0.trim_start_matches("0x").bytes().all(|digit| digit == b'0')
    }
}

impl serde::Serialize for Hash {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn node(script: scripted_gateway::GatewayScript, is_tron: bool) -> RpcNode {
        let endpoint = scripted_gateway::start(script).await;
        let (client, limits) = (scripted_gateway::client(), RequestLimits::default());
        RpcNode::new(client, endpoint, limits, Timer::default(), is_tron)
    }

    fn refused(asked: &Value, code: i64, message: &str) -> Value {
        let error = json!({ "code": code, "message": message });
        json!({ "jsonrpc": "2.0", "id": asked["id"], "error": error })
    }

    /// A node that does not know the tag `finalized`, and has no path beside that of the JSON-RPC.
    fn lacks_finalized(body: &str) -> (u16, &'static str, String) {
        let asked: Value = serde_json::from_str(body).unwrap();
        match asked.get("method") {
            Some(_) => (200, "", refused(&asked, -32602, "unknown block tag").to_string()),
            None => (404, "", "no such path".into()),
        }
    }

    #[tokio::test]
    async fn only_a_node_of_tron_is_asked_for_its_solidified_block() {
        let other = node(lacks_finalized, false).await;
        for _ in 0..2 {
            let fault = other.final_block().await.unwrap_err();
            let told = "it lacks the tag `finalized`: -32602 unknown block tag";
            assert_eq!(fault, NodeError::MethodMissing(told.into()));
        }
        let tron = node(lacks_finalized, true).await;
        let fault = tron.final_block().await.unwrap_err();
        assert!(fault.to_string().contains("404"), "{fault}");
    }

    /// Refuses every question about the first address; the third address has a balance.
    fn refuses_one_address(body: &str) -> (u16, &'static str, String) {
        let asked: Vec<Value> = serde_json::from_str(body).unwrap();
        let answer = |asked: &Value| {
            let address = asked["params"][0].as_str().unwrap();
            let is_funded = address.ends_with("03") && asked["method"] == "eth_getBalance";
            match address.ends_with("01") {
                true => refused(asked, -32000, "missing trie node"),
                false => json!({ "jsonrpc": "2.0", "id": asked["id"],
                    "result": if is_funded { "0xde0b6b3a7640000" } else { "0x0" } }),
            }
        };
        (200, "", Value::Array(asked.iter().map(answer).collect()).to_string())
    }

    #[tokio::test]
    async fn a_refused_question_hides_the_history_of_no_other_address() {
        let node = node(refuses_one_address, false).await;
        let addresses = [1, 2, 3].map(|byte| AddressBytes::of_20([byte; 20]));
        assert_eq!(node.known_accounts(&addresses).await, Ok(vec![false, false, true]));
    }

    fn transaction(number: u8) -> Hash {
        Hash([number; 32])
    }

    /// What TRON's own interface answers: a block of two transactions, or an activated account.
    /// `None` for a question over the JSON-RPC.
    fn over_other_interface(body: &str) -> Option<String> {
        let asked: Value = serde_json::from_str(body).ok()?;
        let info = |number: u8| {
            let id = crate::kernel::hex::encode(transaction(number).0);
            json!({ "id": id, "blockNumber": asked["num"] })
        };
        if asked.get("num").is_some() {
            return Some(json!([info(1), info(2)]).to_string());
        }
        asked.get("address").map(|address| json!({ "address": address }).to_string())
    }

    /// A node whose answers over the JSON-RPC are of another type than what was asked for.
    fn answers_another_type(body: &str) -> (u16, &'static str, String) {
        if let Some(other) = over_other_interface(body) {
            return (200, "", other);
        }
        let asked: Value = serde_json::from_str(body).unwrap();
        let answer =
            |asked: &Value| json!({ "jsonrpc": "2.0", "id": asked["id"], "result": [[1]] });
        let answers = match &asked {
            Value::Array(all) => all.iter().map(answer).collect(),
            one => answer(one),
        };
        (200, "", answers.to_string())
    }

    /// A node whose answers over the JSON-RPC are no JSON.
    fn answers_a_page(body: &str) -> (u16, &'static str, String) {
        (200, "", over_other_interface(body).unwrap_or_else(|| "<!doctype html>".into()))
    }

    const UNUSABLE: [scripted_gateway::GatewayScript; 2] = [answers_another_type, answers_a_page];

    #[tokio::test]
    async fn after_an_unusable_block_of_receipts_trons_own_interface_is_asked() {
        let mut block = super::super::blocks::samples::header(12);
        block.transactions = vec![transaction(1), transaction(2)];
        for script in UNUSABLE {
            let node = node(script, true).await;
            let receipts = node.receipts_in(&block).await.unwrap().unwrap();
            let read: Vec<Hash> = receipts.iter().map(|one| one.transaction_hash).collect();
            assert_eq!(read, block.transactions);
        }
    }

    #[tokio::test]
    async fn after_unusable_balances_trons_own_interface_is_asked() {
        let addresses = [1, 2, 3].map(|byte| AddressBytes::of_20([byte; 20]));
        for script in UNUSABLE {
            let node = node(script, true).await;
            assert_eq!(node.known_accounts(&addresses).await, Ok(vec![true; 3]));
        }
    }
}
