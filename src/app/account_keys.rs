//! The account keys that deposit addresses are derived from: the operator's, from the
//! configuration, and test mode's own, which the first start makes and the store keeps sealed.

use sha2::Digest;

use crate::chains::derivation::AccountXpub;
use crate::chains::kind_named;
use crate::chains::pool::AddressPool;
use crate::chains::settings::ChainSettings;
use crate::config::Config;
use crate::kernel::hex;
use crate::kernel::seal::{SealedPlace, Sealer};
use crate::key_rotation::{self, holders::Holder};
use crate::secrets::{self, EncryptionKeys};
use crate::store::{Store, meta};

/// The name under which the store keeps the next address index of test mode's own account key.
pub(super) const TEST_ADDRESS_INDEX: &str = "test_address_index_next";

/// The pool of addresses of the operator's key. The next address index belongs to the key, not to
/// the mode: a key that is configured again continues where it stood, and two modes with one key
/// never hand out the same address.
pub(super) fn addresses_of(chain: &ChainSettings) -> AddressPool {
    let kind = kind_named(chain.name.as_str());
    AddressPool::new(kind, chain.account_key.clone(), address_index_name(chain))
}

fn address_index_name(chain: &ChainSettings) -> String {
    let digest = sha2::Sha256::digest(chain.account_key.to_string().as_bytes());
    format!("address_index_next_{}", hex::encode(&digest[..8]))
}

/// The names under which the store keeps the next address index of each account key that may be
/// used now.
pub fn address_index_names(config: &Config) -> Vec<String> {
    let chains = [&config.live_chain, &config.test_chain];
    let configured = chains.into_iter().flatten().map(address_index_name);
    std::iter::once(TEST_ADDRESS_INDEX.to_owned()).chain(configured).collect()
}

/// Makes the sealer of `keys`, and opens test mode's account key, which the first start creates. A
/// server gives `node`, so that the store knows that this node runs and which encryption keys it
/// has. `Err` if `keys` do not fit the store.
pub(super) async fn prepare(
    store: &Store,
    keys: &EncryptionKeys,
    node: Option<Holder>,
) -> Result<(Sealer, AccountXpub), String> {
    let verifiers = keys.verifiers();
    let read = store
        .write(move |tx, now| {
            let sealing = secrets::sealing_verifier(tx, &verifiers)?;
            key_rotation::refuse_incomplete_keys(tx, &verifiers)?;
            if let Some(node) = &node {
                key_rotation::holders::enter(tx, now, node, &sealing)?;
            }
            let fingerprint_key = meta::read(tx, SealedPlace::FINGERPRINT_KEY.name())?;
            let stored = meta::read(tx, SealedPlace::TEST_ACCOUNT_KEY.name())?;
            Ok((sealing, fingerprint_key, stored, now.random_bytes::<64>()))
        })
        .await;
    let (sealing, fingerprint_key, stored, seed) = read.map_err(|error| error.to_string())?;
    let make = || {
        Sealer::of(&keys.all(), &sealing, fingerprint_key.as_deref())
            .map_err(|error| error.to_string())?
            .ok_or_else(|| secrets::KEY_DOES_NOT_FIT.to_owned())
    };
    let sealer = make()?;
    if let Some(sealed) = stored {
        let account_key = open_account_key(&sealer, &sealed)?;
        return Ok((sealer, account_key));
    }
    let account_key = AccountXpub::generate_for_test_mode(&seed);
    let text = account_key.to_string();
    let sealer_to_seal = make()?;
    let written = store.write(move |tx, now| {
        let place = &SealedPlace::TEST_ACCOUNT_KEY;
        // Another node that starts at the same time may have made one.
        if let Some(stored) = meta::read(tx, place.name())? {
            return Ok(stored);
        }
        let key = secrets::sealing_key(tx, &sealer_to_seal)?;
        let sealed = key.seal(now.random_bytes(), place, &[], text.as_bytes())?;
        meta::replace(tx, place.name(), None, &sealed)?;
        Ok(sealed)
    });
    let stored = written
        .await
        .map_err(|failure| format!("the test account key cannot be stored: {failure:?}"))?;
    let account_key = open_account_key(&sealer, &stored)?;
    Ok((sealer, account_key))
}

fn open_account_key(sealer: &Sealer, sealed: &[u8]) -> Result<AccountXpub, String> {
    let text = sealer
        .open(&SealedPlace::TEST_ACCOUNT_KEY, &[], sealed)
        .map_err(|error| error.to_string())?;
    let text =
        String::from_utf8(text).map_err(|_| "the stored account key cannot be read".to_owned())?;
    AccountXpub::parse(&text).map_err(|fault| fault.to_string())
}
