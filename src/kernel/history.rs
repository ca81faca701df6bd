//! The history of an object's status: what it became, and when. It is only appended to.

use schemars::JsonSchema;
use serde::Serialize;

use super::refusal::StoreError;
use super::state::Status;

/// One status, and the business time at which the object reached it, in Unix seconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct StatusChange<S> {
    pub status: S,
    pub at: i64,
}

/// Statuses in the order in which the object reached them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(inline)]
#[serde(transparent)]
pub struct History<S>(Vec<StatusChange<S>>);

impl<S: Status> History<S> {
    pub fn begun(status: S, at: i64) -> History<S> {
        History(vec![StatusChange { status, at }])
    }
    /// Appends a status. If `at` is before the time of the last status, the new one gets that time.
    /// This happens if another node's clock is behind. It also happens if another transaction wrote
    /// a task during an advance of the test clock: the task runs afterwards, at its own earlier
    /// time (`test_helpers/clock.rs`).
    pub fn push(&mut self, status: S, at: i64) {
        let at = self.0.last().map_or(at, |last| at.max(last.at));
        self.0.push(StatusChange { status, at });
    }
    pub fn entries(&self) -> &[StatusChange<S>] {
        &self.0
    }
    /// When the object last reached a status.
    pub fn last_at(&self, status: S) -> Option<i64> {
        self.0.iter().rev().find(|change| change.status == status).map(|change| change.at)
    }
    /// The stored form: `status@seconds`, separated by spaces.
    pub fn to_text(&self) -> String {
        self.0
            .iter()
            .map(|change| format!("{}@{}", change.status.as_str(), change.at))
            .collect::<Vec<_>>()
            .join(" ")
    }
    pub fn from_text(text: &str) -> Result<History<S>, StoreError> {
        let entry = |part: &str| {
            let (status, at) = part.split_once('@')?;
            Some(StatusChange { status: S::parse(status)?, at: at.parse().ok()? })
        };
        text.split(' ')
            .map(entry)
            .collect::<Option<_>>()
            .map(History)
            .ok_or_else(|| StoreError::Broken("a status history cannot be read".into()))
    }
    /// What is wrong with the history, if anything. It must end in `current`, follow the arrows,
    /// and never go back in time.
    pub fn fault(&self, current: S) -> Option<String> {
        match self.0.last() {
            None => return Some("the history is empty".into()),
            Some(last) if last.status != current => {
                return Some(format!(
                    "the history ends in {} but the status is {}",
                    last.status.as_str(),
                    current.as_str()
                ));
            }
            Some(_) => {}
        }
        self.0.windows(2).find_map(|pair| {
            let [from, to] = pair else { return None };
            if !from.status.can_become(to.status) {
                Some(format!(
                    "{} became {}, which is not permitted",
                    from.status.as_str(),
                    to.status.as_str()
                ))
            } else if to.at < from.at {
                Some(format!(
                    "{} has an earlier time than {}, the status before it",
                    to.status.as_str(),
                    from.status.as_str()
                ))
            } else {
                None
            }
        })
    }
}
