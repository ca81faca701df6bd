//! The lists in memory: read from the files that the settings name, and read again when the files
//! change.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::UNIX_EPOCH;

use sha2::{Digest, Sha256};
use tokio::sync::{Notify, Semaphore};

use super::judge::{MATCHING_VERSION, Thresholds};
use super::matcher::EntryMatcher;
use super::settings::ScreeningSettings;
use super::{FILE_BYTES_MAX, ListEntry, ListName, ReadList, Screener, ofac, own, un};
use super::{ScreeningFinding, ScreeningQuestion};
use crate::chains::address::ChainAddress;

/// OFAC's or the UN's list is refused while the service runs if it lost more than this share of its
/// entries. A restart accepts it.
const SHRINK_PERCENT_MAX: usize = 20;
/// The most threads that may compare at a time in [`Lists::screen_ahead`].
const AHEAD_MAX: usize = 2;
const DAY_SECONDS: i64 = 86_400;

/// Size and time of a file. A list is read again only if the stamp of one of its files changed.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Stamp {
    bytes: u64,
    modified_nanoseconds: u128,
}

/// A list in memory.
#[derive(Clone)]
struct LoadedList {
    name: ListName,
    /// Of its files when they were read.
    stamps: Vec<Stamp>,
    content_hash: [u8; 32],
    /// When the list was made, in Unix seconds: the date that it gives, or the modification time of
    /// its oldest file, whichever is earlier.
    dated_at: i64,
    entries: Vec<Arc<ListEntry>>,
}

/// A list, as the operator sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListState {
    pub list: ListName,
    pub entries_count: usize,
    /// Unix seconds.
    pub dated_at: i64,
    pub content_hash: [u8; 32],
}

/// All lists in memory, and the matcher over their entries.
struct Loaded {
    lists: Vec<LoadedList>,
    matcher: Arc<EntryMatcher>,
}

/// The lists of a running service. Questions are answered from what was loaded last.
pub struct Lists {
    settings: ScreeningSettings,
    /// A permit for each thread that compares before a transaction opens.
    ahead: Arc<Semaphore>,
    /// Held while the files are read again.
    reloading: Mutex<()>,
    /// Wakes the worker that screens all persons, when the entries have changed.
    pub changed: Notify,
    loaded: RwLock<Arc<Loaded>>,
}

/// The result of looking at the files again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reload {
    Unchanged,
    /// Files were replaced, but have the same entries: only the lists' age changed.
    Redated,
    /// The entries changed: all persons are to be screened again.
    Changed,
}

impl Lists {
    /// Reads every list that the settings name; `Err` names the file that is wrong, and why. Slow
    /// (a second or so): not for a thread that answers requests.
    pub fn load(settings: ScreeningSettings) -> Result<Lists, String> {
        let lists = settings
            .files()
            .iter()
            .map(|(name, paths)| load_list(*name, paths))
            .collect::<Result<Vec<LoadedList>, String>>()?;
        let matcher = Arc::new(matcher(&lists, settings.thresholds));
        Ok(Lists {
            settings,
            ahead: Arc::new(Semaphore::new(AHEAD_MAX)),
            reloading: Mutex::new(()),
            changed: Notify::new(),
            loaded: RwLock::new(Arc::new(Loaded { lists, matcher })),
        })
    }

