//! Market rates from JSON over HTTP. Each figure has one source or several, which a worker polls.
//! `current` answers the last good rate from memory, unless a later poll contradicted it. So no
//! request waits for a source.
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
//! rounded half to even. If a source tells the time of its figure, give `time_pointer`: without it,
//! nobody notices when a source repeats an old figure.
//!
//! A figure counts only if more than half of its configured sources answer and agree. So one source
//! of three may fail, and of two none.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use serde::Deserialize;

use super::figure_source::{FigureSource, SourceSettings};
use super::guard::{Guards, Observation, RateAnchor, RateMemory, agreed};
use super::{
    Market, MarketKind, MarketRate, RATE_AGE_SECONDS_MAX, RateBounds, RateRefusal, USDT_USD_MAX,
    USDT_USD_MIN,
};
use crate::kernel::{Rate, within};
use crate::outbound::Client;

/// The most sources of one figure.
pub const SOURCES_MAX: usize = 8;

/// The table `[rates]` of the configuration file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateSettings {
    /// Seconds from one poll to the next: 2 to 600 and at most half of `age_seconds_max`; default
    /// 15.
    pub poll_seconds: Option<i64>,
    /// Seconds after which a rate is not quoted: 4 to 3 600; default 60.
    pub age_seconds_max: Option<i64>,
    /// How long one answer may take, in milliseconds: 100 to 10 000; default 3 000.
    pub deadline_milliseconds: Option<i64>,
    /// How far sources may be from their median: 1 to 1 000 basis points; default 50.
    pub disagreement_basis_points_max: Option<i64>,
    /// How far a rate may be from the last good one: 1 to 1 000 basis points; default 100.
    pub jump_basis_points_max: Option<i64>,
    /// Polls in a row after which a jump is believed: 2 to 100; default 3.
    pub jump_polls: Option<i64>,
    /// How far a rate may be from the day's anchor: 1 to 2 000 basis points; default 200.
    pub anchor_basis_points_max: Option<i64>,
    /// The operator's anchor in INR for one USD; by default the first good rate of the Indian day.
    pub anchor: Option<String>,
    /// INR for one USD below and above which a figure is a mistake; default 50 and 200.
    pub inr_per_usd_minimum: Option<String>,
    pub inr_per_usd_maximum: Option<String>,
    /// USD for one USDT below and above which nothing is quoted: both 0.9 to 1.1; default 0.995 and
    /// 1.005.
    pub usdt_usd_minimum: Option<String>,
    pub usdt_usd_maximum: Option<String>,
    #[serde(default)]
    pub inr_per_usd: Vec<SourceSettings>,
    #[serde(default)]
    pub usd_per_usdt: Vec<SourceSettings>,
}

/// A market whose figures come from sources over HTTP.
pub struct HttpRates {
    client: Client,
    deadline: Duration,
    pub poll_interval: Duration,
    pub guards: Guards,
    inr_per_usd: Vec<FigureSource>,
    usd_per_usdt: Vec<FigureSource>,
    state: Mutex<MarketState>,
}

