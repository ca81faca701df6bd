//! The rows of beneficiaries.

use super::state::{BeneficiaryStatus, PayoutsDisabledReason};
use super::{Beneficiary, Requirement};
use crate::account_verification::NameMatch;
use crate::kernel::id::kind;
use crate::kernel::page::Page;
use crate::kernel::state::Status;
use crate::kernel::{History, Id, Metadata, Scope, StoreError};
use crate::store::list::{self, Listing};
use crate::store::{Row, Tx};
use crate::values;

crate::stored! {
    "beneficiaries" as Beneficiary, written from beneficiary, read from row;
    fixed {
        scope: beneficiary.scope => row.scope()?;
        id: beneficiary.id => row.id()?;
        version: beneficiary.version => row.int()?;
        created: beneficiary.created => row.int()?;
    }
    changing from BeneficiaryStatus {
        status: beneficiary.status.as_str() => row.word(BeneficiaryStatus::parse)?;
        payouts_enabled: beneficiary.payouts_enabled => row.bool()?;
        payouts_disabled_reason: beneficiary.payouts_disabled_reason.map(PayoutsDisabledReason::as_str)
            => row.word_or_null(PayoutsDisabledReason::parse)?;
        name: &beneficiary.name => row.text()?;
        account_number_sealed: &beneficiary.account_number_sealed => row.bytes()?;
        account_number_last4: &beneficiary.account_number_last4 => row.text()?;
        ifsc: &beneficiary.ifsc => row.text()?;
        bank_name: &beneficiary.bank_name => row.text_or_null()?;
        branch_name: &beneficiary.branch_name => row.text_or_null()?;
        email: &beneficiary.email => row.text_or_null()?;
        phone: &beneficiary.phone => row.text_or_null()?;
        kyc_sealed: &beneficiary.kyc_sealed => row.bytes()?;
        pan_last4: &beneficiary.pan_last4 => row.text_or_null()?;
        passport_number_last4: &beneficiary.passport_number_last4 => row.text_or_null()?;
        requirements: &Requirement::list_to_text(&beneficiary.requirements)
            => row.word(Requirement::list_from_text)?;
        name_match: beneficiary.name_match.map(NameMatch::as_str)
            => row.word_or_null(NameMatch::parse)?;
        checked_at: beneficiary.checked_at => row.int_or_null()?;
        failed_passes_count: beneficiary.failed_verifications_count => row.int()?;
        metadata: &beneficiary.metadata.to_text() => row.word(Metadata::from_text)?;
        status_history: &beneficiary.status_history.to_text()
            => History::from_text(&row.text()?)?;
    }
    into Beneficiary {
        scope,
        id,
        version,
        status,
        payouts_enabled,
        payouts_disabled_reason,
        name,
        account_number_sealed,
        account_number_last4,
        ifsc,
        bank_name,
        branch_name,
        email,
        phone,
        kyc_sealed,
        pan_last4,
        passport_number_last4,
        requirements,
        name_match,
        checked_at,
        failed_verifications_count: failed_passes_count,
        metadata,
        status_history,
        created,
    }
}

/// Locks a beneficiary's row until the commit. It is a conflict if the row changed since
/// `beneficiary` was read.
pub fn lock(tx: &mut dyn Tx, beneficiary: &Beneficiary) -> Result<(), StoreError> {
    tx.execute_one(
        "UPDATE beneficiaries SET version = version WHERE scope = ?1 AND id = ?2 AND version = ?3",
        values![beneficiary.scope, beneficiary.id, beneficiary.version],
    )
}

/// Prefetches the query of [`find`].
pub fn prefetch(
    tx: &mut dyn Tx,
    scope: Scope,
    id: Id<kind::Beneficiary>,
) -> Result<(), StoreError> {
    tx.prefetch(&FIND, values![scope, id])
}

pub fn list(tx: &mut dyn Tx, scope: Scope, page: &Page) -> Result<(Vec<Row>, bool), StoreError> {
    list::read(
        tx,
        &Listing { table: "beneficiaries", columns: COLUMNS, key: ("scope", scope.into()) },
        page,
    )
}
