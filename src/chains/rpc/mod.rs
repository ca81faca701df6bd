//! One node, asked over the Ethereum JSON-RPC: what it answers, and in which ways it fails to.
//!
//! Nothing here is believed yet; `verify` judges. Nodes and gateways answer faults in many ways: as
//! JSON-RPC errors, as HTTP statuses, and as HTTP 200 with a text of their own. Each becomes one
//! `NodeError`.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::evm::{DEPRECATE_TOPIC, Data, Hash, Header, Log, Quantity, Receipt, TRANSFER_TOPIC};
use crate::outbound::{Client, Endpoint, OutboundError};

/// How long one request to a node may take.
const ANSWER_SECONDS_MAX: u64 = 20;
/// java-tron answers at most 25 MiB.
const ANSWER_BYTES_MAX: usize = 26 * 1024 * 1024;
/// Requests in one batch; java-tron takes 100.
const BATCH_REQUESTS_MAX: usize = 50;
/// How long a node rests that said "too many requests" and not for how long: TRON's gateway bans
/// for 30 s.
const REST_SECONDS_BANNED: u64 = 30;
/// Rests after other faults grow from this, doubling, up to the longest.
const REST_SECONDS_MIN: u64 = 1;
const REST_SECONDS_MAX: u64 = 60;

/// Why a node did not answer a question.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NodeError {
    #[error("not reached: {0}")]
    Unreachable(String),
    /// Too many requests, or no computing resources; it rests.
    #[error("refuses for now: {0}")]
    Limited(String),
    /// The range covers too many blocks or too many results: ask for less.
    #[error("wants a smaller range: {0}")]
    TooMuch(String),
    /// The method or the tag is not there.
    #[error("does not know the method: {0}")]
    MethodMissing(String),
    #[error("answers an error: {0}")]
    Refused(String),
    /// What came is not what the question asks for.
    #[error("does not answer sensibly: {0}")]
    Garbage(String),
    /// It rests after a fault and is not asked.
    #[error("rests after a fault")]
    Resting,
}

impl NodeError {
    /// Whether another question would meet the same fault soon.
    const fn is_of_the_node(&self) -> bool {
        matches!(self, NodeError::Unreachable(_) | NodeError::Limited(_) | NodeError::Garbage(_))
    }
}

/// What one range of blocks holds of the watched contracts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockRange {
    pub first: Header,
    pub last: Header,
    pub logs: Vec<Log>,
}

/// A block that nobody can replace any more, as a node tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FinalBlock {
    pub number: i64,
    /// Unix seconds.
    pub time: i64,
}

#[derive(Default)]
struct Pause {
    until: Option<Instant>,
    faults_in_a_row: u32,
}

/// One node.
pub struct Node {
    client: Client,
    endpoint: Endpoint,
    next_id: AtomicU64,
    rest: Mutex<Pause>,
    /// Questions that the node takes in one request, as far as it let us know.
    batch_questions_max: AtomicUsize,
    /// Whether it was found to be of the configured chain.
    fits: AtomicBool,
    /// Whether the node has the tag `finalized`; asked once.
    lacks_finalized: AtomicBool,
    lacks_block_receipts: AtomicBool,
}

#[derive(Deserialize)]
struct RpcResponse<'a> {
    id: Option<u64>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    error: Option<RpcError>,
}

#[derive(Deserialize)]
struct RpcError {
    code: i64,
    #[serde(default)]
    message: String,
}

