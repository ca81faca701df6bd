//! The sessions of operators who are signed in. The browser has a session's random token in a
//! cookie; the store has the token's hash.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use super::rows;
use super::session::Place;
pub use super::session::{IDLE_SECONDS_MAX, SESSION_SECONDS_MAX, Session};
use crate::kernel::{Now, OperationError, StoreError};
use crate::store::Tx;

/// The most sessions of one operator that have not ended. Beginning one more ends the oldest.
const SESSIONS_MAX: usize = 10;
/// Characters of a browser's `User-Agent` that are kept.
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

/// Begins a session with a new token. `has_provider_factor` says that the operator signed in at an
/// OpenID Connect provider that asks for a second factor, as the settings say.
pub fn begin(
    tx: &mut dyn Tx,
    now: &mut Now,
    operator_number: i64,
    place: &Place,
    has_provider_factor: bool,
) -> Result<Token, StoreError> {
    let mut sessions = rows::sessions_of(tx, operator_number)?;
    sessions.retain(|session| !session.has_ended(now.instant()));
    let surplus = (sessions.len() + 1).saturating_sub(SESSIONS_MAX);
    for session in sessions.drain(..surplus) {
        rows::end_session(tx, operator_number, &session.token_hash)?;
    }
    let token = Token::make(now.random_bytes());
    let browser: String =
        place.browser.chars().filter(|c| !c.is_control()).take(BROWSER_CHARACTERS_MAX).collect();
    let new = rows::NewSession {
        token_hash: token_hash(token.as_str()),
        operator_number,
        created: now.instant(),
        ends_at: now.instant() + SESSION_SECONDS_MAX,
        address: &place.address,
        browser: &browser,
        has_provider_factor,
    };
    rows::insert_session(tx, &new)?;
    Ok(token)
}

/// The session of a token, if it has not ended and its operator may still sign in.
pub fn find(tx: &mut dyn Tx, token: &str, instant: i64) -> Result<Option<Session>, StoreError> {
    let found = rows::find_session(tx, &token_hash(token))?;
    Ok(found.filter(|session| !session.has_ended(instant)))
}

/// Records that a session was used now.
pub fn touch(tx: &mut dyn Tx, now: &Now, token_hash: &[u8; 32]) -> Result<(), OperationError> {
    Ok(rows::touch_session(tx, token_hash, now.instant())?)
}
