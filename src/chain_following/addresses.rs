//! Loads the addresses in `deposit_addresses` into the filter by which the follower finds logs that
//! concern us.

use crate::chains::watched::{RegisteredAddresses, WatchedAddresses};
use crate::deposits;
use crate::kernel::OperationError;
use crate::store::{Cost, Store};

/// The most addresses that one query reads.
const PAGE_ADDRESSES: i64 = 16_384;

/// Adds all addresses of the table to the filter. Only the process that hands addresses out may
/// call this function (embedded store). The process may hand out more meanwhile.
pub(super) async fn load(watched: &WatchedAddresses, store: &Store) -> Result<(), OperationError> {
    let count = store.read(Cost::Scan, |tx| Ok(deposits::rows::addresses_count(tx)?)).await?;
    let mut registered = RegisteredAddresses::with_room(usize::try_from(count).unwrap_or(0));
    let mut after = None;
    loop {
        let page = store
            .read(Cost::Scan, move |tx| {
                Ok(deposits::rows::addresses_after(tx, after, PAGE_ADDRESSES)?)
            })
            .await?;
        page.iter().for_each(|address| registered.add(address));
        match page.last() {
            Some(last) => after = Some(*last),
            None => break,
        }
    }
    watched.complete(registered);
    Ok(())
}

#[cfg(test)]
mod tests {
    use sha2::Digest;

    use super::*;
    use crate::chains::address::AddressBytes;
    use crate::kernel::{Now, Scope};
    use crate::store::Tx;

    /// Spread as addresses are: each is part of a hash.
    fn addresses(from: usize, count: usize) -> Vec<AddressBytes> {
        let address = |number: usize| {
            let digest = sha2::Sha256::digest(number.to_be_bytes());
            AddressBytes::new(&digest[..20]).unwrap()
        };
        (from..from + count).map(address).collect()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_the_table_holds_and_what_is_handed_out_since_is_known() {
        let folder = std::env::temp_dir().join(format!("hundi-watched-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let store = Store::open(
            &folder.join("watched.db"),
            crate::kernel::Clock::System,
            crate::store::handle::no_epilogue,
        )
        .unwrap();
        let count = PAGE_ADDRESSES as usize * 2 + 5;
        let stored = addresses(0, count);
        let rows = stored.clone();
        let assign = move |tx: &mut dyn Tx, now: &mut Now| {
            for address in &rows {
                deposits::rows::assign_address(
                    tx,
                    Scope::new(1, crate::kernel::Mode::Live),
                    now.mint(),
                    address,
                )?;
            }
            Ok(())
        };
        store.write(assign).await.unwrap();
        let watched = WatchedAddresses::default();
        let new = addresses(count, 10);
        watched.add(&new[0]);
        load(&watched, &store).await.unwrap();
        new[1..].iter().for_each(|address| watched.add(address));
        assert!(stored.iter().chain(&new).all(|address| watched.may_hold(address)));
        // The control: the filter says no to nearly all foreign addresses.
        assert!(
            addresses(count * 2, 100).iter().filter(|address| watched.may_hold(address)).count()
                < 5
        );
        store.close().await;
        std::fs::remove_dir_all(folder).unwrap();
    }
}
