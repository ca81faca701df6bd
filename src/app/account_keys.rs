//! The keys that deposit addresses come from: the operator's, and test mode's own, which a first
//! start makes and the store keeps sealed.

use sha2::Digest;

use crate::chains::derivation::AccountKey;
use crate::chains::pool::AddressPool;
use crate::chains::settings::ChainSettings;
use crate::config::Config;
use crate::kernel::OperationError;
use crate::kernel::hex;
use crate::kernel::seal::Sealer;
use crate::secrets;
use crate::store::{Store, migrate};

/// Where the store keeps test mode's own account key, and its next address index.
const TEST_ACCOUNT_KEY: &str = "test_account_key";
pub(super) const TEST_ADDRESS_INDEX: &str = "test_address_index_next";

/// Addresses of the operator's key. The counter goes with the key, so that a key that comes back
/// goes on where it stood, and two modes with one key never hand out the same address.
pub(super) fn addresses_of(chain: &ChainSettings) -> AddressPool {
    AddressPool::new(chain.account_key.clone(), address_index_name(chain))
}

pub(super) fn address_index_name(chain: &ChainSettings) -> String {
    let digest = sha2::Sha256::digest(chain.account_key.to_string().as_bytes());
    format!("address_index_next_{}", hex::encode(&digest[..8]))
}

/// Where the store keeps the next address index of each account key that may be used now.
pub fn address_index_names(config: &Config) -> Vec<String> {
    let chains = [&config.live_chain, &config.test_chain];
    let configured = chains.into_iter().flatten().map(address_index_name);
    std::iter::once(TEST_ADDRESS_INDEX.to_owned()).chain(configured).collect()
}

/// The store's own secrets: checks that the key fits, and makes what a first start needs.
pub(super) async fn prepare(store: &Store, sealer: &Sealer) -> Result<AccountKey, String> {
    let verifier = *sealer.verifier();
    let sealed = store
        .write(move |tx, now| {
            secrets::check_verifier(tx, &verifier)?;
            Ok((
                migrate::read_meta(tx, TEST_ACCOUNT_KEY)?,
                now.random_bytes::<64>(),
                now.random_bytes::<12>(),
            ))
        })
        .await;
    let (stored, entropy, nonce) = sealed.map_err(|error| error.to_string())?;
    if let Some(sealed) = stored {
        return open_account_key(sealer, &sealed);
    }
    let account_key = AccountKey::generate_for_test(&entropy);
    let sealed = sealer
        .seal(nonce, TEST_ACCOUNT_KEY.as_bytes(), account_key.to_string().as_bytes())
        .map_err(|error| error.to_string())?;
    let written = store.write(move |tx, _| {
        // Another node that starts at the same time may have made one.
        match migrate::read_meta(tx, TEST_ACCOUNT_KEY)? {
            Some(stored) => Ok(stored),
            None => migrate::replace_meta(tx, TEST_ACCOUNT_KEY, None, &sealed)
                .map(|()| sealed.clone())
                .map_err(OperationError::from),
        }
    });
    let stored = written
        .await
        .map_err(|failure| format!("the test account key cannot be stored: {failure:?}"))?;
    open_account_key(sealer, &stored)
}

fn open_account_key(sealer: &Sealer, sealed: &[u8]) -> Result<AccountKey, String> {
    let text =
        sealer.open(TEST_ACCOUNT_KEY.as_bytes(), sealed).map_err(|error| error.to_string())?;
    let text =
        String::from_utf8(text).map_err(|_| "the stored account key does not read".to_owned())?;
    AccountKey::parse(&text).map_err(|fault| fault.to_string())
}
