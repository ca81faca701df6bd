//! `hundi advice`: verifies a payment advice without a network, and rotates the key that signs.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::{ByArgs, DatabaseArgs, ModeFlag, error_message, open_beside, print};
use crate::decisions;
use crate::http::body;
use crate::kernel::{Now, Role};
use crate::payment_advices::signing::{self, PublicKey};
use crate::store::Tx;

/// The largest file that is read. An advice has a few thousand bytes, and even the largest key set
/// is smaller than this.
const FILE_BYTES_MAX: u64 = 64 * 1024;

/// Verify payment advices, and rotate the key that signs them
#[derive(Args)]
pub struct AdviceArgs {
    #[command(subcommand)]
    command: AdviceCommand,
}

impl AdviceArgs {
    pub async fn run(self) -> Result<(), String> {
        run(self.command).await
    }
}

#[derive(Subcommand)]
enum AdviceCommand {
    /// Check the signature of a payment advice (JSON); exit code 0 if it is valid, 1 if not
    Verify {
        /// The document, as GET /v1/payouts/:id/payment_advice answered it
        file: PathBuf,
        /// The key set, saved from /.well-known/hundi-advice-keys.json; without it, the keys in the
        /// database
        #[arg(long, value_name = "FILE")]
        keys: Option<PathBuf>,
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// Make a new key that signs from now on; the earlier ones stay published
    RotateKey {
        /// The mode whose advices the key signs
        #[arg(long)]
        mode: ModeFlag,
        #[command(flatten)]
        by: ByArgs,
        #[command(flatten)]
        database: DatabaseArgs,
    },
}

async fn run(command: AdviceCommand) -> Result<(), String> {
    match command {
        AdviceCommand::Verify { file, keys, database } => {
            let keys = match keys {
                Some(file) => signing::read_key_set(&read(&file)?)?,
                None => stored_keys(&database).await?,
            };
            print(&verdict(&read(&file)?, &keys)?)
        }
        AdviceCommand::RotateKey { mode, by, database } => {
            let mode = mode.mode();
            let by = by.decided_by()?;
            let app = open_beside(&database).await?;
            let services = app.state.services.clone();
            let rotate = move |tx: &mut dyn Tx, now: &mut Now| {
                decisions::require_actor_and_reason(&by, mode)?;
                decisions::require_operator(tx, &by, Role::Admin)?;
                let subject = format!("advice key of {} mode", mode.as_str());
                decisions::record(tx, now, &subject, "rotate_advice_key", &by)?;
                Ok(signing::rotate(tx, now, &services.sealer, mode)?)
            };
            let key = app.state.store.write(rotate).await.map_err(error_message)?;
            print(&format!("payment advices are signed with {} from now on", key.key_id()))
        }
    }
}

async fn stored_keys(database: &DatabaseArgs) -> Result<Vec<PublicKey>, String> {
    let app = open_beside(database)
        .await
        .map_err(|fault| format!("{fault}, or give the key set with --keys"))?;
    let services = app.state.services.clone();
    app.state
        .store
        .write(move |tx, _| Ok(signing::public_keys(tx, &services.sealer)?))
        .await
        .map_err(error_message)
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let length = std::fs::metadata(path)
        .map_err(|error| format!("cannot read {}: {error}", path.display()))?
        .len();
    if length > FILE_BYTES_MAX {
        return Err(format!(
            "{} has {length} bytes, and neither an advice nor a key set has more than \
             {FILE_BYTES_MAX}",
            path.display()
        ));
    }
    std::fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

/// What to print about a document: `Ok` if its signature is valid, else `Err`.
fn verdict(bytes: &[u8], keys: &[PublicKey]) -> Result<String, String> {
    if bytes.starts_with(b"%PDF") {
        return Err(
            "invalid: this is the PDF, and the JSON document is what is signed: ask for it \
         with Accept: application/json"
                .into(),
        );
    }
    // `parse` refuses two members of one name. They would let two readers see different documents
    // under one signature.
    body::parse(bytes).map_err(|refusal| {
        let messages: Vec<&str> =
            refusal.entries().iter().map(|entry| entry.message.as_str()).collect();
        format!("invalid: it cannot be read as a document: {}", messages.join(" "))
    })?;
    let document: serde_json::Value =
        serde_json::from_slice(bytes).map_err(|_| "invalid: it is not JSON")?;
    let key = signing::verify(&document, keys).map_err(|fault| format!("invalid: {fault}"))?;
    let text = |name: &str| {
        document.get(name).and_then(serde_json::Value::as_str).unwrap_or("-").to_owned()
    };
    let mode = if key.mode.is_live() { "live" } else { "TEST: no money moved" };
    Ok(format!(
        "valid: {} about {} {}, {}, UTR {}\nsigned with {} ({mode})",
        text("advice_number"),
        text("amount"),
        text("currency"),
        text("status"),
        text("unique_transaction_reference"),
        key.key_id()
    ))
}
