//! API keys: what they look like, what is stored of them, what they permit, and how a request's
//! key leads to its caller. `rows.rs` also has the accounts.

pub mod making;
pub mod rows;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use sha2::{Digest, Sha256};

use crate::kernel::id::kind;
use crate::kernel::{Code, Id, Mode, OperationError, Refusal, Scope};
use crate::store::Cost;
use crate::store::Store;

const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const RANDOM_LENGTH: usize = 32;
const CHECKSUM_LENGTH: usize = 6;

/// How long a key that was read is remembered. A revocation takes effect within this time.
pub const KEY_CACHE_MILLISECONDS: i64 = 1_000;
/// The most keys that are remembered at once. If there are more, all are forgotten.
const KEYS_CACHED_MAX: usize = 10_000;

/// Makes the text of a key from 32 random bytes: a prefix, 32 base62 characters, and a checksum.
/// The prefix begins with `rk` for a restricted key, which does not have all permissions, and with
/// `sk` for any other. Thanks to the checksum, the service notices a typing error without asking
/// the store, and a program that searches texts for leaked keys can tell a key from other text.
pub fn key_text(mode: Mode, is_restricted: bool, random: [u8; RANDOM_LENGTH]) -> String {
    let kind = if is_restricted { "rk" } else { "sk" };
    let mode = if mode.is_live() { "live" } else { "test" };
    // 256 is no multiple of 62, so 8 of the 62 characters come 5 times in 256, and the others 4
    // times. That leaves 190 bits, a fraction of a bit less than with evenly spread characters.
    let secret: String = random.iter().map(|byte| BASE62[usize::from(byte % 62)] as char).collect();
    let body = format!("{kind}_{mode}_{secret}");
    let checksum = checksum(&body);
    body + &checksum
}

fn checksum(body: &str) -> String {
    let mut rest = crc32fast::hash(body.as_bytes());
    let mut digits = [b'0'; CHECKSUM_LENGTH];
    for digit in digits.iter_mut().rev() {
        *digit = BASE62[(rest % 62) as usize];
        rest /= 62;
    }
    digits.iter().map(|digit| *digit as char).collect()
}

/// The mode of a key's text; `None` where the text does not have the form of a key, or its checksum
/// is wrong.
pub fn mode_of_text(text: &str) -> Option<Mode> {
    let mode = match text.get(..8)? {
        "sk_test_" | "rk_test_" => Mode::Test,
        "sk_live_" | "rk_live_" => Mode::Live,
        _ => return None,
    };
    let has_form = text.len() == 8 + RANDOM_LENGTH + CHECKSUM_LENGTH
        && text.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric());
    let (body, sum) = text.split_at_checked(text.len().saturating_sub(CHECKSUM_LENGTH))?;
    (has_form && checksum(body) == sum).then_some(mode)
}

/// The hash under which a key is stored. A fast hash is enough, because nobody can guess 190 random
/// bits.
pub fn key_hash(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

/// What a key may do: everything, or a list of `<resource>:read` and `<resource>:write`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Permissions {
    All,
    Only(Vec<String>),
}

impl Permissions {
    /// Reads a comma-separated list; the empty text means all permissions. A permission can name
    /// any of `resources`. `Err` says what is wrong, for the person who wrote it.
    pub fn parse(text: &str, resources: &[&str]) -> Result<Permissions, String> {
        let permissions = Permissions::from_text(text);
        if let Permissions::Only(list) = &permissions {
            let is_known = |item: &&String| {
                item.split_once(':').is_some_and(|(resource, action)| {
                    resources.contains(&resource) && matches!(action, "read" | "write")
                })
            };
            if let Some(item) = list.iter().find(|item| !is_known(item)) {
                return Err(format!(
                    "{item:?} is not a permission: write <resource>:read or <resource>:write, \
                     with a resource of {}",
                    resources.join(", ")
                ));
            }
        }
        Ok(permissions)
    }
    /// Reads what `to_text` wrote. A permission that this release does not know grants nothing.
    pub fn from_text(text: &str) -> Permissions {
        if text.is_empty() {
            return Permissions::All;
        }
        Permissions::Only(text.split(',').map(|item| item.trim().to_owned()).collect())
    }
    pub fn to_text(&self) -> String {
        match self {
            Permissions::All => String::new(),
            Permissions::Only(list) => list.join(","),
        }
    }
    /// Reading and writing are granted separately; neither includes the other.
    pub fn permits(&self, (resource, action): (&str, &str)) -> bool {
        match self {
            Permissions::All => true,
            Permissions::Only(list) => {
                list.iter().any(|item| item.split_once(':') == Some((resource, action)))
            }
        }
    }
}

