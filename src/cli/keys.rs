//! `hundi keys`: makes, lists and revokes API keys, and changes the encryption key
//! (`rotate_encryption.rs`).

use std::io::Write;

use clap::{Args, Subcommand};

use super::listing::{ListingArgs, ListingCell, ListingPrinter};
use super::{
    AdministratorArgs, ByArgs, DatabaseArgs, ModeFlag, config, error_message, open, open_or_make,
    print, rotate_encryption,
};
use crate::app::{self, ACCOUNT_DEFAULT, KeyRequest};
use crate::decisions;
use crate::kernel::id::kind;
use crate::kernel::{Clock, Id, Now, Role};
use crate::keys::making::{account_name_fault, revoke_key_by};
use crate::keys::{self, Permissions};
use crate::routes::resource_names;
use crate::store::{Cost, Database, Tx};

/// Manage API keys
#[derive(Args)]
pub struct Keys {
    #[command(subcommand)]
    command: KeysCommand,
}

impl Keys {
    pub async fn run(self) -> Result<(), String> {
        run(self.command).await
    }
}

#[derive(Subcommand)]
enum KeysCommand {
    /// Make a key; it is printed alone on the last line and stored nowhere
    Create {
        /// The mode that the key works in
        #[arg(long)]
        mode: ModeFlag,
        /// The account, made if it is missing
        #[arg(long, default_value = ACCOUNT_DEFAULT)]
        account: String,
        /// Comma-separated list such as transfers:read,transfers:write; all permissions without it
        #[arg(long, default_value = "")]
        permissions: String,
        /// When the key stops working: Unix seconds, or a number with s, m, h or d from now
        #[arg(long)]
        expires: Option<String>,
        #[command(flatten)]
        by: AdministratorArgs,
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// List the keys, without their secrets
    List {
        #[command(flatten)]
        listing: ListingArgs,
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// Change the encryption key while the service runs: seal every value again with the key in
    /// HUNDI_ENCRYPTION_KEY_NEXT; if it is killed, run it again to continue
    RotateEncryption {
        #[command(flatten)]
        by: ByArgs,
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// Revoke a key by its ID; it stops working within a second
    Revoke {
        /// The key's ID, as the list shows it
        id: String,
        #[command(flatten)]
        by: AdministratorArgs,
        #[command(flatten)]
        database: DatabaseArgs,
    },
}

async fn run(command: KeysCommand) -> Result<(), String> {
    match command {
        KeysCommand::Create { mode, account, permissions, expires, by, database } => {
            let by = by.decided_by()?;
            if let Some(fault) = account_name_fault(&account) {
                return Err(fault);
            }
            let expires_at = expires
                .map(|text| expiry(&text, Clock::System.milliseconds() / 1000))
                .transpose()?;
            let request = KeyRequest {
                account,
                mode: mode.mode(),
                permissions: Permissions::parse(&permissions, &resource_names())?,
                expires_at,
            };
            let config = config(&database)?;
            // A new database in another directory than the server's is probably a mistake, because
            // the server does not know the keys in it. So the command first says where the new
            // database is.
            if config.database.must_exist().is_err() {
                let shown = match &config.database {
                    Database::Sqlite(path) => std::path::absolute(path).map_or_else(
                        |_| config.database.to_string(),
                        |path| path.display().to_string(),
                    ),
                    Database::Postgres(_) => config.database.to_string(),
                };
                note(&format!("making a new database, {shown}: give `hundi serve` the same one"));
            }
            let account = request.account.clone();
            let create = move |tx: &mut dyn Tx, now: &mut Now| {
                decisions::require_operator(tx, &by, Role::Admin)?;
                let is_known = keys::rows::accounts(tx)?.iter().any(|(name, _)| *name == account);
                Ok((app::create_key_by(tx, now, &request, &by)?, is_known, account.clone()))
            };
            let store = open_or_make(&config).await?;
            let (key, is_known, account) = store.write(create).await.map_err(error_message)?;
            if !is_known {
                note(&format!("made the account {account:?}"));
            }
            print(&key)
        }
        KeysCommand::List { listing, database } => {
            let lines = open(&database)
                .await?
                .read(Cost::Scan, |tx| Ok(keys::rows::list(tx)?))
                .await
                .map_err(error_message)?;
            let columns =
                &["id", "account", "mode", "key", "permissions", "created", "expires", "revoked"];
            let mut listing = ListingPrinter::begin(listing, columns)?;
            for line in lines {
                let permissions =
                    if line.permissions.is_empty() { "all" } else { &line.permissions };
                listing.row([
                    line.id.to_string().into(),
                    line.account.into(),
                    line.mode.as_str().into(),
                    line.hint.into(),
                    permissions.into(),
                    ListingCell::Time(line.created),
                    ListingCell::time(line.expires_at),
                    ListingCell::time(line.revoked_at),
                ])?;
            }
            listing.end()
        }
        KeysCommand::RotateEncryption { by, database } => {
            rotate_encryption::run(&by, &database).await
        }
        KeysCommand::Revoke { id, by, database } => {
            let by = by.decided_by()?;
            let parsed: Id<kind::ApiKey> = Id::parse(&id)
                .ok_or_else(|| format!("{id:?} is no key's ID: `hundi keys list` shows them"))?;
            let revoked = open(&database)
                .await?
                .write(move |tx, now| {
                    decisions::require_operator(tx, &by, Role::Admin)?;
                    Ok(revoke_key_by(tx, now, parsed, &by)?)
                })
                .await
                .map_err(error_message)?;
            if revoked {
                print(&format!("revoked {id}"))
            } else {
                Err(format!("there is no key {id}, or it is revoked already"))
            }
        }
    }
}

/// Prints a remark to standard error, so that standard output has the key alone.
fn note(text: &str) {
    let _ = writeln!(std::io::stderr(), "hundi: {text}");
}

/// Reads when a key expires: Unix seconds, or a duration from `now` such as `30d`. `Err` if that is
/// not in the future.
fn expiry(text: &str, now: i64) -> Result<i64, String> {
    let fault = || {
        format!(
            "{text:?} is no time: write Unix seconds, or a number with s, m, h or d such as 30d"
        )
    };
    let (digits, unit_seconds) = match text.chars().last() {
        Some('s') => (&text[..text.len() - 1], 1),
        Some('m') => (&text[..text.len() - 1], 60),
        Some('h') => (&text[..text.len() - 1], 3_600),
        Some('d') => (&text[..text.len() - 1], 86_400),
        _ => (text, 0),
    };
    let number: i64 = digits.parse().map_err(|_| fault())?;
    let at = if unit_seconds == 0 {
        Some(number)
    } else {
        number.checked_mul(unit_seconds).and_then(|seconds| now.checked_add(seconds))
    };
    match at.filter(|at| *at >= 0).ok_or_else(fault)? {
        at if at <= now => Err(format!(
            "{text:?} is in the past: write Unix seconds to come, or a number with s, m, h or d \
             such as 30d"
        )),
        at => Ok(at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expiry_is_a_time_to_come() {
        assert_eq!(expiry("30d", 100), Ok(100 + 30 * 86_400));
        assert_eq!(expiry("1790000000", 100), Ok(1_790_000_000));
        for text in ["soon", "", "99999999999999999999d", "99", "-1", "0s"] {
            assert!(expiry(text, 100).is_err(), "{text}");
        }
    }
}
