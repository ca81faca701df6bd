//! Assembles the service: the store, the services, the routes and the workers, from start to stop.

mod account_keys;
#[cfg(test)]
mod other_kind_test;

use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::account_verification::simulated::SimulatedVerifier;
use crate::app_state::AppState;
use crate::background::{RunsOn, Stop, Worker};
use crate::chain_following::{audit, first_start, follow};
use crate::chains::address::ChainAddress;
use crate::chains::followed::FollowedChain;
use crate::chains::pool::AddressPool;
use crate::chains::rows as chain_rows;
use crate::chains::settings::ChainSettings;
use crate::chains::tron::Tron;
use crate::chains::{ChainName, ChainProfile, Following};
use crate::config::{Config, ProcessRole, environment};
use crate::console::{self, Console};
use crate::guides::Guides;
use crate::http::dispatch::Api;
use crate::http::{connections, openapi, server};
use crate::kernel::id::Minter;
use crate::kernel::{Clock, Currency, Mode, OperationError, system_random};
use crate::key_rotation::holders::{self, Holder};
use crate::keys::KeyRing;
pub use crate::keys::making::{KeyRequest, create_key, create_key_by};
use crate::metrics::Metrics;
use crate::outbound::Client;
use crate::pages::{self, Site};
use crate::payment_advices as advice;
use crate::rails::files::folders::Folders;
use crate::rails::files::rail::FileRail;
use crate::rails::files::settings::BankSettings;
use crate::rails::simulated::SimulatedBank;
use crate::rate_limits::Limiter;
use crate::rates::fixed::FixedRate;
use crate::rates::http::HttpRates;
use crate::routes::{resource_paths, routes};
use crate::screening::lists::Lists;
use crate::screening::simulated::SimulatedScreener;
use crate::services::{Ports, Services};
use crate::store::handle::{self, Epilogue};
use crate::store::{Cost, Store, Tx};
use crate::tls::platform_roots;
use crate::webhooks::handover::Handover;
use crate::webhooks::sending::attempt::WebhookClientOptions;
use crate::webhooks::sending::client::WebhookClient;
use crate::webhooks::sequencer::sequence;
use crate::workers::{
    account_look_ups, bank, clock, housekeeping, key_uses, name_words, rates as rates_worker,
    screening, tasks,
};
use crate::{events, ifsc, key_rotation, live, secrets, settings_log, webhooks};

pub use account_keys::address_index_names;
use account_keys::{TEST_ADDRESS_INDEX, addresses_of, prepare};

/// USDT on TRON's Nile test net: what test mode shows as the token if its chain is simulated.
const TEST_TOKEN_CONTRACT: &str = "TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf";
/// The account that a first start makes.
pub const ACCOUNT_DEFAULT: &str = "default";

/// The service put together; nothing runs before [`App::run`].
pub struct App {
    pub state: Arc<AppState>,
    pub site: Arc<Site>,
    pub role: ProcessRole,
    /// This node, and the encryption keys that it has.
    holder: Holder,
    pub webhook_client: WebhookClient,
    /// The bank that exchanges files with the service, if there is one: live mode's, or one that
    /// replaces test mode's simulated bank.
    pub bank: Option<Arc<BankSettings>>,
    /// The market rates of live mode, which a worker polls.
    pub rates: Option<Arc<HttpRates>>,
}

impl App {
    /// Opens the store and puts the service together. Nothing runs yet.
    pub async fn open(config: &Config, clock: Clock) -> Result<Arc<App>, String> {
        App::open_with(config, clock, sequence, None, true).await
    }

    /// Like [`App::open`], but test mode exchanges files with this bank instead of the simulated
    /// one, as with the table `[test_bank]`.
    pub async fn open_with_bank(
        config: &Config,
        clock: Clock,
        bank: BankSettings,
    ) -> Result<Arc<App>, String> {
        App::open_with(config, clock, sequence, Some(bank), true).await
    }

