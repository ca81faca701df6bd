//! Compares completed refunds with the receipts of their transactions.

use std::collections::HashSet;

use super::{AuditError, AuditSummary, ChainAudit, PAUSE, StepError, first_answer, store_error};
use crate::kernel::Now;
use crate::reconcile::chain::{self as differences, BookMovement, FoundDifference, MovementRole};
use crate::store::{Cost, Tx};

/// The most refunds that are compared together.
const REFUNDS_AT_ONCE: i64 = 50;

impl ChainAudit<'_> {
    /// Compares refunds that were completed from `since` on (Unix seconds). A refund's row has the
    /// transaction but no block, so the transaction's receipt is read.
    pub(super) async fn refunds(
        &self,
        since: i64,
        compared: &mut AuditSummary,
    ) -> Result<(), AuditError> {
        let (mode, name, token) = (self.chain.mode, self.chain.settings.name, *self.token());
        let mut after = None;
        loop {
            let read = move |tx: &mut dyn Tx| {
                Ok(differences::rows::refunds(tx, mode, name, since, after, REFUNDS_AT_ONCE)?)
            };
            let page = self.store.read(Cost::Scan, read).await.map_err(store_error)?;
            let Some((scope, last)) = page.last() else { return Ok(()) };
            let MovementRole::Refund(id) = last.role else { return Ok(()) };
            after = Some((*scope, id));
            let written: Vec<BookMovement> = page.into_iter().map(|(_, written)| written).collect();
            let asked: Vec<&BookMovement> = written.iter().collect();
            let mut shown = first_answer!(self, node, self.in_receipts(node, &asked))?;
            self.ask_others(&written, &mut shown).await;
            let found = differences::compare(
                name,
                &token,
                &(0..=self.cursor.anchor.height),
                &HashSet::new(),
                &shown,
                &written,
            );
            compared.refunds_count += written.len();
            let subjects: HashSet<String> = written.iter().map(BookMovement::subject).collect();
            self.keep_found(subjects, found).await?;
        }
    }

    /// Keeps the differences that were found of some refunds or addresses (`subjects`), in place of
    /// those kept before.
    pub(super) async fn keep_found(
        &self,
        subjects: HashSet<String>,
        found: Vec<FoundDifference>,
    ) -> Result<(), AuditError> {
        let (mode, name) = (self.chain.mode, self.chain.settings.name);
        let work = move |tx: &mut dyn Tx, now: &mut Now| {
            let mut kept = differences::rows::kept_without_block(tx, mode, name)?;
            kept.retain(|kept| subjects.contains(&kept.subject));
            if kept != found {
                differences::keep_found(tx, now, mode, name, &kept, &found)?;
            }
            Ok(())
        };
        self.store.write(work).await.map_err(store_error)
    }
}
