//! The alarms of deploy/prometheus/alerts.yaml; `runbooks.rs` shows the runbook of each. The
//! overview shows those that can be told from the store and from this process. It judges some of
//! them by other figures than Prometheus does, and does not wait until a condition has lasted.
//!
//! The other alarms need figures of every node or of the last minutes, which only Prometheus has.

use super::blocks::{Tone, age, word};
use super::pages::machinery;
use super::texts::Words;
use super::visit::Visit;
use crate::disk::DiskSpace;
use crate::kernel::Mode;
use crate::oversight::overview::Overview;
use crate::oversight::stops::StopKind;
use crate::webhooks::state::EndpointStatus;

// In seconds.
const MINUTE: i64 = 60;
const HOUR: i64 = 3_600;
const DAY: i64 = 86_400;
/// A file system with less free space than this is almost full.
const DISK_FREE_BYTES_MIN: u64 = 1_000_000_000;
/// A file system whose free share is smaller than this is almost full too.
const DISK_FREE_PERCENT_MIN: u64 = 5;
/// A larger step of the machine's clock is an alarm.
const CLOCK_STEP_SECONDS_MAX: i64 = 5;

/// Where an alarm is shown while it fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlarmShownBy {
    /// The overview and Prometheus.
    Overview,
    Prometheus,
}

use AlarmShownBy::{Overview as Shown, Prometheus};

/// Every alarm, in the order of the rules for Prometheus.
pub const ALARMS: &[(&str, AlarmShownBy)] = &[
    ("HundiDown", Prometheus),
    ("HundiRequestsFail", Prometheus),
    ("HundiCommitsFail", Prometheus),
    ("HundiChainInTrouble", Shown),
    ("HundiChainBehind", Shown),
    ("HundiChainUnchecked", Shown),
    ("HundiChainNodesMissing", Shown),
    ("HundiChainDiffers", Shown),
    ("HundiChainNotCompared", Shown),
    ("HundiBankDiffers", Shown),
    ("HundiBankNotCompared", Prometheus),
    ("HundiBankFilesRefused", Prometheus),
    ("HundiBankReportsUnknown", Shown),
    ("HundiRatesRefused", Prometheus),
    ("HundiLookUpsUnanswered", Prometheus),
    ("HundiSanctionsListOld", Shown),
    ("HundiSanctionsListRefused", Prometheus),
    ("HundiWebhooksFail", Shown),
    ("HundiPaused", Shown),
    ("HundiBankAlarm", Shown),
    ("HundiDatabaseNotWritable", Shown),
    ("HundiOldPrimaryRefused", Prometheus),
    ("HundiClockStepped", Shown),
    ("HundiNoLeader", Prometheus),
    ("HundiBankTurnsFail", Prometheus),
    ("HundiDiskFull", Shown),
    ("HundiPayoutsUnsent", Shown),
    ("HundiBankFilesUntaken", Shown),
    ("HundiPayoutsUnanswered", Shown),
    ("HundiSettlementLate", Shown),
    ("HundiPayoutsUnknown", Shown),
    ("HundiDecisionsWait", Shown),
    ("HundiRefundsWait", Shown),
    ("HundiWorkWaits", Shown),
];

/// An alarm that fires now.
pub struct CurrentAlarm {
    pub name: &'static str,
    pub what: String,
    pub tone: Tone,
}

/// An alarm's title in the reader's language.
pub fn title(words: &Words, name: &str) -> String {
    words.get(&format!("alarm.{name}")).to_owned()
}

