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
crate::string_enum!(
    /// The only kind of account that can be paid.
    AccountType { Nre "nre" }
);
crate::string_enum!(
    /// How the account holder relates to the sender.
    Relationship { Own "self", Family "family", Other "other" }
);
crate::enum_fields!(AccountType, Relationship);
