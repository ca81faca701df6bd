//! Market rates from JSON over HTTP. Each figure has one source or several. A worker polls them,
//! and `current` answers what the last poll found, so that no request ever waits for a source.
//!
//! ```toml
//! [rates]
//! poll_seconds = 15
//!
//! [[rates.inr_per_usd]]
//! url = "https://rates.example.com/latest?base=USD"
//! pointer = "/rates/INR"                 # RFC 6901
//! time_pointer = "/timestamp"            # optional: Unix seconds or milliseconds, or RFC 3339
//! header_name = "Authorization"          # optional, with the variable that holds its value
//! header_variable = "HUNDI_RATES_KEY"
//!
//! [[rates.usd_per_usdt]]
//! url = "https://market.example.com/usdt-usd"
//! pointer = "/price"
//! ```
//!
//! A figure is a JSON number or a string that holds one; up to six decimals are exact, more are
//! rounded half to even. Give `time_pointer` where a source has a time: without it, a source that
//! repeats an old figure looks alive.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use secrecy::SecretString;
use serde::Deserialize;

use super::exact::{self, Pointer};
use super::guard::{Guards, Observation, RateAnchor, RateMemory, agreed};
use super::{
    MarketRate, RATE_AGE_SECONDS_MAX, RateBounds, RateRefusal, RateSource, RateSourceKind,
    USDT_USD_MAX, USDT_USD_MIN,
};
use crate::kernel::{Rate, within};
use crate::outbound::{Client, OutboundEndpoint, OutboundError};

/// The most sources of one figure.
pub const SOURCES_MAX: usize = 8;
/// The most bytes of one answer; lists of all currencies have about 5 kB.
pub const ANSWER_BYTES_MAX: usize = 256 * 1024;
/// How far a source's time may lie ahead of ours, in seconds.
const AHEAD_SECONDS_MAX: i64 = 30;
/// Times above this are milliseconds: in seconds it would be the year 5138.
const MILLISECONDS_FROM: i64 = 100_000_000_000;

/// One address that tells one figure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceSettings {
    pub url: String,
    /// Where in the answer the figure stands: a JSON pointer (RFC 6901).
    pub pointer: String,
    /// Where the time stands at which the figure was true, in the same form.
    pub time_pointer: Option<String>,
    /// The header that authorises the request, and the environment's variable that holds its value.
    pub header_name: Option<String>,
    pub header_variable: Option<String>,
}

/// The section `[rates]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateSettings {
    /// From one poll to the next: 2 to 600 and at most half of `age_seconds_max`, else 15.
    pub poll_seconds: Option<i64>,
    /// Seconds after which a rate is not quoted: 4 to 3 600, else 60.
    pub age_seconds_max: Option<i64>,
    /// How long one answer may take, in milliseconds: 100 to 10 000, else 3 000.
    pub deadline_milliseconds: Option<i64>,
    /// How far sources may lie from their median: 1 to 1 000 basis points, else 50.
    pub disagreement_basis_points_max: Option<i64>,
    /// How far a poll may lie from the one before: 1 to 1 000 basis points, else 100.
    pub jump_basis_points_max: Option<i64>,
    /// Polls in a row after which a jump is believed: 2 to 100, else 3.
    pub jump_polls: Option<i64>,
    /// How far a rate may lie from the day's anchor: 1 to 2 000 basis points, else 200.
    pub anchor_basis_points_max: Option<i64>,
    /// The operator's anchor in INR for one USD; else the first good rate of the Indian day.
    pub anchor: Option<String>,
    /// INR for one USD below and above which a figure is a mistake; else 50 and 200.
    pub inr_per_usd_minimum: Option<String>,
    pub inr_per_usd_maximum: Option<String>,
    /// USD for one USDT below and above which nothing is quoted: within 0.9 and 1.1, else 0.995 and
    /// 1.005.
    pub usdt_usd_minimum: Option<String>,
    pub usdt_usd_maximum: Option<String>,
    #[serde(default)]
    pub inr_per_usd: Vec<SourceSettings>,
    #[serde(default)]
    pub usd_per_usdt: Vec<SourceSettings>,
}

struct FigureSource {
    /// What a log may show: the figure, the source's number among its sources, and the host.
    label: String,
    endpoint: OutboundEndpoint,
    pointer: Pointer,
    time_pointer: Option<Pointer>,
    /// The last refusal, so that the log tells a change and not each poll.
    state: Mutex<Option<RateRefusal>>,
}

/// The market as sources over HTTP tell it.
pub struct HttpRates {
    client: Client,
    deadline: Duration,
    pub poll_interval: Duration,
    pub guards: Guards,
    inr_per_usd: Vec<FigureSource>,
    usd_per_usdt: Vec<FigureSource>,
    market: Mutex<Market>,
}

