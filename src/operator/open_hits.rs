//! Screening hits that nobody has decided about, with the names of the subject and of the list
//! entry.

use crate::beneficiaries;
use crate::kernel::StoreError;
use crate::keys;
use crate::screening::hit::{HitRow, SubjectType};
use crate::screening::rows;
use crate::senders;
use crate::services::Services;
use crate::store::Tx;

/// A hit, and who it is about. Contains personal data: never log it.
pub struct OpenHit {
    /// The account's name.
    pub account: String,
    pub hit: HitRow,
    /// The subject's name, and of a beneficiary also the holder name that its bank gave, if that
    /// differs. Empty for an address, which the hit's evidence names.
    pub subject_names: Vec<String>,
}

/// Open hits of every account, oldest first.
pub fn open_hits(
    tx: &mut dyn Tx,
    services: &Services,
    rows_max: i64,
) -> Result<Vec<OpenHit>, StoreError> {
    let accounts = keys::rows::accounts(tx)?;
    let mut found = Vec::new();
    for hit in rows::open(tx, rows_max)? {
        let place = usize::try_from(hit.scope.account_number() - 1).ok();
        let account = place.and_then(|place| accounts.get(place));
        let account = account.map_or("?", |(name, _)| name.as_str()).to_owned();
        let subject_names = subject_names(tx, services, &hit)?;
        found.push(OpenHit { account, hit, subject_names });
    }
    Ok(found)
}

fn subject_names(
    tx: &mut dyn Tx,
    services: &Services,
    hit: &HitRow,
) -> Result<Vec<String>, StoreError> {
    match hit.subject {
        SubjectType::Sender => {
            let Some(id) = hit.subject_id.typed() else { return Ok(Vec::new()) };
            Ok(senders::rows::find(tx, hit.scope, id)?
                .map(|sender| sender.name)
                .into_iter()
                .collect())
        }
        SubjectType::Beneficiary => {
            let Some(id) = hit.subject_id.typed() else { return Ok(Vec::new()) };
            let Some(found) = beneficiaries::rows::find(tx, hit.scope, id)? else {
                return Ok(Vec::new());
            };
            let question = beneficiaries::screening_question(&found, services)?;
            Ok(std::iter::once(question.name).chain(question.aliases).collect())
        }
        SubjectType::Transfer | SubjectType::Refund => Ok(Vec::new()),
    }
}
