//! Making and revoking keys. The audit log records both.

use super::rows::{self, NewKey};
use super::{Permissions, key_hash, key_text};
use crate::audit::{self, Action, Fact};
use crate::kernel::id::kind;
use crate::kernel::{DecidedBy, Id, Mode, Now, Scope, StoreError};
use crate::store::Tx;

const ACCOUNT_NAME_CHARACTERS_MAX: usize = 100;

/// What is wrong with an account's name; `None` if it is good.
pub fn account_name_fault(name: &str) -> Option<String> {
    let is_name = !name.is_empty()
        && name.chars().count() <= ACCOUNT_NAME_CHARACTERS_MAX
        && !name.chars().any(char::is_control);
    (!is_name).then(|| {
        format!(
            "an account's name has 1 to {ACCOUNT_NAME_CHARACTERS_MAX} characters, none of them a \
             control character"
        )
    })
}

/// The key that somebody asks for.
pub struct KeyRequest {
    /// The account's name.
    pub account: String,
    pub mode: Mode,
    pub permissions: Permissions,
    /// Unix seconds; `None` for a key that does not expire.
    pub expires_at: Option<i64>,
}

/// Makes an API key, and its account if there is none of that name. Returns the key's text, which
/// is stored nowhere. The entry in the audit log names no operator.
pub fn create_key(
    tx: &mut dyn Tx,
    now: &mut Now,
    request: &KeyRequest,
) -> Result<String, StoreError> {
    create_key_by(tx, now, request, &DecidedBy::default())
}

/// [`create_key`] with an entry in the audit log that names who made the key and why.
pub fn create_key_by(
    tx: &mut dyn Tx,
    now: &mut Now,
    request: &KeyRequest,
    by: &DecidedBy,
) -> Result<String, StoreError> {
    let number = rows::ensure_account(tx, now, &request.account)?;
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
    let expires = request.expires_at.map(|at| at.to_string());
    let mut details = vec![
        ("account", request.account.as_str()),
        ("mode", request.mode.as_str()),
        ("permissions", if permissions.is_empty() { "all" } else { &permissions }),
    ];
    details.extend(expires.iter().map(|at| ("expires_at", at.as_str())));
    details.extend(reason_of(by));
    audit::append(tx, now, &Fact::by(by, Action::KeyCreated, &id, &details))?;
    Ok(text)
}

/// Revokes a key, which stops working within a second. Returns whether there was such a key that
/// was not revoked yet.
pub fn revoke_key_by(
    tx: &mut dyn Tx,
    now: &mut Now,
    id: Id<kind::ApiKey>,
    by: &DecidedBy,
) -> Result<bool, StoreError> {
    let was_active = rows::revoke(tx, now, id)?;
    if was_active {
        let details: Vec<_> = reason_of(by).collect();
        audit::append(tx, now, &Fact::by(by, Action::KeyRevoked, &id.to_string(), &details))?;
    }
    Ok(was_active)
}

fn reason_of(by: &DecidedBy) -> impl Iterator<Item = (&str, &str)> {
    Some(("reason", by.reason())).filter(|(_, reason)| !reason.is_empty()).into_iter()
}
