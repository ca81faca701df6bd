//! Placeholder until the worker is written.
use std::sync::Arc;
pub async fn run(_: Arc<crate::app::App>, _: tokio::sync::watch::Receiver<bool>) {}
pub fn purge(_: &mut dyn crate::store::Tx, _: &crate::kernel::Now, _: i64) -> Result<u64, crate::kernel::StoreError> { Ok(0) }
