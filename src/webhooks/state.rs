//! The statuses of a webhook endpoint and of a delivery.

crate::statuses!("webhook_endpoint",
    /// Whether an endpoint takes deliveries. It begins `enabled`, without an event. If it is
    /// `disabled`, only its owner can enable it again.
    EndpointStatus {
        Enabled "enabled" => [Failing],
        Failing "failing" => [Enabled, Disabled],
        Disabled "disabled" => [Enabled],
    }
);

crate::string_enum!(
    /// Why an endpoint is disabled.
    EndpointDisabledReason { DeliveryFailures "delivery_failures" }
);

crate::string_enum!(
    /// Where the delivery of one event to one endpoint stands:
    ///
    /// - `Pending`: an attempt is to come, or is under way.
    /// - `Succeeded`: the receiver answered that it has the event.
    /// - `Failed`: the last attempt of the schedule failed, or the event was removed before it.
    /// - `Recorded`: the delivery is only kept for a replay, because the endpoint was disabled or a
    ///   chaos profile withholds the event.
    ///
    /// There are no arrows, because a replay can begin any delivery again.
    DeliveryStatus {
        Pending "pending",
        Succeeded "succeeded",
        Failed "failed",
        Recorded "recorded",
    }
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::state::Status;

    #[test]
    fn an_endpoint_fails_before_it_is_disabled() {
        assert!(!EndpointStatus::Enabled.can_become(EndpointStatus::Disabled));
        assert!(EndpointStatus::Failing.can_become(EndpointStatus::Disabled));
        assert_eq!(EndpointStatus::Disabled.event_type(), "webhook_endpoint.status.disabled");
    }
}
