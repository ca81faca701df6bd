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

// Written by hand and not with `stored!`: the macro uses one identifier as a variable and as the
// column's name in the SQL. For the column `type` it would have to be `r#type`, which is no name in
// SQL.
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

/// Stores the result of a sender's screening: a finding, or the operator's decision. It is a
/// conflict if another result was stored since `sender` was read. So a finding does not replace a
/// decision that was made meanwhile.
pub fn set_screening(
    tx: &mut dyn Tx,
    sender: &Sender,
    screening: Screening,
) -> Result<(), StoreError> {
    tx.execute_one(
        "UPDATE senders SET screening = ?3 WHERE scope = ?1 AND id = ?2 AND screening = ?4",
        values![sender.scope, sender.id, screening.as_str(), sender.screening.as_str()],
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Mode, Scope};
    use crate::store::migrate;
    use crate::store::sqlite::SqliteTx;

    #[test]
    fn a_finding_does_not_replace_a_decision_made_since_the_sender_was_read() {
        let connection = rusqlite::Connection::open_in_memory().unwrap();
        let tx: &mut dyn Tx = &mut SqliteTx::new(&connection);
        migrate::migrate(tx).unwrap();
        let read = Sender {
            scope: Scope::new(1, Mode::Live),
            id: Id::from_u128(7),
            name: "Asha Rao".into(),
            sender_type: SenderType::Individual,
            country: "AE".into(),
            email: None,
            address: None,
            date_of_birth: None,
            nationality: None,
            identification_type: None,
            identification_sealed: None,
            screening: Screening::PossibleMatch,
            metadata: Metadata::default(),
            created: 1,
        };
        insert(tx, &read).unwrap();
        set_screening(tx, &read, Screening::ConfirmedMatch).unwrap();
        let late = set_screening(tx, &read, Screening::Clear);
        assert!(matches!(late, Err(StoreError::Conflict(_))), "{late:?}");
        let found = find(tx, read.scope, read.id).unwrap().unwrap();
        assert_eq!(found.screening, Screening::ConfirmedMatch);
        set_screening(tx, &found, Screening::Clear).unwrap();
    }
}
