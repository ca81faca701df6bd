//! A look-up of accounts at a service that the operator runs or rents, over one small JSON shape.
//!
//! The service gets `POST` with `{"account_number": "…", "ifsc": "…", "name": "…"}` and answers 200
//! with
//!
//! ```json
//! {"status": "found", "account_holder_name": "ASHA RAO"}
//! ```
//!
//! | `status` | meaning | what becomes of the beneficiary |
//! |---|---|---|
//! | `found` | an NRE account | names are compared; if they cannot be, the operator decides |
//! | `not_found`, `closed` | no such account that can be paid | `rejected`, `account_invalid` |
//! | `not_nre` | not an NRE account | `rejected`, `account_not_nre` |
//! | `unknown` | the service cannot say now | asked again after an hour |
//!
//! Anything else (another status code, another shape, no answer in time) is no answer, and the
//! question is asked again with growing pauses. `name` is what the caller gave; a service that
//! compares names itself may use it. The question must change nothing at the service, because it
//! may be asked twice. A penny drop (a payment of INR 1 that shows the holder's name) is
//! unsuitable, because it fails for NRE accounts.

use std::time::Duration;

use futures_util::future::BoxFuture;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

use super::name_match::{self, NameThresholds};
use super::{
    AccountAnswer, AccountCheck, AccountQuestion, AccountVerifier, HolderName, LookedUp, NameMatch,
};
use crate::kernel::within;
use crate::outbound::{Client, OutboundEndpoint, OutboundError};

/// The greatest `deadline_milliseconds`. The lease of a look-up is longer.
pub const DEADLINE_MILLISECONDS_MAX: u64 = 20_000;
const DEADLINE_MILLISECONDS_DEFAULT: u64 = 10_000;
/// The most bytes of an answer.
const ANSWER_BYTES_MAX: usize = 16 * 1024;
/// The most bytes of a holder's name; a longer one counts as none.
const NAME_BYTES_MAX: usize = 300;

/// The table `[checks]` of a configuration that looks accounts up over HTTP.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpVerifierSettings {
    /// Where the service answers: https, or http on this machine. Account numbers and names go
    /// there.
    pub url: String,
    /// The header that authorises the request, such as `Authorization`. Its value comes from the
    /// environment, never from the file.
    pub header_name: Option<String>,
    /// How long one question may take, in milliseconds: 100 to 20 000; default 10 000.
    pub deadline_milliseconds: Option<u64>,
    /// Least similarity of names that match: `name_score_partial` to 1; default 0.85.
    pub name_score_match: Option<f64>,
    /// Least similarity of names that match in part: above 0, to `name_score_match`; default 0.60.
    pub name_score_partial: Option<f64>,
}

/// Looks accounts up at a service.
pub struct HttpVerifier {
    client: Client,
    endpoint: OutboundEndpoint,
    deadline: Duration,
    thresholds: NameThresholds,
}

impl HttpVerifier {
    /// `header_value` is the secret that goes with `header_name`; one without the other is refused.
    pub fn new(
        settings: &HttpVerifierSettings,
        header_value: Option<SecretString>,
        client: Client,
    ) -> Result<HttpVerifier, String> {
        let header = match (settings.header_name.as_deref(), header_value) {
            (Some(name), Some(value)) => Some((name, value)),
            (None, None) => None,
            (Some(_), None) => {
                return Err("checks.header_name is set, and the variable HUNDI_CHECKS_SECRET is \
                            not"
                .into());
            }
            (None, Some(_)) => {
                return Err("the variable HUNDI_CHECKS_SECRET is set, and checks.header_name is \
                            not"
                .into());
            }
        };
        let endpoint = OutboundEndpoint::private(&settings.url, header)
            .map_err(|fault| format!("checks.url: {fault}"))?;
        let milliseconds = settings.deadline_milliseconds.unwrap_or(DEADLINE_MILLISECONDS_DEFAULT);
        let milliseconds =
            within("checks.deadline_milliseconds", milliseconds, 100, DEADLINE_MILLISECONDS_MAX)?;
        let defaults = NameThresholds::default();
        let thresholds = NameThresholds {
            score_match: settings.name_score_match.unwrap_or(defaults.score_match),
            score_partial: settings.name_score_partial.unwrap_or(defaults.score_partial),
        };
        let thresholds = thresholds.checked().map_err(|fault| format!("checks: {fault}"))?;
        Ok(HttpVerifier {
            client,
            endpoint,
            deadline: Duration::from_millis(milliseconds),
            thresholds,
        })
    }