/// Who asks: a key that was found, and its account.
#[derive(Clone, Debug)]
pub struct Caller {
    pub key_id: Id<kind::ApiKey>,
    pub scope: Scope,
    pub permissions: Permissions,
    /// Unix seconds, as is `revoked_at`.
    pub expires_at: Option<i64>,
    pub revoked_at: Option<i64>,
    /// Whether the account is suspended.
    pub is_suspended: bool,
    /// Until when the key has a chaos profile, in Unix milliseconds; `None` without one.
    pub chaos_until_milliseconds: Option<i64>,
}

/// The refusal of a request without a valid key; `cause` is its first sentence. `cause` must not
/// reveal that the key once existed.
fn invalid_key(cause: &str) -> OperationError {
    const ADVICE: &str = "Send the header Authorization: Bearer <API_KEY>, once.";
    Refusal::new(Code::SecretKeyInvalid, format!("{cause} {ADVICE}")).into()
}

/// How a request presents its key.
#[derive(Clone, Copy)]
pub enum Presented<'a> {
    Nothing,
    /// More than one header `Authorization`.
    Several,
    /// No header `Authorization`, but this header, in which other services expect keys.
    OtherHeader(&'static str),
    /// The value of the header `Authorization`.
    Authorization(&'a [u8]),
}

/// The text of the key that a request presents, checked for its form.
fn bearer_key(presented: Presented<'_>) -> Result<&str, OperationError> {
    let value = match presented {
        Presented::Authorization(value) => value,
        Presented::Nothing => return Err(invalid_key("The request has no API key.")),
        Presented::Several => {
            return Err(invalid_key("The request has more than one header Authorization."));
        }
        Presented::OtherHeader(name) => {
            return Err(invalid_key(&format!("An API key is not taken from the header {name}.")));
        }
    };
    let text = std::str::from_utf8(value)
        .map_err(|_| invalid_key("The API key holds characters that no key has."))?
        .trim();
    let key = match text.split_once(' ') {
        Some((scheme, key)) if scheme.eq_ignore_ascii_case("bearer") => key.trim(),
        Some((scheme, _)) if scheme.eq_ignore_ascii_case("basic") => {
            return Err(invalid_key("The API key was sent with the scheme Basic."));
        }
        None if text.eq_ignore_ascii_case("bearer") => {
            return Err(invalid_key("No API key follows the word Bearer."));
        }
        None if mode_of_text(text).is_some() => {
            return Err(invalid_key("The word Bearer is missing before the API key."));
        }
        _ => return Err(invalid_key("The header Authorization is not of the scheme Bearer.")),
    };
    match mode_of_text(key) {
        Some(_) => Ok(key),
        None => Err(invalid_key(
            "This is not an API key of hundi: a key begins with sk_test_, sk_live_, rk_test_ or \
             rk_live_, is 46 characters long, and ends with a checksum, which finds a character \
             that was lost or changed.",
        )),
    }
}

/// A key, and when it was last used, in Unix seconds.
pub type KeyUse = (Id<kind::ApiKey>, i64);

/// A caller, and when it was read, in Unix milliseconds.
type CachedCaller = (Arc<Caller>, i64);

/// Finds callers by their keys, remembering each for a second.
#[derive(Default)]
pub struct KeyRing {
    known: RwLock<HashMap<[u8; 32], CachedCaller>>,
    /// The last noted use of each key in this process, in Unix seconds, until it is stored.
    uses: Mutex<HashMap<Id<kind::ApiKey>, i64>>,
}

impl KeyRing {
    /// The caller of a request. Refuses a request without a key, and a key that is malformed,
    /// unknown, revoked, expired, or of a suspended account.
    pub async fn caller(
        &self,
        store: &Store,
        presented: Presented<'_>,
    ) -> Result<Arc<Caller>, OperationError> {
        let key = bearer_key(presented)?;
        // A revoked key gets the message of an unknown one, so that it does not reveal that the key
        // once existed.
        let unknown = || {
            invalid_key(
                "This API key is not in use at this server: it belongs to another server or \
                 database, or was revoked.",
            )
        };
        let hash = key_hash(key);
        let now_milliseconds = store.clock.milliseconds();
        let mut is_read = false;
        let caller = match self.recall(&hash, now_milliseconds) {
            Some(caller) => caller,
            None => {
                let found =
                    store.read(Cost::Point, move |tx| Ok(rows::find_caller(tx, &hash)?)).await?;
                let caller = Arc::new(found.ok_or_else(unknown)?);
                self.remember(hash, caller.clone(), now_milliseconds);
                is_read = true;
                caller
            }
        };
        if caller.revoked_at.is_some() {
            return Err(unknown());
        }
        if caller.expires_at.is_some_and(|at| now_milliseconds >= at * 1000) {
            return Err(Refusal::new(
                Code::ActionUnauthorizedNow,
                "This API key has expired. Ask the operator for a new one.",
            )
            .into());
        }
        if caller.is_suspended {
            return Err(Refusal::new(
                Code::ActionUnauthorizedNow,
                "This account is suspended. Ask the operator.",
            )
            .into());
        }
        // A key in constant use is read once a second, so this notes one use a second.
        if is_read {
            self.note_uses([(caller.key_id, now_milliseconds / 1_000)]);
        }
        Ok(caller)
    }

    /// When a key was last used in this process, in Unix seconds; it may be a second or so too
    /// early. `None` once that time is stored, and for a key that was not used.
    pub fn used_at(&self, key_id: Id<kind::ApiKey>) -> Option<i64> {
        self.uses.lock().unwrap_or_else(PoisonError::into_inner).get(&key_id).copied()
    }

    /// Takes out the uses that are not stored yet, in the order of keys.
    pub fn take_uses(&self) -> Vec<KeyUse> {
        let mut uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
        let mut taken: Vec<KeyUse> = uses.drain().collect();
        taken.sort_unstable();
        taken
    }

    /// Notes uses, or puts back those that could not be stored.
    pub fn note_uses(&self, noted: impl IntoIterator<Item = KeyUse>) {
        let mut uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
        for (key_id, at) in noted {
            let last = uses.entry(key_id).or_insert(at);
            *last = at.max(*last);
        }
    }

    /// Forgets a key, so that the next request with the key reads its row again.
    pub fn forget(&self, key_id: Id<kind::ApiKey>) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, (caller, _)| caller.key_id != key_id);
    }

    fn recall(&self, hash: &[u8; 32], now_milliseconds: i64) -> Option<Arc<Caller>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let (caller, read_milliseconds) = known.get(hash)?;
        let age = now_milliseconds - read_milliseconds;
        (0..KEY_CACHE_MILLISECONDS).contains(&age).then(|| caller.clone())
    }

    fn remember(&self, hash: [u8; 32], caller: Arc<Caller>, now_milliseconds: i64) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KEYS_CACHED_MAX {
            known.clear();
        }
        known.insert(hash, (caller, now_milliseconds));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_carries_its_mode_and_a_checksum() {
        for (mode, restricted, prefix) in [
            (Mode::Test, false, "sk_test_"),
            (Mode::Live, false, "sk_live_"),
            (Mode::Test, true, "rk_test_"),
            (Mode::Live, true, "rk_live_"),
        ] {
            let key = key_text(mode, restricted, [201; 32]);
            assert!(key.starts_with(prefix));
            assert_eq!(mode_of_text(&key), Some(mode));
            let mut typo = key.clone().into_bytes();
            typo[20] = if typo[20] == b'A' { b'B' } else { b'A' };
            assert_eq!(mode_of_text(std::str::from_utf8(&typo).unwrap()), None);
        }
        for text in [
            "",
            "sk_test_",
            "sk_test_short",
            "pk_test_00000000000000000000000000000000000000",
            "sk_testé",
        ] {
            assert_eq!(mode_of_text(text), None, "{text}");
        }
    }

    #[test]
    fn uses_are_taken_once_and_the_latest_stays() {
        let ring = KeyRing::default();
        let (one, other) = (Id::from_u128(1), Id::from_u128(2));
        ring.note_uses([(other, 20), (one, 10), (other, 15)]);
        assert_eq!((ring.used_at(one), ring.used_at(other)), (Some(10), Some(20)));
        let taken = ring.take_uses();
        assert_eq!(taken, [(one, 10), (other, 20)], "in the order of keys");
        assert_eq!((ring.used_at(one), ring.take_uses()), (None, vec![]));
        // Uses that could not be stored are put back, and do not replace later ones.
        ring.note_uses([(one, 30)]);
        ring.note_uses(taken);
        assert_eq!((ring.used_at(one), ring.used_at(other)), (Some(30), Some(20)));
    }

    #[test]
    fn reading_and_writing_are_granted_apart() {
        let resources = ["events", "payouts", "transfers"];
        let parse = |text| Permissions::parse(text, &resources);
        let only = parse("transfers:read, events:read").unwrap();
        assert!(
            only.permits(("transfers", "read"))
                && !only.permits(("transfers", "write"))
                && !only.permits(("payouts", "read"))
        );
        assert!(parse("").unwrap().permits(("transfers", "write")));
        for bad in ["transfers", "transfers:delete", "nothing:read", "transfers:read,"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
