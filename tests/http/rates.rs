//! Market rates from sources over HTTP: what is quoted, what is refused, and what a restart
//! remembers.

use std::io::Write;
use std::sync::{Arc, Mutex};

use hundi::kernel::{Code, Currency, Metadata, Money, OperationError, Rate};
use hundi::quote_locks;
use hundi::rates::Market as _;
use hundi::rates::http::{HttpRates, RateSettings};
use hundi::workers::rates::{RateMetrics, poll, restore, run};
use serde_json::json;
use tokio::sync::watch;

use crate::desk::{Desk, TEST, client};
use crate::feed::{Feed, Reply};

/// A market of three sources for INR and one for USDT.
struct Market {
    feed: Feed,
    desk: Desk,
    rates: Arc<HttpRates>,
    metrics: RateMetrics,
}

fn settings(feed: &Feed, more: &str) -> RateSettings {
    let text = format!(
        "deadline_milliseconds = 200\n{more}\n\
         [[inr_per_usd]]\nurl = '{}'\npointer = '/rates/INR'\ntime_pointer = '/at'\n\
         [[inr_per_usd]]\nurl = '{}'\npointer = '/data/0/price'\n\
         [[inr_per_usd]]\nurl = '{}'\npointer = '/data/0/price'\n\
         [[usd_per_usdt]]\nurl = '{}'\npointer = '/price'\n",
        feed.url("/one"),
        feed.url("/two"),
        feed.url("/three"),
        feed.url("/usdt")
    );
    toml::from_str(&text).unwrap()
}

impl Market {
    async fn start(more: &str) -> Market {
        let feed = Feed::start().await;
        let rates = Arc::new(HttpRates::new(&settings(&feed, more), &|_| None, client()).unwrap());
        let desk = Desk::with_rates(Box::new(rates.clone())).await;
        let market = Market { feed, desk, rates, metrics: RateMetrics::default() };
        market.say("88.4125", "1.0001");
        market
    }

