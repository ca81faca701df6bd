//! Sends questions to one node: in batches as large as it accepts, and no faster than its gateway
//! (a service in front of it, such as TronGrid) allows. [`Transport::ask`] can wait for a node that
//! refuses for a while.
//!
//! A question is one call of the JSON-RPC, or one POST to another path of the node; `budget` calls
//! that a request. Here a request is an HTTP request: one question, or a batch of them.
//!
//! After a fault of its own, a node rests: it is asked nothing for a while.
//!
//! If one of several questions meets a limit, the answers before it are kept, and the questions
//! from that one on are asked again. If a batch as a whole is too much for the node, the next ones
//! are smaller. If it is refused for another reason than a limit, its questions are asked one by
//! one.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::error::{RpcErrorBody, is_rate_limit, words};
use crate::chains::budget::{RequestBudget, RequestLimits};
use crate::chains::port::NodeError;
use crate::chains::timer::Timer;
use crate::outbound::{Client, OutboundEndpoint, OutboundError};

/// How long one request to a node may take.
const ANSWER_SECONDS_MAX: u64 = 20;
/// java-tron answers at most 25 MiB.
const ANSWER_BYTES_MAX: usize = 26 * 1024 * 1024;
/// The most questions in one batch; java-tron takes 100.
const BATCH_SIZE_MAX: usize = 50;
/// How long a node that refused a batch is asked one question at a time.
const BATCH_REFUSED: Duration = Duration::from_secs(3_600);
/// How long a node rests after HTTP 403 without `Retry-After`, because TRON's gateway bans a client
/// for 30 s. After HTTP 429 and 503 without that header, it rests as after other faults.
const REST_SECONDS_BANNED: u64 = 30;
/// How long a node rests after any other fault of its own. Each further fault in a row doubles the
/// rest, up to `REST_SECONDS_MAX`.
const REST_SECONDS_MIN: u64 = 1;
pub(super) const REST_SECONDS_MAX: u64 = 60;
/// How long a call of [`Transport::ask`], counted from its beginning, waits for a node that refuses
/// for a while.
const PATIENCE: Duration = Duration::from_secs(120);

/// One call of the JSON-RPC.
pub(super) struct RpcQuestion {
    method: &'static str,
    params: Value,
}

impl RpcQuestion {
    pub const fn new(method: &'static str, params: Value) -> RpcQuestion {
        RpcQuestion { method, params }
    }
}

#[derive(Deserialize)]
struct RpcResponse<'a> {
    id: Option<u64>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    error: Option<RpcErrorBody>,
}

/// The answer to one question: the result as the node sent it, or its refusal of this question.
pub(super) type Answered = Result<Box<RawValue>, NodeError>;

#[derive(Default)]
struct NodePause {
    until: Option<Duration>,
    faults_in_a_row: u32,
}

/// The connection to one node.
pub(super) struct Transport {
    client: Client,
    pub endpoint: OutboundEndpoint,
    timer: Timer,
    next_id: AtomicU64,
    pause: Mutex<NodePause>,
    budget: Mutex<RequestBudget>,
    /// The most questions that the node is sent in one request. It grows and shrinks with what the
    /// node accepts.
    batch_max: AtomicUsize,
    /// Until when no batch is tried.
    singles_until: Mutex<Option<Duration>>,
    sent: AtomicU64,
}

impl Transport {
    pub fn new(
        client: Client,
        endpoint: OutboundEndpoint,
        limits: RequestLimits,
        timer: Timer,
    ) -> Transport {
        Transport {
            client,
            endpoint,
            next_id: AtomicU64::new(1),
            pause: Mutex::default(),
            budget: Mutex::new(RequestBudget::new(limits, timer.now())),
            timer,
            batch_max: BATCH_SIZE_MAX.into(),
            singles_until: Mutex::default(),
            sent: AtomicU64::new(0),
        }
    }

