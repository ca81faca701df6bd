//! Transfers created over HTTP, against the same rows in a bare loop and against one commit each.

use tokio::runtime::Runtime;

use crate::Scale;
use crate::load::{self, Measured, Until};
use crate::machine::{CpuCost, CpuSpan};
use crate::rows::{self, Bare, BareRun};
use crate::server::{self, Api, CONNECTIONS_COUNT, Folder, Parties, Server};
use crate::table::{Table, median};

/// A round over HTTP.
struct Round {
    measured: Measured,
    cost: CpuCost,
    batch: f64,
}

pub fn run(runtime: &Runtime, scale: &Scale, table: &mut Table) {
    let folder = Folder::new("create");
    let database = folder.database("served");
    let server = Server::start(&database);
    let key = server::make_key(&database, "default");
    let (api, parties) = runtime.block_on(async {
        let mut api = Api::new(server.address, &key).await;
        let parties = api.parties().await;
        (api, parties)
    });
    let batch = runtime.block_on(round(&server, &api, &parties, warm_up_count(scale))).batch;
    // The first batch of addresses is used up, and a large one is made once for the load to come.
    runtime.block_on(server.calm());
    let mut bare = Bare::open(&folder.database("bare"), server::newest_answer_bytes(&database));
    // As many callers of the bare loop as make groups as large as those of HTTP.
    let callers_count = bare.callers_for(runtime, batch);
    let mut http = Vec::new();
    let mut grouped: Vec<BareRun> = Vec::new();
    let mut single: Vec<BareRun> = Vec::new();
    for _ in 0..scale.rounds {
        http.push(runtime.block_on(round(&server, &api, &parties, scale.creations)));
        grouped.push(bare.grouped(runtime, scale.creations, callers_count));
        single.push(bare.one_by_one(scale.creations / 6));
    }
    tell(table, &http, &grouped, &single, callers_count);

    let rate = median(http.iter().map(|round| round.measured.rate()));
    let half = runtime.block_on(async {
        let requests = api.creations(&parties, (rate / 2.0 * scale.seconds * 2.0) as usize).await;
        load::paced(server.address, CONNECTIONS_COUNT, requests, rate / 2.0, load::ignore()).await
    });
    table.add(
        "create at half of that load",
        format!("{:.0}/s, {}", half.rate(), half.percentiles()),
        "",
    );
    let created = warm_up_count(scale) + scale.creations * scale.rounds + half.count();
    drop(api);
    server.stop();
    let bytes = server::stored_bytes(&database) as f64 / created as f64;
    table.add(
        "bytes stored for a transfer, with its quote lock and both stored answers",
        format!("{bytes:.0}"),
        "",
    );
    table.add("the same by table with indexes", rows::bytes_by_table(&database, created), "");
}

fn warm_up_count(scale: &Scale) -> usize {
    scale.creations / 4
}

async fn round(server: &Server, api: &Api, parties: &Parties, count: usize) -> Round {
    let requests = api.creations(parties, count).await;
    let before = server.lane().await;
    let span = CpuSpan::start(server.process_id());
    let measured =
        load::closed(server.address, CONNECTIONS_COUNT, requests, Until::AllSent, load::ignore())
            .await;
    let cost = span.end();
    let after = server.lane().await;
    Round { measured, cost, batch: (after.1 - before.1) / (after.0 - before.0).max(1.0) }
}

fn tell(
    table: &mut Table,
    http: &[Round],
    grouped: &[BareRun],
    single: &[BareRun],
    callers_count: usize,
) {
    let rate = median(http.iter().map(|round| round.measured.rate()));
    let p50 = median(http.iter().map(|round| round.measured.milliseconds(50.0)));
    let p99 = median(http.iter().map(|round| round.measured.milliseconds(99.0)));
    let batch = median(http.iter().map(|round| round.batch));
    let cost = http.iter().fold(CpuCost::default(), |sum, round| sum.plus(round.cost));
    let count = http.iter().map(|round| round.measured.count()).sum();
    let figure = format!(
        "{rate:.0}/s, p50 {p50:.1} ms, p99 {p99:.1} ms, {batch:.0} a commit, {}",
        cost.of_each(count)
    );
    table.add(&format!("create over HTTP, {CONNECTIONS_COUNT} connections"), figure, "");
    let (grouped_rate, grouped_batch) =
        (median(grouped.iter().map(|run| run.rate)), median(grouped.iter().map(|run| run.batch)));
    let what =
        format!("the same rows in a bare loop through the same lane, {callers_count} callers");
    table.add(&what, format!("{grouped_rate:.0}/s, {grouped_batch:.0} a commit"), "");
    let single_rate = median(single.iter().map(|run| run.rate));
    table.add("the same rows in a bare loop, one commit each", format!("{single_rate:.0}/s"), "");
    table.at_least("create over HTTP against the bare loop", rate / grouped_rate, 0.6);
    table.at_least("create over HTTP against one commit each", rate / single_rate, 3.0);
}