#[derive(Default)]
struct Market {
    memory: RateMemory,
    current: Option<MarketRate>,
    refusal: Option<RateRefusal>,
}

fn setting(
    name: &str,
    value: Option<i64>,
    default: i64,
    min: i64,
    max: i64,
) -> Result<i64, String> {
    within(&format!("rates.{name}"), value.unwrap_or(default), min, max)
}

fn figure(name: &str, value: Option<&str>, default: Rate) -> Result<Rate, String> {
    value.map_or(Ok(default), |text| {
        Rate::parse(text).ok_or_else(|| {
            format!("rates.{name} must be a positive decimal in quotes with at most six places")
        })
    })
}

impl RateSettings {
    /// The limits within which rates may be quoted: the part of the settings that a quote lock
    /// reads. `Err` names the setting that is wrong.
    pub fn bounds(&self) -> Result<RateBounds, String> {
        let bounds = RateBounds {
            age_seconds_max: setting(
                "age_seconds_max",
                self.age_seconds_max,
                RATE_AGE_SECONDS_MAX,
                4,
                3_600,
            )?,
            usdt_usd_min: figure(
                "usdt_usd_minimum",
                self.usdt_usd_minimum.as_deref(),
                USDT_USD_MIN,
            )?,
            usdt_usd_max: figure(
                "usdt_usd_maximum",
                self.usdt_usd_maximum.as_deref(),
                USDT_USD_MAX,
            )?,
        };
        let (low, high) = (bounds.usdt_usd_min, bounds.usdt_usd_max);
        if low > high || low < Rate(900_000) || high > Rate(1_100_000) {
            return Err("rates.usdt_usd_minimum and rates.usdt_usd_maximum must be in order and \
             between 0.9 and 1.1"
                .into());
        }
        Ok(bounds)
    }

    fn guards(&self) -> Result<Guards, String> {
        let guards = Guards {
            bounds: self.bounds()?,
            inr_per_usd_min: figure(
                "inr_per_usd_minimum",
                self.inr_per_usd_minimum.as_deref(),
                Rate(50_000_000),
            )?,
            inr_per_usd_max: figure(
                "inr_per_usd_maximum",
                self.inr_per_usd_maximum.as_deref(),
                Rate(200_000_000),
            )?,
            disagreement_basis_points_max: setting(
                "disagreement_basis_points_max",
                self.disagreement_basis_points_max,
                50,
                1,
                1_000,
            )?,
            jump_basis_points_max: setting(
                "jump_basis_points_max",
                self.jump_basis_points_max,
                100,
                1,
                1_000,
            )?,
            jump_polls: u32::try_from(setting("jump_polls", self.jump_polls, 3, 2, 100)?)
                .unwrap_or(3),
            anchor_basis_points_max: setting(
                "anchor_basis_points_max",
                self.anchor_basis_points_max,
                200,
                1,
                2_000,
            )?,
            anchor: self
                .anchor
                .as_deref()
                .map(|text| figure("anchor", Some(text), Rate(0)))
                .transpose()?,
        };
        if guards.inr_per_usd_min > guards.inr_per_usd_max {
            return Err(
                "rates.inr_per_usd_minimum must not be above rates.inr_per_usd_maximum".into()
            );
        }
        if guards.anchor.is_some_and(|anchor| {
            !(guards.inr_per_usd_min..=guards.inr_per_usd_max).contains(&anchor)
        }) {
            return Err("rates.anchor must lie between rates.inr_per_usd_minimum and \
             rates.inr_per_usd_maximum"
                .into());
        }
        Ok(guards)
    }
}

