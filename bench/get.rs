//! Transfers read by identifier, against a bare axum server that answers as many bytes of JSON.

use std::sync::Arc;

use tokio::runtime::Runtime;

use crate::Scale;
use crate::children::Echo;
use crate::load::{self, Until};
use crate::machine::{CpuCost, CpuSpan};
use crate::server::{self, Api, CONNECTIONS_COUNT, Folder, Server};
use crate::table::{Table, median};

/// Transfers that are read in turn.
const TRANSFERS_COUNT: usize = 10_000;

pub fn run(runtime: &Runtime, scale: &Scale, table: &mut Table) {
    let folder = Folder::new("get");
    let database = folder.database("served");
    let server = Server::start(&database);
    let key = server::make_key(&database, "default");
    let (requests, document) = runtime.block_on(async {
        let mut api = Api::new(server.address, &key).await;
        let parties = api.parties().await;
        let creations = api.creations(&parties, TRANSFERS_COUNT).await;
        let (ids, keep) = crate::load::keep_ids();
        load::closed(server.address, CONNECTIONS_COUNT, creations, Until::AllSent, keep).await;
        let ids = std::mem::take(&mut *ids.lock().expect("the identifiers"));
        let document = api.get(&format!("/v1/transfers/{}", ids[0])).await.to_string();
        let requests: Vec<_> =
            ids.iter().map(|id| load::get_request(&format!("/v1/transfers/{id}"), &key)).collect();
        (Arc::new(requests), document)
    });
    let echo = Echo::start(&document);
    let mut sides = [Side::default(), Side::default()];
    for _ in 0..scale.rounds {
        let targets = [(server.address, server.process_id()), (echo.address, echo.process_id())];
        for ((address, process_id), side) in targets.into_iter().zip(&mut sides) {
            let span = CpuSpan::start(process_id);
            let measured = runtime.block_on(load::closed(
                address,
                CONNECTIONS_COUNT,
                requests.clone(),
                Until::Seconds(scale.seconds),
                load::ignore(),
            ));
            side.cost = side.cost.plus(span.end());
            side.count += measured.count();
            side.rates.push(measured.rate());
            side.p50.push(measured.milliseconds(50.0));
            side.p99.push(measured.milliseconds(99.0));
        }
    }
    let [ours, bare] = sides;
    table.add(&format!("get by id over HTTP, {CONNECTIONS_COUNT} connections"), ours.figure(), "");
    table.add(&format!("bare axum, the same {} bytes of JSON", document.len()), bare.figure(), "");
    table.at_least(
        "get against bare axum",
        median(ours.rates.clone()) / median(bare.rates.clone()),
        0.4,
    );
}

#[derive(Default)]
struct Side {
    rates: Vec<f64>,
    p50: Vec<f64>,
    p99: Vec<f64>,
    cost: CpuCost,
    count: usize,
}

impl Side {
    fn figure(&self) -> String {
        let middle = |values: &[f64]| median(values.iter().copied());
        let (rate, p50, p99) = (middle(&self.rates), middle(&self.p50), middle(&self.p99));
        format!("{rate:.0}/s, p50 {p50:.1} ms, p99 {p99:.1} ms, {}", self.cost.of_each(self.count))
    }
}