    /// Like [`App::open`], for a command beside a running server. It leaves its outbox rows to the
    /// server, whose sequencer alone mints event identifiers. It works even with sanctions lists
    /// that are too old for a server to start. `Err` where there is no database.
    pub async fn open_beside(config: &Config, clock: Clock) -> Result<Arc<App>, String> {
        config.database.must_exist()?;
        App::open_with(config, clock, handle::no_epilogue, None, false).await
    }

    /// `is_server` is `false` for a command beside a running server.
    async fn open_with(
        config: &Config,
        clock: Clock,
        epilogue: Epilogue,
        bank: Option<BankSettings>,
        is_server: bool,
    ) -> Result<Arc<App>, String> {
        let bank = bank.or_else(|| config.test_bank.clone());
        let keys = secrets::encryption_keys(&config.database, &config.encryption_keys)?;
        let connections_count = config.database_connections;
        let verifiers = keys.verifiers();
        let opened = Store::open_database(
            &config.database,
            clock,
            epilogue,
            connections_count,
            is_server,
            move |tx| key_rotation::refuse_keys(tx, &verifiers),
        )
        .await;
        let store = opened.map_err(|error| error.to_string())?;
        let node_id: [u8; 16] = system_random()?;
        let holder = Holder::new(node_id, &config.listen, keys.verifiers());
        let node = is_server.then(|| holder.clone());
        let (sealer, account_key) = prepare(&store, &keys, node).await?;
        let mut settings = config.settings.clone();
        if let Some(rates) = &config.rates {
            settings.rate_bounds = rates.bounds()?;
        }
        let token_contract =
            ChainAddress::parse(TEST_TOKEN_CONTRACT).map_err(|fault| fault.to_string())?;
        let test = Ports {
            rates: Box::new(FixedRate {
                mid: settings.test_mid_market_rate,
                usdt_usd: settings.test_usdt_usd,
            }),
            rail: match &bank {
                Some(bank) => Box::new(FileRail::new(bank)),
                None => Box::new(SimulatedBank {
                    step_milliseconds: settings.simulation_step_milliseconds,
                }),
            },
            accounts: Box::new(SimulatedVerifier),
            screener: Box::new(SimulatedScreener),
            addresses: match &config.test_chain {
                None => AddressPool::new(&Tron, account_key, TEST_ADDRESS_INDEX.into()),
                Some(chain) => addresses_of(chain),
            },
            chain: match &config.test_chain {
                None => ChainProfile {
                    name: ChainName::Tron,
                    asset: Currency::Usdt,
                    token_contract,
                    following: Following::Simulated,
                },
                Some(chain) => profile_of(chain),
            },
        };
        let roots = platform_roots();
        let client =
            Client::new(roots.clone()).map_err(|error| format!("TLS cannot be set up: {error}"))?;
        let follow = |mode, settings: &Option<ChainSettings>| {
            settings
                .as_ref()
                .map(|settings| Arc::new(FollowedChain::new(mode, settings.clone(), &client)))
        };
        let chains =
            [follow(Mode::Test, &config.test_chain), follow(Mode::Live, &config.live_chain)]
                .into_iter()
                .flatten()
                .collect();
        let webhook_client = WebhookClient::new(roots, WebhookClientOptions::default())
            .map_err(|error| format!("TLS cannot be set up: {error}"))?;
        let ifsc = ifsc::directory(config.ifsc_file.as_deref())?;
        let screening = match config.screening.clone() {
            Some(settings) => Some(Arc::new(
                tokio::task::spawn_blocking(|| Lists::load(settings))
                    .await
                    .map_err(|fault| fault.to_string())??,
            )),
            None => None,
        };
        let serves_at = is_server.then(|| store.clock.milliseconds() / 1000);
        let live_parts =
            live::assemble(config, &environment, &client, screening.as_ref(), serves_at)?;
        let mut rates = None;
        let mut bank = bank;
        let live = match live_parts {
            None => None,
            Some(parts) => {
                rates_worker::restore(&store, &parts.rates).await;
                rates = Some(parts.rates.clone());
                let ports = Ports {
                    rates: Box::new(parts.rates),
                    rail: Box::new(FileRail::new(&parts.bank)),
                    accounts: parts.accounts,
                    screener: Box::new(parts.lists),
                    addresses: addresses_of(&parts.chain),
                    chain: profile_of(&parts.chain),
                };
                bank = Some(parts.bank);
                Some(ports)
            }
        };
        let services = Arc::new(Services { settings, sealer, ifsc, screening, test, live });
        let shared = services.clone();
        let signing =
            store.write(move |tx, now| Ok(advice::signing::ensure(tx, now, &shared.sealer)?)).await;
        signing.map_err(|failure| {
            format!("the keys that sign payment advices cannot be made: {failure:?}")
        })?;
        if is_server {
            settings_log::keep(config, &store, &services).await?;
        }
        let metrics = Arc::new(Metrics::default());
        let is_draining = false.into();
        let live_parts = live::parts(config);
        let watched_folders = config.watched_folders();
        let settings_shown = settings_log::shown(config, &services);
        let state = Arc::new(AppState {
            node_id,
            store,
            services,
            chains,
            metrics,
            keys: KeyRing::default(),
            live_parts,
            settings_shown,
            setting_origins: config.origins.clone(),
            reads_per_second_max: config.rate_limits.reads,
            writes_per_second_max: config.rate_limits.writes,
            watched_folders,
            is_draining,
        });
        let api = Api::new(state.clone(), Limiter::new(config.rate_limits), routes())?;
        // The document names the server by "/", so that the reference page sends its requests to
        // the server that it came from.
        let document = openapi::document(&api.router.routes, &resource_paths(), "/");
        let site = Site {
            app: state.clone(),
            api,
            request_ids: Minter::above(0),
            takes_requests: config.role != ProcessRole::Work,
            shows_metrics: config.shows_metrics,
            openapi: document.to_string().into(),
            guides: Guides::new(document, &state.services.settings.public_url),
        };
        Ok(Arc::new(App {
            state,
            site: Arc::new(site),
            role: config.role,
            holder,
            webhook_client,
            bank: bank.map(Arc::new),
            rates,
        }))
    }

