//! Prefixed identifiers: an object type, an underscore and a ULID (26 upper-case Crockford
//! characters).

use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ulid::Ulid;

/// Ties an identifier to its type at compile time.
pub trait IdKind: 'static {
    const KIND: ObjectKind;
}

/// Declares the kinds of object, each with its word, and with the table of its objects if the
/// table's key is `scope` and `id`.
macro_rules! kinds {
    ($($name:ident $word:literal $(in $table:literal)?),* $(,)?) => {
        /// The types of object that carry an identifier.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum ObjectKind { $($name),* }

        impl ObjectKind {
            pub const ALL: &'static [ObjectKind] = &[$(ObjectKind::$name),*];

            /// The word in the field `object`, and before the last underscore of an identifier.
            pub const fn as_str(self) -> &'static str {
                match self { $(ObjectKind::$name => $word),* }
            }
            /// The table of the callers' objects of this kind. `None` if there is none, or if its
            /// key is not `scope` and `id`.
            pub const fn table(self) -> Option<&'static str> {
                match self {
                    $($(ObjectKind::$name => Some($table),)?)*
                    _ => None,
                }
            }
            pub fn parse(text: &str) -> Option<ObjectKind> {
                ObjectKind::ALL.iter().copied().find(|kind| kind.as_str() == text)
            }
        }

        /// One marker type for each kind of object, for `Id<K>`.
        pub mod kind {
            $(
                #[derive(Clone, Copy, Debug, PartialEq, Eq)]
                pub struct $name;
                impl super::IdKind for $name {
                    const KIND: super::ObjectKind = super::ObjectKind::$name;
                }
            )*
        }
    };
}

kinds! {
    Account "account",
    ApiKey "api_key",
    Beneficiary "beneficiary" in "beneficiaries",
    Deposit "deposit" in "deposits",
    Event "event" in "events",
    Payout "payout" in "payouts",
    QuoteLock "quote_lock" in "quote_locks",
    Refund "refund" in "refunds",
    Request "request",
    Sender "sender" in "senders",
    Transfer "transfer" in "transfers",
    WebhookDelivery "webhook_delivery",
    WebhookEndpoint "webhook_endpoint" in "webhook_endpoints",
}

/// An identifier of something without a kind of its own, such as a ledger entry or a task. As text,
/// for example in `hundi reconcile`, it has the prefix of a request.
pub type InternalId = Id<kind::Request>;

/// An identifier of one kind of object; 16 bytes in the store, prefixed text outside.
pub struct Id<K: IdKind>(u128, PhantomData<fn() -> K>);

impl<K: IdKind> Id<K> {
    pub const fn from_u128(value: u128) -> Self {
        Id(value, PhantomData)
    }
    pub const fn as_u128(self) -> u128 {
        self.0
    }
    /// Big-endian, so that bytes sort as the identifiers do.
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(Id::from_u128(u128::from_be_bytes(bytes.try_into().ok()?)))
    }
    /// The lowest identifier of the time `milliseconds` (since 1970).
    pub const fn lowest_at(milliseconds: i64) -> Self {
        const MILLISECONDS_MAX: i64 = (1 << 48) - 1;
        let clamped = match milliseconds {
            ..0 => 0,
            0..=MILLISECONDS_MAX => milliseconds,
            _ => MILLISECONDS_MAX,
        };
        Id::from_u128((clamped as u128) << 80)
    }
    /// The time in the identifier, in milliseconds since 1970.
    pub const fn milliseconds(self) -> i64 {
        (self.0 >> 80) as i64
    }
    /// Parses the prefixed form. `None` for anything else, such as another prefix or lower case.
    pub fn parse(text: &str) -> Option<Self> {
        let ulid = text.strip_prefix(K::KIND.as_str())?.strip_prefix('_')?;
        parse_ulid(ulid).map(Id::from_u128)
    }
    pub fn any(self) -> AnyId {
        AnyId { kind: K::KIND, value: self.0 }
    }
}

