//! `hundi audit`: the log of what people and the service did.

use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{DatabaseArgs, config, print};
use crate::audit::{self, export};
use crate::kernel::StoreError;

/// Write the audit log out, or compare it with an earlier export
#[derive(Args)]
pub struct Audit {
    #[command(subcommand)]
    command: AuditCommand,
}

#[derive(Subcommand)]
enum AuditCommand {
    /// Write the audit log to standard output, a JSON object a line
    Export {
        /// Only entries after this number
        #[arg(long, value_name = "NUMBER", default_value_t = 0)]
        after: i64,
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// Check that every entry of an earlier export of the whole log is still in the database,
    /// unchanged
    Verify {
        /// The earlier export
        file: PathBuf,
        #[command(flatten)]
        database: DatabaseArgs,
    },
}

impl Audit {
    pub async fn run(self) -> Result<(), String> {
        match self.command {
            AuditCommand::Export { after, database } => {
                let database = config(&database)?.database;
                database.must_exist()?;
                let written = tokio::task::spawn_blocking(move || {
                    database.examine(|tx| {
                        let mut out = BufWriter::new(std::io::stdout().lock());
                        audit::each(tx, after, |entry| {
                            writeln!(out, "{}", export::line(entry)?).map_err(unwritten)
                        })?;
                        out.flush().map_err(unwritten)
                    })
                });
                written.await.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
            }
            AuditCommand::Verify { file, database } => {
                let database = config(&database)?.database;
                database.must_exist()?;
                let shown = file.display().to_string();
                let opened = std::fs::File::open(&file)
                    .map_err(|error| format!("cannot read {shown}: {error}"))?;
                let compared = tokio::task::spawn_blocking(move || {
                    let lines = BufReader::new(opened).lines();
                    database.examine(|tx| export::compare(tx, lines))
                });
                let compared = compared.await.map_err(|error| error.to_string())?;
                let (count, faults) = compared.map_err(|error| error.to_string())?;
                for fault in &faults {
                    print(&format!("WRONG: {fault}"))?;
                }
                match faults.len() {
                    0 => print(&format!("all {count} entries of the export are in the log")),
                    faults => Err(format!("{faults} faults were found")),
                }
            }
        }
    }
}

fn unwritten(error: std::io::Error) -> StoreError {
    StoreError::Broken(format!("the log cannot be written out: {error}"))
}
