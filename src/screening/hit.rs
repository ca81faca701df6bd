//! A screening hit as it is stored, and what can be decided about it.

use super::{Screening, ScreeningHit};
use crate::kernel::{AnyId, InternalId, ObjectKind, Scope};

crate::string_enum!(
    /// What is screened: a person or business, an address that paid for a transfer, or the one that
    /// a refund goes to.
    SubjectType {
        Sender "sender",
        Beneficiary "beneficiary",
        Transfer "transfer",
        Refund "refund",
    }
);
crate::string_enum!(
    /// The decision about a hit. `Withdrawn`: the lists no longer give this hit, or the refund has
    /// another address.
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
    /// A keyed fingerprint of the entry's content and of what is known of the subject. For a
    /// transfer: the hash of the entry's content, then such a fingerprint for each address; older
    /// rows have only the fingerprint of one address. Empty if the operator refused a subject
    /// without a hit, which is stored as a row too (`hits::decide`).
    pub basis: Vec<u8>,
    pub screening: Screening,
    pub score_basis_points: i64,
    pub evidence: String,
    /// The listed name that agrees; `None` if something else agrees.
    pub listed_name: Option<String>,
    pub decision: Option<HitDecision>,
    pub decided_by: Option<String>,
    pub decided_at: Option<i64>,
    pub created: i64,
}

/// The separator between the parts of a hit's evidence, and between the evidence of several
/// addresses.
pub const EVIDENCE_SEPARATOR: &str = "; ";

impl HitRow {
    /// Whether this row is about the list entry of this hit.
    pub fn is_of(&self, hit: &ScreeningHit) -> bool {
        self.list == hit.list && self.entry_id == hit.entry_id
    }

    /// Whether this basis is among those of the row.
    pub fn is_based_on(&self, basis: &[u8; 32]) -> bool {
        self.basis.as_chunks::<32>().0.contains(basis)
    }

    /// The basis, screening and evidence of the row once this hit is added. A transfer's hit is
    /// added to what the row has if the entry's content is the same. Any other hit replaces what
    /// the row has.
    pub fn with_hit(
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
        if !evidence.split(EVIDENCE_SEPARATOR).any(|known| known == hit.evidence) {
            evidence = [evidence.as_str(), &hit.evidence].join(EVIDENCE_SEPARATOR);
        }
        (all, row.screening.or_worse(hit.screening), evidence)
    }
}

impl SubjectType {
    /// Whether each finding covers all of such a subject. The addresses of a transfer or a refund
    /// are screened one by one, and the operator decides about all of them together.
    pub const fn is_screened_whole(self) -> bool {
        matches!(self, SubjectType::Sender | SubjectType::Beneficiary)
    }

    /// Whether a subject can have several addresses of one list entry. A refund has one address,
    /// which a new one replaces.
    pub const fn has_many_addresses(self) -> bool {
        matches!(self, SubjectType::Transfer)
    }

    /// `None` if objects of this kind are not screened.
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