/// Alarms of live mode about what waits too long: the alarm, the kinds of work, and how many
/// seconds they may wait. With 0, the alarm fires as soon as anything waits. The rules for
/// Prometheus have the same figures, but for `HundiBankAlarm`: its rule counts how many payouts
/// began to wait in the last minutes, and not how many wait now.
const WAITS: &[(&str, &[&str], i64)] = &[
    ("HundiPayoutsUnsent", &["payouts_unsent"], 30 * MINUTE),
    ("HundiPayoutsUnanswered", &["payouts_unanswered"], 6 * HOUR),
    ("HundiSettlementLate", &["settlements_late"], 0),
    ("HundiPayoutsUnknown", &["payouts_unknown"], 0),
    ("HundiBankAlarm", &["payouts_for_operator"], 0),
    ("HundiDecisionsWait", &["hits", "payout_holds", "funding_holds", "payouts_for_operator"], DAY),
    ("HundiRefundsWait", &["refunds"], 2 * DAY),
];
/// Like [`WAITS`], for the service's own work, and in both modes.
const WORK_WAITS: (&str, &[&str], i64) =
    ("HundiWorkWaits", &["tasks", "outbox", "endpoints_due"], 5 * MINUTE);

/// The alarms that fire now, of a mode, of the whole service and of this process.
pub fn current(visit: &Visit, mode: Mode, overview: &Overview) -> Vec<CurrentAlarm> {
    let (words, instant) = (visit.words, visit.instant());
    let mut found = Vec::new();
    let mut alarm = |name, what: String, tone| found.push(CurrentAlarm { name, what, tone });
    for chain in visit.app.chains.iter().filter(|chain| chain.mode == mode) {
        let figures = chain.figures(instant);
        let name = figures.chain.to_owned();
        if figures.in_trouble == Some(1) {
            alarm("HundiChainInTrouble", name.clone(), Tone::Bad);
        }
        if let Some(behind) = figures.behind_seconds
            && figures.lag_alarm_seconds.is_some_and(|seconds| behind > seconds)
        {
            alarm("HundiChainBehind", format!("{name}: {}", age(words, behind)), Tone::Bad);
        }
        if figures.unchecked == Some(1) && figures.nodes_count.is_some_and(|count| count > 1) {
            alarm("HundiChainUnchecked", name.clone(), Tone::Bad);
        }
        if let Some(missing) = figures.nodes_missing.filter(|count| *count > 0) {
            alarm("HundiChainNodesMissing", format!("{name}: {missing}"), Tone::Attention);
        }
        if figures.differences.is_some_and(|count| count > 0) {
            alarm("HundiChainDiffers", name.clone(), Tone::Attention);
        }
        let audit_age_seconds = figures.audited_at.map(|at| instant - at);
        if let Some(seconds) = audit_age_seconds.filter(|seconds| *seconds > 2 * DAY) {
            let what = format!("{name}: {}", age(words, seconds));
            alarm("HundiChainNotCompared", what, Tone::Attention);
        }
    }
    if overview.bank_differences_count > 0 {
        let what = overview.bank_differences_count.to_string();
        alarm("HundiBankDiffers", what, Tone::Attention);
    }
    for file in &overview.files_in {
        let age_seconds = instant - file.received_at;
        if file.unknown_count > 0 && age_seconds < HOUR {
            let what = format!("{}: {}", file.message_id, file.unknown_count);
            alarm("HundiBankReportsUnknown", what, Tone::Attention);
        }
    }
    for stop in &overview.stops {
        if let StopKind::Paused(operation) = stop.kind {
            let what =
                format!("{}, {}", word(words, operation.as_str()), machinery::whom(visit, stop));
            alarm("HundiPaused", what, Tone::Attention);
        }
    }
    for endpoint in overview.endpoints.iter().filter(|e| e.status != EndpointStatus::Enabled) {
        alarm("HundiWebhooksFail", endpoint.url.clone(), Tone::Attention);
    }
    if let Some(lists) = visit.services().lists(mode) {
        let is_old = |dated_at: i64| instant - dated_at > lists.age_seconds_max() / 2;
        let states = lists.states();
        if let Some(reason) = lists.why_not_live(instant) {
            alarm("HundiSanctionsListOld", words.refusal(&reason), Tone::Bad);
        } else if let Some(old) = states.iter().find(|state| is_old(state.dated_at)) {
            let what = format!("{}: {}", old.list.as_str(), age(words, instant - old.dated_at));
            alarm("HundiSanctionsListOld", what, Tone::Attention);
        }
    }
    if let Some(fault) = visit.app.store.write_fault() {
        alarm("HundiDatabaseNotWritable", fault, Tone::Bad);
    }
    let step = visit.app.metrics.clock_step_seconds.get();
    if step.abs() > CLOCK_STEP_SECONDS_MAX {
        alarm("HundiClockStepped", format!("{step} s"), Tone::Bad);
    }
    for (of, space) in overview.disk_spaces.iter().filter(|(_, space)| is_almost_full(space)) {
        let what = format!("{of}: {}", crate::disk::shown(space.free_bytes));
        alarm("HundiDiskFull", what, Tone::Bad);
    }
    let untaken = visit.app.metrics.bank_outbox_oldest_seconds.get();
    if mode.is_live() && untaken > 30 * MINUTE {
        alarm("HundiBankFilesUntaken", age(words, untaken), Tone::Bad);
    }
    let waits = WAITS.iter().filter(|_| mode.is_live()).chain([&WORK_WAITS]);
    for (name, kinds, seconds_max) in waits {
        for waiting in overview.waiting.iter().filter(|one| one.mode == mode) {
            let Some(oldest_at) = waiting.oldest_at else { continue };
            let waited = (instant - oldest_at).max(0);
            if !kinds.contains(&waiting.of) || (waited <= *seconds_max && *seconds_max > 0) {
                continue;
            }
            let kind = words.get(&format!("waiting.{}", waiting.of)).to_owned();
            let oldest = words.with("overview.oldest", [("age", age(words, waited).as_str())]);
            let what = format!("{kind}: {}, {oldest}", waiting.count);
            alarm(name, what, Tone::Attention);
        }
    }
    found
}

