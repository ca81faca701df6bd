//! `hundi demo`: the six steps of a payout against a server of its own.

use clap::Args;

use crate::demo;

/// Watch a payout happen, on a temporary database
#[derive(Args)]
pub struct Demo {
    /// End after the payout, without links, instead of staying up until Ctrl-C
    #[arg(long)]
    once: bool,
}

impl Demo {
    pub async fn run(self) -> Result<(), String> {
        demo::run(self.once).await
    }
}