fn sources(
    name: &str,
    settings: &[SourceSettings],
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<FigureSource>, String> {
    if settings.is_empty() || settings.len() > SOURCES_MAX {
        return Err(format!("[[rates.{name}]] must stand 1 to {SOURCES_MAX} times"));
    }
    (1..).zip(settings).map(|(number, source)| source.source(name, number, environment)).collect()
}

impl SourceSettings {
    fn source(
        &self,
        name: &str,
        number: usize,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<FigureSource, String> {
        let fault = |what: String| format!("[[rates.{name}]] number {number}: {what}");
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
        let endpoint =
            OutboundEndpoint::new(&self.url, header).map_err(|error| fault(error.to_string()))?;
        Ok(FigureSource {
            label: format!("{name} {number} ({})", endpoint.label()),
            endpoint,
            pointer: pointer(&self.pointer)?,
            time_pointer: self.time_pointer.as_deref().map(pointer).transpose()?,
            state: Mutex::default(),
        })
    }
}

/// The time of a figure: Unix seconds, Unix milliseconds, or RFC 3339.
fn time(json: &str) -> Option<i64> {
    let text = exact::number_text(json).ok()?;
    let whole = text.split('.').next()?;
    match whole.parse::<i64>() {
        Ok(number) if number >= MILLISECONDS_FROM => Some(number / 1000),
        Ok(number) => Some(number).filter(|number| *number > 0),
        Err(_) => text.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_second),
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

    async fn ask(
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
                    OutboundError::Address(_) | OutboundError::Connection(_) => {
                        RateRefusal::Connection
                    }
                }
            })?;
        if answer.http_status != 200 {
            return Err(RateRefusal::HttpStatus);
        }
        self.read(&answer.body, instant, age_seconds_max)
    }

    /// Logs a change of the state.
    fn tell(&self, refusal: Option<RateRefusal>) {
        let before = std::mem::replace(
            &mut *self.state.lock().unwrap_or_else(PoisonError::into_inner),
            refusal,
        );
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

impl HttpRates {
    /// `environment` gives the values of the headers' variables.
    pub fn new(
        settings: &RateSettings,
        environment: &dyn Fn(&str) -> Option<String>,
        client: Client,
    ) -> Result<HttpRates, String> {
        let guards = settings.guards()?;
        let poll_seconds = setting("poll_seconds", settings.poll_seconds, 15, 2, 600)?;
        if poll_seconds * 2 > guards.bounds.age_seconds_max {
            return Err(
                "rates.poll_seconds must be at most half of rates.age_seconds_max, so that \
             one missed poll stops no quotes"
                    .into(),
            );
        }
        let deadline =
            setting("deadline_milliseconds", settings.deadline_milliseconds, 3_000, 100, 10_000)?;
        Ok(HttpRates {
            client,
            deadline: Duration::from_millis(deadline.unsigned_abs()),
            poll_interval: Duration::from_secs(poll_seconds.unsigned_abs()),
            guards,
            inr_per_usd: sources("inr_per_usd", &settings.inr_per_usd, environment)?,
            usd_per_usdt: sources("usd_per_usdt", &settings.usd_per_usdt, environment)?,
            market: Mutex::default(),
        })
    }

    fn market(&self) -> std::sync::MutexGuard<'_, Market> {
        self.market.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes over the last good rate and the anchor of an earlier run from the store. The rate's
    /// age is judged where it is quoted.
    pub fn restore(&self, last: MarketRate, anchor: RateAnchor) {
        let mut market = self.market();
        market.memory = RateMemory::new(Some(last), Some(anchor));
        market.current = Some(last);
    }

    /// Asks every source once and judges what they say. Answers a good rate and the day's anchor,
    /// which the caller stores, or why there is none. `count` is called for every refusal.
    /// `instant` is the store's clock in Unix seconds.
    pub async fn poll(
        &self,
        instant: i64,
        count: &(dyn Fn(RateRefusal) + Sync),
    ) -> Result<(MarketRate, RateAnchor), RateRefusal> {
        let (inr_per_usd, usd_per_usdt) = futures_util::future::join(
            self.observed(&self.inr_per_usd, instant, count),
            self.observed(&self.usd_per_usdt, instant, count),
        )
        .await;
        let outcome = self.judge(inr_per_usd, usd_per_usdt, instant);
        if let Err(refusal) = outcome {
            count(refusal);
        }
        outcome
    }

    async fn observed(
        &self,
        sources: &[FigureSource],
        instant: i64,
        count: &(dyn Fn(RateRefusal) + Sync),
    ) -> Vec<Observation> {
        let asked = sources.iter().map(|source| {
            source.ask(&self.client, self.deadline, instant, self.guards.bounds.age_seconds_max)
        });
        let answers = join_all(asked).await;
        let mut good = Vec::new();
        for (source, answer) in sources.iter().zip(answers) {
            source.tell(answer.err());
            match answer {
                Ok(observation) => good.push(observation),
                Err(refusal) => count(refusal),
            }
        }
        good
    }

    fn judge(
        &self,
        inr_per_usd: Vec<Observation>,
        usd_per_usdt: Vec<Observation>,
        instant: i64,
    ) -> Result<(MarketRate, RateAnchor), RateRefusal> {
        let near = self.guards.disagreement_basis_points_max;
        let mut market = self.market();
        let judged = agreed(&inr_per_usd, near).and_then(|mid| {
            let usdt_usd = agreed(&usd_per_usdt, near)?;
            let observed_at = mid.observed_at.min(usdt_usd.observed_at);
            market.memory.judge(
                MarketRate { mid: mid.rate, usdt_usd: usdt_usd.rate, observed_at },
                instant,
                &self.guards,
            )
        });
        market.current = match judged {
            Ok(rate) => Some(rate),
            // Where no source answers, the last good rate stays until it is too old.
            Err(RateRefusal::NoGoodSource) => market.current,
            // A contradiction ends it at once, because a source says that its price is wrong.
            Err(_) => None,
        };
        let refusal = judged.err();
        let before = std::mem::replace(&mut market.refusal, refusal);
        match refusal {
            Some(reason) if before != refusal => {
                tracing::warn!(reason = reason.as_str(), "no trusted exchange rate from this poll")
            }
            None if before.is_some() => tracing::info!("the exchange rate is trusted again"),
            _ => {}
        }
        let rate = judged?;
        market.memory.anchor.map(|anchor| (rate, anchor)).ok_or(RateRefusal::NoGoodSource)
    }
}

impl RateSource for HttpRates {
    fn kind(&self) -> RateSourceKind {
        RateSourceKind::Http
    }
    fn current(&self, _: i64) -> Option<MarketRate> {
        self.market().current
    }
}

/// So that the worker that polls and the port share one source.
impl RateSource for std::sync::Arc<HttpRates> {
    fn kind(&self) -> RateSourceKind {
        RateSourceKind::Http
    }
    fn current(&self, instant: i64) -> Option<MarketRate> {
        HttpRates::current(self, instant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCES: &str = "\n[[inr_per_usd]]\nurl = 'https://a.example/x'\npointer = \
     '/a'\n[[usd_per_usdt]]\nurl = 'https://b.example/x'\npointer = ''\n";

    fn new(text: &str) -> Result<HttpRates, String> {
        let settings: RateSettings = toml::from_str(text).map_err(|error| error.to_string())?;
        HttpRates::new(
            &settings,
            &|name| (name == "KEY").then(|| "secret".into()),
            Client::new(rustls::RootCertStore::empty()).unwrap(),
        )
    }

    #[test]
    fn settings_have_defaults_and_ranges() {
        let rates = new(SOURCES).unwrap();
        assert_eq!(
            (rates.poll_interval, rates.guards.jump_polls, rates.guards.bounds),
            (Duration::from_secs(15), 3, RateBounds::default())
        );
        let keyed = SOURCES.replacen(
            "pointer = '/a'",
            "pointer = '/a'\nheader_name = 'X-Key'\nheader_variable = 'KEY'",
            1,
        );
        assert!(new(&keyed).is_ok());
        for line in [
            "poll_seconds = 1",
            "poll_seconds = 31",
            "age_seconds_max = 3",
            "age_seconds_max = 3601",
            "deadline_milliseconds = 99",
            "jump_polls = 1",
            "jump_basis_points_max = 0",
            "anchor_basis_points_max = 2001",
            "disagreement_basis_points_max = 0",
            "anchor = '0'",
            "anchor = '201'",
            "anchor = 88.4",
            "inr_per_usd_minimum = '201'",
            "usdt_usd_minimum = '0.8'",
            "usdt_usd_maximum = '1.2'",
            "usdt_usd_minimum = '1.01'",
            "spread = 1",
        ] {
            assert!(new(&format!("{line}{SOURCES}")).is_err(), "{line}");
        }
        assert!(
            new("").is_err()
                && new(&SOURCES.replace("'/a'", "'a'")).is_err()
                && new(&SOURCES.replace("https://a", "a")).is_err()
        );
        for line in [
            "header_name = 'X-Key'",
            "header_variable = 'KEY'",
            "header_name = 'X-Key'\nheader_variable = 'OTHER'",
        ] {
            assert!(
                new(&SOURCES.replacen("pointer = '/a'", &format!("pointer = '/a'\n{line}"), 1))
                    .is_err(),
                "{line}"
            );
        }
    }

    #[test]
    fn times_are_read_in_three_forms() {
        for (json, seconds) in [
            ("1790000000", Some(1_790_000_000)),
            ("1790000000123", Some(1_790_000_000)),
            ("1790000000.5", Some(1_790_000_000)),
            ("\"1790000000\"", Some(1_790_000_000)),
            ("\"2026-09-21T14:13:20Z\"", Some(1_790_000_000)),
            ("\"2026-09-21T19:43:20.5+05:30\"", Some(1_790_000_000)),
            ("\"2026-09-21\"", None),
            ("0", None),
            ("null", None),
            ("\"soon\"", None),
        ] {
            assert_eq!(time(json), seconds, "{json}");
        }
    }
}
