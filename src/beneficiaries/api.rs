//! Beneficiaries over HTTP.

use schemars::JsonSchema;
use serde::Serialize;

use super::state::{AccountType, BeneficiaryStatus, DisabledReason, Relationship};
use super::{Beneficiary, BeneficiaryChange, Kyc, KycChange, NewBeneficiary, Requirement, rows};
use crate::account_verification::NameMatch;
use crate::http::fields::{
    AccountNumber, Country, Date, Email, EnumField, Ifsc, NameText, Pan, PassportNumber, Phone,
};
use crate::http::form::Replace;
use crate::http::query::{self, CREATED_FILTERS, Filter, FilterKind};
use crate::http::route::{self, Context, List, Route};
use crate::kernel::id::kind;
use crate::kernel::page::Page;
use crate::kernel::{
    Code, Id, Metadata, MetadataPatch, ObjectKind, OperationError, Patch, Refusal,
};

crate::string_enum!(BeneficiaryWord { Beneficiary "beneficiary" });

crate::form! {
    /// Creates a beneficiary.
    CreateBeneficiary {
        name: NameText<1, 140>,
        account_number: AccountNumber,
        ifsc: Ifsc,
        account_type: EnumField<AccountType>,
        email: Option<Email>,
        phone: Option<Phone>,
        metadata: Metadata,
        pan: Option<Pan>,
        passport_number: Option<PassportNumber>,
        date_of_birth: Option<Date>,
        nationality: Option<Country>,
        relationship: Option<EnumField<Relationship>>,
        submit: Option<bool>,
    }
}

crate::form! {
    /// Changes a beneficiary in `draft` or `input_required`.
    at_least_one UpdateBeneficiary {
        name: Replace<NameText<1, 140>>,
        account_number: Replace<AccountNumber>,
        ifsc: Replace<Ifsc>,
        account_type: Replace<EnumField<AccountType>>,
        email: Patch<Email>,
        phone: Patch<Phone>,
        metadata: MetadataPatch,
        pan: Patch<Pan>,
        passport_number: Patch<PassportNumber>,
        date_of_birth: Patch<Date>,
        nationality: Patch<Country>,
        relationship: Patch<EnumField<Relationship>>,
        submit: Option<bool>,
    }
}

/// How the account was checked.
#[derive(Serialize, JsonSchema)]
pub struct Verification {
    pub name_match: Option<NameMatch>,
    pub checked_at: Option<i64>,
}

/// An NRE account holder.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Beneficiary")]
pub struct BeneficiaryView {
    pub object: BeneficiaryWord,
    pub id: Id<kind::Beneficiary>,
    pub name: String,
    pub account_number_last4: String,
    pub ifsc: String,
    pub account_type: AccountType,
    pub status: BeneficiaryStatus,
    pub payouts_enabled: bool,
    pub payouts_disabled_reason: Option<DisabledReason>,
    pub bank_name: Option<String>,
    pub branch_name: Option<String>,
    pub email: Option<String>,
    pub phone: Option<String>,
    pub pan_last4: Option<String>,
    pub passport_number_last4: Option<String>,
    pub requirements: Vec<Requirement>,
    pub verification: Verification,
    pub metadata: Metadata,
    pub created: i64,
    pub livemode: bool,
}

pub fn view(beneficiary: Beneficiary) -> BeneficiaryView {
    BeneficiaryView {
        object: BeneficiaryWord::Beneficiary,
        id: beneficiary.id,
        name: beneficiary.name,
        account_number_last4: beneficiary.account_number_last4,
        ifsc: beneficiary.ifsc,
        account_type: AccountType::Nre,
        status: beneficiary.status,
        payouts_enabled: beneficiary.payouts_enabled,
        payouts_disabled_reason: beneficiary.payouts_disabled_reason,
        bank_name: beneficiary.bank_name,
        branch_name: beneficiary.branch_name,
        email: beneficiary.email,
        phone: beneficiary.phone,
        pan_last4: beneficiary.pan_last4,
        passport_number_last4: beneficiary.passport_number_last4,
        requirements: beneficiary.requirements,
        verification: Verification {
            name_match: beneficiary.name_match,
            checked_at: beneficiary.checked_at,
        },
        metadata: beneficiary.metadata,
        created: beneficiary.created,
        livemode: beneficiary.scope.livemode(),
    }
}

