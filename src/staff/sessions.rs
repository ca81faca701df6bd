//! Where operators are signed in. A session is a random token in a cookie; the store has its hash.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use super::{OperatorIdentity, Theme, rows};
use crate::kernel::{Now, OperationError, StoreError, hex};
use crate::store::Tx;

/// A session that nobody uses ends after this time, and every session after the longer one.
pub const IDLE_SECONDS_MAX: i64 = 30 * 60;
pub const SESSION_SECONDS_MAX: i64 = 12 * 3_600;
/// How far behind the time of the last use may be, so that not every request writes.
const USE_SECONDS: i64 = 60;
/// Sessions of one operator; the one that began first ends for another.
const SESSIONS_MAX: usize = 10;
/// Characters of a browser's name of itself that are kept.
const BROWSER_CHARACTERS_MAX: usize = 200;

/// The secret of a session, as its cookie holds it.
pub struct Token(String);

impl Token {
    pub fn make(random: [u8; 32]) -> Token {
        Token(URL_SAFE_NO_PAD.encode(random))
    }
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What is stored of a token. Its 256 random bits need no slow hash.
pub fn token_hash(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

/// A session that was found for a request.
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
    pub has_second_factor: bool,
}

impl Session {
    /// How pages name it; the token does not follow from it.
    pub fn reference(&self) -> String {
        hex::encode(self.token_hash)
    }
    /// Whether it has ended by a time.
    pub const fn has_ended(&self, instant: i64) -> bool {
        instant >= self.ends_at || instant >= self.used_at + IDLE_SECONDS_MAX
    }
    /// Whether a use now is worth writing down.
    pub const fn is_use_old(&self, instant: i64) -> bool {
        instant >= self.used_at + USE_SECONDS
    }
}

/// Begins a session with a new token, whatever the browser had before.
pub fn begin(
    tx: &mut dyn Tx,
    now: &mut Now,
    operator_number: i64,
    address: &str,
    browser: &str,
) -> Result<Token, StoreError> {
    let mut open = rows::sessions_of(tx, operator_number)?;
    let surplus = (open.len() + 1).saturating_sub(SESSIONS_MAX);
    for session in open.drain(..surplus) {
        rows::end_session(tx, operator_number, &session.token_hash)?;
    }
    let token = Token::make(now.random_bytes());
    let browser: String =
        browser.chars().filter(|c| !c.is_control()).take(BROWSER_CHARACTERS_MAX).collect();
    let new = rows::NewSession {
        token_hash: token_hash(token.as_str()),
        operator_number,
        created: now.instant(),
        ends_at: now.instant() + SESSION_SECONDS_MAX,
        address,
        browser: &browser,
    };
    rows::insert_session(tx, &new)?;
    Ok(token)
}

/// The session of a token, if it has not ended and its operator may still sign in.
pub fn find(tx: &mut dyn Tx, token: &str, instant: i64) -> Result<Option<Session>, StoreError> {
    let found = rows::find_session(tx, &token_hash(token))?;
    Ok(found.filter(|session| !session.has_ended(instant)))
}

/// Writes down that a session was used now.
pub fn touch(tx: &mut dyn Tx, now: &Now, token_hash: &[u8; 32]) -> Result<(), OperationError> {
    Ok(rows::touch_session(tx, token_hash, now.instant())?)
}
