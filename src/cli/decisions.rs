//! `hundi decisions`: what the operator decided, who did and why.

use clap::Args;

use super::{DatabaseArgs, error_message, open, print};
use crate::decisions::rows;
use crate::store::Cost;

/// List what the operator decided, who did and why
#[derive(Args)]
pub struct Decisions {
    /// Only about this object, or what else a decision was about, such as a transaction's hash
    subject: Option<String>,
    #[command(flatten)]
    database: DatabaseArgs,
}

/// Decisions that one listing shows.
const DECISIONS_MAX: i64 = 1_000;

impl Decisions {
    pub async fn run(self) -> Result<(), String> {
        let subject = self.subject;
        let found = open(&self.database)
            .await?
            .read(Cost::Scan, move |tx| {
                Ok(match &subject {
                    Some(subject) => rows::of_subject(tx, subject, DECISIONS_MAX)?,
                    None => rows::newest(tx, DECISIONS_MAX)?,
                })
            })
            .await
            .map_err(error_message)?;
        print("decided_at\tsubject\tdecision\tactor\treason")?;
        for decision in &found {
            let or_none =
                |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
            print(&format!(
                "{}\t{}\t{}\t{}\t{}",
                decision.decided_at,
                decision.subject,
                decision.decision,
                or_none(decision.by.actor()),
                or_none(decision.by.reason()),
            ))?;
        }
        Ok(())
    }
}
