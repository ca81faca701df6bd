//! Senders: the remitters. A sender is always created; screening decides whether it may send.

pub mod api;
pub mod rows;

use serde::{Deserialize, Serialize};

use crate::checks::Screening;
use crate::kernel::id::kind;
use crate::kernel::{Code, Failure, Id, Metadata, Mode, Now, Refusal, Scope};
use crate::store::Tx;
use crate::world::World;

crate::words!(
    /// What kind of person a sender is. Businesses need the operator's leave and are not taken yet.
    SenderType { Individual "individual" }
);
crate::words!(
    /// Documents that identify a sender.
    IdentificationType { Passport "passport", NationalId "national_id", DrivingLicence "driving_licence" }
);
crate::word_fields!(SenderType, IdentificationType);

/// A postal address; `line1`, `city` and `country` are always there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Address {
    pub line1: String,
    pub city: String,
    pub state: Option<String>,
    pub postal_code: Option<String>,
    pub country: String,
}

#[derive(Clone)]
pub struct Sender {
    pub scope: Scope,
    pub id: Id<kind::Sender>,
    pub name: String,
    pub sender_type: SenderType,
    pub country: String,
    pub email: Option<String>,
    pub address: Option<Address>,
    pub date_of_birth: Option<String>,
    pub nationality: Option<String>,
    pub identification_type: Option<IdentificationType>,
    pub identification_sealed: Option<Vec<u8>>,
    pub screening: Screening,
    pub metadata: Metadata,
    pub created: i64,
}

const IDENTIFICATION_COLUMN: &str = "senders.identification";

pub struct NewSender {
    pub name: String,
    pub sender_type: SenderType,
    pub country: String,
    pub email: Option<String>,
    pub address: Option<Address>,
    pub date_of_birth: Option<String>,
    pub nationality: Option<String>,
    pub identification: Option<(IdentificationType, String)>,
    pub metadata: Metadata,
}

pub fn create(tx: &mut dyn Tx, now: &mut Now, world: &World, scope: Scope, ask: NewSender) -> Result<Sender, Failure> {
    let id: Id<kind::Sender> = now.mint();
    let (identification_type, identification_sealed) = match ask.identification {
        Some((document, number)) => {
            let sealed = world.seal(now, IDENTIFICATION_COLUMN, &id.to_bytes(), number.as_bytes())?;
            (Some(document), Some(sealed))
        }
        None => (None, None),
    };
    // Without live checks a live sender stays unreviewed, which refuses its transfers.
    let screening = match scope.mode() {
        Mode::Test => world.test.checks.screen(&ask.name),
        Mode::Live => Screening::PossibleMatch,
    };
    let sender = Sender {
        scope,
        id,
        name: ask.name,
        sender_type: ask.sender_type,
        country: ask.country,
        email: ask.email,
        address: ask.address,
        date_of_birth: ask.date_of_birth,
        nationality: ask.nationality,
        identification_type,
        identification_sealed,
        screening,
        metadata: ask.metadata,
        created: now.business(),
    };
    rows::insert(tx, &sender)?;
    Ok(sender)
}

/// The refusal for a sender that screening does not let send.
pub fn not_eligible(sender: &Sender) -> Option<Refusal> {
    // One message for both findings: a caller must not learn which list a person may be on.
    (sender.screening != Screening::Clear)
        .then(|| Refusal::field(Code::SenderNotEligible, "sender_id", "This sender cannot send now. The operator reviews it."))
}