    async fn ask(&self, question: &AccountQuestion) -> LookedUp {
        let body = serde_json::json!({
            "account_number": question.account_number.expose_secret(), "ifsc": question.ifsc,
                "name": question.name,
        });
        let answer = match self
            .client
            .post(&self.endpoint, body.to_string().into_bytes(), self.deadline, ANSWER_BYTES_MAX)
            .await
        {
            Ok(answer) => answer,
            Err(error) => {
                let reason = match error {
                    OutboundError::Deadline(_) => "deadline",
                    OutboundError::TooLong(_) => "answer_too_long",
                    OutboundError::Address(_)
                    | OutboundError::Header(_)
                    | OutboundError::Connection(_) => "connection",
                };
                return LookedUp::Unanswered { reason, retry_after_seconds: None };
            }
        };
        if answer.http_status != 200 {
            return LookedUp::Unanswered {
                reason: "http_status",
                retry_after_seconds: answer.retry_after_seconds,
            };
        }
        read(&answer.body, &question.name, &self.thresholds)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum LookUpStatus {
    Found,
    NotFound,
    NotNre,
    Closed,
    Unknown,
}

/// Unknown members are ignored, because services put more into their answers.
#[derive(Deserialize)]
struct LookUpAnswer {
    status: LookUpStatus,
    account_holder_name: Option<String>,
}

fn read(body: &[u8], given: &str, thresholds: &NameThresholds) -> LookedUp {
    let Ok(answer) = serde_json::from_slice::<LookUpAnswer>(body) else {
        return LookedUp::Unanswered { reason: "answer_not_understood", retry_after_seconds: None };
    };
    LookedUp::Answered(match answer.status {
        LookUpStatus::NotFound | LookUpStatus::Closed => AccountAnswer::AccountInvalid,
        LookUpStatus::NotNre => AccountAnswer::AccountNotNre,
        LookUpStatus::Unknown => AccountAnswer::Unknown,
        LookUpStatus::Found => match answer
            .account_holder_name
            .filter(|held| !held.trim().is_empty() && held.len() <= NAME_BYTES_MAX)
        {
            None => AccountAnswer::Name(NameMatch::Unavailable),
            Some(held) => {
                let name_match = name_match::compare(given, &held, thresholds).name_match;
                return LookedUp::Named {
                    answer: AccountAnswer::Name(name_match),
                    holder_name: HolderName(held),
                };
            }
        },
    })
}

impl AccountVerifier for HttpVerifier {
    fn check(&self, _: &AccountQuestion) -> AccountCheck {
        AccountCheck::LookUp
    }
    fn look_up<'a>(&'a self, question: &'a AccountQuestion) -> BoxFuture<'a, LookedUp> {
        Box::pin(self.ask(question))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_has_its_answer_and_anything_else_is_unanswered() {
        use AccountAnswer::{AccountInvalid, AccountNotNre, Name, Unknown};
        for (body, answer) in [
            (
                r#"{"status":"found","account_holder_name":"  ASHA   rao "}"#,
                Some(Name(NameMatch::Match)),
            ),
            (
                r#"{"status":"found","account_holder_name":"Ravi Rao","score":0.4}"#,
                Some(Name(NameMatch::Mismatch)),
            ),
            (
                r#"{"status":"found","account_holder_name":null}"#,
                Some(Name(NameMatch::Unavailable)),
            ),
            (r#"{"status":"found","account_holder_name":" "}"#, Some(Name(NameMatch::Unavailable))),
            (r#"{"status":"found"}"#, Some(Name(NameMatch::Unavailable))),
            (r#"{"status":"not_found"}"#, Some(AccountInvalid)),
            (r#"{"status":"closed"}"#, Some(AccountInvalid)),
            (r#"{"status":"not_nre"}"#, Some(AccountNotNre)),
            (r#"{"status":"unknown"}"#, Some(Unknown)),
            (r#"{"status":"FOUND"}"#, None),
            (r#"{"account_holder_name":"Asha Rao"}"#, None),
            (r#"[]"#, None),
            ("", None),
        ] {
            let read = read(body.as_bytes(), "Asha Rao", &NameThresholds::default());
            let names_holder = body.contains("ao") && body.contains("found");
            assert_eq!(matches!(read, LookedUp::Named { .. }), names_holder, "{body}");
            let found = match read {
                LookedUp::Answered(answer) | LookedUp::Named { answer, .. } => Some(answer),
                LookedUp::Unanswered { reason, .. } => {
                    assert_eq!(reason, "answer_not_understood", "{body}");
                    None
                }
            };
            assert_eq!(found, answer, "{body}");
        }
    }

    #[test]
    fn settings_have_ranges_and_a_header_needs_its_secret() {
        let new = |text: &str, secret: Option<&str>| {
            let settings: HttpVerifierSettings =
                toml::from_str(text).map_err(|error| error.to_string())?;
            let client = Client::new(rustls::RootCertStore::empty()).unwrap();
            HttpVerifier::new(&settings, secret.map(SecretString::from), client).map(|_| ())
        };
        assert!(new("url = 'https://x/y'", None).is_ok());
        assert!(new("url = 'https://x/y'\nheader_name = 'X-Key'", Some("s")).is_ok());
        assert!(new("url = 'http://127.0.0.1:8000/y'", None).is_ok());
        for (text, secret) in [
            ("url = 'x'", None),
            ("url = 'http://x/y'", None),
            ("url = 'http://10.0.0.7/y'", None),
            ("url = 'https://x/y'\nheader_name = 'X-Key'", None),
            ("url = 'https://x/y'", Some("s")),
            ("url = 'https://x/y'\ndeadline_milliseconds = 99", None),
            ("url = 'https://x/y'\ndeadline_milliseconds = 20001", None),
            ("url = 'https://x/y'\npassword = 's'", None),
        ] {
            assert!(new(text, secret).is_err(), "{text}");
        }
    }
}