    fn say(&self, inr: &str, usdt: &str) {
        self.say_one(inr, self.desk.instant());
        for path in ["/two", "/three"] {
            self.feed.say(path, format!(r#"{{"data":[{{"price":"{inr}"}}]}}"#));
        }
        self.feed.say("/usdt", format!(r#"{{"price":{usdt}}}"#));
    }
    fn say_one(&self, inr: &str, at: i64) {
        self.feed.say(
            "/one",
            format!(r#"{{"base":"USD","at":{at},"rates":{{"EUR":0.86,"INR":{inr}}}}}"#),
        );
    }

    async fn poll(&self) {
        poll(&self.desk.store, &self.rates, &self.metrics).await;
    }

    /// The mid rate of a quote lock made now, or the code that refuses it.
    async fn quote(&self) -> Result<Rate, Code> {
        let sell = quote_locks::QuoteAmount::Sell(Money::new(100_000, Currency::Usd));
        let made = self
            .desk
            .write(move |tx, now, services| {
                quote_locks::create(tx, now, services, TEST, sell, Metadata::default())
            })
            .await;
        made.map(|lock| lock.mid_market_rate).map_err(|failure| match failure {
            OperationError::Refused(refusal) => refusal.entries()[0].code,
            other => panic!("{other}"),
        })
    }
}

const GOOD: Result<Rate, Code> = Ok(Rate(88_412_500));
const NONE: Result<Rate, Code> = Err(Code::QuoteUnavailable);

#[tokio::test]
async fn a_polled_rate_is_quoted_until_its_age_and_survives_a_restart() {
    let market = Market::start("").await;
    assert_eq!(market.quote().await, NONE, "nothing was polled yet");
    market.poll().await;
    assert_eq!(market.quote().await, GOOD);
    assert_eq!(market.rates.current(0).unwrap().usdt_usd, Rate(1_000_100));
    // A restart, with sources that are gone.
    for path in ["/one", "/two", "/three", "/usdt"] {
        market.feed.answer(path, Reply::Closed);
    }
    let again = Arc::new(HttpRates::new(&settings(&market.feed, ""), &|_| None, client()).unwrap());
    restore(&market.desk.store, &again).await;
    assert_eq!(again.current(0), market.rates.current(0));
    market.desk.advance_seconds(60);
    market.poll().await;
    assert_eq!(market.quote().await, GOOD, "silence leaves the last good rate");
    market.desk.advance_seconds(1);
    assert_eq!(market.quote().await, NONE, "never past its age");
    restore(&market.desk.store, &market.rates).await;
    assert_eq!(market.quote().await, NONE, "nor after a restart");
    market.say("88.5", "1");
    market.poll().await;
    assert_eq!(market.quote().await, Ok(Rate(88_500_000)));
}

#[tokio::test]
async fn a_rate_that_was_contradicted_is_not_quoted_after_a_restart() {
    let market = Market::start("").await;
    market.poll().await;
    assert_eq!(market.quote().await, GOOD);
    // USDT has lost its peg.
    market.say("88.4125", "0.9");
    market.poll().await;
    assert_eq!(market.quote().await, NONE);
    restore(&market.desk.store, &market.rates).await;
    assert_eq!(market.quote().await, NONE, "a restart forgets nothing");
    market.say("88.4125", "1");
    market.poll().await;
    assert_eq!(market.quote().await, GOOD);
    restore(&market.desk.store, &market.rates).await;
    assert_eq!(market.quote().await, GOOD, "a good rate ends it");
}

#[tokio::test]
async fn an_answer_that_is_none_is_counted_and_the_other_sources_serve() {
    let market = Market::start("").await;
    let now = market.desk.instant();
    let one = |value: serde_json::Value| Reply::Json(200, value.to_string());
    let cases = [
        ("http_status", Reply::Json(500, r#"{"at":1790000000,"rates":{"INR":88.4125}}"#.into())),
        ("http_status", Reply::Json(302, "{}".into())),
        ("not_json", Reply::Json(200, "<html>88.4125</html>".into())),
        ("not_json", Reply::Json(200, String::new())),
        ("pointer_missing", one(json!({ "at": now, "rates": { "EUR": 0.86 } }))),
        ("pointer_missing", one(json!([1, 2]))),
        ("not_a_number", one(json!({ "at": now, "rates": { "INR": true } }))),
        ("not_a_number", one(json!({ "at": now, "rates": { "INR": null } }))),
        ("not_a_number", one(json!({ "at": now, "rates": { "INR": [88.4125] } }))),
        ("not_a_number", one(json!({ "at": now, "rates": { "INR": "88,4125" } }))),
        ("not_a_number", one(json!({ "at": now, "rates": { "INR": -88.4125 } }))),
        ("time_unreadable", one(json!({ "at": "today", "rates": { "INR": 88.4125 } }))),
        ("time_in_future", one(json!({ "at": now + 31, "rates": { "INR": 88.4125 } }))),
        ("stale", one(json!({ "at": now - 61, "rates": { "INR": 88.4125 } }))),
        (
            "answer_too_long",
            one(json!({ "at": now, "rates": { "INR": 88.4125 }, "more": "x".repeat(300_000) })),
        ),
        ("deadline", Reply::Silence),
        ("connection", Reply::Closed),
    ];
    for (reason, reply) in cases {
        let counted = |reason| market.metrics.refusals.counted(reason);
        let before = counted(reason);
        market.say("88.5", "1");
        market.feed.answer("/one", reply.clone());
        market.poll().await;
        assert_eq!(counted(reason), before + 1, "{reason} {reply:?}");
        let others = Ok(Rate(88_500_000));
        assert_eq!(market.quote().await, others, "the two other sources serve");
        let unused = [1, 2, 3].map(|one| market.metrics.sources.is_unused("inr_per_usd", one));
        assert_eq!(unused, [true, false, false], "{reason} {reply:?}");
        // With one source, or none, there is no rate from this poll, and the last good one ends by
        // its age.
        for (path, few) in [("/two", "too_few_sources"), ("/three", "no_good_source")] {
            market.feed.answer(path, Reply::Json(503, String::new()));
            let before = counted(few);
            market.poll().await;
            assert_eq!((counted(few), market.quote().await), (before + 1, others), "{reason}");
        }
        market.say("88.4125", "1");
        market.poll().await;
        assert_eq!(market.quote().await, GOOD, "recovery after {reason}");
    }
    // The control: a good answer counts nothing.
    let counted = || {
        ["http_status", "not_json", "no_good_source"]
            .map(|reason| market.metrics.refusals.counted(reason))
    };
    let before = counted();
    market.poll().await;
    assert_eq!(counted(), before);
}

#[tokio::test]
async fn what_contradicts_the_last_rate_stops_quotes_at_once() {
    for (reason, inr, usdt) in [
        ("usdt_depegged", "88.4125", "0.994999"),
        ("usdt_depegged", "88.4125", "1.0050010"),
        ("jump", "89.4", "1"),
        ("jump", "87.4", "1"),
        ("implausible", "0.0113", "1"),
        ("implausible", "8841.25", "1"),
    ] {
        let market = Market::start("").await;
        market.poll().await;
        market.desk.advance_seconds(15);
        market.say(inr, usdt);
        market.poll().await;
        assert_eq!(
            (market.quote().await, market.metrics.refusals.counted(reason)),
            (NONE, 1),
            "{reason}"
        );
        market.say("88.4125", "1");
        market.poll().await;
        assert_eq!(market.quote().await, GOOD, "recovery after {reason}");
    }
    let market = Market::start("").await;
    market.poll().await;
    market.say_one("90", market.desk.instant());
    market.poll().await;
    assert_eq!(market.quote().await, GOOD, "two of three outvote the one that lies");
    market.feed.answer("/two", Reply::Closed);
    market.poll().await;
    assert_eq!(
        (market.quote().await, market.metrics.refusals.counted("sources_disagree")),
        (NONE, 1)
    );
    // The control: with wider guards the same figures pass.
    let market = Market::start("jump_basis_points_max = 1000\nusdt_usd_minimum = '0.9'").await;
    market.poll().await;
    market.say("89.4", "0.994999");
    market.poll().await;
    assert_eq!(market.rates.current(0).unwrap().mid, Rate(89_400_000));
    assert_eq!(market.quote().await, NONE, "the quote's own bounds still hold");
}

#[tokio::test]
async fn a_move_that_stays_is_believed_up_to_the_anchor() {
    let market = Market::start("").await;
    market.poll().await;
    let mut quotes = Vec::new();
    for inr in ["89.5", "89.5", "89.5", "90.6", "90.6", "90.6", "90.6"] {
        market.desk.advance_seconds(15);
        market.say(inr, "1");
        market.poll().await;
        quotes.push(market.quote().await);
    }
    assert_eq!(quotes, [NONE, NONE, Ok(Rate(89_500_000)), NONE, NONE, NONE, NONE]);
    assert_eq!(
        (
            market.metrics.refusals.counted("jump"),
            market.metrics.refusals.counted("anchor_deviation")
        ),
        (2, 4)
    );
    // The anchor is the day's; in India the next day begins within hours.
    market.desk.advance_seconds(86_400);
    for _ in 0..3 {
        market.say("90.6", "1");
        market.poll().await;
    }
    assert_eq!(market.quote().await, Ok(Rate(90_600_000)));
}

#[tokio::test]
async fn one_source_of_three_alone_sets_no_price() {
    let market = Market::start("").await;
    market.poll().await;
    for path in ["/two", "/three"] {
        market.feed.answer(path, Reply::Silence);
    }
    let mut quotes = Vec::new();
    for inr in ["88.5", "88.9", "89.1"] {
        market.desk.advance_seconds(20);
        market.say_one(inr, market.desk.instant());
        market.poll().await;
        quotes.push(market.quote().await);
    }
    assert_eq!(quotes, [GOOD; 3], "the last good rate stays");
    market.desk.advance_seconds(1);
    market.poll().await;
    assert_eq!(market.quote().await, NONE, "until it is too old");
    assert_eq!(market.metrics.refusals.counted("too_few_sources"), 4);
    // What contradicts the last good rate ends it, even from one source.
    market.say("88.4125", "1");
    market.poll().await;
    assert_eq!(market.quote().await, GOOD);
    for path in ["/two", "/three"] {
        market.feed.answer(path, Reply::Closed);
    }
    market.say_one("90", market.desk.instant());
    market.poll().await;
    assert_eq!((market.quote().await, market.metrics.refusals.counted("jump")), (NONE, 1));
}

/// What was logged, as text.
#[derive(Clone, Default)]
pub struct Lines(pub Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_refusal_is_logged_once_for_each_change() {
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber =
        tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let market = Market::start("").await;
    market.poll().await;
    for usdt in ["0.99", "0.99", "0.99", "1", "1", "0.99"] {
        market.say("88.4125", usdt);
        market.feed.answer("/two", Reply::Json(500, String::new()));
        market.poll().await;
    }
    let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    let count = |part: &str| text.lines().filter(|line| line.contains(part)).count();
    assert_eq!((count("a rate source is not used"), count("http_status")), (1, 1), "{text}");
    assert_eq!((count("no trusted exchange rate"), count("trusted again")), (2, 1), "{text}");
    assert_eq!(market.metrics.refusals.counted("usdt_depegged"), 4, "the counter has every one");
}

#[tokio::test]
async fn the_worker_polls_by_itself_and_stops_while_a_source_is_silent() {
    let market = Market::start("age_seconds_max = 4\npoll_seconds = 2").await;
    let (stop, stopping) = watch::channel(false);
    let worker = tokio::spawn(run(
        market.desk.store.clone(),
        market.rates.clone(),
        market.metrics.clone(),
        stopping,
    ));
    market.feed.until_asked("/usdt", 1).await;
    market.feed.answer("/one", Reply::Silence);
    market.feed.until_asked("/one", 2).await;
    assert_eq!(market.quote().await, GOOD);
    stop.send(true).unwrap();
    tokio::time::timeout(std::time::Duration::from_secs(5), worker).await.unwrap().unwrap();
}
