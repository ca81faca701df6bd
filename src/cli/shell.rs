//! `hundi man` and `hundi completions`: what a package installs beside the binary.

use std::path::PathBuf;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::{Cli, print};

/// Write the manual pages into a folder
#[derive(Args)]
#[command(hide = true)]
pub struct Man {
    /// The folder, made if it is missing
    folder: PathBuf,
}

impl Man {
    pub async fn run(self) -> Result<(), String> {
        let written = std::fs::create_dir_all(&self.folder)
            .and_then(|()| clap_mangen::generate_to(Cli::command(), &self.folder));
        written.map_err(|error| format!("cannot write to {}: {error}", self.folder.display()))
    }
}

/// Print the completions of a shell
#[derive(Args)]
#[command(hide = true)]
pub struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    pub async fn run(self) -> Result<(), String> {
        let mut text = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "hundi", &mut text);
        print(String::from_utf8_lossy(&text).trim_end())
    }
}
