//! What an attempt must know of its endpoint: where deliveries go, and the secrets that sign them.

use crate::kernel::{Scope, StoreError};
use crate::services::Services;
use crate::webhooks::sending::vet::{self, WebhookUrl};
use crate::webhooks::state::EndpointStatus;
use crate::webhooks::{self as endpoints, Endpoint, SigningSecret};

/// An endpoint as a turn read it a moment ago.
pub(super) struct DeliveryTarget {
    pub(super) scope: Scope,
    pub(super) version: i64,
    pub(super) status: EndpointStatus,
    /// `None` if the endpoint's URL is no longer allowed.
    pub(super) url: Option<WebhookUrl>,
    pub(super) loopback_allowed: bool,
    pub(super) secrets: Vec<SigningSecret>,
}

impl DeliveryTarget {
    pub(super) fn read(
        services: &Services,
        endpoint: &Endpoint,
    ) -> Result<DeliveryTarget, StoreError> {
        let policy = endpoints::url_policy(&services.settings, endpoint.scope);
        Ok(DeliveryTarget {
            scope: endpoint.scope,
            version: endpoint.version,
            status: endpoint.status,
            url: vet::parse_url(&endpoint.url, policy).ok(),
            loopback_allowed: policy.loopback_allowed,
            secrets: endpoints::open_secrets(services, endpoint)?,
        })
    }

    #[cfg(test)]
    pub(super) fn of_tests(scope: Scope, status: EndpointStatus) -> DeliveryTarget {
        let (url, loopback_allowed, secrets) = (None, false, Vec::new());
        DeliveryTarget { scope, version: 1, status, url, loopback_allowed, secrets }
    }
}
