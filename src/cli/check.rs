//! `hundi check`: verifies the whole book.

use clap::Args;

use super::{DatabaseArgs, config, print};
use crate::config::Config;
use crate::kernel::StoreError;
use crate::{secrets, verify_book};

/// Verify the whole book and all status histories
#[derive(Args)]
pub struct Check {
    #[command(flatten)]
    database: DatabaseArgs,
}

impl Check {
    pub async fn run(self) -> Result<(), String> {
        run_check(&config(&self.database)?).await
    }
}

async fn run_check(config: &Config) -> Result<(), String> {
    config.database.must_exist()?;
    let database = config.database.clone();
    let keys = secrets::existing_encryption_keys(&config.database, &config.encryption_keys)?;
    if keys.is_none() {
        print("the encryption key was not checked: none was given")?;
    }
    let checked = tokio::task::spawn_blocking(move || {
        let mut report = verify_book::run(&database)?;
        if let Some(keys) = keys {
            let sealed = verify_book::sealed_values(&database, &keys.all())?;
            report.summary.extend(sealed.summary);
            report.faults.extend(sealed.faults);
        }
        Ok::<_, StoreError>(report)
    });
    let checked = checked.await.map_err(|error| error.to_string())?;
    let report = checked.map_err(|error| error.to_string())?;
    for line in &report.summary {
        print(line)?;
    }
    for fault in &report.faults {
        print(&format!("WRONG: {fault}"))?;
    }
    match report.faults.len() {
        0 => print("the book and all histories are right"),
        count => Err(format!("{count} faults were found")),
    }
}
