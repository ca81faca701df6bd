//! A client of the API, for the commands that work from anywhere with an address and an API key.

use std::time::Duration;

use clap::Args;
use http::Method;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use crate::config::environment;
use crate::kernel::system_random;
use crate::outbound::{Client, HttpAnswer, OutboundEndpoint, OutboundError};
use crate::tls::platform_roots;

/// How long an answer may take, in seconds. If the request asks the service to wait for an event,
/// that wait is added.
const ANSWER_SECONDS_MAX: u64 = 15;
const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The most times that a POST is sent while no answer comes or the answer says to try again.
const ATTEMPTS_MAX: u32 = 6;
const ADDRESS_HINT: &str = "HUNDI_BASE_URL or --base-url is the address";
/// The variable with the key. As with every secret, `HUNDI_API_KEY_FILE` may name a file with it.
const API_KEY: &str = "HUNDI_API_KEY";

/// Where the API is, and the key to it
#[derive(Args, Clone)]
pub struct CallerArgs {
    /// Address of the API
    #[arg(
        long,
        value_name = "URL",
        env = "HUNDI_BASE_URL",
        default_value = "http://127.0.0.1:8080"
    )]
    base_url: String,
    /// API key; better as a variable, because others see arguments
    #[arg(long, value_name = "KEY", env = API_KEY, hide_env_values = true)]
    api_key: Option<String>,
}

impl CallerArgs {
    pub fn base_url(&self) -> &str {
        self.base_url.trim_end_matches('/')
    }
}

/// Calls one API with one key.
pub struct ApiCaller {
    pub client: Client,
    pub base_url: String,
    key: SecretString,
}

/// Why a call failed.
pub enum CallError {
    /// No answer came, or a later attempt may get another answer: 429, 5xx, `resource_locked`.
    /// `retry_after_seconds` is the answer's `Retry-After`.
    Transient { message: String, retry_after_seconds: Option<u64> },
    /// An answer that stays the same at every attempt. `code` and `field_name` are those of the
    /// first error, or empty if it has none.
    Refused { code: String, field_name: String, message: String },
}

impl CallError {
    pub fn message(self) -> String {
        match self {
            CallError::Transient { message, .. } | CallError::Refused { message, .. } => message,
        }
    }
}

impl ApiCaller {
    pub fn new(arguments: &CallerArgs) -> Result<ApiCaller, String> {
        let key = arguments.api_key.clone().filter(|key| !key.is_empty());
        let key = key.or_else(|| environment(API_KEY)).ok_or(
            "no API key: set HUNDI_API_KEY to a test key. The first start of a server printed one \
             on its terminal, or wrote it into the file hundi.db.first-key beside its database. On \
             the server's machine, `hundi keys create --mode test` makes another and prints it",
        )?;
        ApiCaller::of(arguments.base_url(), SecretString::from(key))
    }

    /// A client for the API at this address. `Err` if the key would leave the machine unencrypted.
    pub fn of(base_url: &str, key: SecretString) -> Result<ApiCaller, String> {
        let caller = ApiCaller {
            client: Client::new(platform_roots())
                .map_err(|error| format!("TLS cannot be set up: {error}"))?,
            base_url: base_url.trim_end_matches('/').to_owned(),
            key,
        };
        if !caller.endpoint("/")?.keeps_secrets() {
            return Err("the key would go over the network unencrypted: set HUNDI_BASE_URL or \
                        --base-url to an address with https"
                .into());
        }
        Ok(caller)
    }

    pub fn key(&self) -> &str {
        self.key.expose_secret()
    }

    fn endpoint(&self, path: &str) -> Result<OutboundEndpoint, String> {
        let authorization = SecretString::from(format!("Bearer {}", self.key()));
        OutboundEndpoint::new(
            &format!("{}{path}", self.base_url),
            Some(("authorization", authorization)),
        )
        .map_err(|error| match error {
            OutboundError::Header(_) => format!("HUNDI_API_KEY: {error}"),
            error => format!("{}: {error} ({ADDRESS_HINT})", self.base_url),
        })
    }

    /// Sends a GET once. `wait_seconds` is the path's parameter `wait`, or 0.
    pub async fn get(&self, path: &str, wait_seconds: u64) -> Result<Value, CallError> {
        let deadline = Duration::from_secs(ANSWER_SECONDS_MAX + wait_seconds);
        self.send(Method::GET, path, &[], Vec::new(), deadline).await
    }

    /// Sends a POST under one idempotency key, up to [`ATTEMPTS_MAX`] times, until an answer is
    /// final.
    pub async fn post(&self, path: &str, body: &Value) -> Result<Value, String> {
        let random = system_random::<16>()?;
        let key = format!("{:032x}", u128::from_be_bytes(random));
        let headers = [("idempotency-key", key.as_str()), ("content-type", "application/json")];
        let deadline = Duration::from_secs(ANSWER_SECONDS_MAX);
        let mut pause_seconds = 1;
        for attempt in 1.. {
            let body = body.to_string().into_bytes();
            match self.send(Method::POST, path, &headers, body, deadline).await {
                Err(CallError::Transient { retry_after_seconds, .. }) if attempt < ATTEMPTS_MAX => {
                    let seconds = retry_after_seconds.unwrap_or(pause_seconds);
                    tokio::time::sleep(Duration::from_secs(seconds)).await;
                    pause_seconds *= 2;
                }
                outcome => return outcome.map_err(CallError::message),
            }
        }
        Err("the request was not sent".into())
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Vec<u8>,
        deadline: Duration,
    ) -> Result<Value, CallError> {
        let transient = |message| CallError::Transient { message, retry_after_seconds: None };
        let endpoint = self.endpoint(path).map_err(transient)?;
        let sent =
            self.client.send(method, &endpoint, headers, body, deadline, ANSWER_BYTES_MAX).await;
        let failed = |error| transient(format!("{}: {error} ({ADDRESS_HINT})", self.base_url));
        read(path, sent.map_err(failed)?)
    }
}

fn read(path: &str, answer: HttpAnswer) -> Result<Value, CallError> {
    let status = answer.http_status;
    let json: Option<Value> = serde_json::from_slice(&answer.body).ok();
    if status == 200
        && let Some(json) = json
    {
        return Ok(json);
    }
    let error = json.as_ref().and_then(|json| json["errors"].get(0));
    let word = |at: &str| {
        let word = error.and_then(|error| error.pointer(at)?.as_str());
        word.unwrap_or("").to_owned()
    };
    let (code, text) = (word("/code"), word("/message"));
    let field_name = word("/metadata/field_name");
    let path = path.split('?').next().unwrap_or(path);
    let message = format!("{path} was answered {status} {code}: {text}");
    if matches!(status, 429 | 500..) || (status == 409 && code == "resource_locked") {
        let retry_after_seconds = answer.retry_after_seconds;
        return Err(CallError::Transient { message, retry_after_seconds });
    }
    // Without an error of ours, a proxy or another service has answered.
    let message = if error.is_none() {
        format!(
            "{path} was answered {status}, and not by hundi: look at HUNDI_BASE_URL or --base-url"
        )
    } else {
        message
    };
    Err(CallError::Refused { code, field_name, message })
}
