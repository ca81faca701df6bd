//! The rows of senders.

use std::sync::LazyLock;

use super::{Address, IdentificationType, Sender, SenderType};
use crate::kernel::id::kind;
use crate::kernel::page::Page;
use crate::kernel::{Id, Metadata, Scope, StoreError};
use crate::screening::Screening;
use crate::store::list::{self, Listing};
use crate::store::{Row, Tx, insert_sql};
use crate::values;

// Written by hand and not with `stored!`, because `type` cannot be the name of a variable.
const COLUMNS: &str = "scope, id, name, type, country, email, address, date_of_birth, \
 nationality, identification_type, \
    identification_sealed, screening, metadata, created";

static INSERT: LazyLock<String> = LazyLock::new(|| insert_sql("senders", COLUMNS));
static FIND: LazyLock<String> =
    LazyLock::new(|| format!("SELECT {COLUMNS} FROM senders WHERE scope = ?1 AND id = ?2"));

pub fn read(mut row: Row) -> Result<Sender, StoreError> {
    let row = &mut row;
    Ok(Sender {
        scope: row.scope()?,
        id: row.id()?,
        name: row.text()?,
        sender_type: row.word(SenderType::parse)?,
        country: row.text()?,
        email: row.text_or_null()?,
        address: row.word_or_null(|text| serde_json::from_str::<Address>(text).ok())?,
        date_of_birth: row.text_or_null()?,
        nationality: row.text_or_null()?,
        identification_type: row.word_or_null(IdentificationType::parse)?,
        identification_sealed: row.bytes_or_null()?,
        screening: row.word(Screening::parse)?,
        metadata: row.word(Metadata::from_text)?,
        created: row.int()?,
    })
}

pub fn insert(tx: &mut dyn Tx, s: &Sender) -> Result<(), StoreError> {
    let address =
        s.address.as_ref().map(|address| serde_json::to_string(address).unwrap_or_default());
    tx.execute_one(
        &INSERT,
        values![
            s.scope,
            s.id,
            &s.name,
            s.sender_type.as_str(),
            &s.country,
            &s.email,
            &address,
            &s.date_of_birth,
            &s.nationality,
            s.identification_type.map(IdentificationType::as_str),
            &s.identification_sealed,
            s.screening.as_str(),
            &s.metadata.to_text(),
            s.created,
        ],
    )
}

/// Stores the result of a sender's screening: a finding, or the operator's decision.
pub fn set_screening(
    tx: &mut dyn Tx,
    scope: Scope,
    id: Id<kind::Sender>,
    screening: Screening,
) -> Result<(), StoreError> {
    tx.execute_one(
        "UPDATE senders SET screening = ?3 WHERE scope = ?1 AND id = ?2",
        values![scope, id, screening.as_str()],
    )
}

pub fn find(
    tx: &mut dyn Tx,
    scope: Scope,
    id: Id<kind::Sender>,
) -> Result<Option<Sender>, StoreError> {
    tx.row(&FIND, values![scope, id])?.map(read).transpose()
}

/// Prefetches the query of [`find`].
pub fn prefetch(tx: &mut dyn Tx, scope: Scope, id: Id<kind::Sender>) -> Result<(), StoreError> {
    tx.prefetch(&FIND, values![scope, id])
}

pub fn list(tx: &mut dyn Tx, scope: Scope, page: &Page) -> Result<(Vec<Row>, bool), StoreError> {
    list::read(
        tx,
        &Listing { table: "senders", columns: COLUMNS, key: ("scope", scope.into()) },
        page,
    )
}
