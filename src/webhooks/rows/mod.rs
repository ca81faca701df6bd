//! The rows of webhook endpoints, of their queues and replays, and of deliveries with their
//! attempts.

mod deliveries;
mod endpoints;
mod queues;
mod replays;

use crate::kernel::Id;
use crate::kernel::id::kind;
pub use deliveries::*;
pub use endpoints::*;
pub use queues::*;
pub use replays::*;

pub type EndpointId = Id<kind::WebhookEndpoint>;
pub type DeliveryId = Id<kind::WebhookDelivery>;
pub type EventId = Id<kind::Event>;
