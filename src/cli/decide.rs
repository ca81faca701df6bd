//! `hundi decide`: what only the operator decides.

use clap::{Args, ValueEnum};

use super::{ByArgs, DatabaseArgs, decide};
use crate::chains::address::ChainAddress;
use crate::kernel::AnyId;
use crate::operator::OperatorDecision;

/// Decide what only the operator may: about a sender, a beneficiary, a transfer under review, an
/// unmatched deposit, a payout, or a refund that screening holds
#[derive(Args)]
pub struct Decide {
    /// The object's ID
    id: String,
    /// What is decided
    #[arg(value_enum)]
    decision: DecisionWord,
    /// Where a refund goes
    #[arg(long, value_name = "ADDRESS")]
    to: Option<String>,
    /// The bank's reference of a payout that it paid
    #[arg(long, value_name = "UTR")]
    reference: Option<String>,
    #[command(flatten)]
    by: ByArgs,
    #[command(flatten)]
    database: DatabaseArgs,
}

#[derive(Clone, Copy, ValueEnum)]
enum DecisionWord {
    Approve,
    Refuse,
    Review,
    Refund,
    Settle,
    Fail,
    Resend,
    Return,
}

impl Decide {
    pub async fn run(self) -> Result<(), String> {
        let id = AnyId::parse(&self.id)
            .ok_or_else(|| format!("{:?} is not the ID of an object", self.id))?;
        let to = self.to.map(|text| {
            ChainAddress::parse(&text).map_err(|error| format!("--to is not an address: {error}"))
        });
        let to = to.transpose()?;
        let decision = match self.decision {
            DecisionWord::Approve => OperatorDecision::Approve,
            DecisionWord::Refuse => OperatorDecision::Refuse,
            DecisionWord::Review => OperatorDecision::Review,
            DecisionWord::Refund => OperatorDecision::Refund(to),
            DecisionWord::Settle => OperatorDecision::Settle(
                self.reference.ok_or("settle needs the bank's reference: --reference UTR")?,
            ),
            DecisionWord::Fail => OperatorDecision::Fail,
            DecisionWord::Resend => OperatorDecision::Resend,
            DecisionWord::Return => OperatorDecision::Return,
        };
        decide(id, decision, &self.by, &self.database).await
    }
}
