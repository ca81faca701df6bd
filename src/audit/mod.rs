//! The audit log: what people and the service did that somebody may ask about later. Entries are
//! only added. Each has a hash over itself and the hash of the entry before. So an entry that was
//! changed, removed, inserted or moved is found.
//!
//! The table `audit_tail` has one row, the tail: the number and hash of the last entry.
//!
//! The hashes are not keyed, so anybody can verify an exported log. But somebody who can write to
//! the database can change an entry and compute its hash and all later ones again. They can also
//! remove the last entries and set back the tail. Only a comparison with an earlier export finds
//! that, for the entries in the export.

pub mod export;
pub mod rows;

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use crate::kernel::{DecidedBy, Now, StoreError, Via};
use crate::store::Tx;

crate::string_enum!(
    /// What was done. Some names do not say it all:
    ///
    /// - `SessionEnded`: in the console, an operator ended one of their own sessions, or an
    ///   administrator ended all sessions of an operator.
    /// - `SecondFactor`: an operator set up a new second factor.
    /// - `OperatorReset`: an operator got another password, and lost the second factor and the link
    ///   to an OpenID Connect provider.
    /// - `OperatorLinked`, `OperatorUnlinked`: an operator may sign in through an OpenID Connect
    ///   provider, or no longer may.
    /// - `DecisionEnded`: a request for a second person's approval was neither approved nor
    ///   rejected. It expired, its requester was disabled, or it could no longer be carried out.
    /// - `EncryptionKeyChanged`: a change of the encryption key began or finished, as the detail
    ///   `step` says.
    /// - `Settings`: the service started with other settings than before.
    Action {
        SignIn "sign_in",
        SignInRefused "sign_in_refused",
        SignOut "sign_out",
        SessionEnded "session_ended",
        SecondFactor "second_factor",
        OperatorCreated "operator_created",
        OperatorDisabled "operator_disabled",
        OperatorReset "operator_reset",
        OperatorLinked "operator_linked",
        OperatorUnlinked "operator_unlinked",
        Decision "decision",
        DecisionRequested "decision_requested",
        DecisionApproved "decision_approved",
        DecisionRejected "decision_rejected",
        DecisionEnded "decision_ended",
        KeyCreated "key_created",
        KeyRevoked "key_revoked",
        EncryptionKeyChanged "encryption_key_changed",
        AccountNumberSeen "account_number_seen",
        Settings "settings",
    }
);

/// What to record. It must not hold a secret, an account number, or the name of a person who is not
/// an operator.
pub struct Fact<'a> {
    /// An operator's name, or "" where nobody was named.
    pub actor: &'a str,
    pub via: Via,
    pub action: Action,
    /// What it was about, such as an object's ID.
    pub subject: &'a str,
    /// Further facts, each a name and a text.
    pub details: &'a [(&'a str, &'a str)],
}

/// An entry as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Counted from 1, without gaps.
    pub number: i64,
    /// Unix milliseconds by the store's clock.
    pub at_milliseconds: i64,
    pub actor: String,
    pub via: String,
    pub action: String,
    pub subject: String,
    /// A JSON object of texts.
    pub details: String,
    pub hash: [u8; 32],
}

/// Stands for the hash of an entry before the first.
pub const BEGINNING: [u8; 32] = [0; 32];

impl Entry {
    /// One of its details.
    pub fn detail(&self, name: &str) -> Option<String> {
        let mut details: BTreeMap<String, String> = serde_json::from_str(&self.details).ok()?;
        details.remove(name)
    }

    /// The hash that this entry must have if the entry before it has the hash `before`. It covers
    /// every column, and the length of each text, so that nothing can move from one column to the
    /// next unnoticed.
    pub fn expected_hash(&self, before: &[u8; 32]) -> [u8; 32] {
        let mut hasher = Sha256::new();
        hasher.update(b"hundi audit v1");
        hasher.update(before);
        hasher.update(self.number.to_be_bytes());
        hasher.update(self.at_milliseconds.to_be_bytes());
        for text in [&self.actor, &self.via, &self.action, &self.subject, &self.details] {
            hasher.update((text.len() as u64).to_be_bytes());
            hasher.update(text.as_bytes());
        }
        hasher.finalize().into()
    }
}

impl<'a> Fact<'a> {
    /// What `by` did: an operator in the console or in the shell, or the service itself.
    pub fn by(
        by: &'a DecidedBy,
        action: Action,
        subject: &'a str,
        details: &'a [(&'a str, &'a str)],
    ) -> Fact<'a> {
        Fact { actor: by.actor(), via: by.via(), action, subject, details }
    }
}

/// Adds an entry in this transaction, so that it commits together with what it records.
pub fn append(tx: &mut dyn Tx, now: &Now, fact: &Fact<'_>) -> Result<(), StoreError> {
    let details: BTreeMap<_, _> = fact.details.iter().copied().collect();
    let details = serde_json::to_string(&details).map_err(|error| {
        StoreError::Broken(format!("an audit entry does not serialise: {error}"))
    })?;
    let (last, before) = rows::lock_tail(tx)?;
    let mut entry = Entry {
        number: last + 1,
        at_milliseconds: now.instant_milliseconds(),
        actor: fact.actor.to_owned(),
        via: fact.via.as_str().to_owned(),
        action: fact.action.as_str().to_owned(),
        subject: fact.subject.to_owned(),
        details,
        hash: BEGINNING,
    };
    entry.hash = entry.expected_hash(&before);
    rows::insert(tx, &entry)
}

