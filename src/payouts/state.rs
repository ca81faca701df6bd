//! The statuses of a payout and the changes between them.

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
