//! The statuses of a deposit and the changes between them.

crate::statuses!("deposit",
    /// Where a deposit stands: `initialized` until it is seen in a block, then `processing` until
    /// it is final or dropped. Only a `completed` one was credited.
    DepositStatus {
        Initialized "initialized" => [Processing, Failed],
        Processing "processing" => [Completed, Failed],
        Completed "completed" => [],
        Failed "failed" => [],
    }
);

crate::string_enum!(
    /// What a deposit meant for its transfer. The first four are added to what the transfer
    /// received; a `late` deposit came after the expiry or a cancellation. Deposits that are
    /// `unmatched` (they came when the transfer took no more money) or `unsupported` (of another
    /// asset) are not added. A deposit is classified when it becomes `completed` or `failed`,
    /// unless it is `dropped`.
    Classification {
        Exact "exact",
        Partial "partial",
        Over "over",
        Late "late",
        Unmatched "unmatched",
        Unsupported "unsupported",
    }
);
crate::string_enum!(
    /// Why a deposit failed.
    ReasonCode { AssetUnsupported "asset_unsupported", Dropped "dropped" }
);