/// Takes only the canonical form, without `I`, `L`, `O`, `U` and lower case. `Ulid::from_string`
/// takes more.
fn parse_ulid(text: &str) -> Option<u128> {
    let canonical = text.len() == 26
        && text.bytes().all(|byte| {
            byte.is_ascii_digit()
                || (byte.is_ascii_uppercase() && !matches!(byte, b'I' | b'L' | b'O' | b'U'))
        })
        && text.as_bytes()[0] <= b'7';
    if !canonical {
        return None;
    }
    Ulid::from_string(text).ok().map(|ulid| ulid.0)
}

impl<K: IdKind> Clone for Id<K> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K: IdKind> Copy for Id<K> {}
impl<K: IdKind> PartialEq for Id<K> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}
impl<K: IdKind> Eq for Id<K> {}
impl<K: IdKind> PartialOrd for Id<K> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<K: IdKind> Ord for Id<K> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.cmp(&other.0)
    }
}
impl<K: IdKind> std::hash::Hash for Id<K> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}
impl<K: IdKind> fmt::Display for Id<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.any().fmt(f)
    }
}
impl<K: IdKind> fmt::Debug for Id<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.any().fmt(f)
    }
}
impl<K: IdKind> serde::Serialize for Id<K> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
impl<K: IdKind> schemars::JsonSchema for Id<K> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("{}_id", K::KIND.as_str()).into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "pattern": format!("^{}_[0-7][0-9A-HJKMNP-TV-Z]{{25}}$", K::KIND.as_str()),
        })
    }
}

/// An identifier whose kind is known only at run time, such as an event's `linked_id`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct AnyId {
    pub kind: ObjectKind,
    pub value: u128,
}

impl AnyId {
    pub const fn to_bytes(self) -> [u8; 16] {
        self.value.to_be_bytes()
    }
    /// Parses `<known prefix>_<ULID>`.
    pub fn parse(text: &str) -> Option<AnyId> {
        let (prefix, ulid) = text.rsplit_once('_')?;
        Some(AnyId { kind: ObjectKind::parse(prefix)?, value: parse_ulid(ulid)? })
    }
    pub fn typed<K: IdKind>(self) -> Option<Id<K>> {
        (self.kind == K::KIND).then_some(Id::from_u128(self.value))
    }
}

impl fmt::Display for AnyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut buffer = [0; ulid::ULID_LEN];
        let ulid = Ulid(self.value).array_to_str(&mut buffer);
        write!(f, "{}_{}", self.kind.as_str(), ulid)
    }
}
impl fmt::Debug for AnyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
impl serde::Serialize for AnyId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
impl schemars::JsonSchema for AnyId {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "any_id".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string" })
    }
}

/// Mints identifiers that rise strictly within one node, also within a millisecond and after the
/// clock steps back. After a restart they go on rising if the new minter begins above the store's
/// highest identifier. Clones share one state, so the identifiers of all threads of a node rise
/// together.
#[derive(Clone, Debug)]
pub struct Minter {
    state: Arc<Mutex<MinterState>>,
}

/// On PostgreSQL each writing transaction reads the database's clock ([`Minter::not_before`]). The
/// time that the node computes (`Clock::Measured`) can be ahead of that reading. If it is ahead by
/// less than this, an identifier gets the time of the reading. An identifier with the computed time
/// could be ahead of the database's clock, and a list in rising order would not show its object
/// yet. A time that is further ahead is used as it is.
const COMPUTED_AHEAD_MILLISECONDS_MAX: i64 = 2_000;

#[derive(Debug)]
struct MinterState {
    last: u128,
    /// The highest reading of the database's clock, in milliseconds since 1970; 0 without one.
    milliseconds_min: i64,
}

