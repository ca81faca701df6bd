//! A screening hit as it is stored, and what can be decided about it.

use super::{Screening, ScreeningHit};
use crate::kernel::{AnyId, InternalId, ObjectKind, Scope};

crate::string_enum!(
    /// What is screened: a person, the address that paid for a transfer, or the one that a refund
    /// goes to.
    SubjectType {
        Sender "sender",
        Beneficiary "beneficiary",
        Transfer "transfer",
        Refund "refund",
    }
);
crate::string_enum!(
    /// What was decided about a hit. `Withdrawn`: the lists no longer say it.
    HitDecision { Cleared "cleared", Refused "refused", Withdrawn "withdrawn" }
);

/// A hit as it is stored.
#[derive(Clone)]
pub struct HitRow {
    pub scope: Scope,
    pub id: InternalId,
    pub subject: SubjectType,
    pub subject_id: AnyId,
    pub list: String,
    pub entry_id: String,
    /// A keyed fingerprint of the entry's content and of what is known of the subject. Of a
    /// transfer the hash of the entry's content, and then such a fingerprint for each address;
    /// rows from before hold the one of one address alone.
    pub basis: Vec<u8>,
    pub screening: Screening,
    pub score_basis_points: i64,
    pub evidence: String,
    /// The listed name that agrees; `None` where something else does.
    pub listed_name: Option<String>,
    pub decision: Option<HitDecision>,
    pub decided_by: Option<String>,
    pub decided_at: Option<i64>,
    pub created: i64,
}

/// Stands between the evidence of several addresses.
const BESIDE: &str = "; ";

impl HitRow {
    /// Whether this row is about the same entry of the same list.
    pub fn is_of(&self, hit: &ScreeningHit) -> bool {
        self.list == hit.list && self.entry_id == hit.entry_id
    }

    /// Whether what was decided was decided on this basis, among others.
    pub fn is_based_on(&self, basis: &[u8; 32]) -> bool {
        self.basis.as_chunks::<32>().0.contains(basis)
    }

    /// What the row of a subject says once this hit was found: the basis, how bad it is, and the
    /// evidence. The hit of one more address joins those that were found of the same content of the
    /// entry; otherwise it takes the place of what the row said.
    pub fn says(
        known: Option<&HitRow>,
        subject: SubjectType,
        hit: &ScreeningHit,
        basis: &[u8; 32],
    ) -> (Vec<u8>, Screening, String) {
        if !subject.has_many_addresses() {
            return (basis.to_vec(), hit.screening, hit.evidence.clone());
        }
        let is_joined =
            |row: &&HitRow| row.basis.as_chunks::<32>().0.first() == Some(&hit.entry_hash);
        let Some(row) = known.filter(is_joined) else {
            let all = [hit.entry_hash, *basis].concat();
            return (all, hit.screening, hit.evidence.clone());
        };
        let (mut all, mut evidence) = (row.basis.clone(), row.evidence.clone());
        if !row.is_based_on(basis) {
            all.extend(basis);
        }
        if !evidence.split(BESIDE).any(|known| known == hit.evidence) {
            evidence = [evidence.as_str(), &hit.evidence].join(BESIDE);
        }
        (all, row.screening.or_worse(hit.screening), evidence)
    }
}

impl SubjectType {
    /// Whether one finding holds all that is found of such a subject. The addresses of a transfer
    /// or a refund are screened one by one, and the operator decides once about all of them.
    pub const fn is_asked_whole(self) -> bool {
        matches!(self, SubjectType::Sender | SubjectType::Beneficiary)
    }

    /// Whether several addresses of one list entry may be found of such a subject. A refund goes to
    /// one address: another one takes its place.
    pub const fn has_many_addresses(self) -> bool {
        matches!(self, SubjectType::Transfer)
    }

    /// `None` where objects of this kind are not screened.
    pub const fn of(kind: ObjectKind) -> Option<SubjectType> {
        match kind {
            ObjectKind::Sender => Some(SubjectType::Sender),
            ObjectKind::Beneficiary => Some(SubjectType::Beneficiary),
            ObjectKind::Transfer => Some(SubjectType::Transfer),
            ObjectKind::Refund => Some(SubjectType::Refund),
            _ => None,
        }
    }

    pub const fn kind(self) -> ObjectKind {
        match self {
            SubjectType::Sender => ObjectKind::Sender,
            SubjectType::Beneficiary => ObjectKind::Beneficiary,
            SubjectType::Transfer => ObjectKind::Transfer,
            SubjectType::Refund => ObjectKind::Refund,
        }
    }
}