#[derive(Default)]
struct MarketState {
    memory: RateMemory,
    /// The rate that [`Market::current`] answers.
    current: Option<MarketRate>,
    /// Why the last poll gave no rate.
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

fn rate_setting(name: &str, value: Option<&str>, default: Rate) -> Result<Rate, String> {
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
            usdt_usd_min: rate_setting(
                "usdt_usd_minimum",
                self.usdt_usd_minimum.as_deref(),
                USDT_USD_MIN,
            )?,
            usdt_usd_max: rate_setting(
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
            inr_per_usd_min: rate_setting(
                "inr_per_usd_minimum",
                self.inr_per_usd_minimum.as_deref(),
                Rate(50_000_000),
            )?,
            inr_per_usd_max: rate_setting(
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
                .map(|text| rate_setting("anchor", Some(text), Rate(0)))
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
    name: &'static str,
    settings: &[SourceSettings],
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<FigureSource>, String> {
    if settings.is_empty() || settings.len() > SOURCES_MAX {
        return Err(format!("give 1 to {SOURCES_MAX} tables [[rates.{name}]]"));
    }
    (1..).zip(settings).map(|(number, source)| source.build(name, number, environment)).collect()
}

impl HttpRates {
    /// `environment` gives the values of the headers' variables. `Err` says which setting is wrong.
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
            state: Mutex::default(),
        })
    }

    fn state(&self) -> MutexGuard<'_, MarketState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes over the last good rate and the anchor that an earlier run stored. If a later poll
    /// contradicted the rate (`is_contradicted`), the rate is remembered but not quoted. Otherwise
    /// its age is judged when somebody wants a quote.
    pub fn restore(&self, last: MarketRate, anchor: RateAnchor, is_contradicted: bool) {
        let mut state = self.state();
        state.memory = RateMemory::new(Some(last), Some(anchor));
        state.current = Some(last).filter(|_| !is_contradicted);
    }

    /// Whether a poll contradicted the last good rate, and none has given a good one since.
    pub fn is_contradicted(&self) -> bool {
        let state = self.state();
        state.current.is_none() && state.memory.last.is_some()
    }

    /// Asks every source once and judges what they say. Returns a good rate and the day's anchor,
    /// which the caller stores, or why there is none. Calls `count_refusal` for every refusal: of a
    /// source's answer, and of the rate. `instant` is the store's clock in Unix seconds.
    pub async fn poll(
        &self,
        instant: i64,
        count_refusal: &(dyn Fn(RateRefusal) + Sync),
    ) -> Result<(MarketRate, RateAnchor), RateRefusal> {
        let (inr_per_usd, usd_per_usdt) = futures_util::future::join(
            self.ask_all(&self.inr_per_usd, instant, count_refusal),
            self.ask_all(&self.usd_per_usdt, instant, count_refusal),
        )
        .await;
        let outcome = self.judge(inr_per_usd, usd_per_usdt, instant);
        if let Err(refusal) = outcome {
            count_refusal(refusal);
        }
        outcome
    }

    async fn ask_all(
        &self,
        sources: &[FigureSource],
        instant: i64,
        count_refusal: &(dyn Fn(RateRefusal) + Sync),
    ) -> Vec<Observation> {
        let asked = sources.iter().map(|source| {
            source.ask(&self.client, self.deadline, instant, self.guards.bounds.age_seconds_max)
        });
        let answers = join_all(asked).await;
        let mut good = Vec::new();
        for (source, answer) in sources.iter().zip(answers) {
            source.note_outcome(answer.err());
            match answer {
                Ok(observation) => good.push(observation),
                Err(refusal) => count_refusal(refusal),
            }
        }
        good
    }

    /// All sources of both figures.
    pub fn sources(&self) -> impl Iterator<Item = &FigureSource> {
        self.inr_per_usd.iter().chain(&self.usd_per_usdt)
    }

    /// The labels of the sources whose last answer was not used.
    fn unused(&self) -> Vec<&str> {
        self.sources()
            .filter(|source| source.refusal().is_some())
            .map(|source| source.label.as_str())
            .collect()
    }

    fn judge(
        &self,
        inr_per_usd: Vec<Observation>,
        usd_per_usdt: Vec<Observation>,
        instant: i64,
    ) -> Result<(MarketRate, RateAnchor), RateRefusal> {
        let basis_points_max = self.guards.disagreement_basis_points_max;
        let mut state = self.state();
        let mid = agreed(&inr_per_usd, self.inr_per_usd.len(), basis_points_max);
        let usdt_usd = agreed(&usd_per_usdt, self.usd_per_usdt.len(), basis_points_max);
        let judged = match (mid, usdt_usd) {
            (Ok(mid), Ok(usdt_usd)) => {
                let observed_at = mid.observed_at.min(usdt_usd.observed_at);
                let seen = MarketRate { mid: mid.rate, usdt_usd: usdt_usd.rate, observed_at };
                state.memory.judge(seen, instant, &self.guards)
            }
            (mid, usdt_usd) => {
                // If sources of one figure disagree, that is the reason, even if too few sources of
                // the other figure answered.
                let refusals = [mid.err(), usdt_usd.err()].into_iter().flatten();
                let refusal =
                    refusals.reduce(|one, other| if one.is_silence() { other } else { one });
                // If the sources agree on a figure, the agreed value is judged, otherwise each of
                // their answers.
                let known = |outcome: Result<Observation, _>, all: &[Observation]| match outcome {
                    Ok(one) => vec![one.rate],
                    Err(_) => all.iter().map(|one| one.rate).collect(),
                };
                Err(state.memory.judge_without_rate(
                    refusal.unwrap_or(RateRefusal::NoGoodSource),
                    &known(mid, &inr_per_usd),
                    &known(usdt_usd, &usd_per_usdt),
                    &self.guards,
                ))
            }
        };
        state.current = match judged {
            Ok(rate) => Some(rate),
            // If too few sources answer, the last good rate stays until it is too old.
            Err(refusal) if refusal.is_silence() => state.current,
            // After any other refusal it is no longer quoted, because it may be wrong.
            Err(_) => None,
        };
        let refusal = judged.err();
        let before = std::mem::replace(&mut state.refusal, refusal);
        match refusal {
            Some(reason) if before != refusal => tracing::warn!(
                reason = reason.as_str(),
                unused = self.unused().join(", "),
                "no trusted exchange rate from this poll"
            ),
            None if before.is_some() => tracing::info!("the exchange rate is trusted again"),
            _ => {}
        }
        let rate = judged?;
        state.memory.anchor.map(|anchor| (rate, anchor)).ok_or(RateRefusal::NoGoodSource)
    }
}

impl Market for HttpRates {
    fn kind(&self) -> MarketKind {
        MarketKind::Http
    }
    fn current(&self, _: i64) -> Option<MarketRate> {
        self.state().current
    }
}

/// Lets the polling worker and `Services` share one market.
impl Market for std::sync::Arc<HttpRates> {
    fn kind(&self) -> MarketKind {
        MarketKind::Http
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
                && new(&SOURCES.replace("https://a.example", "http://10.0.0.7")).is_err()
                && new(&SOURCES.replace("https://a.example", "http://127.0.0.1:8000")).is_ok()
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

    /// A market of so many sources of each figure, with one good rate of 88 and 1 at `NOW`.
    fn market(inr: usize, usdt: usize) -> HttpRates {
        let source = |name: &str, number: usize| {
            format!("[[{name}]]\nurl = 'https://{name}{number}.example'\npointer = '/a'\n")
        };
        let text: String = (0..inr)
            .map(|number| source("inr_per_usd", number))
            .chain((0..usdt).map(|number| source("usd_per_usdt", number)))
            .collect();
        let rates = new(&text).unwrap();
        let told = |figure, count| vec![at(figure); count];
        let good = rates.judge(told(88_000_000, inr), told(1_000_000, usdt), NOW);
        assert_eq!(good.unwrap().0.mid, Rate(88_000_000));
        rates
    }

    const NOW: i64 = 1_790_000_000;

    fn at(figure: i64) -> Observation {
        Observation { rate: Rate(figure), observed_at: NOW }
    }

    #[test]
    fn most_of_the_configured_sources_have_to_be_good_and_agree() {
        const KEPT: Option<i64> = Some(88_000_000);
        // How many sources are configured, what the good ones tell, and what is quoted then.
        let table: [(usize, &[i64], Option<i64>); 15] = [
            (1, &[88_500_000], Some(88_500_000)),
            (1, &[], KEPT),
            (2, &[88_500_000, 88_500_000], Some(88_500_000)),
            (2, &[88_500_000], KEPT),
            (2, &[], KEPT),
            (3, &[88_500_000, 88_500_000, 88_500_000], Some(88_500_000)),
            (3, &[88_500_000, 88_500_000], Some(88_500_000)),
            (3, &[88_500_000, 88_500_000, 40_000_000], Some(88_500_000)),
            (3, &[88_500_000], KEPT),
            (3, &[88_000_000, 88_800_000], None),
            (4, &[88_500_000, 88_500_000], KEPT),
            (4, &[88_500_000, 88_500_000, 88_500_000], Some(88_500_000)),
            (5, &[88_500_000, 88_500_000, 40_000_000], None),
            // A single source that contradicts the last good rate is enough to end the use of it.
            (3, &[90_000_000], None),
            (2, &[86_000_000], None),
        ];
        for (count, told, quoted) in table {
            let rates = market(count, 1);
            let told: Vec<Observation> = told.iter().map(|figure| at(*figure)).collect();
            let judged = rates.judge(told.clone(), vec![at(1_000_000)], NOW);
            let current = rates.current(NOW).map(|rate| rate.mid.0);
            assert_eq!(current, quoted, "{told:?} of {count}: {judged:?}");
            let is_new = judged.map(|(rate, _)| rate.mid.0).ok();
            assert!(is_new.is_none() || is_new == quoted, "{told:?} of {count}: {judged:?}");
        }
        // The same for USDT.
        for (told, quoted) in [
            (&[1_000_100, 1_000_100][..], Some(1_000_100)),
            (&[1_000_100], Some(1_000_000)),
            (&[990_000], None),
        ] {
            let rates = market(1, 3);
            let told: Vec<Observation> = told.iter().map(|figure| at(*figure)).collect();
            let _ = rates.judge(vec![at(88_000_000)], told.clone(), NOW);
            let current = rates.current(NOW).map(|rate| rate.usdt_usd.0);
            assert_eq!(current, quoted, "{told:?}");
        }
    }

    #[test]
    fn after_a_poll_with_too_few_sources_the_count_of_a_jump_begins_anew() {
        let rates = market(3, 1);
        let poll = |inr: &[i64]| {
            let told = inr.iter().map(|figure| at(*figure)).collect();
            rates.judge(told, vec![at(1_000_000)], NOW).is_ok()
        };
        let jump = [89_500_000; 3];
        let row = [&jump[..], &jump, &jump[..1], &jump, &jump, &jump].map(poll);
        assert_eq!(row, [false, false, false, false, false, true]);
    }
}