impl RpcError {
    fn fault(&self) -> NodeError {
        let message: String = self.message.chars().take(200).collect();
        let told = format!("{} {message}", self.code);
        let lower = message.to_lowercase();
        let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
        match self.code {
            -32601 => NodeError::MethodMissing(told),
            // Before the codes: some gateways say -32005 for too many requests too.
            _ if says(&[
                "rate limit",
                "request count",
                "too many requests",
                "lack of computing resources",
                "frequency limit",
            ]) =>
            {
                NodeError::Limited(told)
            }
            -32005 | -32003 => NodeError::TooMuch(told),
            _ if says(&[
                "block range",
                "more than",
                "too large",
                "too many results",
                "response size",
            ]) =>
            {
                NodeError::TooMuch(told)
            }
            _ if says(&[
                "not supported",
                "does not exist/is not available",
                "method not found",
                "unsupported",
                "tag",
            ]) =>
            {
                NodeError::MethodMissing(told)
            }
            _ => NodeError::Refused(told),
        }
    }
}

/// A question of a batch.
struct RpcRequest {
    method: &'static str,
    params: Value,
}

impl RpcRequest {
    const fn new(method: &'static str, params: Value) -> RpcRequest {
        RpcRequest { method, params }
    }
}

fn hex(number: i64) -> String {
    format!("{number:#x}")
}

/// Bytes as the JSON-RPC writes them.
fn prefixed(bytes: impl AsRef<[u8]>) -> String {
    format!("0x{}", crate::kernel::hex::encode(bytes))
}

impl Node {
    pub fn new(client: Client, endpoint: Endpoint) -> Node {
        Node {
            client,
            endpoint,
            next_id: AtomicU64::new(1),
            rest: Mutex::default(),
            batch_questions_max: BATCH_REQUESTS_MAX.into(),
            fits: false.into(),
            lacks_finalized: false.into(),
            lacks_block_receipts: false.into(),
        }
    }

    /// Host and port, for the log.
    pub fn label(&self) -> String {
        self.endpoint.label()
    }

