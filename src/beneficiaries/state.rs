//! The statuses of a beneficiary and the changes between them.

crate::statuses!("beneficiary",
    /// Where a beneficiary stands.
    BeneficiaryStatus {
        Draft "draft" => [Verifying],
        Verifying "verifying" => [Active, InputRequired, Rejected],
        Active "active" => [],
        InputRequired "input_required" => [Verifying],
        Rejected "rejected" => [],
    }
);

crate::string_enum!(
    /// Why a beneficiary cannot be paid now.
    PayoutsDisabledReason {
        VerificationPending "verification_pending",
        NameMismatch "name_mismatch",
        AccountInvalid "account_invalid",
        AccountNotNre "account_not_nre",
        IfscUnknown "ifsc_unknown",
        // No rule gives this reason today.
        KycRequired "kyc_required",
        ComplianceHold "compliance_hold",
        ReturnedPayout "returned_payout",
    }
);

impl PayoutsDisabledReason {
    /// The cause, for the guides.
    pub const fn meaning(self) -> &'static str {
        match self {
            PayoutsDisabledReason::VerificationPending => "The verification has not ended.",
            PayoutsDisabledReason::NameMismatch => {
                "The account is under another name, or the bank cannot write the name you gave."
            }
            PayoutsDisabledReason::AccountInvalid => "There is no such account, or it is closed.",
            PayoutsDisabledReason::AccountNotNre => "The account is not an NRE account.",
            PayoutsDisabledReason::IfscUnknown => {
                "No branch that takes NEFT or RTGS is known under the IFSC."
            }
            PayoutsDisabledReason::KycRequired => "More is needed about the person.",
            PayoutsDisabledReason::ComplianceHold => {
                "The operator looks at the person, or has refused them."
            }
            PayoutsDisabledReason::ReturnedPayout => "A payout to the account came back.",
        }
    }
    /// What a caller can do about it, for the guides.
    pub const fn remedy(self) -> &'static str {
        match self {
            PayoutsDisabledReason::VerificationPending => {
                "Wait for `beneficiary.status.active`. A `draft` waits for an update with `submit` \
                 true."
            }
            PayoutsDisabledReason::NameMismatch
            | PayoutsDisabledReason::IfscUnknown
            | PayoutsDisabledReason::KycRequired => {
                "Send what `requirements` names. If the beneficiary is `rejected`, create another."
            }
            PayoutsDisabledReason::AccountInvalid | PayoutsDisabledReason::AccountNotNre => {
                "Ask for an open NRE account, and create a beneficiary with it."
            }
            PayoutsDisabledReason::ComplianceHold => {
                "Wait while the beneficiary is `verifying` or `active`. If it is `rejected`, it \
                 stays so: ask the operator."
            }
            PayoutsDisabledReason::ReturnedPayout => {
                "`failure` of that payout says why. The operator enables payouts again."
            }
        }
    }
}

crate::string_enum!(
    /// The only kind of account that can be paid.
    AccountType { Nre "nre" }
);
crate::string_enum!(
    /// How the account holder relates to the sender.
    Relationship { Own "self", Family "family", Other "other" }
);
crate::enum_fields!(AccountType, Relationship);
