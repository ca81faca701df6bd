//! Why a payout is on hold, and the totals that limits are compared with.

crate::string_enum!(
    /// Whose rupees are added up.
    LimitSubject { Sender "sender", Beneficiary "beneficiary", Account "account" }
);

crate::string_enum!(
    /// Why a payout is on hold.
    HoldReason {
        Beneficiary "beneficiary",
        Screening "screening",
        SenderLimit "sender_limit",
        BeneficiaryLimit "beneficiary_limit",
        AccountLimit "account_limit",
    }
);

impl HoldReason {
    /// Whether a limit holds it, which the operator's approval lifts.
    pub const fn is_limit(self) -> bool {
        matches!(
            self,
            HoldReason::SenderLimit | HoldReason::BeneficiaryLimit | HoldReason::AccountLimit
        )
    }
}

impl LimitSubject {
    pub(super) const fn reason(self) -> HoldReason {
        match self {
            LimitSubject::Sender => HoldReason::SenderLimit,
            LimitSubject::Beneficiary => HoldReason::BeneficiaryLimit,
            LimitSubject::Account => HoldReason::AccountLimit,
        }
    }
}

/// One total: of a subject in a period.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Total {
    pub subject: LimitSubject,
    pub subject_id: [u8; 16],
    /// `2026-11-22`, or `2026-11`.
    pub period: String,
    /// Unix milliseconds: the first of the period, and the first after it.
    pub from_milliseconds: i64,
    pub until_milliseconds: i64,
}
