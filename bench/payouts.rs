//! Whole payouts: beneficiary, sender, quote lock, transfer, deposit, UTR.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::runtime::Runtime;

use crate::Scale;
use crate::load::Measured;
use crate::machine::CpuSpan;
use crate::server::{self, Api, Folder, Parties, Server};
use crate::table::Table;

/// Payouts on their way at the same time.
const CALLERS_COUNT: usize = 32;

pub fn run(runtime: &Runtime, scale: &Scale, table: &mut Table) {
    let folder = Folder::new("payouts");
    let database = folder.database("served");
    let server = Server::start(&database);
    let key = server::make_key(&database, "default");
    runtime.block_on(payouts(&server, &key, 0.5));
    let span = CpuSpan::start(server.process_id());
    let measured = runtime.block_on(payouts(&server, &key, scale.seconds * 3.0));
    let cost = span.end();
    let figure = format!(
        "{:.0}/s, {}, {}",
        measured.rate(),
        measured.percentiles(),
        cost.of_each(measured.count())
    );
    table.add(
        &format!("whole payouts, six steps to the UTR, {CALLERS_COUNT} callers that poll"),
        figure,
        "",
    );
}

async fn payouts(server: &Server, key: &str, seconds: f64) -> Measured {
    let is_over = Arc::new(AtomicBool::new(false));
    let mut callers = Vec::new();
    let mut apis = Vec::new();
    for _ in 0..CALLERS_COUNT {
        apis.push(Api::new(server.address, key).await);
    }
    let started = Instant::now();
    for mut api in apis {
        let is_over = is_over.clone();
        callers.push(tokio::spawn(async move {
            let mut latencies = Vec::new();
            while !is_over.load(Ordering::Relaxed) {
                let begun = Instant::now();
                payout(&mut api).await;
                latencies.push(begun.elapsed().as_micros() as u32);
            }
            latencies
        }));
    }
    tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
    is_over.store(true, Ordering::Relaxed);
    let mut latencies = Vec::new();
    for caller in callers {
        latencies.extend(caller.await.expect("a caller"));
    }
    Measured::new(started.elapsed().as_secs_f64(), latencies)
}

pub async fn payout(api: &mut Api) {
    let parties =
        Parties { beneficiaries: vec![api.beneficiary().await], senders: vec![api.sender().await] };
    let lock = api.quote_lock().await;
    let transfer = server::id(&api.post("/v1/transfers", &parties.transfer_body(0, &lock)).await);
    api.post(&format!("/v1/test_helpers/transfers/{transfer}/deposit"), &json!({})).await;
    let settled = api.wait_status(&format!("/v1/transfers/{transfer}"), "payout_settled").await;
    assert!(
        settled["payout"]["unique_transaction_reference"].is_string(),
        "a settled payout without a UTR: {settled}"
    );
}
