//! Counters and gauges, shown in Prometheus' text format.

use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::store::Store;

/// Upper bounds of the latency buckets, in seconds.
const SECONDS: [f64; 10] = [0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0];

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RequestLabels {
    method: &'static str,
    route: &'static str,
    status: u16,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OutcomeLabels {
    outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ReasonLabels {
    reason: &'static str,
}

/// Counts by reason, for a worker to hold beside its work; clones count together.
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
struct ListLabels {
    list: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ChainLabels {
    chain: &'static str,
    mode: &'static str,
}

/// What is known of a followed chain now. A figure that this node does not know is absent: what it
/// knew once would be an alarm for ever.
pub struct ChainFigures {
    pub chain: &'static str,
    pub mode: &'static str,
    pub height: Option<i64>,
    pub final_height: Option<i64>,
    pub behind_seconds: Option<i64>,
    pub in_trouble: Option<i64>,
    pub unchecked: Option<i64>,
    pub nodes_missing: Option<i64>,
    pub audited_height: Option<i64>,
    pub audited_at: Option<i64>,
    pub differences: Option<i64>,
    pub deposits: u64,
    pub doubts: u64,
}

pub struct Metrics {
    /// Rates and answers of rate sources that were not used.
    pub rate_refusals: Reasons,
    /// Look-ups of accounts, by how they ended.
    pub look_ups: Reasons,
    /// Files from the bank: `applied`, `again`, `refused`, `unreadable`.
    pub bank_files: Reasons,
    /// What those files say of single payments: `applied`, `ignored` where it was known, `unknown`
    /// where it fits no payment.
    pub bank_reports: Reasons,
    /// Daily comparisons of the book with the bank's statements: `agreed`, `differed`, `failed`.
    pub bank_comparisons: Reasons,
    /// What the last of them found.
    pub bank_differences: Gauge,
    /// Looks at sanctions lists that changed: `loaded`, `refused`.
    pub list_reloads: Reasons,
    list_age_seconds: Family<ListLabels, Gauge>,
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    request_seconds: Histogram,
    connections: Gauge,
    webhook_attempts: Family<OutcomeLabels, Counter>,
    webhook_in_flight: Gauge,
    commits: Counter<u64, AtomicU64>,
    jobs: Counter<u64, AtomicU64>,
    commit_failures: Counter<u64, AtomicU64>,
    groups_again: Counter<u64, AtomicU64>,
    chain_height: Family<ChainLabels, Gauge>,
    chain_final_height: Family<ChainLabels, Gauge>,
    chain_behind_seconds: Family<ChainLabels, Gauge>,
    chain_in_trouble: Family<ChainLabels, Gauge>,
    chain_unchecked: Family<ChainLabels, Gauge>,
    chain_nodes_missing: Family<ChainLabels, Gauge>,
    chain_deposits: Family<ChainLabels, Counter>,
    chain_doubts: Family<ChainLabels, Counter>,
    chain_audited_height: Family<ChainLabels, Gauge>,
    chain_audited_at: Family<ChainLabels, Gauge>,
    chain_differences: Family<ChainLabels, Gauge>,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("hundi");
        let requests = Family::default();
        registry.register(
            "http_requests",
            "Requests by method, route and status",
            requests.clone(),
        );
        let request_seconds = Histogram::new(SECONDS);
        registry.register(
            "http_request_seconds",
            "Time from a request's head to its answer",
            request_seconds.clone(),
        );
        let connections = Gauge::default();
        registry.register("http_connections", "Open connections", connections.clone());
        let webhook_attempts = Family::default();
        registry.register(
            "webhook_attempts",
            "Webhook delivery attempts by outcome",
            webhook_attempts.clone(),
        );
        let webhook_in_flight = Gauge::default();
        registry.register(
            "webhook_in_flight",
            "Webhook attempts that are running",
            webhook_in_flight.clone(),
        );
        let (commits, jobs, commit_failures) =
            (Counter::default(), Counter::default(), Counter::default());
        let groups_again = Counter::default();
        registry.register("store_commits", "Commits of the write lane", commits.clone());
        registry.register("store_jobs", "Transactions that shared those commits", jobs.clone());
        registry.register(
            "store_commit_failures",
            "Commits that failed and kept nothing",
            commit_failures.clone(),
        );
        registry.register(
            "store_groups_again",
            "Groups that ran again because one transaction was undone",
            groups_again.clone(),
        );
        let (rate_refusals, look_ups) = (Reasons::default(), Reasons::default());
        registry.register(
            "rate_refusals",
            "Rates that were not used, by reason",
            rate_refusals.0.clone(),
        );
        registry.register(
            "account_look_ups",
            "Look-ups of beneficiaries' accounts by outcome",
            look_ups.0.clone(),
        );
        let (bank_files, bank_reports) = (Reasons::default(), Reasons::default());
        registry.register(
            "bank_files",
            "Files from the bank, by what became of them",
            bank_files.0.clone(),
        );
        registry.register(
            "bank_reports",
            "What the bank said of single payments, by what it changed",
            bank_reports.0.clone(),
        );
        let (bank_comparisons, bank_differences) = (Reasons::default(), Gauge::default());
        registry.register(
            "bank_comparisons",
            "Comparisons of the book with the bank's statements by outcome",
            bank_comparisons.0.clone(),
        );
        registry.register(
            "bank_differences",
            "Differences that the last comparison with the bank's statements found",
            bank_differences.clone(),
        );
        let (list_reloads, list_age_seconds) = (Reasons::default(), Family::default());
        registry.register(
            "sanctions_list_reloads",
            "Sanctions lists that changed, by whether they were taken",
            list_reloads.0.clone(),
        );
        registry.register(
            "sanctions_list_age_seconds",
            "How old a sanctions list is",
            list_age_seconds.clone(),
        );
        let (chain_height, chain_final_height) = (Family::default(), Family::default());
        registry.register(
            "chain_height",
            "Last final block that was read and credited",
            chain_height.clone(),
        );
        registry.register(
            "chain_final_height",
            "Last final block as the nodes tell it",
            chain_final_height.clone(),
        );
        let (chain_behind_seconds, chain_in_trouble) = (Family::default(), Family::default());
        registry.register(
            "chain_behind_seconds",
            "How far the last block that was read lies behind the clock",
            chain_behind_seconds.clone(),
        );
        registry.register(
            "chain_in_trouble",
            "1 while the chain cannot be followed, or its token handed over",
            chain_in_trouble.clone(),
        );
        let (chain_unchecked, chain_nodes_missing) = (Family::default(), Family::default());
        registry.register(
            "chain_unchecked",
            "1 while one node alone is taken at its word",
            chain_unchecked.clone(),
        );
        registry.register(
            "chain_nodes_missing",
            "Configured nodes that are of no use now",
            chain_nodes_missing.clone(),
        );
        let (chain_deposits, chain_doubts) = (Family::default(), Family::default());
        registry.register(
            "chain_deposits",
            "Final token movements to deposit addresses since the start",
            chain_deposits.clone(),
        );
        registry.register(
            "chain_doubts",
            "Answers of nodes that were not believed",
            chain_doubts.clone(),
        );
        let (chain_audited_height, chain_audited_at) = (Family::default(), Family::default());
        registry.register(
            "chain_audited_height",
            "Last block whose movements the book was compared with",
            chain_audited_height.clone(),
        );
        registry.register(
            "chain_audited_at_seconds",
            "When the book was last compared with the chain as a whole, in Unix seconds",
            chain_audited_at.clone(),
        );
        let chain_differences = Family::default();
        registry.register(
            "chain_differences",
            "Differences between book and chain that nobody has explained",
            chain_differences.clone(),
        );
        Metrics {
            rate_refusals,
            look_ups,
            bank_files,
            bank_reports,
            bank_comparisons,
            bank_differences,
            list_reloads,
            list_age_seconds,
            registry,
            requests,
            request_seconds,
            connections,
            webhook_attempts,
            webhook_in_flight,
            commits,
            jobs,
            commit_failures,
            groups_again,
            chain_height,
            chain_final_height,
            chain_behind_seconds,
            chain_in_trouble,
            chain_unchecked,
            chain_nodes_missing,
            chain_deposits,
            chain_doubts,
            chain_audited_height,
            chain_audited_at,
            chain_differences,
        }
    }
}

impl Metrics {
    pub fn request(&self, method: &'static str, route: &'static str, status: u16, seconds: f64) {
        self.requests.get_or_create(&RequestLabels { method, route, status }).inc();
        self.request_seconds.observe(seconds);
    }
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
    pub fn webhook_in_flight(&self, delta: i64) {
        self.webhook_in_flight.inc_by(delta);
    }
    /// The page that Prometheus reads.
    pub fn page(&self, store: &Store, chains: &[ChainFigures]) -> String {
        use std::sync::atomic::Ordering::Relaxed;
        let catch_up = |counter: &Counter<u64, AtomicU64>, total: u64| {
            counter.inc_by(total.saturating_sub(counter.get()));
        };
        catch_up(&self.commits, store.stats.commits.load(Relaxed));
        catch_up(&self.jobs, store.stats.jobs.load(Relaxed));
        catch_up(&self.commit_failures, store.stats.commit_failures.load(Relaxed));
        catch_up(&self.groups_again, store.stats.groups_again.load(Relaxed));
        for chain in chains {
            let labels = ChainLabels { chain: chain.chain, mode: chain.mode };
            let figure = |gauge: &Family<ChainLabels, Gauge>, value: Option<i64>| match value {
                Some(value) => drop(gauge.get_or_create(&labels).set(value)),
                None => drop(gauge.remove(&labels)),
            };
            figure(&self.chain_height, chain.height);
            figure(&self.chain_final_height, chain.final_height);
            figure(&self.chain_behind_seconds, chain.behind_seconds);
            figure(&self.chain_in_trouble, chain.in_trouble);
            figure(&self.chain_unchecked, chain.unchecked);
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