    fn pause(&self) -> MutexGuard<'_, NodePause> {
        self.pause.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn budget(&self) -> MutexGuard<'_, RequestBudget> {
        self.budget.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many questions were sent since the start.
    pub fn sent_count(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// How long to pause after a poll that sent `count` questions.
    pub fn routine_pause(&self, count: u64) -> Duration {
        self.budget().routine_pause(count)
    }

    /// How much longer the node rests after a fault; `None` if it may be asked now.
    pub fn resting_for(&self) -> Option<Duration> {
        let until = self.pause().until?;
        let left = until.saturating_sub(self.timer.now());
        (left > Duration::ZERO).then_some(left)
    }

    /// Lets the node rest from now on.
    pub fn rest(&self, seconds: u64) {
        self.pause().until = Some(self.timer.now() + Duration::from_secs(seconds));
    }

    /// Whether the node accepts batches, as far as is known.
    pub fn takes_batches(&self) -> bool {
        let until = *self.singles_until.lock().unwrap_or_else(PoisonError::into_inner);
        until.is_none_or(|until| until <= self.timer.now())
    }

    fn stop_batches(&self, error: &NodeError) {
        tracing::warn!(
            node = self.endpoint.label(),
            %error,
            "a node refuses batches; it is asked one question at a time"
        );
        *self.singles_until.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(self.timer.now() + BATCH_REFUSED);
    }

    /// Notes what a result says about the node, and answers the result. After a fault of the node's
    /// own, the node rests. If it refused because of a limit and gave a time, it rests for
    /// `retry_after_seconds`, where 0 counts as no time. Otherwise it rests longer with each fault
    /// in a row.
    pub fn note_result<T>(
        &self,
        outcome: Result<T, NodeError>,
        retry_after_seconds: Option<u64>,
    ) -> Result<T, NodeError> {
        let now = self.timer.now();
        let mut pause = self.pause();
        match &outcome {
            Err(error) if error.is_of_the_node() => {
                pause.faults_in_a_row = (pause.faults_in_a_row + 1).min(16);
                let grown = (REST_SECONDS_MIN << (pause.faults_in_a_row - 1)).min(REST_SECONDS_MAX);
                let is_limit = matches!(error, NodeError::Limited(_));
                let said = retry_after_seconds.filter(|seconds| is_limit && *seconds > 0);
                if is_limit {
                    let rest = said.map_or(Duration::ZERO, Duration::from_secs);
                    self.budget().note_refusal(now, rest);
                }
                pause.until = Some(now + Duration::from_secs(said.unwrap_or(grown)));
            }
            // An error about one question shows that the node works.
            _ => *pause = NodePause::default(),
        }
        outcome
    }

    /// Waits until the budget permits `count` questions.
    async fn admit(&self, count: usize) {
        loop {
            let taken = self.budget().take(count, self.timer.now());
            match taken {
                Ok(()) => break,
                Err(wait) => self.timer.sleep(wait).await,
            }
        }
        self.sent.fetch_add(count as u64, Ordering::Relaxed);
    }

    /// Posts JSON to the node, or to another path of its host, and returns the answer's body. A
    /// body in the form of the JSON-RPC is returned whatever its HTTP status is, unless that is 429
    /// or 503. Any other HTTP error becomes a [`NodeError`].
    async fn exchange(
        &self,
        endpoint: &OutboundEndpoint,
        body: Vec<u8>,
    ) -> Result<bytes::Bytes, NodeError> {
        let deadline = Duration::from_secs(ANSWER_SECONDS_MAX);
        let answer = match self.client.post(endpoint, body, deadline, ANSWER_BYTES_MAX).await {
            Ok(answer) => answer,
            Err(OutboundError::TooLong(bytes)) => {
                return Err(NodeError::TooMuch(format!("the answer is longer than {bytes} bytes")));
            }
            Err(error) => {
                return self.note_result(Err(NodeError::Unreachable(error.to_string())), None);
            }
        };
        let status = answer.http_status;
        let text = || {
            let body = String::from_utf8_lossy(&answer.body[..answer.body.len().min(1_000)]);
            words(format!("HTTP {status} {body}").trim())
        };
        if matches!(status, 429 | 503) {
            return self.note_result(Err(NodeError::Limited(text())), answer.retry_after_seconds);
        }
        if status != 200 && is_rpc(&answer.body) {
            return Ok(answer.body);
        }
        match status {
            200 => {}
            403 => {
                let said = answer.retry_after_seconds.filter(|seconds| *seconds > 0);
                let rest = said.or(Some(REST_SECONDS_BANNED));
                return self.note_result(Err(NodeError::Limited(text())), rest);
            }
            413 => return Err(NodeError::TooMuch(text())),
            // The node does not accept the question in this form; another question, or another
            // form, may be answered.
            400 | 404 | 405 | 406 | 415 | 422 | 501 => {
                return Err(NodeError::MethodMissing(text()));
            }
            _ => return self.note_result(Err(NodeError::Unreachable(text())), None),
        }
        // HTTP 200 with `{"Error": "…"}` stands outside the JSON-RPC.
        #[derive(Deserialize)]
        struct ErrorMember {
            #[serde(rename = "Error")]
            error: String,
        }
        if let Ok(bare) = serde_json::from_slice::<ErrorMember>(&answer.body) {
            let message = words(&bare.error);
            let error = if is_rate_limit(&message) {
                NodeError::Limited(message)
            } else {
                NodeError::Unreachable(message)
            };
            return self.note_result(Err(error), answer.retry_after_seconds);
        }
        Ok(answer.body)
    }

    /// Posts to another path of the node's host, such as TRON's own interface. If the node refuses
    /// for a while, this waits for it as [`Transport::ask`] does.
    pub async fn post(
        &self,
        path: &str,
        body: Value,
        is_patient: bool,
    ) -> Result<bytes::Bytes, NodeError> {
        let begun = self.timer.now();
        let endpoint = self
            .endpoint
            .with_path(path)
            .map_err(|error| NodeError::Unreachable(error.to_string()))?;
        let body = body.to_string().into_bytes();
        loop {
            self.await_rest(begun, is_patient).await?;
            self.admit(1).await;
            match self.exchange(&endpoint, body.clone()).await {
                Err(NodeError::Limited(_)) if is_patient => {}
                answer => return answer,
            }
        }
    }

    /// Waits while the node rests, but not longer than [`PATIENCE`] after `begun`, and only if
    /// `is_patient`.
    async fn await_rest(&self, begun: Duration, is_patient: bool) -> Result<(), NodeError> {
        while let Some(left) = self.resting_for() {
            if !is_patient || self.timer.now() + left > begun + PATIENCE {
                return Err(NodeError::Resting);
            }
            self.timer.sleep(left).await;
        }
        Ok(())
    }

    /// Sends some questions in one request. If one of them meets a limit, only the answers before
    /// it are returned. `Err` if none was answered.
    async fn send(&self, questions: &[RpcQuestion]) -> Result<Vec<Answered>, SendError> {
        let first = self.next_id.fetch_add(questions.len() as u64, Ordering::Relaxed);
        let bodies: Vec<Value> = questions
            .iter()
            .zip(first..)
            .map(|(question, id)| {
                json!({ "jsonrpc": "2.0", "id": id, "method": question.method,
                "params": question.params })
            })
            .collect();
        let body = match bodies.as_slice() {
            [one] => serde_json::to_vec(one),
            many => serde_json::to_vec(many),
        };
        let body = body.map_err(|error| NodeError::Garbage(error.to_string()))?;
        let is_batch = questions.len() > 1;
        let bytes = match self.exchange(&self.endpoint, body).await {
            // A gateway without batches may refuse the HTTP request itself.
            Err(error @ NodeError::MethodMissing(_)) if is_batch => {
                return Err(SendError::BatchRefused(error));
            }
            bytes => bytes?,
        };
        let is_list = bytes.trim_ascii_start().starts_with(b"[");
        let read: Result<Vec<RpcResponse<'_>>, _> = if is_list {
            serde_json::from_slice(&bytes)
        } else {
            serde_json::from_slice(&bytes).map(|one| vec![one])
        };
        let responses = match read {
            Ok(responses) => responses,
            Err(error) => {
                return Ok(self.note_result(Err(NodeError::Garbage(error.to_string())), None)?);
            }
        };
        if is_batch && (!is_list || responses.len() < questions.len()) {
            let error = match responses.iter().find_map(|response| response.error.as_ref()) {
                Some(error) => error.classified(),
                None => NodeError::Refused("fewer answers than questions".into()),
            };
            return Err(match error {
                NodeError::Limited(_) => {
                    self.note_result::<()>(Err(error.clone()), None).err().into()
                }
                NodeError::TooMuch(_) => SendError::Node(error),
                error => SendError::BatchRefused(error),
            });
        }
        let mut sorted: Vec<Option<Answered>> = questions.iter().map(|_| None).collect();
        for response in &responses {
            // Some gateways answer a single question with another id.
            let place = if is_batch {
                response.id.and_then(|id| id.checked_sub(first)).map(|place| place as usize)
            } else {
                Some(0)
            };
            let Some(slot) = place.and_then(|place| sorted.get_mut(place)) else { continue };
            *slot = Some(match (&response.error, response.result) {
                (Some(error), _) if is_batch && error.is_about_batch() => {
                    return Err(SendError::BatchRefused(error.classified()));
                }
                (Some(error), _) => Err(error.classified()),
                (None, Some(result)) => Ok(result.to_owned()),
                // An answer with `"result": null` is read as one without a result.
                (None, None) => RawValue::from_string("null".into())
                    .map_err(|error| NodeError::Garbage(error.to_string())),
            });
        }
        let all: Option<Vec<Answered>> = sorted.into_iter().collect();
        let missing = || NodeError::Garbage("an answer of the batch is missing".into());
        let Some(mut answers) = all else { return Ok(self.note_result(Err(missing()), None)?) };
        // If a question meets a limit, the answers to the questions before it are kept, and the
        // answers to those after it are dropped.
        let limited =
            answers.iter().position(|answer| matches!(answer, Err(NodeError::Limited(_))));
        match limited {
            None => Ok(self.note_result(Ok(answers), None)?),
            Some(place) => {
                let refused = answers.swap_remove(place);
                answers.truncate(place);
                let error = self.note_result(refused, None).err();
                if answers.is_empty() { Err(error.into()) } else { Ok(answers) }
            }
        }
    }

