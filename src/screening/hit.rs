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
    /// A keyed fingerprint of the entry's content and of what is known of the subject.
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

impl HitRow {
    /// Whether this row is about the same entry of the same list.
    pub fn is_of(&self, hit: &ScreeningHit) -> bool {
        self.list == hit.list && self.entry_id == hit.entry_id
    }
}

impl SubjectType {
    /// Whether one finding holds all that is found of such a subject. The addresses of a transfer
    /// or a refund are screened one by one, and the operator decides once about all of them.
    pub const fn is_asked_whole(self) -> bool {
        matches!(self, SubjectType::Sender | SubjectType::Beneficiary)
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
