//! The types that the other rooms share: identifiers, money, time, statuses, refusals, encryption
//! at rest, and more. This room imports no other room.

pub mod clock;
pub mod countries;
pub mod decided_by;
pub mod hex;
pub mod history;
pub mod id;
pub mod metadata;
pub mod money;
pub mod network;
pub mod page;
pub mod patch;
pub mod range;
pub mod named_id;
pub mod refusal;
pub mod rupees;
pub mod scope;
pub mod seal;
pub mod state;

pub use clock::{Carried, Clock, Now, system_random};
pub use decided_by::{DecidedBy, Role, Via};
pub use history::History;
pub use id::{AnyId, Id, IdKind, InternalId, ObjectKind};
pub use metadata::{Metadata, MetadataPatch};
pub use money::{Currency, Money, Rate};
pub use named_id::NamedId;
pub use network::network_of;
pub use patch::Patch;
pub use range::within;
pub use refusal::{Code, OperationError, Refusal, RefusalEntry, StoreError};
pub use scope::{Mode, Scope};