/// Verifies the hash chain from its beginning, one entry after another.
pub struct HashChain {
    last: i64,
    hash: [u8; 32],
    pub faults: Vec<String>,
}

impl Default for HashChain {
    fn default() -> HashChain {
        HashChain { last: 0, hash: BEGINNING, faults: Vec::new() }
    }
}

impl HashChain {
    /// The number of the last entry taken. That is how many there are, if none is missing.
    pub const fn count(&self) -> i64 {
        self.last
    }

    /// Takes the next entry. After a fault it continues from what the entry says, so that one fault
    /// does not make all later entries faults.
    pub fn take(&mut self, entry: &Entry) {
        if self.last.checked_add(1) != Some(entry.number) {
            self.faults
                .push(format!("the audit log: entry {} follows entry {}", entry.number, self.last));
        } else if entry.expected_hash(&self.hash) != entry.hash {
            self.faults.push(format!(
                "the audit log: entry {} is not as it was written, or the one before it is not",
                entry.number
            ));
        }
        (self.last, self.hash) = (entry.number, entry.hash);
    }

    /// Compares the last entry taken with the tail.
    pub fn end(&mut self, tail: Option<(i64, [u8; 32])>) {
        let (number, hash) = tail.unwrap_or((0, BEGINNING));
        if (number, hash) != (self.last, self.hash) {
            self.faults.push(format!(
                "the audit log: it ends with entry {}, but {number} were written, or the last one \
                 is not as it was written",
                self.last
            ));
        }
    }
}

/// Entries that are read at once.
const ENTRIES_AT_ONCE: i64 = 1_000;

/// Calls `take` with every entry whose number is above `after`, in order. It reads a page at a
/// time.
pub fn each(
    tx: &mut dyn Tx,
    mut after: i64,
    mut take: impl FnMut(&Entry) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    loop {
        let entries = rows::after(tx, after, ENTRIES_AT_ONCE)?;
        let Some(last) = entries.last() else { return Ok(()) };
        after = last.number;
        for entry in &entries {
            take(entry)?;
        }
    }
}

/// Verifies the whole log.
pub fn verify(tx: &mut dyn Tx) -> Result<HashChain, StoreError> {
    let mut chain = HashChain::default();
    each(tx, 0, |entry| {
        chain.take(entry);
        Ok(())
    })?;
    chain.end(rows::tail(tx)?);
    Ok(chain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(count: i64) -> Vec<Entry> {
        let mut before = BEGINNING;
        let made = (1..=count).map(|number| {
            let mut entry = Entry {
                number,
                at_milliseconds: number * 1_000,
                actor: "asha".into(),
                via: "shell".into(),
                action: "decision".into(),
                subject: format!("payout_{number}"),
                details: "{}".into(),
                hash: BEGINNING,
            };
            entry.hash = entry.expected_hash(&before);
            before = entry.hash;
            entry
        });
        made.collect()
    }

    fn faults(entries: &[Entry], tail: Option<(i64, [u8; 32])>) -> Vec<String> {
        let mut chain = HashChain::default();
        entries.iter().for_each(|entry| chain.take(entry));
        chain.end(tail);
        chain.faults
    }

    #[test]
    fn every_change_of_the_chain_is_found() {
        let good = entries(5);
        let tail = Some((5, good[4].hash));
        assert_eq!(faults(&good, tail), Vec::<String>::new());
        assert_eq!(faults(&[], None), Vec::<String>::new());
        type Harm = fn(&mut Vec<Entry>);
        let harms: [(&str, Harm); 9] = [
            ("a text", |all| all[2].details = "{\"reason\":\"another\"}".into()),
            ("a text moved to the next column", |all| {
                all[2].actor = "ash".into();
                all[2].via = "ashell".into();
            }),
            ("a time", |all| all[2].at_milliseconds += 1),
            ("the first", |all| all[0].actor = "ravi".into()),
            ("the last", |all| all[4].actor = "ravi".into()),
            ("one taken out", |all| drop(all.remove(2))),
            ("one taken out and the rest counted anew", |all| {
                all.remove(2);
                (1..).zip(all).for_each(|(number, entry)| entry.number = number);
            }),
            ("two in another order", |all| {
                all.swap(1, 2);
                (all[1].number, all[2].number) = (2, 3);
            }),
            ("the end taken away", |all| all.truncate(3)),
        ];
        for (what, harm) in harms {
            let mut bad = good.clone();
            harm(&mut bad);
            assert!(!faults(&bad, tail).is_empty(), "{what}");
        }
        // The chain alone does not show that the last entries are gone if the tail was set back. An
        // earlier export shows it.
        assert_eq!(faults(&good[..3], Some((3, good[2].hash))), Vec::<String>::new());
    }
}