    /// Whether the node is asked now, or rests after faults.
    pub fn is_resting(&self) -> bool {
        let rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner);
        rest.until.is_some_and(|until| Instant::now() < until)
    }

    /// Whether it was found to be of the configured chain; only such nodes are listened to.
    pub fn fits(&self) -> bool {
        self.fits.load(Ordering::Relaxed)
    }

    /// Keeps what a check found; a node that does not fit rests before it is checked again.
    pub fn note_fit(&self, fits: bool) {
        self.fits.store(fits, Ordering::Relaxed);
        if !fits {
            let mut rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner);
            rest.until = Some(Instant::now() + Duration::from_secs(REST_SECONDS_MAX));
        }
    }

    fn note<T>(
        &self,
        outcome: Result<T, NodeError>,
        retry_after_seconds: Option<u64>,
    ) -> Result<T, NodeError> {
        let mut rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner);
        match &outcome {
            Err(fault) if fault.is_of_the_node() => {
                rest.faults_in_a_row = (rest.faults_in_a_row + 1).min(16);
                let grown = (REST_SECONDS_MIN << (rest.faults_in_a_row - 1)).min(REST_SECONDS_MAX);
                let seconds = match fault {
                    NodeError::Limited(_) => retry_after_seconds.unwrap_or(grown),
                    _ => grown,
                };
                rest.until = Some(Instant::now() + Duration::from_secs(seconds));
            }
            // An error about one question says that the node lives.
            _ => *rest = Pause::default(),
        }
        outcome
    }

    /// Sends raw JSON and answers the body; HTTP's own faults are sorted.
    async fn exchange(
        &self,
        endpoint: &Endpoint,
        body: Vec<u8>,
        deadline: Duration,
    ) -> Result<bytes::Bytes, NodeError> {
        let answer = match self.client.post(endpoint, body, deadline, ANSWER_BYTES_MAX).await {
            Ok(answer) => answer,
            Err(OutboundError::TooLong(bytes)) => {
                return Err(NodeError::TooMuch(format!("the answer is longer than {bytes} bytes")));
            }
            Err(error) => return self.note(Err(NodeError::Unreachable(error.to_string())), None),
        };
        let told = format!("HTTP {}", answer.http_status);
        match answer.http_status {
            200 => {}
            403 => {
                return self.note(
                    Err(NodeError::Limited(told)),
                    answer.retry_after_seconds.or(Some(REST_SECONDS_BANNED)),
                );
            }
            429 | 503 => {
                return self.note(Err(NodeError::Limited(told)), answer.retry_after_seconds);
            }
            413 => return Err(NodeError::TooMuch(told)),
            // Some nodes put a JSON-RPC error behind 400 or 500.
            400 | 500 if answer.body.starts_with(b"{\"jsonrpc\"") => {}
            _ => return self.note(Err(NodeError::Unreachable(told)), None),
        }
        // HTTP 200 with `{"Error": "…"}` stands outside the JSON-RPC.
        #[derive(Deserialize)]
        struct Bare {
            #[serde(rename = "Error")]
            error: String,
        }
        if let Ok(bare) = serde_json::from_slice::<Bare>(&answer.body) {
            let message: String = bare.error.chars().take(200).collect();
            let is_limit = ["computing resources", "frequency", "limit"]
                .iter()
                .any(|word| message.contains(word));
            let fault = if is_limit {
                NodeError::Limited(message)
            } else {
                NodeError::Unreachable(message)
            };
            return self.note(Err(fault), answer.retry_after_seconds);
        }
        Ok(answer.body)
    }

    /// Asks several questions in one request; each has an answer of its own.
    async fn batch(
        &self,
        questions: &[RpcRequest],
        deadline: Duration,
    ) -> Result<Vec<Result<Box<RawValue>, NodeError>>, NodeError> {
        if self.is_resting() {
            return Err(NodeError::Resting);
        }
        let first = self.next_id.fetch_add(questions.len() as u64, Ordering::Relaxed);
        let requests: Vec<Value> = questions
            .iter()
            .zip(first..)
            .map(|(question, id)| {
                json!({ "jsonrpc": "2.0", "id": id, "method": question.method,
                "params": question.params })
            })
            .collect();
        let body = match requests.as_slice() {
            [one] => serde_json::to_vec(one),
            many => serde_json::to_vec(many),
        };
        let body = body.map_err(|error| NodeError::Garbage(error.to_string()))?;
        let bytes = self.exchange(&self.endpoint, body, deadline).await?;
        let garbage = |what: String| NodeError::Garbage(what);
        // A node that refuses the whole batch answers one error instead of a list.
        let answers: Vec<RpcResponse<'_>> =
            if questions.len() == 1 || bytes.trim_ascii_start().starts_with(b"{") {
                match serde_json::from_slice::<RpcResponse<'_>>(&bytes) {
                    Ok(answer) => vec![answer],
                    Err(error) => return self.note(Err(garbage(error.to_string())), None),
                }
            } else {
                match serde_json::from_slice(&bytes) {
                    Ok(answers) => answers,
                    Err(error) => return self.note(Err(garbage(error.to_string())), None),
                }
            };
        if questions.len() > 1
            && let [RpcResponse { error: Some(error), .. }] = answers.as_slice()
        {
            return self.note(Err(error.fault()), None);
        }
        let mut sorted: Vec<Option<Result<Box<RawValue>, NodeError>>> =
            questions.iter().map(|_| None).collect();
        for answer in &answers {
            // Some gateways answer a single question with another id.
            let place = if questions.len() == 1 {
                Some(0)
            } else {
                answer.id.and_then(|id| id.checked_sub(first)).map(|place| place as usize)
            };
            let Some(slot) = place.and_then(|place| sorted.get_mut(place)) else { continue };
            *slot = Some(match (&answer.error, answer.result) {
                (Some(error), _) => Err(error.fault()),
                (None, Some(result)) => Ok(result.to_owned()),
                // `"result": null` reads as none.
                (None, None) => {
                    RawValue::from_string("null".into()).map_err(|error| garbage(error.to_string()))
                }
            });
        }
        let all: Option<Vec<_>> = sorted.into_iter().collect();
        // One question that meets a limit is the node's limit: it would meet the others soon.
        let limited = |answers: &Vec<Result<_, NodeError>>| {
            answers.iter().find_map(|answer| {
                answer
                    .as_ref()
                    .err()
                    .filter(|fault| matches!(fault, NodeError::Limited(_)))
                    .cloned()
            })
        };
        let outcome = match all {
            None => Err(garbage("an answer of the batch is missing".into())),
            Some(all) => limited(&all).map_or(Ok(all), Err),
        };
        self.note(outcome, None)
    }

    fn read<T: DeserializeOwned>(
        &self,
        answer: Result<Box<RawValue>, NodeError>,
    ) -> Result<T, NodeError> {
        let raw = answer?;
        match serde_json::from_str(raw.get()) {
            Ok(value) => Ok(value),
            Err(error) => self.note(Err(NodeError::Garbage(error.to_string())), None),
        }
    }

    /// Asks many questions that are answered alike, in as few requests as the node takes.
    async fn many<T: DeserializeOwned>(
        &self,
        questions: &[RpcRequest],
    ) -> Result<Vec<T>, NodeError> {
        let mut values = Vec::with_capacity(questions.len());
        let mut rest = questions;
        while !rest.is_empty() {
            let count = self.batch_questions_max.load(Ordering::Relaxed).clamp(1, rest.len());
            let (part, after) = rest.split_at(count);
            let answered = self.batch(part, Duration::from_secs(ANSWER_SECONDS_MAX)).await;
            let read = answered.and_then(|answers| {
                answers.into_iter().map(|answer| self.read(answer)).collect::<Result<Vec<T>, _>>()
            });
            match read {
                Ok(read) => {
                    values.extend(read);
                    rest = after;
                    if count > 1 {
                        self.batch_questions_max
                            .fetch_min(BATCH_REQUESTS_MAX - 1, Ordering::Relaxed);
                        self.batch_questions_max.fetch_add(1, Ordering::Relaxed);
                    }
                }
                // The batch has too many questions, or their answers together are too long.
                Err(NodeError::TooMuch(_)) if count > 1 => {
                    self.batch_questions_max.store(count / 2, Ordering::Relaxed)
                }
                Err(fault) => return Err(fault),
            }
        }
        Ok(values)
    }

    async fn one<T: DeserializeOwned>(
        &self,
        method: &'static str,
        params: Value,
    ) -> Result<T, NodeError> {
        let mut answers = self
            .batch(&[RpcRequest::new(method, params)], Duration::from_secs(ANSWER_SECONDS_MAX))
            .await?;
        self.read(answers.pop().unwrap_or(Err(NodeError::Garbage("no answer".into()))))
    }

    pub async fn chain_id(&self) -> Result<u64, NodeError> {
        let id: Quantity = self.one("eth_chainId", json!([])).await?;
        Ok(id.0.unsigned_abs())
    }

    /// Calls a function of a contract that takes nothing and answers a number or a truth value.
    pub async fn call_number(
        &self,
        contract: &[u8; 20],
        selector: [u8; 4],
    ) -> Result<Option<u128>, NodeError> {
        let data = self.call_data(contract, selector).await?;
        Ok(data.as_number())
    }

    /// Calls a function of a contract that takes nothing, and answers what it returned.
    pub async fn call_data(
        &self,
        contract: &[u8; 20],
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
    pub async fn balances(
        &self,
        contract: &[u8; 20],
        addresses: &[[u8; 20]],
    ) -> Result<Vec<u128>, NodeError> {
        /// `balanceOf(address)`.
        const BALANCE_SELECTOR: [u8; 4] = [0x70, 0xa0, 0x82, 0x31];
        let question = |address: &[u8; 20]| {
            let data = [&BALANCE_SELECTOR[..], &[0; 12], address].concat();
            RpcRequest::new(
                "eth_call",
                json!([{ "to": prefixed(contract), "data": prefixed(data) }, "latest"]),
            )
        };
        let answers: Vec<Data> =
            self.many(&addresses.iter().map(question).collect::<Vec<_>>()).await?;
        let read = |answer: Data| {
            answer.as_number().ok_or_else(|| NodeError::Garbage("a balance does not read".into()))
        };
        answers.into_iter().map(read).collect()
    }

    /// The newest block.
    pub async fn head(&self) -> Result<Header, NodeError> {
        let header: Option<Header> =
            self.one("eth_getBlockByNumber", json!(["latest", false])).await?;
        header.ok_or_else(|| NodeError::Garbage("there is no newest block".into()))
    }

    /// The newest block that cannot be replaced. Nodes older than java-tron 4.8.0 lack the tag
    /// `finalized`; then TRON's own interface on the same host is asked for the solidified height.
    pub async fn final_block(&self) -> Result<FinalBlock, NodeError> {
        if !self.lacks_finalized.load(Ordering::Relaxed) {
            let header: Result<Option<Header>, NodeError> =
                self.one("eth_getBlockByNumber", json!(["finalized", false])).await;
            match header {
                Ok(Some(header)) => {
                    return Ok(FinalBlock { number: header.number.0, time: header.timestamp.0 });
                }
                Ok(None) => return Err(NodeError::Refused("no block is final yet".into())),
                Err(NodeError::MethodMissing(_) | NodeError::Refused(_)) => {}
                Err(fault) => return Err(fault),
            }
        }
        let solid = self.solid_block().await?;
        self.lacks_finalized.store(true, Ordering::Relaxed);
        Ok(solid)
    }

    async fn solid_block(&self) -> Result<FinalBlock, NodeError> {
        #[derive(Deserialize)]
        struct Block {
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
        let endpoint = self
            .endpoint
            .with_path("/walletsolidity/getnowblock")
            .map_err(|error| NodeError::Unreachable(error.to_string()))?;
        let body = self
            .exchange(&endpoint, b"{}".to_vec(), Duration::from_secs(ANSWER_SECONDS_MAX))
            .await?;
        match serde_json::from_slice::<Block>(&body) {
            Ok(Block { block_header: BlockHeader { raw_data } }) => self.note(
                Ok(FinalBlock { number: raw_data.number, time: raw_data.timestamp / 1000 }),
                None,
            ),
            Err(error) => self.note(
                Err(NodeError::Garbage(format!("the solidified block does not read: {error}"))),
                None,
            ),
        }
    }

    /// The head of a block; `None` where the node does not have it (yet).
    pub async fn header(&self, number: i64) -> Result<Option<Header>, NodeError> {
        self.one("eth_getBlockByNumber", json!([hex(number), false])).await
    }

    /// The heads of several blocks.
    pub async fn headers(&self, numbers: &[i64]) -> Result<Vec<Option<Header>>, NodeError> {
        let questions: Vec<_> = numbers
            .iter()
            .map(|number| RpcRequest::new("eth_getBlockByNumber", json!([hex(*number), false])))
            .collect();
        self.many(&questions).await
    }

    /// Logs of the contracts in a range of blocks, with the heads of its first and last block, in
    /// one request. `None` where the node lacks one of the two blocks.
    pub async fn range(
        &self,
        contracts: &[[u8; 20]],
        from: i64,
        to: i64,
    ) -> Result<Option<BlockRange>, NodeError> {
        let addresses: Vec<String> = contracts.iter().map(prefixed).collect();
        let topics = [TRANSFER_TOPIC.to_string(), DEPRECATE_TOPIC.to_string()];
        let filter = json!([{ "fromBlock": hex(from), "toBlock": hex(to), "address": addresses,
            "topics": [topics] }]);
        let questions = [
            RpcRequest::new("eth_getBlockByNumber", json!([hex(from), false])),
            RpcRequest::new("eth_getLogs", filter),
            RpcRequest::new("eth_getBlockByNumber", json!([hex(to), false])),
        ];
        let deadline = Duration::from_secs(ANSWER_SECONDS_MAX);
        let answers = match self.batch(&questions, deadline).await {
            // Three questions are too many for it, or their answers together: one after the other.
            Err(NodeError::TooMuch(_)) => {
                let mut answers = Vec::with_capacity(questions.len());
                for question in &questions {
                    answers.extend(self.batch(std::slice::from_ref(question), deadline).await?);
                }
                answers
            }
            answered => answered?,
        };
        let Ok([first, logs, last]) = <[_; 3]>::try_from(answers) else {
            return Err(NodeError::Garbage("an answer of the batch is missing".into()));
        };
        // The heads first: a node that lacks them may answer anything to the filter.
        let (first, last): (Option<Header>, Option<Header>) = (self.read(first)?, self.read(last)?);
        let (Some(first), Some(last)) = (first, last) else { return Ok(None) };
        // Nodes that know no lists of topics show the contracts' other logs too.
        let mut logs: Vec<Log> = self.read(logs)?;
        logs.retain(|log| log.is_transfer() || log.is_deprecation());
        Ok(Some(BlockRange { first, last, logs }))
    }

    /// What became of one transaction; `None` where the node does not know it.
    pub async fn receipt(&self, transaction: &Hash) -> Result<Option<Receipt>, NodeError> {
        self.one("eth_getTransactionReceipt", json!([transaction])).await
    }

    /// What became of several transactions.
    pub async fn receipts_of(
        &self,
        transactions: &[Hash],
    ) -> Result<Vec<Option<Receipt>>, NodeError> {
        let questions: Vec<_> = transactions
            .iter()
            .map(|hash| RpcRequest::new("eth_getTransactionReceipt", json!([hash])))
            .collect();
        self.many(&questions).await
    }

    /// Everything that happened in a block, without a filter. Nodes without `eth_getBlockReceipts`
    /// are asked for each transaction. `None` where the node does not know all of them.
    pub async fn receipts_in(&self, block: &Header) -> Result<Option<Vec<Receipt>>, NodeError> {
        if !self.lacks_block_receipts.load(Ordering::Relaxed) {
            match self
                .one::<Option<Vec<Receipt>>>("eth_getBlockReceipts", json!([hex(block.number.0)]))
                .await
            {
                Err(NodeError::MethodMissing(_)) => {
                    self.lacks_block_receipts.store(true, Ordering::Relaxed)
                }
                // Longer than the node answers at once: one by one.
                Err(NodeError::TooMuch(_)) => {}
                other => return other,
            }
        }
        Ok(self.receipts_of(&block.transactions).await?.into_iter().collect())
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

    #[test]
    fn errors_are_sorted() {
        let fault = |code: i64, message: &str| RpcError { code, message: message.into() }.fault();
        type Is = fn(&NodeError) -> bool;
        let table: [(i64, &str, Is); 8] = [
            (-32602, "exceed max block range: 5000", |fault| {
                matches!(fault, NodeError::TooMuch(_))
            }),
            (-32005, "query returned more than 10000 results", |fault| {
                matches!(fault, NodeError::TooMuch(_))
            }),
            (-32003, "response too large", |fault| matches!(fault, NodeError::TooMuch(_))),
            (-32601, "the method eth_getBlockReceipts does not exist", |fault| {
                matches!(fault, NodeError::MethodMissing(_))
            }),
            (-32602, "TAG [finalized] not supported", |fault| {
                matches!(fault, NodeError::MethodMissing(_))
            }),
            (-32000, "illegal state. 0", |fault| matches!(fault, NodeError::Refused(_))),
            (-32000, "Too Many Requests", |fault| matches!(fault, NodeError::Limited(_))),
            (-32005, "daily request count exceeded, request rate limited", |fault| {
                matches!(fault, NodeError::Limited(_))
            }),
        ];
        for (code, message, is) in table {
            assert!(is(&fault(code, message)), "{code} {message}: {:?}", fault(code, message));
        }
    }
}
