//! Senders: the remitters. A sender is created whatever screening finds. Only a sender whose
//! screening is clear may send.

pub mod api;
pub mod rows;

use serde::{Deserialize, Serialize};

use crate::kernel::id::kind;
use crate::kernel::seal::SealedPlace;
use crate::kernel::{
    Code, Id, Metadata, Now, OperationError, Refusal, RefusalEntry, Scope, StoreError,
};
use crate::name_words;
use crate::rails::Rail;
use crate::rails::files::format::IdentityDocument;
use crate::resource::Resource;
use crate::screening::hits;
use crate::screening::{Screening, ScreeningQuestion};
use crate::services::Services;
use crate::store::Tx;

pub const RESOURCE: Resource = Resource::new(api::routes).at("senders", "Remitters.");

crate::string_enum!(
    /// What kind of person a sender is. Businesses are not accepted yet.
    SenderType { Individual "individual" }
);
crate::string_enum!(
    /// Documents that identify a sender.
    IdentificationType { Passport "passport", NationalId "national_id",
        DrivingLicence "driving_licence" }
);
crate::enum_fields!(SenderType, IdentificationType);

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
    /// The country of residence, as its ISO 3166-1 alpha-2 code.
    pub country: String,
    pub email: Option<String>,
    pub address: Option<Address>,
    /// YYYY-MM-DD.
    pub date_of_birth: Option<String>,
    /// ISO 3166-1 alpha-2 code.
    pub nationality: Option<String>,
    pub identification_type: Option<IdentificationType>,
    /// The number of the document, sealed.
    pub identification_sealed: Option<Vec<u8>>,
    pub screening: Screening,
    pub metadata: Metadata,
    pub created: i64,
}

/// What a sender is created from.
pub struct NewSender {
    pub name: String,
    pub sender_type: SenderType,
    pub country: String,
    pub email: Option<String>,
    pub address: Option<Address>,
    pub date_of_birth: Option<String>,
    pub nationality: Option<String>,
    /// The document and its number.
    pub identification: Option<(IdentificationType, String)>,
    pub metadata: Metadata,
}

pub fn create(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    scope: Scope,
    new: NewSender,
) -> Result<Sender, OperationError> {
    let id: Id<kind::Sender> = now.mint();
    let question = screening_question_for_new(&new);
    let (identification_type, identification_sealed) = match new.identification {
        Some((document, number)) => {
            let key = services.sealing_key(tx)?;
            let (nonce, id) = (now.random_bytes(), id.to_bytes());
            let sealed = key.seal(nonce, &SealedPlace::IDENTIFICATION, &id, number.as_bytes())?;
            (Some(document), Some(sealed))
        }
        None => (None, None),
    };
    let mut sender = Sender {
        scope,
        id,
        name: new.name,
        sender_type: new.sender_type,
        country: new.country,
        email: new.email,
        address: new.address,
        date_of_birth: new.date_of_birth,
        nationality: new.nationality,
        identification_type,
        identification_sealed,
        screening: Screening::Clear,
        metadata: new.metadata,
        created: now.business(),
    };
    let finding = services.screen(scope.mode(), &question);
    sender.screening = finding.screening;
    if !finding.hits.is_empty() {
        sender.screening = hits::keep(tx, now, scope, id.any(), &finding, &|hit| {
            services.screening_basis(&question, hit)
        })?;
    }
    rows::insert(tx, &sender)?;
    name_words::keep(tx, scope, id.any(), &sender.name)?;
    Ok(sender)
}

/// What screening is asked about a new sender.
pub fn screening_question_for_new(new: &NewSender) -> ScreeningQuestion {
    let number = new.identification.as_ref().map(|(_, number)| number.clone());
    question(
        &new.name,
        [Some(&new.country), new.nationality.as_ref()],
        new.date_of_birth.as_deref(),
        number,
    )
}

