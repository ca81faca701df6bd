//! One source of a figure: its settings, and reading its answers.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use secrecy::SecretString;
use serde::Deserialize;

use super::RateRefusal;
use super::exact::{self, Pointer};
use super::guard::Observation;
use crate::outbound::{Client, OutboundEndpoint, OutboundError};

/// The most bytes of one answer; lists of all currencies have about 5 kB.
pub const ANSWER_BYTES_MAX: usize = 256 * 1024;
/// How far a source's time may be ahead of the store's clock, in seconds.
const AHEAD_SECONDS_MAX: i64 = 30;
/// Times from this number on are milliseconds: read as seconds, it would be the year 5138.
const MILLISECONDS_FROM: i64 = 100_000_000_000;

/// The settings of one source of one figure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceSettings {
    /// Where the source answers: https, or http on this machine. Over plain http, anybody on the
    /// way could change the figure, and so set the rate.
    pub url: String,
    /// Where the figure is in the answer: a JSON pointer (RFC 6901).
    pub pointer: String,
    /// Where the figure's time is in the answer, in the same form.
    pub time_pointer: Option<String>,
    /// The header that authorises the request, and the environment variable that holds its value.
    pub header_name: Option<String>,
    pub header_variable: Option<String>,
}

/// One source of a figure, and whether it is used.
pub struct FigureSource {
    /// `inr_per_usd` or `usd_per_usdt`.
    pub figure: &'static str,
    /// Its place among the sources of the figure, from 1.
    pub number: u32,
    /// What a log may show: the figure, the source's number and the host.
    pub label: String,
    endpoint: OutboundEndpoint,
    pointer: Pointer,
    time_pointer: Option<Pointer>,
    /// Why the last poll did not use the source, so that only changes are logged.
    last_refusal: Mutex<Option<RateRefusal>>,
}

impl SourceSettings {
    /// Makes the source. `figure` names the figure and `number` counts its sources from 1.
    /// `environment` gives the value of the header's variable. `Err` says which setting is wrong.
    pub fn build(
        &self,
        figure: &'static str,
        number: u32,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<FigureSource, String> {
        let fault = |what: String| format!("[[rates.{figure}]] number {number}: {what}");
        let header = match (&self.header_name, &self.header_variable) {
            (Some(header), Some(variable)) => {
                let value = environment(variable).filter(|value| !value.is_empty());
                Some((
                    header.as_str(),
                    SecretString::from(
                        value
                            .ok_or_else(|| fault(format!("the variable {variable} is not set")))?,
                    ),
                ))
            }
            (None, None) => None,
            _ => return Err(fault("header_name and header_variable go together".into())),
        };
        let pointer = |text: &str| {
            Pointer::parse(text).ok_or_else(|| {
                fault(format!("{text:?} is no JSON pointer: write it like /rates/INR"))
            })
        };
        let endpoint = OutboundEndpoint::private(&self.url, header)
            .map_err(|error| fault(error.to_string()))?;
        Ok(FigureSource {
            figure,
            number,
            label: format!("{figure} {number} ({})", endpoint.label()),
            endpoint,
            pointer: pointer(&self.pointer)?,
            time_pointer: self.time_pointer.as_deref().map(pointer).transpose()?,
            last_refusal: Mutex::default(),
        })
    }
}

/// The time of a figure: Unix seconds, Unix milliseconds, or RFC 3339.
fn time(json: &str) -> Option<i64> {
    let text = exact::number_text(json).ok()?;
    // The reader of rates also reads fractions and exponents. Its result is in millionths.
    match exact::rate(&text).map(|number| number.0 / 1_000_000) {
        Some(number) if number >= MILLISECONDS_FROM => Some(number / 1000),
        Some(number) => Some(number).filter(|number| *number > 0),
        None => text.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_second),
    }
}

impl FigureSource {
    fn read(
        &self,
        body: &[u8],
        instant: i64,
        age_seconds_max: i64,
    ) -> Result<Observation, RateRefusal> {
        let text = exact::number_text(self.pointer.find(body)?)?;
        let rate = exact::rate(&text).ok_or(RateRefusal::NotANumber)?;
        let observed_at = match &self.time_pointer {
            None => instant,
            Some(pointer) => time(pointer.find(body)?).ok_or(RateRefusal::TimeUnreadable)?,
        };
        if observed_at > instant + AHEAD_SECONDS_MAX {
            return Err(RateRefusal::TimeInFuture);
        }
        if instant - observed_at > age_seconds_max {
            return Err(RateRefusal::Stale);
        }
        Ok(Observation { rate, observed_at: observed_at.min(instant) })
    }

    /// Asks the source once. `instant` is the store's clock in Unix seconds. `Err` says why the
    /// answer is not used.
    pub async fn ask(
        &self,
        client: &Client,
        deadline: Duration,
        instant: i64,
        age_seconds_max: i64,
    ) -> Result<Observation, RateRefusal> {
        let answer =
            client.get(&self.endpoint, deadline, ANSWER_BYTES_MAX).await.map_err(|error| {
                match error {
                    OutboundError::Deadline(_) => RateRefusal::Deadline,
                    OutboundError::TooLong(_) => RateRefusal::AnswerTooLong,
                    OutboundError::Address(_)
                    | OutboundError::Header(_)
                    | OutboundError::Connection(_) => RateRefusal::Connection,
                }
            })?;
        if answer.http_status != 200 {
            return Err(RateRefusal::HttpStatus);
        }
        self.read(&answer.body, instant, age_seconds_max)
    }

    fn last_refusal(&self) -> MutexGuard<'_, Option<RateRefusal>> {
        self.last_refusal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why the source gave no usable answer in the last poll; `None` if it did, or before the first
    /// poll.
    pub fn refusal(&self) -> Option<RateRefusal> {
        *self.last_refusal()
    }

    /// Notes the outcome of a poll, and logs it if it has changed.
    pub fn note_outcome(&self, refusal: Option<RateRefusal>) {
        let before = std::mem::replace(&mut *self.last_refusal(), refusal);
        match refusal {
            Some(reason) if before != Some(reason) => {
                tracing::warn!(
                    source = self.label,
                    reason = reason.as_str(),
                    "a rate source is not used"
                )
            }
            None if before.is_some() => {
                tracing::info!(source = self.label, "a rate source is used again")
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_three_forms() {
        for (json, seconds) in [
            ("1790000000", Some(1_790_000_000)),
            ("1790000000123", Some(1_790_000_000)),
            ("1790000000.5", Some(1_790_000_000)),
            ("\"1790000000\"", Some(1_790_000_000)),
            ("\"2026-09-21T14:13:20Z\"", Some(1_790_000_000)),
            ("\"2026-09-21T19:43:20.5+05:30\"", Some(1_790_000_000)),
            ("1.79e9", Some(1_790_000_000)),
            ("1790000000000e-3", Some(1_790_000_000)),
            ("1.790000000123E+12", Some(1_790_000_000)),
            ("\"1.7900000005e9\"", Some(1_790_000_000)),
            ("1.7e", None),
            ("-5", None),
            ("1e30", None),
            ("\"2026-09-21\"", None),
            ("0", None),
            ("null", None),
            ("\"soon\"", None),
        ] {
            assert_eq!(time(json), seconds, "{json}");
        }
    }
}