    /// Asks questions in as few requests as the node accepts, and returns the answer to each. If
    /// the node refuses for a while, this call waits for it (see `PATIENCE`) if `is_patient`, or if
    /// it has some answers already. Otherwise it fails.
    pub async fn ask(
        &self,
        questions: &[RpcQuestion],
        mut is_patient: bool,
    ) -> Result<Vec<Answered>, NodeError> {
        let begun = self.timer.now();
        let mut answers: Vec<Answered> = Vec::with_capacity(questions.len());
        while answers.len() < questions.len() {
            self.await_rest(begun, is_patient).await?;
            let unanswered = &questions[answers.len()..];
            let batch_max =
                if self.takes_batches() { self.batch_max.load(Ordering::Relaxed) } else { 1 };
            let count = batch_max.min(self.budget().batch_max()).clamp(1, unanswered.len());
            self.admit(count).await;
            match self.send(&unanswered[..count]).await {
                Ok(part) => {
                    // The answers of a batch together can be too long even if none of them is.
                    let too_much =
                        part.iter().position(|one| matches!(one, Err(NodeError::TooMuch(_))));
                    match too_much.filter(|_| count > 1) {
                        Some(place) => {
                            self.batch_max.store((count / 2).max(1), Ordering::Relaxed);
                            answers.extend(part.into_iter().take(place));
                        }
                        None => {
                            answers.extend(part);
                            // The node took a full batch, so the next may be larger. A single
                            // question counts too: otherwise a size that has shrunk to 1 would
                            // never grow again.
                            if count == batch_max {
                                self.batch_max.fetch_min(BATCH_SIZE_MAX - 1, Ordering::Relaxed);
                                self.batch_max.fetch_add(1, Ordering::Relaxed);
                            }
                        }
                    }
                    is_patient |= !answers.is_empty();
                }
                Err(SendError::BatchRefused(error)) => self.stop_batches(&error),
                Err(SendError::Node(NodeError::TooMuch(_))) if count > 1 => {
                    self.batch_max.store(count / 2, Ordering::Relaxed)
                }
                Err(SendError::Node(NodeError::Limited(_))) if is_patient => {}
                // The node refused this one question with an HTTP status, or its answer is too
                // long.
                Err(SendError::Node(
                    error @ (NodeError::MethodMissing(_)
                    | NodeError::Refused(_)
                    | NodeError::TooMuch(_)),
                )) => answers.push(Err(error)),
                Err(SendError::Node(error)) => return Err(error),
            }
        }
        Ok(answers)
    }
}

