//! A session as stored, and when it ends.

use super::{OperatorIdentity, Theme};
use crate::kernel::{hex, network_of};

/// A session ends this long after its last stored use.
pub const IDLE_SECONDS_MAX: i64 = 30 * 60;
/// A session ends this long after its beginning, however much it is used.
pub const SESSION_SECONDS_MAX: i64 = 12 * 3_600;
/// A use is stored only if the stored one is at least this old, so that not every request writes.
const USE_LAG_SECONDS_MAX: i64 = 60;

/// The address and the browser from which somebody signs in.
#[derive(Clone)]
pub struct Place {
    /// An IP address, or `shell` for a command.
    pub address: String,
    /// The browser's `User-Agent`; empty if there is none.
    pub browser: String,
}

impl Place {
    /// What failed attempts are counted by: an IPv4 address, or the /64 network of an IPv6 address,
    /// because whoever has one address of such a network has all of them. A text that is no
    /// address, such as `shell`, counts as it is.
    pub fn network(&self) -> String {
        match self.address.parse() {
            Ok(address) => network_of(address).to_string(),
            Err(_) => self.address.clone(),
        }
    }
}

/// A session as stored, with its operator. It may have ended ([`Session::has_ended`]).
#[derive(Clone, Debug)]
pub struct Session {
    pub operator: OperatorIdentity,
    pub token_hash: [u8; 32],
    pub created: i64,
    pub used_at: i64,
    pub ends_at: i64,
    pub address: String,
    pub browser: String,
    pub language: String,
    pub theme: Theme,
    /// Whether the operator has confirmed a second factor in this service, or has signed in at a
    /// provider that asks for one, as the settings say.
    pub has_second_factor: bool,
}

impl Session {
    /// How pages name the session. Nobody can work out the token from this.
    pub fn reference(&self) -> String {
        hex::encode(self.token_hash)
    }
    /// Whether the session has ended by `instant`.
    pub const fn has_ended(&self, instant: i64) -> bool {
        instant >= self.ends_at || instant >= self.used_at + IDLE_SECONDS_MAX
    }
    /// Whether a use at `instant` should be stored.
    pub const fn is_use_old(&self, instant: i64) -> bool {
        instant >= self.used_at + USE_LAG_SECONDS_MAX
    }
}
