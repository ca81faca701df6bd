//! Every metric, shown in Prometheus' text format.

use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};

use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::disk::DiskSpace;
use crate::kernel::Mode;
use crate::store::Store;

/// Upper bounds of the latency buckets, in seconds.
const BUCKET_SECONDS: [f64; 10] = [0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0];

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct RequestLabels {
    method: &'static str,
    route: &'static str,
    status: u16,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct OutcomeLabels {
    outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct ReasonLabels {
    reason: &'static str,
}

/// Counts by reason, for a worker to hold while it works. Clones share the counts.
#[derive(Clone, Default)]
pub struct Reasons(Family<ReasonLabels, Counter>);

impl Reasons {
    pub fn count(&self, reason: &'static str) {
        self.0.get_or_create(&ReasonLabels { reason }).inc();
    }
    pub fn count_many(&self, reason: &'static str, times: u64) {
        self.0.get_or_create(&ReasonLabels { reason }).inc_by(times);
    }
    /// How often a reason was counted.
    pub fn counted(&self, reason: &'static str) -> u64 {
        self.0.get_or_create(&ReasonLabels { reason }).get()
    }
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct RateSourceLabels {
    figure: &'static str,
    number: u32,
}

/// For each source of market rates: 1 while it is silent or its answers cannot be used. The worker
/// that polls the sources holds this. Clones share the gauges.
#[derive(Clone, Default)]
pub struct RateSources(Family<RateSourceLabels, Gauge>);

impl RateSources {
    /// `figure` is `inr_per_usd` or `usd_per_usdt`. `number` is the place of the source among the
    /// sources of this figure in the settings, from 1.
    pub fn set(&self, figure: &'static str, number: u32, is_unused: bool) {
        let gauge = self.0.get_or_create(&RateSourceLabels { figure, number });
        gauge.set(i64::from(is_unused));
    }
    pub fn is_unused(&self, figure: &'static str, number: u32) -> bool {
        self.0.get_or_create(&RateSourceLabels { figure, number }).get() == 1
    }
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct ListLabels {
    list: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct OperationLabels {
    operation: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct WaitingLabels {
    of: &'static str,
    mode: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct FolderLabels {
    folder: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct LeaseLabels {
    lease: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct ChainLabels {
    chain: &'static str,
    mode: &'static str,
}

/// What this node knows of a followed chain now. A figure that is `None` is removed from the page,
/// because an old value could raise an alarm forever. `in_trouble` and `unchecked` are 0 or 1.
pub struct ChainFigures {
    pub chain: &'static str,
    pub mode: &'static str,
    pub height: Option<i64>,
    pub final_height: Option<i64>,
    pub behind_seconds: Option<i64>,
    pub lag_alarm_seconds: Option<i64>,
    pub in_trouble: Option<i64>,
    pub unchecked: Option<i64>,
    pub nodes_count: Option<i64>,
    pub nodes_missing: Option<i64>,
    pub audited_height: Option<i64>,
    pub audited_at: Option<i64>,
    pub differences: Option<i64>,
    pub deposits: u64,
    pub doubts: u64,
}

/// Declares the metrics: for each a field, its type, its name in Prometheus and its help text.
macro_rules! metrics {
    ($($(#[$doc:meta])* $field:ident: $type:ty = $name:literal $help:literal),* $(,)?) => {
        /// Every metric that Prometheus reads.
        pub struct Metrics {
            registry: Registry,
            /// Held while a page is made. Two threads at once would both raise a counter by the
            /// same difference, which would then count twice.
            page_turn: Mutex<()>,
            $($(#[$doc])* pub $field: $type),*
        }

        /// Their names, without the prefix `hundi_` and without suffixes such as `_total`.
        pub const NAMES: &[&str] = &[$($name),*];

        impl Default for Metrics {
            fn default() -> Self {
                let mut registry = Registry::with_prefix("hundi");
                $(let $field = <$type>::default();
                $field.register_in(&mut registry, $name, $help);)*
                Metrics { registry, page_turn: Mutex::default(), $($field),* }
            }
        }
    };
}

/// A metric that can be registered under a name.
trait RegisterMetric: Clone {
    fn register_in(&self, registry: &mut Registry, name: &str, help: &str);
}

macro_rules! registered {
    ($($type:ty),* $(,)?) => {$(
        impl RegisterMetric for $type {
            fn register_in(&self, registry: &mut Registry, name: &str, help: &str) {
                registry.register(name, help, self.clone());
            }
        }
    )*};
}

registered!(
    Gauge,
    Counter<u64, AtomicU64>,
    Family<RequestLabels, Counter>,
    Family<OutcomeLabels, Counter>,
    Family<ListLabels, Gauge>,
    Family<OperationLabels, Gauge>,
    Family<LeaseLabels, Gauge>,
    Family<WaitingLabels, Gauge>,
    Family<FolderLabels, Gauge>,
    Family<ChainLabels, Gauge>,
    Family<ChainLabels, Counter>,
);

impl RegisterMetric for Reasons {
    fn register_in(&self, registry: &mut Registry, name: &str, help: &str) {
        self.0.register_in(registry, name, help);
    }
}
registered!(Family<ReasonLabels, Counter>);

impl RegisterMetric for RateSources {
    fn register_in(&self, registry: &mut Registry, name: &str, help: &str) {
        self.0.register_in(registry, name, help);
    }
}
registered!(Family<RateSourceLabels, Gauge>);

/// Times in seconds, by the buckets of [`BUCKET_SECONDS`].
#[derive(Clone)]
pub struct Seconds(Histogram);

impl Default for Seconds {
    fn default() -> Seconds {
        Seconds(Histogram::new(BUCKET_SECONDS))
    }
}

impl RegisterMetric for Seconds {
    fn register_in(&self, registry: &mut Registry, name: &str, help: &str) {
        registry.register(name, help, self.0.clone());
    }
}

metrics! {
    pauses: Family<OperationLabels, Gauge> =
        "pauses" "Pauses that the operator set, by what they stop",
    rate_refusals: Reasons =
        "rate_refusals" "Rates that were not used, by reason",
    rate_source_unused: RateSources =
        "rate_source_unused" "1 while a source of rates is silent or its answers cannot be used",
    look_ups: Reasons =
        "account_look_ups" "Look-ups of beneficiaries' accounts by outcome",
    /// Files from the bank: `applied`, `again` for a file that was read before and is ignored,
    /// `refused`, `unreadable`.
    bank_files: Reasons =
        "bank_files" "Files from the bank, by what became of them",
    /// What those files say of single payments: `applied`, `ignored` if it changed nothing,
    /// `unknown` if it fits no payment, `unread` if it could not be read.
    bank_reports: Reasons =
        "bank_reports" "Reports of the bank about single payments, by their effect",
    bank_alarms: Reasons =
        "bank_alarms"
        "Payouts that the operator has to decide after a report of the bank, by reason",
    /// Turns of the bank's worker: `done`, `failed`.
    bank_turns: Reasons =
        "bank_turns" "Turns of the bank's worker by outcome",
    bank_outbox_files: Gauge =
        "bank_outbox_files" "Files for the bank that its agent has not taken",
    bank_outbox_oldest_seconds: Gauge =
        "bank_outbox_oldest_seconds" "How long the oldest file for the bank has waited",
    disk_free_bytes: Family<FolderLabels, Gauge> =
        "disk_free_bytes" "Bytes that can still be written where a folder of the service lies",
    disk_bytes: Family<FolderLabels, Gauge> =
        "disk_bytes" "Size of the file system where a folder of the service lies",
    /// `backlog/rows.rs` has the words for what waits.
    backlog: Family<WaitingLabels, Gauge> =
        "backlog" "What waits, by what it is and by mode; at most 10000 of each are counted",
    backlog_oldest_seconds: Family<WaitingLabels, Gauge> =
        "backlog_oldest_seconds"
        "How long the oldest entry of the backlog has waited, by its account's clock",
    /// Daily comparisons of the book with the bank's statements: `agreed`, `differed`, `failed`.
    bank_comparisons: Reasons =
        "bank_comparisons" "Comparisons of the book with the bank's statements by outcome",
    bank_differences: Gauge =
        "bank_differences" "Differences that the last comparison with the bank's statements found",
    /// Sanctions lists that changed and were read again: `loaded`, `refused`.
    list_reloads: Reasons =
        "sanctions_list_reloads" "Sanctions lists that changed, by whether they were taken",
    list_age_seconds: Family<ListLabels, Gauge> =
        "sanctions_list_age_seconds" "How old a sanctions list is",
    list_age_seconds_max: Gauge =
        "sanctions_list_age_seconds_max"
        "The setting screening.age_days_max in seconds: older lists keep live mode from starting",
    requests: Family<RequestLabels, Counter> =
        "http_requests" "Requests by method, route and status",
    request_seconds: Seconds =
        "http_request_seconds" "Time from a request's head to its answer",
    connections: Gauge =
        "http_connections" "Open connections",
    webhook_attempts: Family<OutcomeLabels, Counter> =
        "webhook_attempts" "Webhook delivery attempts by outcome",
    webhook_in_flight: Gauge =
        "webhook_in_flight" "Webhook attempts that are running",
    commits: Counter<u64, AtomicU64> =
        "store_commits" "Transactions of the store that ended, failed ones included",
    jobs: Counter<u64, AtomicU64> =
        "store_jobs" "Pieces of work (jobs) that ran in the store's transactions",
    commit_failures: Counter<u64, AtomicU64> =
        "store_commit_failures" "Transactions of the store that failed or have an unknown outcome",
    groups_again: Counter<u64, AtomicU64> =
        "store_groups_again" "Groups of jobs that ran again because one of them had to be undone",
    clock_step_seconds: Gauge =
        "clock_step_seconds"
        "Seconds by which the machine's clock was set ahead of the service's clock since the \
         start; negative if it was set back",
    leases_held: Family<LeaseLabels, Gauge> =
        "leases_held" "1 while this node holds the lease of a worker",
    database_connections: Counter<u64, AtomicU64> =
        "database_connections" "Connections made to the database server, reconnects included",
    database_wait_microseconds: Counter<u64, AtomicU64> =
        "database_wait_microseconds" "Time that transactions waited for a free connection",
    old_primaries_refused: Counter<u64, AtomicU64> =
        "database_old_primaries_refused"
        "Connections to an old primary that were refused after a fail-over",
    database_timeline: Gauge =
        "database_timeline" "Timeline of the database server that this node works with",
    database_writable: Gauge =
        "database_writable" "0 while nothing can be written to the database",
    chain_height: Family<ChainLabels, Gauge> =
        "chain_height" "Last final block that was read and credited",
    chain_final_height: Family<ChainLabels, Gauge> =
        "chain_final_height" "Last final block that the nodes report",
    chain_behind_seconds: Family<ChainLabels, Gauge> =
        "chain_behind_seconds" "How far the last block that was read lies behind the clock",
    chain_lag_alarm_seconds: Family<ChainLabels, Gauge> =
        "chain_lag_alarm_seconds" "The setting lag_alarm_seconds: the chain is behind above this",
    chain_in_trouble: Family<ChainLabels, Gauge> =
        "chain_in_trouble"
        "1 while the chain cannot be followed, its token counts as moved to a new contract, or no \
         address is handed out",
    chain_unchecked: Family<ChainLabels, Gauge> =
        "chain_unchecked"
        "1 while one node alone is believed: no other is configured, no other answers, or all \
         others are far behind",
    chain_nodes: Family<ChainLabels, Gauge> =
        "chain_nodes" "Configured nodes",
    chain_nodes_missing: Family<ChainLabels, Gauge> =
        "chain_nodes_missing" "Configured nodes that cannot be used now",
    chain_deposits: Family<ChainLabels, Counter> =
        "chain_deposits" "Final token movements to deposit addresses since the start",
    chain_doubts: Family<ChainLabels, Counter> =
        "chain_doubts" "Answers of nodes that were rejected",
    chain_audited_height: Family<ChainLabels, Gauge> =
        "chain_audited_height" "Last block whose movements the book was compared with",
    chain_audited_at: Family<ChainLabels, Gauge> =
        "chain_audited_at_seconds" "Last comparison of the whole chain, in Unix seconds",
    chain_differences: Family<ChainLabels, Gauge> =
        "chain_differences" "Differences between book and chain that nobody has explained",
}

impl Metrics {
    pub fn request(&self, method: &'static str, route: &'static str, status: u16, seconds: f64) {
        self.requests.get_or_create(&RequestLabels { method, route, status }).inc();
        self.request_seconds.0.observe(seconds);
    }
    /// Adds to the number of open connections.
    pub fn connections(&self, delta: i64) {
        self.connections.inc_by(delta);
    }
    pub fn webhook_attempt(&self, succeeded: bool) {
        let outcome = if succeeded { "succeeded" } else { "failed" };
        self.webhook_attempts.get_or_create(&OutcomeLabels { outcome }).inc();
    }
    pub fn list_age(&self, list: &'static str, seconds: i64) {
        self.list_age_seconds.get_or_create(&ListLabels { list }).set(seconds);
    }
    /// Sets how many pauses of an operation there are.
    pub fn paused(&self, operation: &'static str, count: i64) {
        self.pauses.get_or_create(&OperationLabels { operation }).set(count);
    }
    /// Sets how much of one kind waits in a mode, and how long the oldest has waited.
    pub fn waiting(&self, of: &'static str, mode: Mode, count: i64, oldest_seconds: i64) {
        let labels = WaitingLabels { of, mode: mode.as_str() };
        self.backlog.get_or_create(&labels).set(count);
        self.backlog_oldest_seconds.get_or_create(&labels).set(oldest_seconds);
    }
    pub fn disk(&self, folder: &'static str, space: DiskSpace) {
        let bytes = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
        let labels = FolderLabels { folder };
        self.disk_free_bytes.get_or_create(&labels).set(bytes(space.free_bytes));
        self.disk_bytes.get_or_create(&labels).set(bytes(space.total_bytes));
    }
    pub fn lease_held(&self, lease: &'static str, is_held: bool) {
        self.leases_held.get_or_create(&LeaseLabels { lease }).set(i64::from(is_held));
    }
    /// Adds to the number of webhook attempts that are running.
    pub fn webhook_in_flight(&self, delta: i64) {
        self.webhook_in_flight.inc_by(delta);
    }
    /// The text that Prometheus reads.
    pub fn page(&self, store: &Store, chains: &[ChainFigures]) -> String {
        use std::sync::atomic::Ordering::Relaxed;
        let _turn = self.page_turn.lock().unwrap_or_else(PoisonError::into_inner);
        let catch_up = |counter: &Counter<u64, AtomicU64>, total: u64| {
            counter.inc_by(total.saturating_sub(counter.get()));
        };
        catch_up(&self.commits, store.stats.transactions.load(Relaxed));
        catch_up(&self.jobs, store.stats.jobs.load(Relaxed));
        catch_up(&self.commit_failures, store.stats.transaction_failures.load(Relaxed));
        catch_up(&self.groups_again, store.stats.groups_again.load(Relaxed));
        catch_up(&self.database_connections, store.stats.connections_made.load(Relaxed));
        catch_up(&self.database_wait_microseconds, store.stats.wait_microseconds.load(Relaxed));
        catch_up(&self.old_primaries_refused, store.old_primaries_refused_count().unwrap_or(0));
        self.database_timeline.set(store.database_timeline().unwrap_or(0));
        let is_writable = !store.stats.is_failing.load(Relaxed) && store.write_fault().is_none();
        self.database_writable.set(i64::from(is_writable));
        for chain in chains {
            let labels = ChainLabels { chain: chain.chain, mode: chain.mode };
            let figure = |gauge: &Family<ChainLabels, Gauge>, value: Option<i64>| match value {
                Some(value) => drop(gauge.get_or_create(&labels).set(value)),
                None => drop(gauge.remove(&labels)),
            };
            figure(&self.chain_height, chain.height);
            figure(&self.chain_final_height, chain.final_height);
            figure(&self.chain_behind_seconds, chain.behind_seconds);
            figure(&self.chain_lag_alarm_seconds, chain.lag_alarm_seconds);
            figure(&self.chain_in_trouble, chain.in_trouble);
            figure(&self.chain_unchecked, chain.unchecked);
            figure(&self.chain_nodes, chain.nodes_count);
            figure(&self.chain_nodes_missing, chain.nodes_missing);
            figure(&self.chain_audited_height, chain.audited_height);
            figure(&self.chain_audited_at, chain.audited_at);
            figure(&self.chain_differences, chain.differences);
            let up_to =
                |counter: &Counter, total: u64| counter.inc_by(total.saturating_sub(counter.get()));
            up_to(&self.chain_deposits.get_or_create(&labels), chain.deposits);
            up_to(&self.chain_doubts.get_or_create(&labels), chain.doubts);
        }
        let mut page = String::new();
        match text::encode(&mut page, &self.registry) {
            Ok(()) => page,
            Err(_) => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names that begin with `hundi_` in a text.
    fn named(text: &str) -> std::collections::BTreeSet<&str> {
        let is_part = |letter: char| letter.is_ascii_lowercase() || letter == '_';
        text.match_indices("hundi_")
            .filter(|(place, _)| !text[..*place].ends_with(is_part))
            .map(|(place, _)| {
                let rest = &text[place..];
                &rest[..rest.find(|letter| !is_part(letter)).unwrap_or(rest.len())]
            })
            .collect()
    }

    /// The names in a text that belong to no metric.
    fn unknown(text: &str) -> Vec<String> {
        let bare = |name: &str| {
            ["_total", "_bucket", "_sum", "_count"]
                .iter()
                .find_map(|end| name.strip_suffix(end))
                .unwrap_or(name)
                .to_owned()
        };
        let is_known = |name: &str| {
            let plain = name.strip_prefix("hundi_").unwrap_or(name);
            NAMES.contains(&plain) || NAMES.contains(&bare(plain).as_str())
        };
        named(text).into_iter().filter(|name| !is_known(name)).map(str::to_owned).collect()
    }

    #[test]
    fn alert_rules_and_the_dashboard_name_metrics_that_there_are() {
        for text in [
            include_str!("../deploy/prometheus/alerts.yaml"),
            include_str!("../deploy/grafana/hundi.json"),
        ] {
            assert!(named(text).len() > 10, "nothing is named");
            assert_eq!(unknown(text), Vec::<String>::new());
        }
        // A name that belongs to no metric is reported.
        assert_eq!(unknown("rate(hundi_wishes_total[5m])"), ["hundi_wishes_total"]);
        let dashboard = include_str!("../deploy/grafana/hundi.json");
        serde_json::from_str::<serde_json::Value>(dashboard).unwrap();
    }
}