const FILTERS: &[Filter] = &[
    CREATED_FILTERS[0],
    CREATED_FILTERS[1],
    CREATED_FILTERS[2],
    CREATED_FILTERS[3],
    Filter::new("status", FilterKind::Word(query::status_words::<BeneficiaryStatus>)),
];

pub fn routes() -> Vec<Route> {
    vec![
        route::post("/v1/beneficiaries", "Create a beneficiary", route::creation, create),
        route::list(
            "/v1/beneficiaries",
            "List beneficiaries",
            ObjectKind::Beneficiary,
            FILTERS,
            route::nothing,
            index,
        ),
        route::get("/v1/beneficiaries/{id}", "Get a beneficiary", |context| {
            Ok(view(locate(context)?))
        }),
        route::post("/v1/beneficiaries/{id}", "Update a beneficiary", locate, update)
            .codes(&[Code::BeneficiaryNotEditable]),
    ]
}

pub fn locate(context: &mut Context<'_>) -> Result<Beneficiary, OperationError> {
    let scope = context.scope();
    let id = context.path_id()?;
    Ok(rows::find(context.tx, scope, id)?.ok_or_else(Refusal::not_found)?)
}

fn create(
    context: &mut Context<'_>,
    _: (),
    form: CreateBeneficiary,
) -> Result<BeneficiaryView, OperationError> {
    let scope = context.scope();
    let ask = NewBeneficiary {
        name: form.name.0,
        account_number: form.account_number.0,
        ifsc: form.ifsc.0,
        email: form.email.map(|email| email.0),
        phone: form.phone.map(|phone| phone.0),
        kyc: Kyc {
            holder_name: None,
            pan: form.pan.map(|pan| pan.0),
            passport_number: form.passport_number.map(|number| number.0),
            date_of_birth: form.date_of_birth.map(|date| date.0),
            nationality: form.nationality.map(|country| country.0),
            relationship: form.relationship.map(|word| word.0.as_str().to_owned()),
        },
        metadata: form.metadata,
        submit: form.submit.unwrap_or(true),
    };
    Ok(view(super::create(context.tx, context.now, context.services, scope, ask)?))
}

fn update(
    context: &mut Context<'_>,
    found: Beneficiary,
    form: UpdateBeneficiary,
) -> Result<BeneficiaryView, OperationError> {
    let change = BeneficiaryChange {
        name: form.name.0.map(|name| name.0),
        account_number: form.account_number.0.map(|number| number.0),
        ifsc: form.ifsc.0.map(|ifsc| ifsc.0),
        email: form.email.map(|email| email.0),
        phone: form.phone.map(|phone| phone.0),
        kyc: KycChange {
            pan: form.pan.map(|pan| pan.0),
            passport_number: form.passport_number.map(|number| number.0),
            date_of_birth: form.date_of_birth.map(|date| date.0),
            nationality: form.nationality.map(|country| country.0),
            relationship: form.relationship.map(|word| word.0.as_str().to_owned()),
        },
        metadata: form.metadata,
        submit: form.submit,
    };
    Ok(view(super::update(context.tx, context.now, context.services, found, change)?))
}

fn index(
    context: &mut Context<'_>,
    _: (),
    page: Page,
) -> Result<List<BeneficiaryView>, OperationError> {
    let scope = context.scope();
    Ok(List::map(rows::list(context.tx, scope, &page)?, |row| Ok(view(rows::read(row)?)))?)
}
