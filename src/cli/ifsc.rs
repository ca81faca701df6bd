//! `hundi ifsc` and `hundi ifsc-pack`: the directory of IFSCs.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use clap::Args;

use super::{DatabaseArgs, config, print};
use crate::config::Config;
use crate::ifsc::{self, Rails};

/// Show what is known of an IFSC
#[derive(Args)]
pub struct Show {
    /// The IFSC, such as HDFC0000001
    code: String,
    #[command(flatten)]
    database: DatabaseArgs,
}

impl Show {
    pub async fn run(self) -> Result<(), String> {
        show(&self.code, &config(&self.database)?)
    }
}

/// Write a directory of IFSCs from a CSV of branches, for the setting ifsc_file
#[derive(Args)]
pub struct Pack {
    /// A CSV whose header names IFSC, BANK and BRANCH, and where known NEFT, RTGS, IMPS and UPI
    csv: PathBuf,
    /// The file to write
    file: PathBuf,
    /// The day whose codes the CSV holds, such as 2026-06-30
    #[arg(long, value_name = "DATE")]
    as_of: String,
    /// Where the CSV came from
    #[arg(long, value_name = "TEXT")]
    source: String,
}

impl Pack {
    pub async fn run(self) -> Result<(), String> {
        pack(&self)
    }
}

fn pack(pack: &Pack) -> Result<(), String> {
    let csv = File::open(&pack.csv)
        .map_err(|error| format!("cannot read {}: {error}", pack.csv.display()))?;
    let bytes = ifsc::pack::pack(BufReader::new(csv), &pack.as_of, &pack.source)?;
    // Checked before anything is written, because the file may replace one that a server reads.
    let directory = ifsc::Directory::from_bytes(bytes.clone())?;
    // The directory is written to a second file, which is then renamed, so that a server that
    // starts meanwhile never reads half of it.
    let mut beside = pack.file.clone().into_os_string();
    beside.push(".new");
    let write = std::fs::write(&beside, &bytes).and_then(|()| std::fs::rename(&beside, &pack.file));
    write.map_err(|error| format!("cannot write {}: {error}", pack.file.display()))?;
    print(&format!("{} branches in {} bytes", directory.branches_count, bytes.len()))
}

fn show(code: &str, config: &Config) -> Result<(), String> {
    let code = code.trim().to_ascii_uppercase();
    if !ifsc::is_ifsc(&code) {
        return Err(format!("{code:?} is no IFSC: four letters, a zero, six letters or digits"));
    }
    let directory = ifsc::directory(config.ifsc_file.as_deref())?;
    let about = format!(
        "the directory of {} ({}, {} branches)",
        directory.as_of, directory.source, directory.branches_count
    );
    let Some(branch) = directory.find(&code) else {
        return Err(format!(
            "{code} is not in {about}; if the branch is newer, name a newer directory in ifsc_file"
        ));
    };
    let rails: Vec<&str> =
        [("NEFT", Rails::NEFT), ("RTGS", Rails::RTGS), ("IMPS", Rails::IMPS), ("UPI", Rails::UPI)]
            .into_iter()
            .filter_map(|(name, rail)| (branch.rails.takes(rail) == Some(true)).then_some(name))
            .collect();
    let rails = match branch.rails.takes(Rails::NEFT) {
        None => "unknown".to_owned(),
        Some(_) if rails.is_empty() => "none".to_owned(),
        Some(_) => rails.join(" "),
    };
    print(&format!("code\t{code}"))?;
    print(&format!("bank\t{}", branch.bank_name.as_deref().unwrap_or("-")))?;
    print(&format!("branch\t{}", branch.branch_name.as_deref().unwrap_or("-")))?;
    print(&format!("rails\t{rails}"))?;
    print(&format!(
        "payouts\t{}",
        if branch.takes_payouts() { "yes" } else { "no: neither NEFT nor RTGS" }
    ))?;
    print(&format!("from\t{about}"))
}