fn is_almost_full(space: &DiskSpace) -> bool {
    let share_min = space.total_bytes / 100 * DISK_FREE_PERCENT_MIN;
    space.free_bytes < DISK_FREE_BYTES_MIN || space.free_bytes < share_min
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::texts;

    const RULES: &str = include_str!("../../deploy/prometheus/alerts.yaml");

    #[test]
    fn the_alarms_are_those_of_the_rules_for_prometheus() {
        let rules = RULES.lines().filter_map(|line| line.trim().strip_prefix("- alert: "));
        let listed: Vec<&str> = ALARMS.iter().map(|(name, _)| *name).collect();
        assert_eq!(listed, rules.collect::<Vec<_>>());
        for words in texts::all() {
            for (name, _) in ALARMS {
                assert!(words.find(&format!("alarm.{name}")).is_some(), "{} {name}", words.code);
            }
        }
    }

    /// An alarm that the overview shows is named at least twice in the code above the tests: in
    /// `ALARMS`, and where it is raised or in a table of what waits. Any other is named once.
    #[test]
    fn the_overview_shows_the_alarms_that_it_is_said_to_show() {
        let (code, _) = include_str!("alarms.rs").split_once("#[cfg(test)]").unwrap();
        for (name, shown_by) in ALARMS {
            let is_raised = code.matches(&format!("\"{name}\"")).count() > 1;
            assert_eq!(is_raised, *shown_by == Shown, "{name}");
        }
    }

    /// A figure that stands here and in a rule is the same in both.
    #[test]
    fn what_waits_is_late_after_the_same_time() {
        for (name, kinds, seconds_max) in WAITS.iter().chain([&WORK_WAITS]) {
            let rule = RULES.split("- alert: ").find(|rule| rule.starts_with(&format!("{name}\n")));
            let rule = rule.unwrap_or_else(|| panic!("no rule {name}"));
            let expression = rule.lines().find(|line| line.contains("expr:")).unwrap();
            if !expression.contains("hundi_backlog") {
                continue;
            }
            for kind in *kinds {
                assert!(expression.contains(kind), "{name} {kind}: {expression}");
                for words in texts::all() {
                    assert!(words.find(&format!("waiting.{kind}")).is_some(), "{kind}");
                }
            }
            let bound = expression.rsplit('>').next().unwrap();
            let product: i64 = bound.split('*').map(|n| n.trim().parse::<i64>().unwrap()).product();
            assert_eq!(product, *seconds_max, "{name}");
        }
    }
}
