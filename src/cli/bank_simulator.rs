//! `hundi bank-simulator`: plays the bank in its folders.

use std::path::PathBuf;

use clap::Args;

use crate::kernel::Clock;
use crate::rails::bank_simulator as simulator;

/// Play a bank that reads and writes ISO 20022 files, to try the folders with
#[derive(Args)]
pub struct BankSimulator {
    /// Where files for the bank lie
    #[arg(long, value_name = "DIR")]
    outbox: PathBuf,
    /// Where files from the bank go
    #[arg(long, value_name = "DIR")]
    inbox: PathBuf,
    /// Where its random choices begin: the same seed makes the same choices
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Comma-separated list of delays, duplicates, reordering, stray_lines
    #[arg(long, default_value = "")]
    behaviour: String,
}

impl BankSimulator {
    pub async fn run(self) -> Result<(), String> {
        let seconds = || Clock::System.milliseconds() / 1000;
        let behaviour = simulator::parse_behaviour(&self.behaviour)?;
        let bank = simulator::SimulatedIsoBank::new(self.seed, seconds(), behaviour);
        simulator::run(&self.outbox, &self.inbox, bank, &seconds)
    }
}
