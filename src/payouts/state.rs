//! The statuses of a payout, the changes between them, and why a payout is on hold.

crate::statuses!("payout",
    /// Where a payout stands; `settled` once the bank has paid it.
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
    /// Why a payout is on hold. `Screening`: somebody concerned is not clear of the sanctions
    /// lists, and the operator has to decide. `Beneficiary`: the beneficiary cannot be paid, and
    /// none of its hits (list entries that may be this person) waits for a decision.
    HoldReason {
        Beneficiary "beneficiary",
        Screening "screening",
        SenderLimit "sender_limit",
        BeneficiaryLimit "beneficiary_limit",
        AccountLimit "account_limit",
    }
);

impl HoldReason {
    /// Whether the payout is on hold because of a limit. The operator's approval lifts such a hold.
    pub const fn is_limit(self) -> bool {
        matches!(
            self,
            HoldReason::SenderLimit | HoldReason::BeneficiaryLimit | HoldReason::AccountLimit
        )
    }
}
