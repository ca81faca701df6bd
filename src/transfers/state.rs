//! The statuses of a transfer and the changes between them. The graph has no cycle.

crate::statuses!("transfer",
    /// Where a transfer stands.
    TransferStatus {
        Funding "funding" => [Funded, FundingHold, Expired, Cancelled],
        FundingHold "funding_hold" => [Funded, RefundProcessing],
        Funded "funded" => [PayoutProcessing, RefundProcessing],
        PayoutProcessing "payout_processing" => [PayoutSettled, PayoutFailed],
        PayoutSettled "payout_settled" => [PayoutReturned],
        PayoutFailed "payout_failed" => [RefundProcessing],
        PayoutReturned "payout_returned" => [RefundProcessing],
        RefundProcessing "refund_processing" => [Refunded],
        Refunded "refunded" => [],
        Expired "expired" => [FundingHold],
        Cancelled "cancelled" => [FundingHold],
    }
);

crate::string_enum!(
    /// Why a transfer waits in `funding_hold`.
    StatusReason {
        Underpaid "underpaid",
        Overpaid "overpaid",
        Late "late",
        ComplianceReview "compliance_review",
    }
);
crate::string_enum!(
    /// The funding leg as a payer sees it; a view of the transfer, not a state machine.
    FundingStatus {
        AwaitingFunds "awaiting_funds",
        Confirming "confirming",
        PartiallyFunded "partially_funded",
        Funded "funded",
        Hold "hold",
        Expired "expired",
        Cancelled "cancelled",
        RefundProcessing "refund_processing",
        Refunded "refunded",
    }
);
crate::string_enum!(
    /// What to do with too little money at expiry, or with late money.
    HoldPolicy { Hold "hold", Refund "refund" }
);
crate::string_enum!(
    /// What to do with money above the amount.
    OverpaidPolicy { RefundExcess "refund_excess", Hold "hold" }
);
crate::enum_fields!(HoldPolicy, OverpaidPolicy);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::state::Status;

    #[test]
    fn the_graph_has_no_cycle_and_every_status_is_reached() {
        fn depth(status: TransferStatus, seen: &mut Vec<TransferStatus>) {
            assert!(!seen.contains(&status), "a cycle through {status:?}");
            seen.push(status);
            for (_, to) in TransferStatus::ARROWS.iter().filter(|(from, _)| *from == status) {
                depth(*to, seen);
            }
            seen.pop();
        }
        depth(TransferStatus::Funding, &mut Vec::new());
        for status in TransferStatus::ALL {
            let is_reached = *status == TransferStatus::Funding
                || TransferStatus::ARROWS.iter().any(|(_, to)| to == status);
            assert!(is_reached, "{status:?}");
        }
    }
}
