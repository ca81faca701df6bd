//! The rows of beneficiaries.

use std::sync::LazyLock;

use super::state::{BeneficiaryStatus, DisabledReason};
use super::{Beneficiary, Requirement};
use crate::account_verification::NameMatch;
use crate::kernel::id::kind;
use crate::kernel::page::Page;
use crate::kernel::state::Status;
use crate::kernel::{History, Id, Metadata, Scope, StoreError};
use crate::store::list::{self, Listing};
use crate::store::{Row, Tx, insert_sql};
use crate::values;

const COLUMNS: &str = "scope, id, version, status, payouts_enabled, payouts_disabled_reason, \
 name, account_number_sealed, account_number_last4, \
    ifsc, bank_name, branch_name, email, phone, kyc_sealed, pan_last4, passport_number_last4, \
    requirements, name_match, checked_at, \
    failed_passes_count, metadata, status_history, created";

static INSERT: LazyLock<String> = LazyLock::new(|| insert_sql("beneficiaries", COLUMNS));
static FIND: LazyLock<String> =
    LazyLock::new(|| format!("SELECT {COLUMNS} FROM beneficiaries WHERE scope = ?1 AND id = ?2"));

pub fn read(mut row: Row) -> Result<Beneficiary, StoreError> {
    let row = &mut row;
    Ok(Beneficiary {
        scope: row.scope()?,
        id: row.id()?,
        version: row.int()?,
        status: row.word(BeneficiaryStatus::parse)?,
        payouts_enabled: row.bool()?,
        payouts_disabled_reason: row.word_or_null(DisabledReason::parse)?,
        name: row.text()?,
        account_number_sealed: row.bytes()?,
        account_number_last4: row.text()?,
        ifsc: row.text()?,
        bank_name: row.text_or_null()?,
        branch_name: row.text_or_null()?,
        email: row.text_or_null()?,
        phone: row.text_or_null()?,
        kyc_sealed: row.bytes()?,
        pan_last4: row.text_or_null()?,
        passport_number_last4: row.text_or_null()?,
        requirements: row.word(Requirement::list_from_text)?,
        name_match: row.word_or_null(NameMatch::parse)?,
        checked_at: row.int_or_null()?,
        failed_passes_count: row.int()?,
        metadata: row.word(Metadata::from_text)?,
        status_history: History::from_text(&row.text()?)?,
        created: row.int()?,
    })
}

pub fn insert(tx: &mut dyn Tx, b: &Beneficiary) -> Result<(), StoreError> {
    tx.execute_one(
        &INSERT,
        values![
            b.scope,
            b.id,
            b.version,
            b.status.as_str(),
            b.payouts_enabled,
            b.payouts_disabled_reason.map(DisabledReason::as_str),
            &b.name,
            &b.account_number_sealed,
            &b.account_number_last4,
            &b.ifsc,
            &b.bank_name,
            &b.branch_name,
            &b.email,
            &b.phone,
            &b.kyc_sealed,
            &b.pan_last4,
            &b.passport_number_last4,
            &Requirement::list_to_text(&b.requirements),
            b.name_match.map(NameMatch::as_str),
            b.checked_at,
            b.failed_passes_count,
            &b.metadata.to_text(),
            &b.status_history.to_text(),
            b.created,
        ],
    )
}

/// Keeps a beneficiary as it was read until the commit: who changes it meanwhile comes before or
/// after this transaction.
pub fn lock(tx: &mut dyn Tx, b: &Beneficiary) -> Result<(), StoreError> {
    tx.execute_one(
        "UPDATE beneficiaries SET version = version WHERE scope = ?1 AND id = ?2 AND version = ?3",
        values![b.scope, b.id, b.version],
    )
}

/// Writes a changed beneficiary over the version and status it was read with.
pub fn update(
    tx: &mut dyn Tx,
    b: &mut Beneficiary,
    from: BeneficiaryStatus,
) -> Result<(), StoreError> {
    tx.execute_one(
        "UPDATE beneficiaries SET version = version + 1, status = ?5, payouts_enabled = ?6, \
         payouts_disabled_reason = ?7, name = ?8, \
         account_number_sealed = ?9, account_number_last4 = ?10, ifsc = ?11, bank_name = ?12, \
         branch_name = ?13, email = ?14, phone = ?15, \
         kyc_sealed = ?16, pan_last4 = ?17, passport_number_last4 = ?18, requirements = ?19, \
         name_match = ?20, checked_at = ?21, \
         failed_passes_count = ?22, metadata = ?23, status_history = ?24 WHERE scope = ?1 AND id \
         = ?2 AND version = ?3 AND status = ?4",
        values![
            b.scope,
            b.id,
            b.version,
            from.as_str(),
            b.status.as_str(),
            b.payouts_enabled,
            b.payouts_disabled_reason.map(DisabledReason::as_str),
            &b.name,
            &b.account_number_sealed,
            &b.account_number_last4,
            &b.ifsc,
            &b.bank_name,
            &b.branch_name,
            &b.email,
            &b.phone,
            &b.kyc_sealed,
            &b.pan_last4,
            &b.passport_number_last4,
            &Requirement::list_to_text(&b.requirements),
            b.name_match.map(NameMatch::as_str),
            b.checked_at,
            b.failed_passes_count,
            &b.metadata.to_text(),
            &b.status_history.to_text(),
        ],
    )?;
    b.version += 1;
    Ok(())
}

pub fn find(
    tx: &mut dyn Tx,
    scope: Scope,
    id: Id<kind::Beneficiary>,
) -> Result<Option<Beneficiary>, StoreError> {
    tx.row(&FIND, values![scope, id])?.map(read).transpose()
}

/// Says that [`find`] will be asked.
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
