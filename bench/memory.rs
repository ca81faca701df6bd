//! Memory of the service: idle, and after load of every kind.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Runtime;

use crate::Scale;
use crate::load::{self, Until};
use crate::machine;
use crate::server::{self, Api, CONNECTIONS_COUNT, Folder, Server};
use crate::table::Table;

pub fn run(runtime: &Runtime, scale: &Scale, table: &mut Table) {
    let folder = Folder::new("memory");
    let database = folder.database("served");
    let server = Server::start(&database);
    let key = server::make_key(&database, "default");
    std::thread::sleep(Duration::from_secs(2));
    table.at_most("memory of the idle service in MiB", server.resident_mebibytes(), 30.0, "");
    let cpu = machine::cpu_seconds(server.process_id());
    std::thread::sleep(Duration::from_secs_f64(scale.seconds));
    let cpu = (machine::cpu_seconds(server.process_id()) - cpu) / scale.seconds * 100.0;
    table.add("CPU of the idle service", format!("{cpu:.1} % of one core"), "");

    runtime.block_on(async {
        let mut api = Api::new(server.address, &key).await;
        let parties = api.parties().await;
        let creations = api.creations(&parties, scale.creations).await;
        let (ids, keep) = load::keep_ids();
        load::closed(server.address, CONNECTIONS_COUNT, creations, Until::AllSent, keep).await;
        let after_creations = server.resident_mebibytes();
        let ids = std::mem::take(&mut *ids.lock().expect("the identifiers"));
        let gets: Vec<_> =
            ids.iter().map(|id| load::get_request(&format!("/v1/transfers/{id}"), &key)).collect();
        load::closed(
            server.address,
            CONNECTIONS_COUNT,
            Arc::new(gets),
            Until::AllSent,
            load::ignore(),
        )
        .await;
        let lists: Vec<_> = ids
            .iter()
            .step_by(10)
            .map(|id| {
                load::get_request(&format!("/v1/transfers?limit=10&starting_after={id}"), &key)
            })
            .collect();
        load::closed(
            server.address,
            CONNECTIONS_COUNT,
            Arc::new(lists),
            Until::AllSent,
            load::ignore(),
        )
        .await;
        let after_reads = server.resident_mebibytes();
        table.add(
            "memory under load in MiB",
            format!(
                "{after_creations:.0} after {} creations, {after_reads:.0} after reading them all",
                scale.creations
            ),
            "",
        );
    });
}
