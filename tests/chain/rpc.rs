//! JSON-RPC over HTTP, for the harness itself.

#![allow(dead_code, reason = "each scenario uses its own part of the harness")]

use std::time::Duration;

use hundi::outbound::{Client, OutboundEndpoint};
use rustls::RootCertStore;
use serde_json::{Value, json};

/// Longer than anything the harness asks for takes, mining thousands of blocks included.
const DEADLINE: Duration = Duration::from_secs(120);
const ANSWER_BYTES_MAX: usize = 256 << 20;

/// Why a call has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RpcError {
    /// The node said so.
    Refused { code: i64, message: String },
    /// There is no node, or what it said is no JSON-RPC.
    Unreachable(String),
}

impl RpcError {
    pub fn refused(code: i64, message: impl Into<String>) -> RpcError {
        RpcError::Refused { code, message: message.into() }
    }
    pub fn code(&self) -> Option<i64> {
        match self {
            RpcError::Refused { code, .. } => Some(*code),
            RpcError::Unreachable(_) => None,
        }
    }
}

/// A node to call.
#[derive(Clone)]
pub struct Rpc {
    client: Client,
    endpoint: OutboundEndpoint,
}

impl Rpc {
    pub fn new(endpoint: OutboundEndpoint) -> Rpc {
        Rpc { client: Client::new(RootCertStore::empty()).expect("a client"), endpoint }
    }

    /// One call.
    pub async fn call(&self, method: &str, params: Value) -> Result<Value, RpcError> {
        let body = self
            .post(&json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
            .await?;
        result_in(body)
    }

    /// Several calls in one request, their results in the order of the calls; `Err` where the
    /// request failed as a whole.
    pub async fn batch(
        &self,
        calls: &[(&str, Value)],
    ) -> Result<Vec<Result<Value, RpcError>>, RpcError> {
        let calls: Vec<Value> = calls
            .iter()
            .enumerate()
            .map(|(id, (method, params))| {
                json!({"jsonrpc": "2.0", "id": id, "method": method,
                "params": params})
            })
            .collect();
        match self.post(&Value::Array(calls.clone())).await? {
            Value::Array(answers) => Ok((0..calls.len())
                .map(|id| {
                    let answer = answers.iter().find(|answer| answer["id"] == json!(id)).cloned();
                    result_in(
                        answer.ok_or_else(|| {
                            RpcError::Unreachable(format!("no answer to call {id}"))
                        })?,
                    )
                })
                .collect()),
            whole => Err(result_in(whole)
                .err()
                .unwrap_or_else(|| RpcError::Unreachable("one answer to a batch".into()))),
        }
    }

    /// Posts a body and reads JSON; a status other than 200 is `Unreachable` and names it.
    pub async fn post(&self, body: &Value) -> Result<Value, RpcError> {
        let unreachable = |what: String| RpcError::Unreachable(what);
        let answer = self
            .client
            .post(&self.endpoint, body.to_string().into_bytes(), DEADLINE, ANSWER_BYTES_MAX)
            .await
            .map_err(|error| unreachable(error.to_string()))?;
        if answer.http_status != 200 {
            return Err(unreachable(format!(
                "HTTP {} retry-after {:?}: {}",
                answer.http_status,
                answer.retry_after_seconds,
                String::from_utf8_lossy(&answer.body)
            )));
        }
        serde_json::from_slice(&answer.body)
            .map_err(|error| unreachable(format!("no JSON: {error}")))
    }

    /// Asks another path of the same host with GET and reads JSON.
    pub async fn get(&self, path: &str) -> Result<Value, RpcError> {
        let endpoint = self.endpoint.with_path(path).expect("a path");
        let answer = self
            .client
            .get(&endpoint, DEADLINE, ANSWER_BYTES_MAX)
            .await
            .map_err(|error| RpcError::Unreachable(error.to_string()))?;
        match answer.http_status {
            200 => serde_json::from_slice(&answer.body)
                .map_err(|error| RpcError::Unreachable(format!("no JSON: {error}"))),
            status => Err(RpcError::Unreachable(format!("HTTP {status}"))),
        }
    }
}

fn result_in(mut answer: Value) -> Result<Value, RpcError> {
    if let Some(error) = answer.get("error") {
        let message = error["message"].as_str().unwrap_or_default();
        return Err(RpcError::refused(error["code"].as_i64().unwrap_or(0), message));
    }
    match answer.get_mut("result") {
        Some(result) => Ok(result.take()),
        None => Err(RpcError::Unreachable(format!("neither result nor error: {answer}"))),
    }
}