impl Minter {
    /// `floor` is the highest identifier ever stored, 0 for an empty store.
    pub fn above(floor: u128) -> Minter {
        Minter { state: Arc::new(Mutex::new(MinterState { last: floor, milliseconds_min: 0 })) }
    }
    /// Mints only above an identifier from now on.
    pub fn raise(&self, floor: u128) {
        let mut state = self.lock();
        state.last = floor.max(state.last);
    }
    /// Mints only identifiers of this time or later from now on. `milliseconds` (since 1970) is a
    /// reading of the database's clock. A computed time slightly ahead of the reading counts as the
    /// same moment.
    pub fn not_before(&self, milliseconds: i64) {
        let mut state = self.lock();
        state.milliseconds_min = milliseconds.max(state.milliseconds_min);
    }
    fn lock(&self) -> MutexGuard<'_, MinterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// `milliseconds` is the store's time as this node computes it, since 1970. The low 80 bits of
    /// `random` must be fresh.
    pub fn mint<K: IdKind>(&self, milliseconds: i64, random: u128) -> Id<K> {
        let mut state = self.lock();
        let ahead_milliseconds = milliseconds - state.milliseconds_min;
        let milliseconds = match (0..COMPUTED_AHEAD_MILLISECONDS_MAX).contains(&ahead_milliseconds)
        {
            true => state.milliseconds_min,
            false => milliseconds.max(state.milliseconds_min),
        };
        let fresh =
            ((milliseconds.max(0) as u128 & 0xFFFF_FFFF_FFFF) << 80) | (random & ((1 << 80) - 1));
        let is_not_later = (fresh >> 80) <= (state.last >> 80);
        state.last = if is_not_later {
            // A random step keeps identifiers unguessable. It is small, so that the 80 bits hardly
            // ever overflow.
            state.last + 1 + (random & 0xFFFF_FFFF)
        } else {
            fresh
        };
        Id::from_u128(state.last)
    }
    /// The identifier above which the next one is minted: the last one, or the floor if that is
    /// higher.
    pub fn last(&self) -> u128 {
        self.lock().last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_identifier_of_a_time_has_that_time() {
        const LAST: i64 = (1 << 48) - 1;
        for (asked, found) in [
            (-1, 0),
            (0, 0),
            (1_790_000_000_123, 1_790_000_000_123),
            (LAST, LAST),
            (i64::MAX, LAST),
        ] {
            let lowest: Id<kind::Event> = Id::lowest_at(asked);
            assert_eq!(lowest.milliseconds(), found);
            assert!(
                found == 0
                    || Id::<kind::Event>::from_u128(lowest.as_u128() - 1).milliseconds() < found
            );
        }
    }

    #[test]
    fn only_the_canonical_form_parses() {
        let id: Id<kind::Transfer> = Id::from_u128(7);
        let text = id.to_string();
        assert_eq!(text, "transfer_00000000000000000000000007");
        assert_eq!(Id::<kind::Transfer>::parse(&text), Some(id));
        for bad in [
            "transfer_",
            "transfer_0000000000000000000000000",
            "transfer_000000000000000000000000070",
            "transfer_80000000000000000000000000",
            "transfer_0000000000000000000000000I",
            "transfer_0000000000000000000000000a",
            "deposit_00000000000000000000000007",
            "00000000000000000000000007",
            "TRANSFER_00000000000000000000000007",
            " transfer_00000000000000000000000007",
            "",
        ] {
            assert_eq!(Id::<kind::Transfer>::parse(bad), None, "{bad}");
        }
        assert_eq!(
            AnyId::parse("quote_lock_00000000000000000000000007").map(|any| any.kind),
            Some(ObjectKind::QuoteLock)
        );
    }

    #[test]
    fn identifiers_rise_through_clock_steps_and_restarts() {
        let minter = Minter::above(0);
        let mut last = minter.mint::<kind::Event>(1_000, u128::MAX);
        for (millisecond, random) in [(1_000, 0), (1_000, 5), (999, 9), (1, 1), (1_001, 0)] {
            let next = minter.mint::<kind::Event>(millisecond, random);
            assert!(next > last, "{next} after {last}");
            assert!(next.to_bytes() > last.to_bytes());
            assert!(next.to_string() > last.to_string());
            last = next;
        }
        let restarted = Minter::above(last.as_u128());
        assert!(restarted.mint::<kind::Event>(5, 5) > last);
    }
}
