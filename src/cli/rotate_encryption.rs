//! `hundi keys rotate-encryption`: seals every value again with the next encryption key.

use std::sync::Arc;

use super::{ByArgs, DatabaseArgs, config, error_message, open_or_make, print};
use crate::config::Config;
use crate::decisions;
use crate::kernel::Role;
use crate::kernel::seal::{Sealer, key_name, verifier_of};
use crate::key_rotation::{self, Begun, Survey};
use crate::secrets::{self, KEY_NEEDED};
use crate::store::failpoint;

/// The most passes over all values. Another pass is needed only if a value changed while it was
/// being sealed anew, or if a node's clock differs from the database's by more than a second.
const PASSES_MAX: u32 = 10;

const NEXT_KEY_NEEDED: &str = "no next key is given. Make it once with `head -c 32 /dev/urandom | \
 base64`, give it to every node in HUNDI_ENCRYPTION_KEY_NEXT (with SQLite and without variables: \
 in a file with mode 0600 beside the database, named like the database with .key-next added), \
 start each node again, and run this with the same keys";

pub(super) async fn run(by: &ByArgs, database: &DatabaseArgs) -> Result<(), String> {
    let config = config(database)?;
    config.database.must_exist()?;
    let by = by.decided_by_for(&config)?;
    let store = open_or_make(&config).await?;
    let named = by.clone();
    let judge = store.write(move |tx, _| decisions::require_operator(tx, &named, Role::Admin));
    judge.await.map_err(error_message)?;
    let given = secrets::existing_encryption_keys(&config.database, &config.encryption_keys)?;
    let keys = given.ok_or(KEY_NEEDED)?;
    let next = verifier_of(&keys.next.ok_or(NEXT_KEY_NEEDED)?);
    let (all, verifiers) = (keys.all(), keys.verifiers());
    let sealer = store.write(move |tx, _| {
        key_rotation::refuse_incomplete_keys(tx, &verifiers)?;
        Ok(key_rotation::sealer(tx, &all)?)
    });
    let sealer = Arc::new(sealer.await.map_err(error_message)?);

    // While this command holds the database's lock, no server runs or starts on it, so there is no
    // node to ask for the next key.
    let lock = secrets::lock_database(&config.database).ok().flatten();
    let (asks_nodes, sealing, who) = (lock.is_none(), sealer.clone(), by.clone());
    dies_at("begin");
    let begun = store
        .write(move |tx, now| Ok(key_rotation::begin(tx, now, &sealing, &next, asks_nodes, &who)?))
        .await
        .map_err(error_message)?;
    drop(lock);
    let rotation = match begun {
        Begun::Running(rotation) => rotation,
        Begun::DoneBefore => {
            return print(&format!(
                "the change to the key {} has ended already: put this key into \
                 HUNDI_ENCRYPTION_KEY (or the .key file), and take HUNDI_ENCRYPTION_KEY_NEXT (or \
                 the .key-next file) away",
                key_name(&next)
            ));
        }
        Begun::NodesWithout(nodes) => {
            return Err(format!(
                "nothing was changed: these nodes do not have the key {}. Give it to them in \
                 HUNDI_ENCRYPTION_KEY_NEXT and start them again; one that was killed counts for \
                 half a minute more.\n  {}",
                key_name(&next),
                nodes.join("\n  ")
            ));
        }
    };
    let (old, new) = (rotation.old, rotation.new);
    print(&format!(
        "the key {} seals values from now on; the key {} only opens them",
        key_name(&new),
        key_name(&old)
    ))?;
    dies_at("begun");
    key_rotation::await_earlier(&store).await?;
    dies_at("waited");
    for _ in 0..PASSES_MAX {
        let (mut place, mut batches_count) = (String::new(), 0);
        let report = |rotation: &key_rotation::rows::Rotation| {
            batches_count += 1;
            dies_at(&format!("batch_{batches_count}"));
            if place != rotation.place {
                place.clone_from(&rotation.place);
                // A closed pipe does not stop the change.
                let _ =
                    print(&format!("{} values are sealed anew; {place}", rotation.values_count));
            }
        };
        key_rotation::run_steps(&store, sealer.clone(), report).await.map_err(error_message)?;
        dies_at("passed");
        let found = survey(&config, &sealer).await?;
        if found.unreadable_count > 0 {
            return Err(format!(
                "{} values open with neither key, so the old one has to be kept: {}",
                found.unreadable_count,
                found.unreadable.join(", ")
            ));
        }
        let left = found.count(&old);
        if left == 0 || failpoint("rotation_forgets_senders") {
            dies_at("verified");
            let finished =
                store.write(move |tx, now| Ok(key_rotation::finish(tx, now, &by)?)).await;
            finished.map_err(error_message)?;
            return print(&format!(
                "done: {} values open with {}, none with {}\nNow put the new key into \
                 HUNDI_ENCRYPTION_KEY (or the .key file) of every node, take \
                 HUNDI_ENCRYPTION_KEY_NEXT (or the .key-next file) away, and start the node again. \
                 Keep the old key as long as you keep a backup from before.",
                found.count(&new),
                key_name(&new),
                key_name(&old)
            ));
        }
        print(&format!(
            "{left} values were written with the old key meanwhile: another pass begins"
        ))?;
        let again = store.write(|tx, _| Ok(key_rotation::pass_again(tx)?)).await;
        again.map_err(error_message)?;
    }
    Err(format!("values of the old key are left after {PASSES_MAX} passes: run this again"))
}

/// Tries to open every sealed value, in one view of the database, and counts them by their keys.
async fn survey(config: &Config, sealer: &Arc<Sealer>) -> Result<Survey, String> {
    let (database, sealer) = (config.database.clone(), sealer.clone());
    let look = move || database.examine(|tx| key_rotation::survey(tx, &sealer));
    let looked = tokio::task::spawn_blocking(look).await.map_err(|error| error.to_string())?;
    looked.map_err(|error| error.to_string())
}

/// Aborts the process, as a kill would, if a test set the failpoint of this step.
fn dies_at(step: &str) {
    if failpoint(&format!("rotation_dies_at_{step}")) {
        std::process::abort();
    }
}
