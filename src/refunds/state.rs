//! The statuses of a refund and the changes between them.

crate::statuses!("refund",
    /// Where a refund stands.
    RefundStatus {
        RequiresAddress "requires_address" => [Processing],
        Processing "processing" => [Completed],
        Completed "completed" => [],
    }
);

crate::string_enum!(
    /// What a refund gives back: a transfer's money (`principal`), what was sent above it
    /// (`excess`), or a deposit that came when its transfer no longer accepted money (`unmatched`).
    RefundKind { Principal "principal", Excess "excess", Unmatched "unmatched" }
);
crate::string_enum!(
    /// Why money is owed back. `Requoted`: the caller resolved a hold with another quote lock, and
    /// that did not need all of the money received.
    RefundReason {
        Underpaid "underpaid",
        Overpaid "overpaid",
        Late "late",
        ComplianceRejected "compliance_rejected",
        PayoutFailed "payout_failed",
        PayoutReturned "payout_returned",
        Unmatched "unmatched",
        Requoted "requoted",
    }
);
crate::string_enum!(
    /// Why the transaction that the operator named does not confirm a refund. `BeforeRefund`: its
    /// block is older than the refund.
    SentHashError {
        NotFound "not_found",
        Reverted "reverted",
        NoSuchMovement "no_such_movement",
        AlreadyUsed "already_used",
        BeforeRefund "before_refund",
    }
);

crate::string_enum!(
    /// Who said where a refund goes.
    AddressDeclarer { Caller "caller", Operator "operator", Payer "payer" }
);
