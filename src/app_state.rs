//! What one running process holds, shared by requests and workers.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::chains::followed::FollowedChain;
use crate::disk::WatchedFolder;
use crate::kernel::Money;
use crate::keys::KeyRing;
use crate::metrics::Metrics;
use crate::services::Services;
use crate::store::Store;

/// A part of live mode, and whether it is configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LivePart {
    /// The table of the configuration.
    pub table: &'static str,
    /// What the part is for, and what to write if it is missing.
    pub purpose: &'static str,
    pub is_configured: bool,
    /// Why the configured part cannot be used, though its settings could be read.
    pub fault: Option<String>,
}

crate::string_enum!(
    /// Where the value of a setting comes from; `Usual` is the default.
    SettingOrigin { Usual "usual", File "file", Environment "environment", Flag "flag" }
);

/// The value of a setting, as the console shows it and the audit log keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingValue {
    Text(String),
    /// A text that is not set.
    NotSet,
    Number(i64),
    Seconds(i64),
    YesOrNo(bool),
    Money(Money),
    /// An upper limit; `None` is no limit.
    Most(Option<Money>),
    /// Requests a second; 0 is no limit.
    EachSecond(u32),
    /// A table that may hold secrets, as a keyed digest of all of it.
    Digest(String),
}

impl fmt::Display for SettingValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingValue::Text(text) | SettingValue::Digest(text) => f.write_str(text),
            SettingValue::NotSet | SettingValue::Most(None) => f.write_str("off"),
            SettingValue::Number(number) | SettingValue::Seconds(number) => number.fmt(f),
            SettingValue::YesOrNo(is) => is.fmt(f),
            SettingValue::Money(money) | SettingValue::Most(Some(money)) => money.fmt(f),
            SettingValue::EachSecond(count) => count.fmt(f),
        }
    }
}

/// A setting in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownSetting {
    /// The key in the configuration.
    pub name: &'static str,
    pub value: SettingValue,
    /// Whether nodes that share a database may differ in it.
    pub is_of_node: bool,
}

/// Made once at the start by `app`. Afterwards, only members that hold a lock or an atomic are
/// changed.
pub struct AppState {
    /// Which process this is among those that share a database; random, made anew at each start.
    pub node_id: [u8; 16],
    pub store: Store,
    pub services: Arc<Services>,
    /// The real chains that are followed: one for each mode at most.
    pub chains: Vec<Arc<FollowedChain>>,
    pub metrics: Arc<Metrics>,
    /// Finds callers by their API keys.
    pub keys: KeyRing,
    /// The parts of live mode, and which of them are configured.
    pub live_parts: Vec<LivePart>,
    /// Every setting in force.
    pub settings_shown: Vec<ShownSetting>,
    /// Where each setting and table that the operator gave comes from.
    pub setting_origins: BTreeMap<&'static str, SettingOrigin>,
    /// The rate limits of one key, in requests a second, for reads and for writes; 0 is no limit.
    pub reads_per_second_max: u32,
    pub writes_per_second_max: u32,
    /// Folders whose file system's free space `/metrics` shows.
    pub watched_folders: Vec<WatchedFolder>,
    /// Set before the port closes, so that load balancers send requests elsewhere.
    pub is_draining: AtomicBool,
}

impl AppState {
    /// Where the value of a setting comes from.
    pub fn origin_of(&self, setting: &str) -> SettingOrigin {
        self.setting_origins.get(setting).copied().unwrap_or(SettingOrigin::Usual)
    }

    /// Announces that the node is about to stop: `/readyz` answers 503, so that load balancers send
    /// requests elsewhere, and requests that wait for an event are answered at once.
    pub fn drain(&self) {
        self.is_draining.store(true, Ordering::Relaxed);
        self.store.signals.event_waits.close();
    }
}
