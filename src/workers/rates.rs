//! Polls the sources of market rates and stores the last good rate, so that a restart has one at
//! once.

use std::sync::Arc;

use tokio::sync::watch;

use crate::background::is_stopped;
use crate::kernel::Now;
use crate::metrics::{RateSources, Reasons};
use crate::rates::http::HttpRates;
use crate::rates::{RateRefusal, rows};
use crate::store::{Cost, Store, Tx};

/// The metrics of the polls.
#[derive(Clone, Default)]
pub struct RateMetrics {
    pub refusals: Reasons,
    pub sources: RateSources,
}

/// Takes the rate that an earlier run stored. Call it before the first request, so that the service
/// can quote at once if the rate is not too old.
pub async fn restore(store: &Store, rates: &HttpRates) {
    let read = store.read(Cost::Point, |tx| {
        let found = rows::find(tx, rows::LIVE_MARKET)?;
        Ok((found, rows::is_contradicted(tx, rows::LIVE_MARKET)?))
    });
    match read.await {
        Ok((Some((last, anchor)), is_contradicted)) => rates.restore(last, anchor, is_contradicted),
        Ok((None, _)) => {}
        Err(failure) => tracing::error!(
            ?failure,
            "the last good exchange rate could not be read; the first poll gives one"
        ),
    }
}

/// Polls until `stop`.
pub async fn run(
    store: Store,
    rates: Arc<HttpRates>,
    metrics: RateMetrics,
    mut stop: watch::Receiver<bool>,
) {
    while !is_stopped(&stop) {
        tokio::select! {
            () = poll(&store, &rates, &metrics) => {}
            _ = stop.changed() => break,
        }
        tokio::select! {
            () = tokio::time::sleep(rates.poll_interval) => {}
            _ = stop.changed() => {}
        }
    }
}

/// Polls once. Stores a good rate, or that the answers contradict the last one.
pub async fn poll(store: &Store, rates: &HttpRates, metrics: &RateMetrics) {
    let count = |refusal: RateRefusal| metrics.refusals.count(refusal.as_str());
    let polled = rates.poll(store.clock.milliseconds().div_euclid(1000), &count).await;
    for source in rates.sources() {
        metrics.sources.set(source.figure, source.number, source.refusal().is_some());
    }
    let is_contradicted = rates.is_contradicted();
    if polled.is_err() && !is_contradicted {
        return;
    }
    let keep = move |tx: &mut dyn Tx, _: &mut Now| {
        match &polled {
            // Noted again with each such poll, so a write that fails is made up for.
            Err(_) => rows::note_contradiction(tx, rows::LIVE_MARKET)?,
            Ok((rate, anchor)) => rows::save(tx, rows::LIVE_MARKET, rate, anchor)?,
        }
        Ok(())
    };
    // Quotes use the rate in memory, also if it could not be stored.
    if let Err(failure) = store.write(keep).await {
        tracing::error!(?failure, "the exchange rate could not be kept in the store");
    }
}
