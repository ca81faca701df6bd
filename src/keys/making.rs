//! Making keys.

use super::rows::{self, NewKey};
use super::{Permissions, key_hash, key_text};
use crate::audit::{self, Action, Fact};
use crate::kernel::{DecidedBy, Mode, Now, Scope, StoreError};
use crate::store::Tx;

/// What a new key is made for.
pub struct KeyRequest {
    pub account: String,
    pub mode: Mode,
    pub permissions: Permissions,
    pub expires_at: Option<i64>,
}

/// Makes an API key, and its account where there is none. Answers the key's text, which is stored
/// nowhere.
pub fn create_key(
    tx: &mut dyn Tx,
    now: &mut Now,
    request: &KeyRequest,
) -> Result<String, StoreError> {
    create_key_by(tx, now, request, &DecidedBy::default())
}

/// The same by an operator.
pub fn create_key_by(
    tx: &mut dyn Tx,
    now: &mut Now,
    request: &KeyRequest,
    by: &DecidedBy,
) -> Result<String, StoreError> {
    let number = rows::account_number(tx, now, &request.account)?;
    let text = key_text(request.mode, request.permissions != Permissions::All, now.random_bytes());
    let new = NewKey {
        hash: key_hash(&text),
        hint: &format!("{}…{}", &text[..8], &text[text.len() - 4..]),
        scope: Scope::new(number, request.mode),
        permissions: &request.permissions,
        expires_at: request.expires_at,
    };
    let id = rows::insert(tx, now, &new)?.to_string();
    let permissions = request.permissions.to_text();
    let details = [
        ("account", request.account.as_str()),
        ("mode", request.mode.as_str()),
        ("permissions", if permissions.is_empty() { "all" } else { &permissions }),
    ];
    audit::append(tx, now, &Fact::by(by, Action::KeyCreated, &id, &details))?;
    Ok(text)
}
