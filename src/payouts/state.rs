//! The statuses of a payout, the changes between them, and why one is on hold.

crate::statuses!("payout",
    /// Where the INR leg stands.
    PayoutStatus {
        Initialized "initialized" => [Processing, Hold],
        Hold "hold" => [Processing, Failed],
        Processing "processing" => [Settled, Failed],
        Settled "settled" => [Returned],
        Failed "failed" => [],
        Returned "returned" => [],
    }
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