/// Why none of the questions of a request was answered.
enum SendError {
    Node(NodeError),
    /// The batch was refused as such; each question alone may be answered.
    BatchRefused(NodeError),
}

impl From<NodeError> for SendError {
    fn from(error: NodeError) -> SendError {
        SendError::Node(error)
    }
}

impl From<Option<NodeError>> for SendError {
    fn from(error: Option<NodeError>) -> SendError {
        SendError::Node(error.unwrap_or(NodeError::Resting))
    }
}

/// Whether a body is an answer of the JSON-RPC.
fn is_rpc(body: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct RpcMember<'a> {
        #[serde(borrow)]
        result: Option<&'a RawValue>,
        error: Option<RpcErrorBody>,
    }
    let is_answer = |one: &RpcMember<'_>| one.result.is_some() || one.error.is_some();
    serde_json::from_slice::<RpcMember<'_>>(body).is_ok_and(|one| is_answer(&one))
        || serde_json::from_slice::<Vec<RpcMember<'_>>>(body)
            .is_ok_and(|all| !all.is_empty() && all.iter().all(is_answer))
}

#[cfg(test)]
mod tests {
    use super::super::scripted_gateway;
    use super::*;

    /// Asks patiently, and moves the timer whenever the transport waits for it.
    async fn asked(
        script: scripted_gateway::GatewayScript,
    ) -> (Result<Vec<Answered>, NodeError>, Duration) {
        let timer = Timer::manual();
        let endpoint = scripted_gateway::start(script).await;
        let limits = RequestLimits::default();
        let transport = Transport::new(scripted_gateway::client(), endpoint, limits, timer.clone());
        let questions = [RpcQuestion::new("eth_getTransactionReceipt", json!(["0x1"]))];
        let ask = transport.ask(&questions, true);
        tokio::pin!(ask);
        loop {
            tokio::select! {
                answered = &mut ask => return (answered, timer.now()),
                () = tokio::time::sleep(Duration::from_millis(1)) => {
                    if timer.sleepers_count() > 0 {
                        timer.advance(Duration::from_secs(1));
                    }
                    assert!(timer.now() <= 2 * PATIENCE, "it asks and asks");
                }
            }
        }
    }

    #[tokio::test]
    async fn a_node_that_refuses_for_good_is_given_up_whatever_retry_after_says() {
        let scripts: [(&str, scripted_gateway::GatewayScript); 5] = [
            ("429, at once", |_| (429, "retry-after: 0\r\n", "busy".into())),
            ("503, at once", |_| (503, "retry-after: 0\r\n", "busy".into())),
            ("403, at once", |_| (403, "retry-after: 0\r\n", "banned".into())),
            ("200, at once", |_| {
                (200, "retry-after: 0\r\n", r#"{"Error":"request rate limit exceeded"}"#.into())
            }),
            ("429, in a second", |_| (429, "retry-after: 1\r\n", "busy".into())),
        ];
        for (what, script) in scripts {
            let (answered, after) = asked(script).await;
            let is_given_up = matches!(answered, Err(NodeError::Resting | NodeError::Limited(_)));
            assert!(is_given_up, "{what}: {:?}", answered.map(|answers| answers.len()));
            // The slowest pace adds a pause before the last question.
            assert!(after <= PATIENCE + Duration::from_secs(10), "{what}: after {after:?}");
        }
    }
}
