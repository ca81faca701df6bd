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
    /// received; a `late` one came after the expiry or a cancellation. `unmatched` ones, which came
    /// when it took no more money, and `unsupported` ones are not added. A deposit has this once it
    /// is `completed` or `failed`, unless its `reason_code` is `dropped`.
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