    /// Compares every configured chain with what the store knows of it, and asks its nodes whether
    /// they belong to the chain that the configuration names. `Err` names a mismatch, or an account
    /// key whose addresses were used elsewhere. A node that does not answer is logged, and asked
    /// again later.
    pub async fn check_chains(&self) -> Result<(), String> {
        let unread = |failure: OperationError| {
            format!("cannot read which chains were followed: {failure:?}")
        };
        let followed = self
            .state
            .store
            .read(Cost::Point, |tx| Ok(chain_rows::followed(tx)?))
            .await
            .map_err(unread)?;
        let is_configured = |mode: &str, name: &str| {
            self.state
                .chains
                .iter()
                .any(|chain| (chain.mode.as_str(), chain.settings.name.as_str()) == (mode, name))
        };
        for (mode, chain) in followed.iter().filter(|(mode, chain)| !is_configured(mode, chain)) {
            tracing::warn!(
                mode,
                chain,
                "a chain was followed before and is not configured now: nothing that arrives \
                 there is seen, and none of its transfers expires"
            );
        }
        for chain in &self.state.chains {
            let (mode, name) = (chain.mode, chain.settings.name);
            let read = move |tx: &mut dyn Tx| {
                Ok((chain_rows::identity(tx, mode, name)?, chain_rows::tokens(tx, mode, name)?))
            };
            if let (Some(identity), tokens) =
                self.state.store.read(Cost::Point, read).await.map_err(unread)?
            {
                chain.check_network_and_keep_tokens(&identity, tokens)?;
            }
            if !chain.check().await? {
                tracing::warn!(
                    chain = chain.settings.name.as_str(),
                    "no node answers yet; if the chain was never followed before, no transfer can \
                     be created until a node answers"
                );
            }
            // While live mode is off, no address of its chain is handed out.
            if let Ok(ports) = self.state.services.ports(mode) {
                first_start::refuse_used_key(&self.state.store, chain, &ports.addresses).await?;
            }
        }
        Ok(())
    }