/// The document that identifies a sender, with its number. Only for the bank: never put it into an
/// answer or a log.
pub fn open_identification(
    sender: &Sender,
    services: &Services,
) -> Result<Option<(IdentityDocument, String)>, StoreError> {
    let number = open_identification_number(sender, services)?;
    let (Some(kind), Some(number)) = (sender.identification_type, number) else {
        return Ok(None);
    };
    let kind = match kind {
        IdentificationType::Passport => IdentityDocument::Passport,
        IdentificationType::NationalId => IdentityDocument::NationalId,
        IdentificationType::DrivingLicence => IdentityDocument::DrivingLicence,
    };
    Ok(Some((kind, number)))
}

fn open_identification_number(
    sender: &Sender,
    services: &Services,
) -> Result<Option<String>, StoreError> {
    let Some(sealed) = &sender.identification_sealed else { return Ok(None) };
    let number = services.open(&SealedPlace::IDENTIFICATION, &sender.id.to_bytes(), sealed)?;
    // Only text is sealed here, so anything else is a damaged row. That is an error, because a
    // sender must not be screened without the number that was given.
    String::from_utf8(number)
        .map(Some)
        .map_err(|_| StoreError::Broken("a sender's identification cannot be read".into()))
}

/// What screening is asked about a stored sender.
pub fn screening_question(
    sender: &Sender,
    services: &Services,
) -> Result<ScreeningQuestion, StoreError> {
    let number = open_identification_number(sender, services)?;
    Ok(question(
        &sender.name,
        [Some(&sender.country), sender.nationality.as_ref()],
        sender.date_of_birth.as_deref(),
        number,
    ))
}

fn question(
    name: &str,
    countries: [Option<&String>; 2],
    date_of_birth: Option<&str>,
    identification_number: Option<String>,
) -> ScreeningQuestion {
    ScreeningQuestion {
        date_of_birth: date_of_birth.and_then(|text| text.parse().ok()),
        countries: countries.into_iter().flatten().cloned().collect(),
        identifiers: identification_number.into_iter().collect(),
        ..ScreeningQuestion::person(name)
    }
}

/// Screens a stored sender against the current lists, and stores the result if it has changed.
pub fn rescreen(
    tx: &mut dyn Tx,
    now: &mut Now,
    services: &Services,
    scope: Scope,
    id: Id<kind::Sender>,
) -> Result<(), StoreError> {
    let Some(sender) = rows::find(tx, scope, id)? else { return Ok(()) };
    let question = screening_question(&sender, services)?;
    let finding = services.screen(scope.mode(), &question);
    let screening = hits::keep(tx, now, scope, id.any(), &finding, &|hit| {
        services.screening_basis(&question, hit)
    })?;
    if screening != sender.screening {
        rows::set_screening(tx, &sender, screening)?;
    }
    Ok(())
}

/// The refusal for a sender whose screening is not clear.
pub fn refusal_if_not_eligible(sender: &Sender) -> Option<Refusal> {
    // One message for a possible and a confirmed match: a caller must not learn what screening
    // found.
    (sender.screening != Screening::Clear).then(|| {
        Refusal::field(
            Code::SenderNotEligible,
            "sender_id",
            "This sender cannot send now: the operator reviews it. Once that is done, send the \
             transfer with a new idempotency key.",
        )
    })
}

/// The refusal for a sender that an instruction to the bank cannot describe: the rail cannot write
/// the name, or it needs a city, and the city is missing or cannot be written.
pub fn refusal_if_unwritable(sender: &Sender, rail: &dyn Rail) -> Option<RefusalEntry> {
    let message = if !rail.can_write(&sender.name) {
        "The bank cannot write this sender's name. Create a sender whose name is in Latin letters \
         or in a script of India."
    } else if !rail.needs_remitter_address() {
        return None;
    } else {
        match &sender.address {
            None => {
                "This sender has no address, and the bank has to know the town and the country of \
                 whoever sends the money. Create a sender with address (line1, city, country)."
            }
            Some(address) if rail.can_write(&address.city) => return None,
            Some(_) => {
                "The bank cannot write the city of this sender's address. Create a sender whose \
                 city is in Latin letters or in a script of India."
            }
        }
    };
    Some(RefusalEntry::field(Code::SenderNotEligible, "sender_id", message))
}
