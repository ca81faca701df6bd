//! Beneficiaries over HTTP.

use schemars::JsonSchema;
use serde::Serialize;

use super::state::{AccountType, BeneficiaryStatus, PayoutsDisabledReason, Relationship};
use super::{Beneficiary, BeneficiaryChange, Kyc, KycChange, NewBeneficiary, Requirement, rows};
use crate::account_verification::NameMatch;
use crate::http::fields::{
    AccountNumberText, Amount, BirthDate, Country, Email, EnumField, Ifsc, NameText, Pan,
    PassportNumber, Phone,
};
use crate::http::form::Replace;
use crate::http::query::{self, CREATED_FILTERS, Filter, FilterKind};
use crate::http::route::{self, Context, List, Route};
use crate::ifsc::{Branch, Rails};
use crate::kernel::id::kind;
use crate::kernel::page::Page;
use crate::kernel::{
    Code, Currency, Id, Metadata, MetadataPatch, ObjectKind, OperationError, Patch, Refusal,
};
use crate::rails::port::PaymentMethod;
use crate::secrets;

crate::string_enum!(BeneficiaryWord { Beneficiary "beneficiary" });
crate::string_enum!(ValidationWord { BeneficiaryValidation "beneficiary_validation" });

crate::form! {
    /// Creates a beneficiary.
    CreateBeneficiary {
        name: NameText<1, 140>,
        account_number: AccountNumberText,
        ifsc: Ifsc,
        account_type: EnumField<AccountType>,
        email: Option<Email>,
        phone: Option<Phone>,
        metadata: Metadata,
        pan: Option<Pan>,
        passport_number: Option<PassportNumber>,
        date_of_birth: Option<BirthDate>,
        nationality: Option<Country>,
        relationship: Option<EnumField<Relationship>>,
        submit: Option<bool>,
    }
}

crate::form! {
    /// Checks a beneficiary's details without storing them. `amount` is in INR.
    ValidateBeneficiary {
        name: NameText<1, 140>,
        account_number: AccountNumberText,
        ifsc: Ifsc,
        account_type: EnumField<AccountType>,
        email: Option<Email>,
        phone: Option<Phone>,
        metadata: Metadata,
        pan: Option<Pan>,
        passport_number: Option<PassportNumber>,
        date_of_birth: Option<BirthDate>,
        nationality: Option<Country>,
        relationship: Option<EnumField<Relationship>>,
        submit: Option<bool>,
        amount: Option<Amount>,
    }
}

crate::form! {
    /// Changes a beneficiary in `draft` or `input_required`.
    at_least_one UpdateBeneficiary {
        name: Replace<NameText<1, 140>>,
        account_number: Replace<AccountNumberText>,
        ifsc: Replace<Ifsc>,
        account_type: Replace<EnumField<AccountType>>,
        email: Patch<Email>,
        phone: Patch<Phone>,
        metadata: MetadataPatch,
        pan: Patch<Pan>,
        passport_number: Patch<PassportNumber>,
        date_of_birth: Patch<BirthDate>,
        nationality: Patch<Country>,
        relationship: Patch<EnumField<Relationship>>,
        submit: Option<bool>,
    }
}

/// How the name compared with the account's when it was last compared, and when the beneficiary was
/// last checked or decided about. Both are null again once the name, the account number or the IFSC
/// is replaced.
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
    pub payouts_disabled_reason: Option<PayoutsDisabledReason>,
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

/// What is known about the bank of a beneficiary that is not created yet. Nothing is stored.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "BeneficiaryValidation")]
pub struct ValidationView {
    pub object: ValidationWord,
    pub account_number_last4: String,
    pub ifsc: String,
    pub account_type: AccountType,
    pub bank_name: Option<String>,
    pub branch_name: Option<String>,
    pub amount: Option<String>,
    pub currency: Currency,
    /// The payment system that a payout of the amount goes by; null without an amount.
    pub method: Option<PaymentMethod>,
    /// What the caller would have to correct in live mode.
    pub requirements: Vec<Requirement>,
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
        route::post(
            "/v1/beneficiaries",
            "Create a beneficiary",
            route::refuse_live_key_before_setup,
            create,
        )
        .checking_form_by_time(BirthDate::must_be_past)
        .prefetching(|tx, _, _: &CreateBeneficiary| secrets::prefetch_sealing_key(tx)),
        route::list(
            "/v1/beneficiaries",
            "List beneficiaries",
            ObjectKind::Beneficiary,
            FILTERS,
            route::nothing,
            index,
        ),
        route::post(
            "/v1/beneficiaries/validate",
            "Check a beneficiary's details without storing them",
            route::nothing,
            validate,
        )
        .checking_form_by_time(BirthDate::must_be_past),
        route::get("/v1/beneficiaries/{id}", "Get a beneficiary", |context| {
            Ok(view(locate(context)?))
        }),
        route::post("/v1/beneficiaries/{id}", "Update a beneficiary", locate, update)
            .checking_form_by_time(BirthDate::must_be_past)
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
    let new = NewBeneficiary {
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
    Ok(view(super::create(context.tx, context.now, context.services, scope, new)?))
}

fn validate(
    context: &mut Context<'_>,
    _: (),
    form: ValidateBeneficiary,
) -> Result<ValidationView, OperationError> {
    let amount = form.amount.map(|amount| amount.of(Currency::Inr));
    let mode = context.scope().mode();
    let bank_code = context.services.ports(mode).map_or("", |ports| ports.rail.bank_code());
    let method = amount.map(|amount| PaymentMethod::for_payment(amount, &form.ifsc.0, bank_code));
    let branch = context.services.ifsc.find(&form.ifsc.0);
    let mut requirements = Vec::new();
    let mut require = |code: &str, message: &str| {
        requirements.push(Requirement {
            field_name: "ifsc".into(),
            code: code.into(),
            message: message.into(),
        });
    };
    match &branch {
        None => require(
            "ifsc_unknown",
            "The directory does not know this branch. Compare the code with a cheque or statement.",
        ),
        Some(branch) if !branch.takes_payouts() => require(
            "ifsc_unknown",
            "The directory says that this branch takes neither NEFT nor RTGS. Ask for another \
             code; after a merger the branch has a new one.",
        ),
        Some(branch) if method.is_some_and(|method| takes(branch, method) == Some(false)) => {
            require(
                "rail_unavailable",
                "The directory says that this branch does not take the payment system of this \
                 amount.",
            );
        }
        Some(_) => {}
    }
    let (bank_name, branch_name) =
        branch.map_or((None, None), |branch| (branch.bank_name, branch.branch_name));
    Ok(ValidationView {
        object: ValidationWord::BeneficiaryValidation,
        account_number_last4: super::last4(&form.account_number.0),
        ifsc: form.ifsc.0,
        account_type: AccountType::Nre,
        bank_name,
        branch_name,
        amount: amount.map(|amount| amount.to_string()),
        currency: Currency::Inr,
        method,
        requirements,
        livemode: context.scope().livemode(),
    })
}

/// Whether a branch takes a payment system; `None` where the directory does not say.
fn takes(branch: &Branch, method: PaymentMethod) -> Option<bool> {
    match method {
        PaymentMethod::Neft => branch.rails.takes(Rails::NEFT),
        PaymentMethod::Rtgs => branch.rails.takes(Rails::RTGS),
        PaymentMethod::Internal => Some(true),
    }
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