    /// Creates those of the bank's folders that are missing. `Err` if files cannot be written to
    /// the folders or taken from them, because payouts would then wait forever.
    pub fn check_bank(&self) -> Result<(), String> {
        let Some(bank) = &self.bank else { return Ok(()) };
        Folders::open(&bank.folder)?.check_writable()
    }

    /// Runs the workers and the server until `stop` is true. Returns after the running requests and
    /// deliveries have ended, or their time is up, and the store is closed.
    pub async fn run(self: Arc<App>, listener: TcpListener, stop: watch::Receiver<bool>) {
        self.run_with(listener, None, stop).await;
    }

    /// Like [`App::run`], with the operator's console on a listener of its own.
    pub async fn run_with(
        self: Arc<App>,
        listener: TcpListener,
        console: Option<(TcpListener, Arc<Console>)>,
        stop: watch::Receiver<bool>,
    ) {
        let takes_requests = self.role != ProcessRole::Work;
        clock::begin(&self.state).await;
        if takes_requests {
            // Before the first request: a transfer needs an address.
            housekeeping::reserve_addresses(&self.state).await;
        }
        let start = |worker: Worker| {
            worker.start(&self.state, takes_requests, self.role != ProcessRole::Serve, &stop)
        };
        let running: Vec<_> = self.workers().into_iter().filter_map(start).collect();
        let (mut stopping, state) = (stop.clone(), self.state.clone());
        tokio::spawn(async move {
            // An error means that the sender of `stop` is gone, which stops the node too.
            let _ = stopping.wait_for(|is_stopping| *is_stopping).await;
            state.drain();
        });
        let site = self.site.clone();
        let (refusing, metrics) = (site.clone(), self.state.metrics.clone());
        let answer = move |request| pages::answer(site.clone(), request);
        let refuse = Arc::new(move |refusal| pages::refuse(&refusing, refusal));
        let shares = connections::shares(server::connections_max(), console.is_some());
        let operating = console.map(|(listener, console)| {
            let refusing = console.clone();
            let answer = move |request| console::answer(console.clone(), request);
            let refuse = Arc::new(move |refusal| console::refuse(&refusing, refusal));
            let (stop, metrics) = (stop.clone(), metrics.clone());
            tokio::spawn(server::serve(listener, shares.console, stop, metrics, answer, refuse))
        });
        server::serve(listener, shares.api, stop, metrics, answer, refuse).await;
        if let Some(Err(_)) = futures_util::future::OptionFuture::from(operating).await {
            tracing::error!("the console panicked");
        }
        for worker in running {
            if worker.await.is_err() {
                tracing::error!("a worker panicked");
            }
        }
        self.state.store.close().await;
    }

