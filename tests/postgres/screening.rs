//! Sanctions lists where several nodes screen: decisions beside the walk over everybody, and nodes
//! that do not walk.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hundi::app::App;
use hundi::config::{Config, Flags};
use hundi::http::server;
use hundi::kernel::id::kind;
use hundi::kernel::{Clock, DecidedBy, Id, Metadata, Mode, Scope};
use hundi::keys;
use hundi::operator::{self, OperatorDecision};
use hundi::screening::Screening;
use hundi::senders::{self, NewSender, SenderType};
use hundi::workers::screening::{STEP_ROWS_MAX, Walk, step};
use tokio::sync::watch;

use crate::support::postgres::{Database, ENCRYPTION_KEY};
use crate::support::steps::PATIENCE;

const HEADER: &str = "id,name,aliases,date_of_birth,country,address,note\n";
const LIVE: Scope = Scope::new(1, Mode::Live);

/// A node with an own list, which nothing runs on yet. Without a live bank, live senders are
/// screened with the lists as they are.
struct Office {
    app: Arc<App>,
    config: Config,
    database: Database,
    folder: PathBuf,
}

impl Office {
    async fn open(role: &str, list: &str) -> Office {
        let database = Database::fresh();
        let folder = std::env::temp_dir().join(format!("hundi-lists-{}", database.name));
        std::fs::create_dir(&folder).expect("a folder");
        let file = folder.join("own.csv");
        std::fs::write(&file, format!("{HEADER}{list}")).expect("the list");
        let settings = folder.join("hundi.toml");
        std::fs::write(&settings, format!("[screening]\noperator_file = '{}'\n", file.display()))
            .expect("the settings");
        let flags = Flags {
            config: Some(settings),
            listen: Some("127.0.0.1:0".into()),
            database: Some(database.url()),
            role: Some(role.into()),
            ..Flags::default()
        };
        let environment = |name: &str| match name {
            "HUNDI_ENCRYPTION_KEY" => Some(ENCRYPTION_KEY.to_owned()),
            "HUNDI_DATABASE_CONNECTIONS" => Some("4".to_owned()),
            _ => None,
        };
        let config = Config::read(&flags, &environment).expect("the settings");
        let app = App::open(&config, Clock::System).await.expect("a node");
        app.state
            .store
            .write(|tx, now| Ok(keys::rows::ensure_account(tx, now, "default")?))
            .await
            .expect("an account");
        Office { app, config, database, folder }
    }

    fn replace(&self, list: &str) {
        std::fs::write(self.folder.join("own.csv"), format!("{HEADER}{list}")).expect("the list");
    }

    async fn sender(&self, name: &'static str) -> Id<kind::Sender> {
        let services = self.app.state.services.clone();
        let make = move |tx: &mut dyn hundi::store::Tx, now: &mut hundi::kernel::Now| {
            let ask = NewSender {
                name: name.into(),
                sender_type: SenderType::Individual,
                country: "IN".into(),
                email: None,
                address: None,
                date_of_birth: None,
                nationality: None,
                identification: None,
                metadata: Metadata::default(),
            };
            Ok(senders::create(tx, now, &services, LIVE, ask)?.id)
        };
        self.app.state.store.write(make).await.expect("a sender")
    }
}

impl Drop for Office {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_stays_that_the_walk_met() {
    let office = Office::open("all", "own-1,Zubin Tarkhad,,,,,\n").await;
    let sender_id = office.sender("Zubin Tarkhad").await;
    // The list drops the entry, so the walk withdraws the hit, while the operator refuses for it.
    office.replace("own-2,Somebody New,,,,,\n");
    office
        .app
        .state
        .services
        .screening
        .as_ref()
        .expect("lists")
        .reload_if_changed()
        .expect("the list");
    let held = office.database.hold("SELECT id FROM screening_hits FOR UPDATE");
    let (store, services) = (office.app.state.store.clone(), office.app.state.services.clone());
    let refusing = tokio::spawn(async move {
        store
            .write(move |tx, now| {
                operator::decide(
                    tx,
                    now,
                    &services,
                    sender_id.any(),
                    &OperatorDecision::Refuse,
                    &DecidedBy::new("asha", "a test").expect("a name and a reason"),
                )
            })
            .await
            .map_err(|error| error.to_string())
    });
    office.database.until_waiting(1);
    let (store, services) = (office.app.state.store.clone(), office.app.state.services.clone());
    let walking = tokio::spawn(async move {
        store
            .write(move |tx, now| {
                Ok(step(tx, now, &services, Walk::begin(Mode::Live), STEP_ROWS_MAX)?)
            })
            .await
    });
    office.database.until_waiting(2);
    drop(held);
    refusing.await.expect("the decision").expect("the decision");
    walking.await.expect("a step").expect("a step");
    let found = office
        .app
        .state
        .store
        .write(move |tx, _| Ok(senders::rows::find(tx, LIVE, sender_id)?))
        .await
        .expect("the sender");
    assert_eq!(found.expect("the sender").screening, Screening::ConfirmedMatch);
    assert_eq!(office.database.sql("SELECT decision FROM screening_hits"), [["refused"]]);
    office.app.state.store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_does_not_walk_reads_changed_lists_too() {
    for role in ["serve", "all"] {
        let office = Office::open(role, "own-1,Zubin Tarkhad,,,,,\n").await;
        if role == "all" {
            // Another node has the lease for longer than this test takes.
            office.database.sql(
                "INSERT INTO leases (name, holder, token, ends_milliseconds) \
             VALUES ('screening', 'x', 1, 9000000000000)",
            );
        }
        let lists = office.app.state.services.screening.clone().expect("lists");
        let before = lists.content_hash();
        office.replace("own-2,Somebody New,,,,,\n");
        let (listener, _) = server::bind(&office.config.listen).await.expect("a port");
        let (stop, stopping) = watch::channel(false);
        let running = tokio::spawn(office.app.clone().run(listener, stopping));
        let started = Instant::now();
        while lists.content_hash() == before {
            assert!(started.elapsed() < PATIENCE, "role {role}: the lists stay those of the start");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        stop.send(true).expect("a node that runs");
        running.await.expect("a node that ends");
    }
}
