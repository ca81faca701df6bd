//! `hundi bank`: a bank's sample files, before it is connected.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::{DatabaseArgs, config, print};
use crate::rails::FILE_FORMATS;
use crate::rails::files::certify::Certification;
use crate::rails::files::folders::FILE_BYTES_MAX;
use crate::rails::files::profile::{BankProfile, ProfileTable};
use crate::rails::files::settings::FileFormatRef;

/// Look at a bank's sample files before it is connected
#[derive(Args)]
pub struct BankArgs {
    #[command(subcommand)]
    command: BankCommand,
}

#[derive(Subcommand)]
enum BankCommand {
    /// Read sample files without touching the book. Says what each entry is, which payout and UTR
    /// it names and where, and what could not be read; exit code 1 if a file or a part of one was
    /// not read
    Certify {
        /// A folder with files from the bank
        folder: PathBuf,
        #[command(flatten)]
        database: DatabaseArgs,
    },
}

impl BankArgs {
    pub async fn run(self) -> Result<(), String> {
        match self.command {
            BankCommand::Certify { folder, database } => certify(&folder, &database),
        }
    }
}

/// Reads the files in a folder with the format and profile of the table `[bank]` or `[test_bank]`,
/// or with the default ones where neither table is there. `Err` if a file or a part was not read.
fn certify(folder: &Path, database: &DatabaseArgs) -> Result<(), String> {
    let config = config(database)?;
    let mut found = match config.bank.or(config.test_bank) {
        Some(settings) => Certification::new(settings.format, settings.profile.clone())
            .with_account(settings.debit_account_number()),
        None => {
            let format = FILE_FORMATS.first().copied().ok_or("no format is known")?;
            let profile = BankProfile::try_from(ProfileTable::default())?;
            Certification::new(FileFormatRef(format), profile)
        }
    };
    let unreadable = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .map_err(unreadable)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()
        .map_err(unreadable)?;
    paths.retain(|path| path.is_file());
    paths.sort();
    for path in &paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let bytes = match std::fs::metadata(path) {
            Ok(known) if known.len() > FILE_BYTES_MAX as u64 => {
                Err(format!("larger than {FILE_BYTES_MAX} bytes"))
            }
            _ => std::fs::read(path).map_err(|error| error.to_string()),
        };
        match bytes {
            Ok(bytes) => {
                found.explain_file(&name, &bytes).iter().try_for_each(|line| print(line))?
            }
            Err(error) => return Err(format!("{name}: {error}")),
        }
    }
    found.summary().iter().try_for_each(|line| print(line))?;
    match (found.refused_count, found.unread_count) {
        (0, 0) => Ok(()),
        (files, parts) => Err(format!("{files} files and {parts} parts were not read")),
    }
}
