//! Which keys each running node has. On a shared store each node records this every few seconds. A
//! killed node counts for up to 30 s more.

use std::time::Duration;

use super::rows;
use crate::background::{Stop, is_stopped};
use crate::kernel::seal::{self, Verifier, key_name};
use crate::kernel::{Now, StoreError};
use crate::secrets;
use crate::store::{Store, Tx, meta};

/// How often a node on a shared store records that it runs.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// How long a node counts as running after its last record. A node that goes on after a longer
/// silence may find that the key was changed; then it seals nothing.
const SILENCE_MILLISECONDS_MAX: i64 = 30_000;

/// A node and its keys.
#[derive(Clone, Debug)]
pub struct Holder {
    pub node_id: [u8; 16],
    /// What the operator knows the node by.
    pub name: String,
    pub verifiers: Vec<Verifier>,
}

impl Holder {
    pub fn new(node_id: [u8; 16], listen: &str, verifiers: Vec<Verifier>) -> Holder {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let name = format!("{} (listens on {listen}, process {})", host.trim(), std::process::id());
        Holder { node_id, name, verifiers }
    }
}

/// Records, as a node starts, which keys it has. On a shared store this writes the row of the
/// sealing key back unchanged, only to lock it. If a change of the key commits first, this
/// transaction meets a conflict and runs again. If this transaction commits first, the change sees
/// the node.
pub fn enter(
    tx: &mut dyn Tx,
    now: &Now,
    node: &Holder,
    sealing: &Verifier,
) -> Result<(), StoreError> {
    let instant = now.instant_milliseconds();
    if tx.is_shared() {
        meta::replace(tx, secrets::VERIFIER, Some(sealing), sealing)?;
        rows::forget_holders(tx, instant - SILENCE_MILLISECONDS_MAX)?;
    } else {
        // This is the only process. Earlier ones have ended.
        rows::forget_holders(tx, i64::MAX)?;
    }
    rows::put_holder(tx, &node.node_id, &node.name, node.verifiers.as_flattened(), instant)
}

/// The names of the running nodes that do not have the key `key`.
pub fn nodes_without(
    tx: &mut dyn Tx,
    now: &Now,
    key: &Verifier,
) -> Result<Vec<String>, StoreError> {
    let since = if tx.is_shared() {
        now.instant_milliseconds() - SILENCE_MILLISECONDS_MAX
    } else {
        i64::MIN
    };
    let nodes = rows::holders(tx, since)?;
    let lacks = |verifiers: &[u8]| !verifiers.chunks(key.len()).any(|known| known == key);
    Ok(nodes.into_iter().filter(|(_, keys)| lacks(keys)).map(|(name, _)| name).collect())
}

/// Records again and again that a node on a shared store runs, and removes the record at `stop`.
/// Logs once if the key was changed to one that this node does not have.
pub async fn run(store: Store, node: Holder, mut stop: Stop) {
    let mut is_logged = false;
    while !is_stopped(&stop) {
        tokio::select! {
            () = tokio::time::sleep(HEARTBEAT) => {}
            _ = stop.changed() => break,
        }
        let this = node.clone();
        let said = store.write(move |tx, now| {
            let instant = now.instant_milliseconds();
            rows::put_holder(
                tx,
                &this.node_id,
                &this.name,
                this.verifiers.as_flattened(),
                instant,
            )?;
            Ok(meta::read(tx, secrets::VERIFIER)?)
        });
        // If the store fails, the workers that use it log that.
        let Ok(Some(sealing)) = said.await else { continue };
        let is_known = node.verifiers.iter().any(|known| seal::fits(&sealing, known));
        if !is_known && !is_logged {
            is_logged = true;
            tracing::error!(
                key = key_name(&sealing),
                "the encryption key was changed to one that this node does not have: it seals \
                 nothing any more; give it the new key and start it again"
            );
        }
    }
    let left = store.write(move |tx, _| Ok(rows::remove_holder(tx, &node.node_id)?));
    // If this fails, the row stays, and counts for 30 s more.
    let _ = left.await;
}
