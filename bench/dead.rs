//! One dead endpoint among many: whether the others wait for it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;

use crate::Scale;
use crate::deliveries::{delays, keep_arrivals};
use crate::load::{self, Measured};
use crate::receiver::{DEAD_PATH, Receiver};
use crate::server::{self, Api, CONNECTIONS_COUNT, Folder, Server};
use crate::table::{Table, median};

const ENDPOINTS_COUNT: usize = 200;
/// Endpoints that one account may have.
const ENDPOINTS_OF_ACCOUNT: usize = 16;
/// Transfers a second over all accounts; each makes a delivery to every endpoint of its account.
const CREATIONS_PER_SECOND: f64 = 60.0;

pub fn run(runtime: &Runtime, scale: &Scale, table: &mut Table) {
    let mut with = Vec::new();
    let mut without = Vec::new();
    for _ in 0..scale.rounds {
        without.push(runtime.block_on(round(scale, false)));
        with.push(runtime.block_on(round(scale, true)));
    }
    let p99 = |rounds: &[Measured]| median(rounds.iter().map(|round| round.milliseconds(99.0)));
    let figure = |rounds: &[Measured]| {
        let p50 = median(rounds.iter().map(|round| round.milliseconds(50.0)));
        format!("p50 {p50:.1} ms, p99 {:.1} ms", p99(rounds))
    };
    table.add(
        &format!("delay of deliveries to {ENDPOINTS_COUNT} healthy endpoints"),
        figure(&without),
        "",
    );
    table.add("the same to the others with one dead among them", figure(&with), "");
    table.at_most(
        "p99 of the others with a dead endpoint against without",
        p99(&with) / p99(&without).max(0.001),
        1.1,
        "",
    );
}

async fn round(scale: &Scale, has_dead: bool) -> Measured {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let folder = Folder::new(&format!("dead-{}", COUNT.fetch_add(1, Ordering::Relaxed)));
    let database = folder.database("served");
    let (arrivals, keep) = keep_arrivals();
    let receiver = Receiver::start(keep).await;
    let server = Server::start(&database);
    let mut accounts = Vec::new();
    let mut endpoints_left = ENDPOINTS_COUNT;
    let mut dead_left = usize::from(has_dead);
    while endpoints_left > 0 {
        let key = server::make_key(&database, &format!("account-{}", accounts.len()));
        let mut api = Api::new(server.address, &key).await;
        for index in 0..ENDPOINTS_OF_ACCOUNT.min(endpoints_left) {
            let path = if dead_left > 0 {
                DEAD_PATH.to_owned()
            } else {
                format!("/{}/{index}", accounts.len())
            };
            dead_left = dead_left.saturating_sub(1);
            api.endpoint(&receiver.url(&path), &["transfer.status.funding"]).await;
            endpoints_left -= 1;
        }
        let parties = api.parties().await;
        accounts.push((api, parties));
    }
    let count = (CREATIONS_PER_SECOND * scale.seconds * 3.0) as usize;
    let mut requests = Vec::new();
    for (api, parties) in &accounts {
        requests.push(api.creations(parties, count / accounts.len() + 1).await);
    }
    // One account after the other, so that every account has the same load at every moment.
    let requests: Vec<Vec<u8>> = (0..count)
        .map(|index| requests[index % accounts.len()][index / accounts.len()].clone())
        .collect();
    let answers = Arc::new(Mutex::new(HashMap::new()));
    let keeping = answers.clone();
    let keep: load::OnAnswer = Arc::new(move |_, body, answered: Instant| {
        keeping.lock().expect("the answers").insert(server::id_in(body), answered);
    });
    load::paced(server.address, CONNECTIONS_COUNT, Arc::new(requests), CREATIONS_PER_SECOND, keep)
        .await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let answers = answers.lock().expect("the answers");
    let arrivals = arrivals.lock().expect("the arrivals");
    delays(&answers, &arrivals)
}
