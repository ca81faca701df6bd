//! The totals that limits are compared with.

use super::state::HoldReason;

crate::string_enum!(
    /// Whom a limit is for: one sender, one beneficiary, or the account as a whole.
    LimitSubject { Sender "sender", Beneficiary "beneficiary", Account "account" }
);

impl LimitSubject {
    /// The hold reason of a payout that this subject's limit has no room for.
    pub(super) const fn hold_reason(self) -> HoldReason {
        match self {
            LimitSubject::Sender => HoldReason::SenderLimit,
            LimitSubject::Beneficiary => HoldReason::BeneficiaryLimit,
            LimitSubject::Account => HoldReason::AccountLimit,
        }
    }
}

/// How many characters `TotalKey::period` has for a day and for a month.
pub(super) const DAY_LENGTH: usize = "2026-11-22".len();
pub(super) const MONTH_LENGTH: usize = "2026-11".len();

/// The key of a total: whose it is, and of which period. The sum is in the table `payout_totals`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TotalKey {
    pub subject: LimitSubject,
    /// The sender's or beneficiary's identifier; zeros for the account.
    pub subject_id: [u8; 16],
    /// A day such as `2026-11-22`, or a month such as `2026-11`.
    pub period: String,
    /// The first millisecond of the period, in Unix milliseconds of business time.
    pub from_milliseconds: i64,
    /// The first millisecond after the period.
    pub until_milliseconds: i64,
}

impl TotalKey {
    pub(super) fn is_month(&self) -> bool {
        self.period.len() == MONTH_LENGTH
    }
}