    fn loaded(&self) -> Arc<Loaded> {
        self.loaded.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The matcher over the entries that were loaded last.
    pub fn matcher(&self) -> Arc<EntryMatcher> {
        self.loaded().matcher.clone()
    }

    /// Compares what a transaction will ask, on another thread and before the transaction opens.
    /// The transaction then finds the results in memory. If this fails, the transaction compares by
    /// itself.
    pub async fn screen_ahead(self: &Arc<Lists>, questions: Vec<ScreeningQuestion>) {
        let Ok(permit) = self.ahead.clone().acquire_owned().await else { return };
        let lists = self.clone();
        let screened = tokio::task::spawn_blocking(move || {
            let matcher = lists.matcher();
            for question in &questions {
                matcher.screen(question);
            }
            drop(permit);
        });
        if screened.await.is_err() {
            tracing::error!("screening ahead of a transaction panicked");
        }
    }

    /// The lists that are loaded, as the operator sees them.
    pub fn states(&self) -> Vec<ListState> {
        let state = |list: &LoadedList| ListState {
            list: list.name,
            entries_count: list.entries.len(),
            dated_at: list.dated_at,
            content_hash: list.content_hash,
        };
        self.loaded().lists.iter().map(state).collect()
    }

    /// A hash of all entries, of the thresholds and of [`MATCHING_VERSION`]. If it changes, all
    /// persons are screened again.
    pub fn content_hash(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(MATCHING_VERSION.to_le_bytes());
        let Thresholds { score_possible, score_confirmed } = self.settings.thresholds;
        hash.update(score_possible.to_le_bytes());
        hash.update(score_confirmed.to_le_bytes());
        for list in &self.loaded().lists {
            hash.update(list.content_hash);
        }
        hash.finalize().into()
    }

    /// How old OFAC's and the UN's list may be in live mode, in seconds.
    pub fn age_seconds_max(&self) -> i64 {
        self.settings.age_days_max * DAY_SECONDS
    }

    /// Why the lists are not fit for live mode: OFAC's or the UN's list is missing or too old. If
    /// live mode is configured, the service then refuses to start; a running service goes on, with
    /// warnings. `now` is in Unix seconds.
    pub fn why_not_live(&self, now: i64) -> Option<String> {
        let loaded = self.loaded();
        for (name, setting) in [(ListName::Ofac, "ofac_directory"), (ListName::Un, "un_file")] {
            let Some(list) = loaded.lists.iter().find(|list| list.name == name) else {
                return Some(format!(
                    "the sanctions list {} is missing: set screening.{setting}",
                    name.as_str()
                ));
            };
            if now - list.dated_at > self.age_seconds_max() {
                let max = self.settings.age_days_max;
                return Some(format!(
                    "the sanctions list {} is more than {max} days old: fetch it again",
                    name.as_str()
                ));
            }
        }
        None
    }

    /// Reads those lists again whose files were replaced. After an `Err` the old lists stay in use
    /// and grow older; the caller reports the error. Slow if something changed.
    pub fn reload_if_changed(&self) -> Result<Reload, String> {
        // One call at a time: the second finds what the first has read.
        let _turn = self.reloading.lock().unwrap_or_else(PoisonError::into_inner);
        let old = self.loaded();
        let mut lists = Vec::new();
        let mut outcome = Reload::Unchanged;
        for (list, (name, paths)) in old.lists.iter().zip(self.settings.files()) {
            let stamps =
                paths.iter().map(|path| stamp(path)).collect::<Result<Vec<Stamp>, String>>()?;
            if stamps == list.stamps {
                lists.push(list.clone());
                continue;
            }
            let new = load_list(name, &paths)?;
            let entries_min = list.entries.len() * (100 - SHRINK_PERCENT_MAX) / 100;
            if name != ListName::Own && new.entries.len() < entries_min {
                let (before, after) = (list.entries.len(), new.entries.len());
                return Err(format!(
                    "the sanctions list {} shrank from {before} to {after} entries; restart \
                     the service to accept it",
                    name.as_str()
                ));
            }
            let is_same = new.content_hash == list.content_hash;
            outcome = if is_same && outcome != Reload::Changed {
                Reload::Redated
            } else {
                Reload::Changed
            };
            lists.push(new);
        }
        if outcome != Reload::Unchanged {
            let matcher = match outcome {
                Reload::Changed => Arc::new(matcher(&lists, self.settings.thresholds)),
                _ => old.matcher.clone(),
            };
            *self.loaded.write().unwrap_or_else(PoisonError::into_inner) =
                Arc::new(Loaded { lists, matcher });
        }
        if outcome == Reload::Changed {
            self.changed.notify_one();
        }
        Ok(outcome)
    }
}

impl Screener for Arc<Lists> {
    fn asks_lists(&self) -> bool {
        true
    }
    fn screen(&self, question: &ScreeningQuestion) -> ScreeningFinding {
        self.matcher().screen(question)
    }
    fn screen_address(&self, address: &ChainAddress) -> ScreeningFinding {
        self.matcher().screen_address(address)
    }
}

fn matcher(lists: &[LoadedList], thresholds: Thresholds) -> EntryMatcher {
    EntryMatcher::new(
        lists.iter().flat_map(|list| list.entries.iter().cloned()).collect(),
        thresholds,
    )
}

fn stamp(path: &Path) -> Result<Stamp, String> {
    let unreadable = |error: std::io::Error| {
        format!("the sanctions list {} cannot be read: {error}", path.display())
    };
    let facts = std::fs::metadata(path).map_err(unreadable)?;
    let modified =
        facts.modified().map_err(unreadable)?.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(Stamp { bytes: facts.len(), modified_nanoseconds: modified.as_nanos() })
}

fn read_file(path: &Path, stamp: &Stamp) -> Result<Vec<u8>, String> {
    if stamp.bytes > FILE_BYTES_MAX {
        return Err(format!(
            "the sanctions list {} has {} bytes; at most {FILE_BYTES_MAX} are allowed",
            path.display(),
            stamp.bytes
        ));
    }
    let bytes = std::fs::read(path).map_err(|error| {
        format!("the sanctions list {} cannot be read: {error}", path.display())
    })?;
    if bytes.len() as u64 == stamp.bytes {
        Ok(bytes)
    } else {
        Err(format!("the sanctions list {} is being written", path.display()))
    }
}

fn load_list(name: ListName, paths: &[PathBuf]) -> Result<LoadedList, String> {
    let stamps = paths.iter().map(|path| stamp(path)).collect::<Result<Vec<Stamp>, String>>()?;
    let files = paths
        .iter()
        .zip(&stamps)
        .map(|(path, stamp)| read_file(path, stamp))
        .collect::<Result<Vec<Vec<u8>>, String>>()?;
    // The error itself names the file, so the folder is enough here.
    let location = match paths {
        [file] => file.as_path(),
        files => files.first().and_then(|path| path.parent()).unwrap_or(Path::new("")),
    }
    .display();
    let read: ReadList = match (name, files.as_slice()) {
        (ListName::Ofac, [sdn, alt, add, comments]) => {
            ofac::read(ofac::Files { sdn, alt, add, comments })
        }
        (ListName::Un, [file]) => un::read(file),
        (_, [file]) => own::read(file),
        _ => Err("the list needs another number of files".into()),
    }
    .map_err(|fault| format!("in {location}: {fault}"))?;
    let mut hash = Sha256::new();
    for entry in &read.entries {
        hash.update(entry.content_hash());
    }
    let oldest =
        stamps.iter().map(|stamp| stamp.modified_nanoseconds / 1_000_000_000).min().unwrap_or(0);
    let oldest = i64::try_from(oldest).unwrap_or(i64::MAX);
    Ok(LoadedList {
        name,
        stamps,
        content_hash: hash.finalize().into(),
        dated_at: read.made_at.map_or(oldest, |made_at| made_at.min(oldest)),
        entries: read.entries.into_iter().map(Arc::new).collect(),
    })
}