    /// Everything that runs in the background.
    fn workers(&self) -> Vec<Worker> {
        let app = || self.state.clone();
        let (sequenced, delivered, replayed, look_ups) = (app(), app(), app(), app());
        let client = self.webhook_client.clone();
        let (drills, drills_client) = (app(), client.clone());
        let mut workers = vec![
            with_app("addresses", RunsOn::Servers, app(), housekeeping::derive_addresses),
            with_app("key_uses", RunsOn::Servers, app(), key_uses::run),
            with_app("event_waits", RunsOn::Servers, app(), events::watch::run),
            with_app("sequencer_nudge", RunsOn::Embedded, app(), housekeeping::nudge_sequencer),
            with_app("clock", RunsOn::Embedded, app(), clock::run),
            leading("tasks", app(), tasks::run),
            leading("purge", app(), housekeeping::purge),
            leading("name_words", app(), name_words::run),
            Worker::leading("look_ups", move |stop, _| {
                let AppState { store, services, metrics, .. } = look_ups.as_ref();
                let counts = metrics.look_ups.clone();
                account_look_ups::run(store.clone(), services.clone(), counts, stop)
            }),
            Worker::leading("webhook_drills", move |stop, _| {
                webhooks::drill::run(drills.clone(), drills_client.clone(), stop)
            }),
            // These share one lease, so they run on one node. There the sequencer's signal wakes
            // the delivery worker.
            Worker::leading(events::watch::SEQUENCER_LEASE, move |stop: Stop, lease| {
                let handover = Arc::<Handover>::default();
                let (app, client) = (delivered.clone(), client.clone());
                let deliver = webhooks::worker::run(app, client, handover.clone(), stop.clone());
                let chain = events::chain::run(sequenced.clone(), stop.clone());
                let replays = webhooks::replay::run(replayed.clone(), stop.clone());
                let app = sequenced.clone();
                let sequence = webhooks::sequencer::run(app, lease, handover, stop);
                async {
                    tokio::join!(deliver, sequence, chain, replays);
                }
            }),
        ];
        if self.state.store.is_shared() {
            let (app, holder) = (app(), self.holder.clone());
            workers.push(Worker::new("encryption_keys", RunsOn::EveryNode, move |stop| {
                holders::run(app.store.clone(), holder.clone(), stop)
            }));
        }
        // Quotes need a rate on every node.
        if let Some(rates) = self.rates.clone() {
            let app = app();
            workers.push(Worker::new("rates", RunsOn::EveryNode, move |stop| {
                let metrics = rates_worker::RateMetrics {
                    refusals: app.metrics.rate_refusals.clone(),
                    sources: app.metrics.rate_source_unused.clone(),
                };
                rates_worker::run(app.store.clone(), rates.clone(), metrics, stop)
            }));
        }
        // Nodes that take requests and nodes that run tasks both screen, so each needs the lists.
        if self.state.services.screening.is_some() {
            workers.push(with_app("lists", RunsOn::EveryNode, app(), screening::keep_lists));
            workers.push(leading("screening", app(), screening::run));
        }
        for chain in &self.state.chains {
            let (follow, audit, account_key) = match chain.mode {
                Mode::Live => ("live_chain", "live_chain_audit", "live_account_key"),
                Mode::Test => ("test_chain", "test_chain_audit", "test_account_key"),
            };
            let (app_of_key, chain_of_key) = (app(), chain.clone());
            workers.push(Worker::new(account_key, RunsOn::Servers, move |stop| {
                first_start::run(app_of_key.clone(), chain_of_key.clone(), stop)
            }));
            let (app_of_follow, chain_of_follow) = (app(), chain.clone());
            workers.push(Worker::leading(follow, move |stop, _| {
                follow::run(app_of_follow.clone(), chain_of_follow.clone(), stop)
            }));
            let (app_of_audit, chain_of_audit) = (app(), chain.clone());
            workers.push(Worker::leading(audit, move |stop, _| {
                audit::worker::run(app_of_audit.clone(), chain_of_audit.clone(), stop)
            }));
        }
        if let Some(settings) = self.bank.clone() {
            let app = app();
            workers.push(Worker::leading("bank", move |stop, _| {
                bank::run(app.clone(), settings.clone(), stop)
            }));
        }
        workers
    }
}

fn with_app<F>(
    name: &'static str,
    runs_on: RunsOn,
    app: Arc<AppState>,
    run: fn(Arc<AppState>, Stop) -> F,
) -> Worker
where
    F: Future<Output = ()> + Send + 'static,
{
    Worker::new(name, runs_on, move |stop| run(app.clone(), stop))
}

fn leading<F>(name: &'static str, app: Arc<AppState>, run: fn(Arc<AppState>, Stop) -> F) -> Worker
where
    F: Future<Output = ()> + Send + 'static,
{
    Worker::leading(name, move |stop, _| run(app.clone(), stop))
}

/// The chain of a mode as callers see it.
fn profile_of(chain: &ChainSettings) -> ChainProfile {
    ChainProfile {
        name: chain.name,
        asset: Currency::Usdt,
        token_contract: chain.token_contract,
        following: Following::Real {
            lag_alarm_seconds: chain.lag_alarm_seconds,
            chain_id: chain.chain_id,
        },
    }
}
