//! Senders over HTTP.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Address, IdentificationType, NewSender, Sender, SenderType, rows};
use crate::http::fields::{BirthDate, Country, DocumentNumber, Email, EnumField, NameText, Text};
use crate::http::preflight::{Asking, PreflightFuture};
use crate::http::query::{CREATED_FILTERS, Filter};
use crate::http::route::{self, Context, List, Route};
use crate::kernel::id::kind;
use crate::kernel::page::Page;
use crate::kernel::{Id, Metadata, ObjectKind, OperationError, Refusal};
use crate::secrets;

crate::string_enum!(SenderWord { Sender "sender" });

crate::form! {
    /// A postal address.
    AddressForm {
        line1: Text<1, 200>,
        city: Text<1, 100>,
        state: Option<Text<1, 100>>,
        postal_code: Option<Text<1, 20>>,
        country: Country,
    }
}
crate::form! {
    /// A document that identifies a person; no answer shows the number.
    IdentificationForm {
        r#type: EnumField<IdentificationType>,
        number: DocumentNumber,
    }
}
crate::form! {
    /// Creates a sender.
    CreateSender {
        name: NameText<1, 140>,
        r#type: EnumField<SenderType>,
        country: Country,
        email: Option<Email>,
        address: Option<AddressForm>,
        metadata: Metadata,
        date_of_birth: Option<BirthDate>,
        nationality: Option<Country>,
        identification: Option<IdentificationForm>,
    }
}

#[derive(Serialize, JsonSchema)]
pub struct Identification {
    pub r#type: IdentificationType,
}

/// A remitter.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Sender")]
pub struct SenderView {
    pub object: SenderWord,
    pub id: Id<kind::Sender>,
    pub name: String,
    pub r#type: SenderType,
    pub country: String,
    pub email: Option<String>,
    pub address: Option<Address>,
    pub date_of_birth: Option<String>,
    pub nationality: Option<String>,
    pub identification: Option<Identification>,
    pub metadata: Metadata,
    pub created: i64,
    pub livemode: bool,
}

pub fn view(sender: Sender) -> SenderView {
    SenderView {
        object: SenderWord::Sender,
        id: sender.id,
        name: sender.name,
        r#type: sender.sender_type,
        country: sender.country,
        email: sender.email,
        address: sender.address,
        date_of_birth: sender.date_of_birth,
        nationality: sender.nationality,
        identification: sender.identification_type.map(|r#type| Identification { r#type }),
        metadata: sender.metadata,
        created: sender.created,
        livemode: sender.scope.livemode(),
    }
}

pub fn routes() -> Vec<Route> {
    vec![
        route::post("/v1/senders", "Create a sender", route::refuse_live_key_before_setup, create)
            .checking_form_by_time(BirthDate::must_be_past)
            .preflight(screen_ahead)
            .prefetching(|tx, _, form: &CreateSender| {
                form.identification.as_ref().map_or(Ok(()), |_| secrets::prefetch_sealing_key(tx))
            }),
        route::list(
            "/v1/senders",
            "List senders",
            ObjectKind::Sender,
            FILTERS,
            route::nothing,
            index,
        ),
        route::get("/v1/senders/{id}", "Get a sender", show),
    ]
}

const FILTERS: &[Filter] = &CREATED_FILTERS;

fn create(
    context: &mut Context<'_>,
    _: (),
    form: CreateSender,
) -> Result<SenderView, OperationError> {
    let scope = context.scope();
    Ok(view(super::create(context.tx, context.now, context.services, scope, new_sender(form))?))
}

/// Compares the sender with the sanctions lists before the transaction opens, because that takes
/// long. An account's senders are compared one after another, so that a caller with many does not
/// fill the queue of all callers.
fn screen_ahead(asking: Asking, form: CreateSender) -> Option<PreflightFuture> {
    let lists = asking.app.services.lists(asking.caller.scope.mode())?.clone();
    let question = super::screening_question_for_new(&new_sender(form));
    Some(Box::pin(async move {
        let _turn = asking.permits.screening_turn(asking.caller.scope).await;
        lists.screen_ahead(vec![question]).await;
        Ok(None)
    }))
}

fn new_sender(form: CreateSender) -> NewSender {
    NewSender {
        name: form.name.0,
        sender_type: form.r#type.0,
        country: form.country.0,
        email: form.email.map(|email| email.0),
        address: form.address.map(|address| Address {
            line1: address.line1.0,
            city: address.city.0,
            state: address.state.map(|state| state.0),
            postal_code: address.postal_code.map(|code| code.0),
            country: address.country.0,
        }),
        date_of_birth: form.date_of_birth.map(|date| date.0),
        nationality: form.nationality.map(|country| country.0),
        identification: form.identification.map(|document| (document.r#type.0, document.number.0)),
        metadata: form.metadata,
    }
}

fn show(context: &mut Context<'_>) -> Result<SenderView, OperationError> {
    let scope = context.scope();
    let id = context.path_id()?;
    Ok(view(rows::find(context.tx, scope, id)?.ok_or_else(Refusal::not_found)?))
}

fn index(context: &mut Context<'_>, _: (), page: Page) -> Result<List<SenderView>, OperationError> {
    let scope = context.scope();
    Ok(List::map(rows::list(context.tx, scope, &page)?, |row| Ok(view(rows::read(row)?)))?)
}
