//! `hundi backup`: a consistent copy while the service runs.

use std::path::PathBuf;

use clap::Args;

use super::{DatabaseArgs, config};
use crate::backup;

/// Write a consistent copy of the database, also while the service runs
#[derive(Args)]
pub struct Backup {
    /// The file to write, which must not exist yet
    file: PathBuf,
    #[command(flatten)]
    database: DatabaseArgs,
}

impl Backup {
    pub async fn run(self) -> Result<(), String> {
        backup::write(&config(&self.database)?.database, &self.file)
    }
}
