// Made from the API's document by clients/generate.py. Do not edit.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Decimal;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AdvanceClock {
    /// By how many seconds the test clock advances.
    pub advance_seconds: i64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdviceBeneficiary {
    /// Name of the account holder.
    pub name: String,
    /// Last four characters of the account number.
    pub account_number_last4: String,
    /// Type of the bank account.
    pub account_type: String,
    /// IFSC of the branch.
    pub ifsc: String,
    /// Name of the bank by the IFSC directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bank_name: Option<String>,
    /// Name of the branch by the IFSC directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch_name: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdviceDeposit {
    /// Hash of the transaction on chain.
    pub transaction_hash: String,
    /// Blockchain that the token moves on.
    pub chain: String,
    /// Token of the stablecoin rail.
    pub asset: String,
    /// Amount of money as a decimal string.
    pub amount: Decimal,
    /// Where the chain shows the transaction, for a chain whose pages are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explorer_url: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdviceGst {
    /// Value that the tax is computed on.
    pub taxable_value: Decimal,
    /// Rate of the tax in percent.
    pub rate_percent: String,
    /// Amount of money as a decimal string.
    pub amount: Decimal,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdviceMilestone {
    /// Which milestone the payment reached.
    pub milestone: AdviceMilestoneMilestone,
    /// When the payment reached it, in Unix seconds.
    pub at: i64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AdviceMilestoneMilestone {
    #[serde(rename = "rate_locked")]
    RateLocked,
    #[serde(rename = "funded")]
    Funded,
    #[serde(rename = "instructed")]
    Instructed,
    #[serde(rename = "settled")]
    Settled,
    #[serde(rename = "returned")]
    Returned,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdviceSender {
    /// Name of the remitter.
    pub name: String,
    /// ISO 3166-1 alpha-2 code of the country.
    pub country: String,
    /// Postal address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<PostalAddress>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdviceSignature {
    /// Always `Ed25519`.
    pub algorithm: String,
    /// The key's JWK thumbprint (RFC 7638), which finds it in the published key set.
    pub key_id: String,
    /// 64 bytes in base64url without padding.
    pub value: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ApiError {
    /// Type of the object.
    pub object: String,
    /// Every problem of the request.
    pub errors: Vec<ApiErrorEntry>,
    /// HTTP status of the answer.
    pub http_status_code: i64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ApiErrorEntry {
    /// Stable code that programs branch on. New codes can be added: treat one that you do not know by the HTTP status.
    pub code: String,
    /// Text for humans; may change.
    pub message: String,
    /// What the problem is about.
    pub metadata: ApiErrorMetadata,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ApiErrorMetadata {
    /// Field, parameter or header concerned; nested names joined with dots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_name: Option<String>,
    /// The largest value that is accepted; present if a value is outside its range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maximum: Option<String>,
    /// The smallest value that is accepted; present if a value is outside its range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minimum: Option<String>,
    /// Always true: once the cause is gone, send a POST with a new idempotency key. With the old key, the refusal is repeated. A GET has no key, and is sent again as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_key_required: Option<bool>,
    /// What the operator has paused, with `service_paused`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<String>,
    /// Which limit was reached, with `rate_limit_exceeded`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// Seconds to wait, with `rate_limit_exceeded`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_seconds: Option<String>,
    /// With `reference_already_used`: the transfer that has the reference. With `quote_lock_already_used`: the transfer that was created with the quote lock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfer_id: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Balance {
    /// Type of the object.
    pub object: String,
    /// Final on the chain and not yet used or held.
    pub available: Vec<BalanceItem>,
    /// Seen on chain, not final.
    pub pending: Vec<BalanceItem>,
    /// Funded, not exchanged yet.
    pub processing: Vec<BalanceItem>,
    /// Rupees that are with the bank.
    pub payout_processing: Vec<BalanceItem>,
    /// Waiting for a decision, or owed back.
    pub hold: Vec<BalanceItem>,
    /// Whether the object belongs to live mode.
    pub livemode: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BalanceItem {
    /// Amount of money as a decimal string.
    pub amount: Decimal,
    /// Code of the currency.
    pub currency: BalanceItemCurrency,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BalanceItemCurrency {
    #[serde(rename = "INR")]
    Inr,
    #[serde(rename = "USD")]
    Usd,
    #[serde(rename = "USDT")]
    Usdt,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Beneficiary {
    /// Type of the object.
    pub object: String,
    /// ID of the object.
    pub id: String,
    /// Name of the account holder, as the bank holds it.
    pub name: String,
    /// Last four characters of the account number.
    pub account_number_last4: String,
    /// IFSC of the branch.
    pub ifsc: String,
    /// Type of the bank account.
    pub account_type: String,
    /// Where the verification of the beneficiary stands.
    pub status: BeneficiaryStatus,
    /// Whether the beneficiary can be paid.
    pub payouts_enabled: bool,
    /// Why payouts are not enabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payouts_disabled_reason: Option<BeneficiaryPayoutsDisabledReason>,
    /// Name of the bank by the IFSC directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bank_name: Option<String>,
    /// Name of the branch by the IFSC directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch_name: Option<String>,
    /// Email address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// Telephone number in E.164 form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phone: Option<String>,
    /// Last four characters of the PAN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pan_last4: Option<String>,
    /// Last four characters of the passport number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passport_number_last4: Option<String>,
    /// What has to be updated to continue.
    pub requirements: Vec<Requirement>,
    /// What the last check of the account found, and when.
    pub verification: Verification,
    /// The caller's own names and values.
    pub metadata: BTreeMap<String, String>,
    /// When the object was created, in Unix seconds.
    pub created: i64,
    /// Whether the object belongs to live mode.
    pub livemode: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BeneficiaryStatus {
    #[serde(rename = "draft")]
    Draft,
    #[serde(rename = "verifying")]
    Verifying,
    #[serde(rename = "active")]
    Active,
    #[serde(rename = "input_required")]
    InputRequired,
    #[serde(rename = "rejected")]
    Rejected,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BeneficiaryPayoutsDisabledReason {
    #[serde(rename = "verification_pending")]
    VerificationPending,
    #[serde(rename = "name_mismatch")]
    NameMismatch,
    #[serde(rename = "account_invalid")]
    AccountInvalid,
    #[serde(rename = "account_not_nre")]
    AccountNotNre,
    #[serde(rename = "ifsc_unknown")]
    IfscUnknown,
    #[serde(rename = "kyc_required")]
    KycRequired,
    #[serde(rename = "compliance_hold")]
    ComplianceHold,
    #[serde(rename = "returned_payout")]
    ReturnedPayout,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BeneficiaryList {
    /// Type of the object.
    pub object: String,
    /// The objects of this page.
    pub data: Vec<Beneficiary>,
    /// Whether more objects follow in the direction of paging.
    pub has_next: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BeneficiaryValidation {
    /// Type of the object.
    pub object: String,
    /// Last four characters of the account number.
    pub account_number_last4: String,
    /// IFSC of the branch.
    pub ifsc: String,
    /// Type of the bank account.
    pub account_type: String,
    /// Name of the bank by the IFSC directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bank_name: Option<String>,
    /// Name of the branch by the IFSC directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch_name: Option<String>,
    /// Amount in INR that was asked about; null without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amount: Option<String>,
    /// Code of the currency.
    pub currency: BeneficiaryValidationCurrency,
    /// The payment system that a payout of the amount goes by; null without an amount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<BeneficiaryValidationMethod>,
    /// What the caller would have to correct in live mode.
    pub requirements: Vec<Requirement>,
    /// Whether the object belongs to live mode.
    pub livemode: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BeneficiaryValidationCurrency {
    #[serde(rename = "INR")]
    Inr,
    #[serde(rename = "USD")]
    Usd,
    #[serde(rename = "USDT")]
    Usdt,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BeneficiaryValidationMethod {
    #[serde(rename = "neft")]
    Neft,
    #[serde(rename = "rtgs")]
    Rtgs,
    #[serde(rename = "internal")]
    Internal,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChainView {
    /// Whether the chain is followed, and whether something is wrong with it.
    pub status: ChainViewStatus,
    /// Number of the last block whose final content was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_number: Option<i64>,
    /// Time of that block in Unix seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_time: Option<i64>,
    /// How far the service's view of the chain lies behind, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds_behind: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChainViewStatus {
    #[serde(rename = "following")]
    Following,
    #[serde(rename = "behind")]
    Behind,
    #[serde(rename = "not_followed")]
    NotFollowed,
    #[serde(rename = "token_deprecated")]
    TokenDeprecated,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChaosCheck {
    /// The mistake, as a stable word.
    pub code: ChaosCheckCode,
    /// `not_observed` where nothing showed whether the caller makes the mistake.
    pub result: ChaosCheckResult,
    /// How often the caller could have made the mistake.
    pub observed_count: i64,
    /// How often the caller made the mistake.
    pub faults_count: i64,
    /// The first ten times that the caller made the mistake.
    pub faults: Vec<ChaosFault>,
    /// How to avoid the mistake.
    pub remedy: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChaosCheckCode {
    #[serde(rename = "retried_with_new_key")]
    RetriedWithNewKey,
    #[serde(rename = "dropped_answer_abandoned")]
    DroppedAnswerAbandoned,
    #[serde(rename = "unavailable_taken_as_final")]
    UnavailableTakenAsFinal,
    #[serde(rename = "locked_taken_as_final")]
    LockedTakenAsFinal,
    #[serde(rename = "retry_after_ignored")]
    RetryAfterIgnored,
    #[serde(rename = "retried_without_pause")]
    RetriedWithoutPause,
    #[serde(rename = "key_reused_for_other_body")]
    KeyReusedForOtherBody,
    #[serde(rename = "refusal_retried")]
    RefusalRetried,
    #[serde(rename = "timed_out_too_early")]
    TimedOutTooEarly,
    #[serde(rename = "webhook_forgery_accepted")]
    WebhookForgeryAccepted,
    #[serde(rename = "webhook_duplicate_refused")]
    WebhookDuplicateRefused,
    #[serde(rename = "webhook_late_refused")]
    WebhookLateRefused,
    #[serde(rename = "webhook_answered_slowly")]
    WebhookAnsweredSlowly,
    #[serde(rename = "missing_event_not_read")]
    MissingEventNotRead,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChaosCheckResult {
    #[serde(rename = "passed")]
    Passed,
    #[serde(rename = "failed")]
    Failed,
    #[serde(rename = "not_observed")]
    NotObserved,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChaosFault {
    /// The route of the request; null for a webhook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<String>,
    /// The `Request-Id` of each request that shows the mistake.
    pub request_ids: Vec<String>,
    /// The event of the webhook; null for a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_id: Option<String>,
    /// What was seen.
    pub message: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChaosProfile {
    /// Type of the object.
    pub object: String,
    /// Whether the attacks go on, and whether the report is complete.
    pub status: ChaosProfileStatus,
    /// Number that chooses which requests and events are attacked; the same number chooses the same ones. If left out, the service draws one.
    pub seed: i64,
    /// Percentage of requests and events that are attacked: 50 if left out.
    pub percentage: i64,
    /// Attacks on requests: every kind if left out, none for an empty list.
    pub request_attacks: Vec<ChaosProfileRequestAttacks>,
    /// By how much a delayed answer is late, in milliseconds.
    pub delay_milliseconds: i64,
    /// ID of the webhook endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook_endpoint_id: Option<String>,
    /// Attacks on deliveries to the endpoint: every kind if left out.
    pub webhook_attacks: Vec<ChaosProfileWebhookAttacks>,
    /// By how much a late delivery is late, in milliseconds.
    pub webhook_delay_milliseconds: i64,
    /// When the attacks began, in Unix seconds.
    pub started_at: i64,
    /// When the attacks end, in Unix seconds; a test clock does not move it.
    pub ends_at: i64,
    /// Whether the object belongs to live mode.
    pub livemode: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChaosProfileStatus {
    #[serde(rename = "running")]
    Running,
    #[serde(rename = "settling")]
    Settling,
    #[serde(rename = "completed")]
    Completed,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChaosProfileRequestAttacks {
    #[serde(rename = "answer_dropped")]
    AnswerDropped,
    #[serde(rename = "answer_delayed")]
    AnswerDelayed,
    #[serde(rename = "service_unavailable")]
    ServiceUnavailable,
    #[serde(rename = "resource_locked")]
    ResourceLocked,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChaosProfileWebhookAttacks {
    #[serde(rename = "duplicated")]
    Duplicated,
    #[serde(rename = "late")]
    Late,
    #[serde(rename = "forged")]
    Forged,
    #[serde(rename = "missing")]
    Missing,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChaosReport {
    /// Type of the object.
    pub object: String,
    /// Whether the attacks go on, and whether the report is complete.
    pub status: ChaosReportStatus,
    /// Null until the status is `completed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grade: Option<ChaosReportGrade>,
    /// Number that chooses which requests and events are attacked; the same number chooses the same ones. If left out, the service draws one.
    pub seed: i64,
    /// When the attacks began, in Unix seconds.
    pub started_at: i64,
    /// When the attacks end, in Unix seconds; a test clock does not move it.
    pub ends_at: i64,
    /// POSTs with different idempotency keys, and GETs.
    pub requests_count: i64,
    /// How many requests were attacked.
    pub requests_attacked_count: i64,
    /// Events for the attacked webhook endpoint.
    pub events_count: i64,
    /// How many events were attacked.
    pub events_attacked_count: i64,
    /// What was looked for, each with its own result.
    pub checks: Vec<ChaosCheck>,
    /// Whether the object belongs to live mode.
    pub livemode: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChaosReportStatus {
    #[serde(rename = "running")]
    Running,
    #[serde(rename = "settling")]
    Settling,
    #[serde(rename = "completed")]
    Completed,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChaosReportGrade {
    #[serde(rename = "passed")]
    Passed,
    #[serde(rename = "failed")]
    Failed,
    #[serde(rename = "incomplete")]
    Incomplete,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Corridor {
    /// Type of the object.
    pub object: String,
    /// Currency that is sold.
    pub sell_currency: CorridorSellCurrency,
    /// Currency that is bought.
    pub buy_currency: CorridorBuyCurrency,
    /// Smallest amount that can be sent.
    pub amount_minimum: Decimal,
    /// Largest amount that can be sent.
    pub amount_maximum: Decimal,
    /// What is kept of the amount before it is exchanged.
    pub fee: Fee,
    /// The stablecoin leg.
    pub funding: Vec<CorridorFunding>,
    /// How long a quote lock lives, in seconds.
    pub quote_lock_seconds: i64,
    /// How long a transfer waits for its deposit, in seconds.
    pub funding_seconds: i64,
    /// Types of bank account that can receive payouts.
    pub account_types: Vec<String>,
    /// Indian payment systems that payouts go by.
    pub methods: Vec<CorridorMethods>,
    /// RBI purpose codes that are taken.
    pub purpose_codes: Vec<String>,
    /// Whether the object belongs to live mode.
    pub livemode: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CorridorSellCurrency {
    #[serde(rename = "INR")]
    Inr,
    #[serde(rename = "USD")]
    Usd,
    #[serde(rename = "USDT")]
    Usdt,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CorridorBuyCurrency {
    #[serde(rename = "INR")]
    Inr,
    #[serde(rename = "USD")]
    Usd,
    #[serde(rename = "USDT")]
    Usdt,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CorridorMethods {
    #[serde(rename = "neft")]
    Neft,
    #[serde(rename = "rtgs")]
    Rtgs,
    #[serde(rename = "internal")]
    Internal,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CorridorFunding {
    /// How the transfer is funded.
    pub rail: String,
    /// Token of the stablecoin rail.
    pub asset: String,
    /// Blockchain that the token moves on.
    pub chain: CorridorFundingChain,
    /// Contract of the token on its chain.
    pub token_contract: String,
    /// How far the chain's final view is followed; null where the chain is simulated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub view: Option<ChainView>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CorridorFundingChain {
    #[serde(rename = "tron")]
    Tron,
    #[serde(rename = "ethereum")]
    Ethereum,
    #[serde(rename = "polygon")]
    Polygon,
    #[serde(rename = "base")]
    Base,
    #[serde(rename = "arbitrum")]
    Arbitrum,
    #[serde(rename = "bnb")]
    Bnb,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CorridorList {
    /// Type of the object.
    pub object: String,
    /// The objects of this page.
    pub data: Vec<Corridor>,
    /// Whether more objects follow in the direction of paging.
    pub has_next: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CreateBeneficiary {
    /// Name of the account holder, as the bank holds it.
    pub name: String,
    /// Number of the bank account; no answer shows it.
    pub account_number: String,
    /// IFSC of the branch.
    pub ifsc: String,
    /// Type of the bank account.
    pub account_type: String,
    /// Email address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// Telephone number in E.164 form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phone: Option<String>,
    /// The caller's own names and values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<BTreeMap<String, String>>,
    /// Indian permanent account number; no answer shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pan: Option<String>,
    /// Passport number; no answer shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passport_number: Option<String>,
    /// Date of birth, YYYY-MM-DD: a past date, not before 1900.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date_of_birth: Option<String>,
    /// ISO 3166-1 alpha-2 code of the nationality.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nationality: Option<String>,
    /// How the sender and the beneficiary are related.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relationship: Option<CreateBeneficiaryRelationship>,
    /// Whether verification begins: true if left out. With false the beneficiary is a `draft`, until an update sends `submit` true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submit: Option<bool>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CreateBeneficiaryRelationship {
    #[serde(rename = "self")]
    Self_,
    #[serde(rename = "family")]
    Family,
    #[serde(rename = "other")]
    Other,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CreateQuoteLock {
    /// Currency that is sold.
    pub sell_currency: String,
    /// Currency that is bought.
    pub buy_currency: String,
    /// Amount in `sell_currency`, with at most two decimals; in place of `buy_amount`. From 10.00 to 50000.00 USD, unless the operator has set other limits: `GET /v1/corridors` shows them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amount: Option<Decimal>,
    /// Amount in `buy_currency` to arrive, with at most two decimals; in place of `amount`. From what the smallest `amount` buys to what the largest buys; a refusal names both in `metadata.minimum` and `metadata.maximum`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buy_amount: Option<Decimal>,
    /// The caller's own names and values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<BTreeMap<String, String>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CreateSender {
    /// Name of the remitter.
    pub name: String,
    /// Kind of remitter.
    pub r#type: String,
    /// ISO 3166-1 alpha-2 code of the country.
    pub country: String,
    /// Email address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// Postal address. Live mode needs it: the bank has to know `city` and `country`, and a transfer whose sender has no address is refused there with `sender_not_eligible`. Test mode does without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<CreateSenderAddress>,
    /// The caller's own names and values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<BTreeMap<String, String>>,
    /// Date of birth, YYYY-MM-DD: a past date, not before 1900.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date_of_birth: Option<String>,
    /// ISO 3166-1 alpha-2 code of the nationality.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nationality: Option<String>,
    /// Document that identifies the person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identification: Option<CreateSenderIdentification>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CreateSenderAddress {
    /// Street and number.
    pub line1: String,
    /// City.
    pub city: String,
    /// State or province.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Postal code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub postal_code: Option<String>,
    /// ISO 3166-1 alpha-2 code of the country.
    pub country: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CreateSenderIdentification {
    /// Type of the document.
    pub r#type: CreateSenderIdentificationType,
    /// Number of the document; no answer shows it.
    pub number: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CreateSenderIdentificationType {
    #[serde(rename = "passport")]
    Passport,
    #[serde(rename = "national_id")]
    NationalId,
    #[serde(rename = "driving_licence")]
    DrivingLicence,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CreateTransfer {
    /// ID of the sender.
    pub sender_id: String,
    /// ID of the beneficiary.
    pub beneficiary_id: String,
    /// Amount that the payer deposits, in `currency`: that of the quote lock, so from 10.00 to 50000.00 USD, unless the operator has set other limits.
    pub amount: Decimal,
    /// Code of the currency.
    pub currency: String,
    /// Currency of the payout.
    pub payout_currency: String,
    /// ID of the quote lock.
    pub quote_lock_id: String,
    /// The stablecoin leg.
    pub funding: CreateTransferFunding,
    /// The caller's own reference, unique among the account's transfers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// Where the payer's page leads to at the end, over https.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub return_url: Option<String>,
    /// The caller's own names and values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<BTreeMap<String, String>>,
    /// RBI purpose code of the remittance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purpose_code: Option<CreateTransferPurposeCode>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CreateTransferPurposeCode {
    #[serde(rename = "P0014")]
    P0014,
    #[serde(rename = "P1301")]
    P1301,
    #[serde(rename = "P1302")]
    P1302,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CreateTransferFunding {
    /// How the transfer is funded.
    pub rail: String,
    /// Token of the stablecoin rail.
    pub asset: String,
    /// Blockchain that the token moves on. Each mode takes one: a test key takes `tron`, unless the operator has set up another test net; a live key takes the chain that the operator follows. `GET /v1/corridors`, sent with the key, names it in `funding[0].chain`.
    pub chain: CreateTransferFundingChain,
    /// Blockchain address that a refund goes to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refund_address: Option<String>,
    /// Whether the payer may give a refund's address on the page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payer_sets_refund_address: Option<bool>,
    /// What to do with money that does not fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<CreateTransferFundingPolicy>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CreateTransferFundingChain {
    #[serde(rename = "tron")]
    Tron,
    #[serde(rename = "ethereum")]
    Ethereum,
    #[serde(rename = "polygon")]
    Polygon,
    #[serde(rename = "base")]
    Base,
    #[serde(rename = "arbitrum")]
    Arbitrum,
    #[serde(rename = "bnb")]
    Bnb,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CreateTransferFundingPolicy {
    /// What to do with too little money at expiry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub underpaid: Option<CreateTransferFundingPolicyUnderpaid>,
    /// What to do with money above the amount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overpaid: Option<CreateTransferFundingPolicyOverpaid>,
    /// What to do with money that arrives late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late: Option<CreateTransferFundingPolicyLate>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CreateTransferFundingPolicyUnderpaid {
    #[serde(rename = "hold")]
    Hold,
    #[serde(rename = "refund")]
    Refund,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CreateTransferFundingPolicyOverpaid {
    #[serde(rename = "refund_excess")]
    RefundExcess,
    #[serde(rename = "hold")]
    Hold,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CreateTransferFundingPolicyLate {
    #[serde(rename = "hold")]
    Hold,
    #[serde(rename = "refund")]
    Refund,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CreateWebhookEndpoint {
    /// Where events are sent. Two endpoints may have the same address: each is sent every event that it enables, signed with its own secret.
    pub url: String,
    /// Event types: full names, prefixes such as transfer.status.*, or *; * if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled_events: Option<Vec<String>>,
    /// The caller's own description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The caller's own names and values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<BTreeMap<String, String>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeclareRefundAddress {
    /// Blockchain address that the refund goes to.
    pub to_address: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeletedWebhookEndpoint {
    /// Type of the object.
    pub object: String,
    /// ID of the object.
    pub id: String,
    /// Always true.
    pub deleted: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Deposit {
    /// Type of the object.
    pub object: String,
    /// ID of the object.
    pub id: String,
    /// ID of the transfer.
    pub transfer_id: String,
    /// How far the chain has confirmed the movement.
    pub status: DepositStatus,
    /// Amount of money as a decimal string.
    pub amount: Decimal,
    /// Code of the currency.
    pub currency: String,
    /// Token of the stablecoin rail.
    pub asset: String,
    /// Blockchain that the token moves on.
    pub chain: String,
    /// Blockchain address that paid.
    pub from_address: String,
    /// Deposit address of the transfer.
    pub to_address: String,
    /// Hash of the transaction on chain.
    pub transaction_hash: String,
    /// Index of the movement's log in its block.
    pub log_index: i64,
    /// Number of the block that holds the transaction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_number: Option<i64>,
    /// Time of that block in Unix seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_time: Option<i64>,
    /// Blocks from the transaction's block to the chain's newest one.
    pub confirmations: i64,
    /// What the deposit meant for its transfer; null until it is final.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classification: Option<DepositClassification>,
    /// Why the deposit failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason_code: Option<DepositReasonCode>,
    /// When it was completed, in Unix seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<i64>,
    /// When the object was created, in Unix seconds.
    pub created: i64,
    /// Whether the object belongs to live mode.
    pub livemode: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DepositStatus {
    #[serde(rename = "initialized")]
    Initialized,
    #[serde(rename = "processing")]
    Processing,
    #[serde(rename = "completed")]
    Completed,
    #[serde(rename = "failed")]
    Failed,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DepositClassification {
    #[serde(rename = "exact")]
    Exact,
    #[serde(rename = "partial")]
    Partial,
    #[serde(rename = "over")]
    Over,
    #[serde(rename = "late")]
    Late,
    #[serde(rename = "unmatched")]
    Unmatched,
    #[serde(rename = "unsupported")]
    Unsupported,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DepositReasonCode {
    #[serde(rename = "asset_unsupported")]
    AssetUnsupported,
    #[serde(rename = "dropped")]
    Dropped,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DepositList {
    /// Type of the object.
    pub object: String,
    /// The objects of this page.
    pub data: Vec<Deposit>,
    /// Whether more objects follow in the direction of paging.
    pub has_next: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DiagnoseFunding {
    /// Hash of the transaction that is asked about.
    pub transaction_hash: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DrillCheck {
    /// What was tried.
    pub name: String,
    /// Whether the receiver answered as it should.
    pub passed: bool,
    /// The answer that is right: `2xx` or `4xx`. `any` where only the time counts.
    pub expected: String,
    /// Type of the event in each delivery, in the order in which they were sent.
    pub event_types: Vec<String>,
    /// HTTP statuses of the answers; 0 where none came.
    pub http_statuses: Vec<i64>,
    /// The longest time to an answer, in milliseconds.
    pub duration_milliseconds: i64,
    /// What the check is for, and what to correct if it failed.
    pub message: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EmptyBody {
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Type of the object.
    pub object: String,
    /// ID of the object.
    pub id: String,
    /// What changed, such as `transfer.status.payout_settled`.
    pub r#type: String,
    /// ID of the object that changed.
    pub linked_id: String,
    /// Type of the object that changed.
    pub linked_object: String,
    /// When the change happened, in Unix seconds.
    pub created: i64,
    /// Whether the object belongs to live mode.
    pub livemode: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EventCheckpoint {
    /// Type of the object.
    pub object: String,
    /// The last event that is counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_id: Option<String>,
    /// How many events there are up to this one, itself included.
    pub events_count: i64,
    /// Chained hash over the events up to this one, 64 hexadecimal digits.
    pub hash: String,
    /// Whether the object belongs to live mode.
    pub livemode: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EventList {
    /// Type of the object.
    pub object: String,
    /// The objects of this page.
    pub data: Vec<Event>,
    /// Whether more objects follow in the direction of paging.
    pub has_next: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fee {
    /// Amount of money as a decimal string.
    pub amount: Decimal,
    /// Code of the currency.
    pub currency: FeeCurrency,
    /// Parts of the fee.
    pub details: Vec<FeeDetail>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FeeCurrency {
    #[serde(rename = "INR")]
    Inr,
    #[serde(rename = "USD")]
    Usd,
    #[serde(rename = "USDT")]
    Usdt,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FeeDetail {
    /// What the part is: `service_fee` or `gst`.
    pub name: String,
    /// Amount of money as a decimal string.
    pub amount: Decimal,
    /// Present only if it differs from the fee's currency: GST is in rupees.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<FeeDetailCurrency>,
    /// For a tax: the value that it is computed on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taxable_value: Option<Decimal>,
    /// For a tax: its rate in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_percent: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FeeDetailCurrency {
    #[serde(rename = "INR")]
    Inr,
    #[serde(rename = "USD")]
    Usd,
    #[serde(rename = "USDT")]
    Usdt,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Funding {
    /// How the transfer is funded.
    pub rail: String,
    /// Token of the stablecoin rail.
    pub asset: String,
    /// Blockchain that the token moves on.
    pub chain: String,
    /// Blockchain address that the payer sends to.
    pub deposit_address: String,
    /// Where the stablecoin leg stands.
    pub status: FundingStatus,
    /// What has to arrive at the deposit address.
    pub amount_expected: Decimal,
    /// Sum of the final deposits that counted.
    pub amount_received: Decimal,
    /// What was received above the expected amount and is owed back.
    pub amount_excess: Decimal,
    /// Until when a deposit is in time, by its block's time in Unix seconds.
    pub expires_at: i64,
    /// Blockchain address that a refund goes to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refund_address: Option<String>,
    /// Whether the payer may give a refund's address on the page.
    pub payer_sets_refund_address: bool,
    /// What to do with money that does not fit.
    pub policy: FundingPolicy,
    /// Contract of the token on its chain.
    pub token_contract: String,
    /// Page that shows the payer what to send and where.
    pub instructions_url: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FundingStatus {
    #[serde(rename = "awaiting_funds")]
    AwaitingFunds,
    #[serde(rename = "confirming")]
    Confirming,
    #[serde(rename = "partially_funded")]
    PartiallyFunded,
    #[serde(rename = "funded")]
    Funded,
    #[serde(rename = "hold")]
    Hold,
    #[serde(rename = "expired")]
    Expired,
    #[serde(rename = "cancelled")]
    Cancelled,
    #[serde(rename = "refund_processing")]
    RefundProcessing,
    #[serde(rename = "refunded")]
    Refunded,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FundingDiagnosis {
    /// Type of the object.
    pub object: String,
    /// ID of the transfer.
    pub transfer_id: String,
    /// Hash of the transaction on chain.
    pub transaction_hash: String,
    /// What became of the transaction, as a stable word.
    pub code: FundingDiagnosisCode,
    /// A sentence or two that a payer can be shown.
    pub message: String,
    /// ID of the deposit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deposit_id: Option<String>,
    /// Amount of money as a decimal string.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amount: Option<Decimal>,
    /// Code of the currency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// What will still be missing from the transfer's amount once this transaction is final.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short_by: Option<Decimal>,
    /// By how many seconds the block is later than `funding.expires_at`; null if it was in time, or if its time does not matter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late_by_seconds: Option<i64>,
    /// Number of the block that holds the transaction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_number: Option<i64>,
    /// Time of that block in Unix seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_time: Option<i64>,
    /// Blocks from the transaction's block to the chain's newest one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmations: Option<i64>,
    /// Blockchain address that the transaction paid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_address: Option<String>,
    /// Contract of the token on its chain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_contract: Option<String>,
    /// Whether the object belongs to live mode.
    pub livemode: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FundingDiagnosisCode {
    #[serde(rename = "credited")]
    Credited,
    #[serde(rename = "confirming")]
    Confirming,
    #[serde(rename = "short_by")]
    ShortBy,
    #[serde(rename = "late_by")]
    LateBy,
    #[serde(rename = "after_cancel")]
    AfterCancel,
    #[serde(rename = "unmatched")]
    Unmatched,
    #[serde(rename = "not_credited")]
    NotCredited,
    #[serde(rename = "zero_value")]
    ZeroValue,
    #[serde(rename = "look_alike_token")]
    LookAlikeToken,
    #[serde(rename = "wrong_token")]
    WrongToken,
    #[serde(rename = "wrong_address")]
    WrongAddress,
    #[serde(rename = "unrelated")]
    Unrelated,
    #[serde(rename = "no_token")]
    NoToken,
    #[serde(rename = "reverted")]
    Reverted,
    #[serde(rename = "not_found")]
    NotFound,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FundingPolicy {
    /// What to do with too little money at expiry.
    pub underpaid: FundingPolicyUnderpaid,
    /// What to do with money above the amount.
    pub overpaid: FundingPolicyOverpaid,
    /// What to do with money that arrives late.
    pub late: FundingPolicyLate,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FundingPolicyUnderpaid {
    #[serde(rename = "hold")]
    Hold,
    #[serde(rename = "refund")]
    Refund,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FundingPolicyOverpaid {
    #[serde(rename = "refund_excess")]
    RefundExcess,
    #[serde(rename = "hold")]
    Hold,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FundingPolicyLate {
    #[serde(rename = "hold")]
    Hold,
    #[serde(rename = "refund")]
    Refund,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Identification {
    /// Type of the document.
    pub r#type: IdentificationType,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum IdentificationType {
    #[serde(rename = "passport")]
    Passport,
    #[serde(rename = "national_id")]
    NationalId,
    #[serde(rename = "driving_licence")]
    DrivingLicence,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PayerAddress {
    /// Blockchain address that the payer gave.
    pub to_address: String,
    /// When it was declared, in Unix seconds.
    pub declared_at: i64,
    /// When it becomes the refund's address, in Unix seconds, unless another one is declared before.
    pub active_at: i64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PaymentAdvice {
    /// Whether the payment advice can be fetched.
    pub status: PaymentAdviceStatus,
    /// Since when it is available, in Unix seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_at: Option<i64>,
    /// Where the payment advice is fetched with the API key; null until the advice is available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PaymentAdviceStatus {
    #[serde(rename = "pending")]
    Pending,
    #[serde(rename = "available")]
    Available,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PaymentAdviceDocument {
    /// Type of the object.
    pub object: String,
    /// Number of the payment advice.
    pub advice_number: String,
    /// Who made the document: the operator's name.
    pub issuer: String,
    /// The issuer's postal address, where the operator has named it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issuer_address: Option<String>,
    /// The licence that the issuer works under, where the operator has named it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issuer_licence: Option<String>,
    /// When it became available, in Unix seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issued_at: Option<i64>,
    /// ID of the payout, from funded on.
    pub payout_id: String,
    /// ID of the transfer.
    pub transfer_id: String,
    /// `settled`, or `returned` where the beneficiary's bank sent the money back.
    pub status: PaymentAdviceDocumentStatus,
    /// The UTR, by which the beneficiary's bank knows the payment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unique_transaction_reference: Option<String>,
    /// Indian payment system that the payout goes by.
    pub method: PaymentAdviceDocumentMethod,
    /// When the payout settled, in Unix seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled_at: Option<i64>,
    /// When the bank sent the money back, in Unix seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returned_at: Option<i64>,
    /// The milestones that the payment has reached, oldest first.
    pub milestones: Vec<AdviceMilestone>,
    /// Who sent the money.
    pub sender: AdviceSender,
    /// Who was paid.
    pub beneficiary: AdviceBeneficiary,
    /// RBI purpose code of the remittance.
    pub purpose_code: String,
    /// What the purpose code means.
    pub purpose: String,
    /// What the sender sold.
    pub amount_sent: Decimal,
    /// Currency of what the sender sold.
    pub amount_sent_currency: PaymentAdviceDocumentAmountSentCurrency,
    /// In the currency that was sent.
    pub fee: Decimal,
    /// INR for one USD, six decimals.
    pub rate: Decimal,
    /// When the rate was locked, in Unix seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_locked_at: Option<i64>,
    /// `amount_sent` at `rate`, before the fee. It is not what GST is computed on, which is after the fee.
    pub amount_gross: Decimal,
    /// The fee in the currency of the payout: `amount_gross` less `gst` and `amount`.
    pub amount_fee: Decimal,
    /// The GST that was deducted, where it is charged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gst: Option<AdviceGst>,
    /// Amount of money as a decimal string.
    pub amount: Decimal,
    /// Code of the currency.
    pub currency: PaymentAdviceDocumentCurrency,
    /// The amount in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amount_in_words: Option<String>,
    /// At most 20, oldest first.
    pub deposits: Vec<AdviceDeposit>,
    /// How many deposits count towards the transfer.
    pub deposits_count: i64,
    /// The bank that sent the INR, where the operator has named one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sponsor_bank: Option<String>,
    /// Last four characters of the operator's account at `sponsor_bank` that was debited; only in live mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub debited_account_last4: Option<String>,
    /// What is certified.
    pub statement: String,
    /// Where anybody can compare amount, date, reference and last four digits with what the service knows.
    pub verification_url: String,
    /// Where the keys are that verify `signature`.
    pub key_set_url: String,
    /// Whether the object belongs to live mode.
    pub livemode: bool,
    /// Signature of the document.
    pub signature: AdviceSignature,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PaymentAdviceDocumentStatus {
    #[serde(rename = "initialized")]
    Initialized,
    #[serde(rename = "hold")]
    Hold,
    #[serde(rename = "processing")]
    Processing,
    #[serde(rename = "settled")]
    Settled,
    #[serde(rename = "failed")]
    Failed,
    #[serde(rename = "returned")]
    Returned,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PaymentAdviceDocumentMethod {
    #[serde(rename = "neft")]
    Neft,
    #[serde(rename = "rtgs")]
    Rtgs,
    #[serde(rename = "internal")]
    Internal,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PaymentAdviceDocumentAmountSentCurrency {
    #[serde(rename = "INR")]
    Inr,
    #[serde(rename = "USD")]
    Usd,
    #[serde(rename = "USDT")]
    Usdt,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PaymentAdviceDocumentCurrency {
    #[serde(rename = "INR")]
    Inr,
    #[serde(rename = "USD")]
    Usd,
    #[serde(rename = "USDT")]
    Usdt,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Payout {
    /// Type of the object.
    pub object: String,
    /// ID of the object.
    pub id: String,
    /// ID of the transfer.
    pub transfer_id: String,
    /// ID of the beneficiary.
    pub beneficiary_id: String,
    /// Where the rupee payment stands.
    pub status: PayoutStatus,
    /// Amount of money as a decimal string.
    pub amount: Decimal,
    /// Code of the currency.
    pub currency: PayoutCurrency,
    /// Indian payment system that the payout goes by.
    pub method: PayoutMethod,
    /// RBI purpose code of the remittance.
    pub purpose_code: String,
    /// The UTR, by which the beneficiary's bank knows the payment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unique_transaction_reference: Option<String>,
    /// Until when the payout waits, in Unix seconds, because the bank takes no payouts of its method now; null where it does not wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_until: Option<i64>,
    /// When the payout settled, in Unix seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled_at: Option<i64>,
    /// Null where all is well. In `failed` it says why the payout failed, in `returned` why it came back. In `processing` it is `outcome_unknown`: the payout may still arrive, so wait, and do not pay again. Branch on `status`, not on this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<PayoutFailure>,
    /// The document of a settled payout; pending for all others.
    pub payment_advice: PaymentAdvice,
    /// When the object was created, in Unix seconds.
    pub created: i64,
    /// Whether the object belongs to live mode.
    pub livemode: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PayoutStatus {
    #[serde(rename = "initialized")]
    Initialized,
    #[serde(rename = "hold")]
    Hold,
    #[serde(rename = "processing")]
    Processing,
    #[serde(rename = "settled")]
    Settled,
    #[serde(rename = "failed")]
    Failed,
    #[serde(rename = "returned")]
    Returned,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PayoutCurrency {
    #[serde(rename = "INR")]
    Inr,
    #[serde(rename = "USD")]
    Usd,
    #[serde(rename = "USDT")]
    Usdt,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PayoutMethod {
    #[serde(rename = "neft")]
    Neft,
    #[serde(rename = "rtgs")]
    Rtgs,
    #[serde(rename = "internal")]
    Internal,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PayoutFailure {
    /// Why the payout failed or came back, as a stable word; `outcome_unknown` where the bank has not said whether it paid.
    pub code: PayoutFailureCode,
    /// Text for humans; may change.
    pub message: String,
    /// Who reported the failure.
    pub source: PayoutFailureSource,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PayoutFailureCode {
    #[serde(rename = "beneficiary_name_mismatch")]
    BeneficiaryNameMismatch,
    #[serde(rename = "account_invalid")]
    AccountInvalid,
    #[serde(rename = "account_closed")]
    AccountClosed,
    #[serde(rename = "account_frozen")]
    AccountFrozen,
    #[serde(rename = "account_not_nre")]
    AccountNotNre,
    #[serde(rename = "ifsc_invalid")]
    IfscInvalid,
    #[serde(rename = "beneficiary_bank_unavailable")]
    BeneficiaryBankUnavailable,
    #[serde(rename = "returned_by_beneficiary_bank")]
    ReturnedByBeneficiaryBank,
    #[serde(rename = "compliance_rejected")]
    ComplianceRejected,
    #[serde(rename = "technical_error")]
    TechnicalError,
    #[serde(rename = "outcome_unknown")]
    OutcomeUnknown,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PayoutFailureSource {
    #[serde(rename = "beneficiary_bank")]
    BeneficiaryBank,
    #[serde(rename = "sponsor_bank")]
    SponsorBank,
    #[serde(rename = "service")]
    Service,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PayoutList {
    /// Type of the object.
    pub object: String,
    /// The objects of this page.
    pub data: Vec<Payout>,
    /// Whether more objects follow in the direction of paging.
    pub has_next: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PostalAddress {
    /// Street and number.
    pub line1: String,
    /// City.
    pub city: String,
    /// State or province.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Postal code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub postal_code: Option<String>,
    /// ISO 3166-1 alpha-2 code of the country.
    pub country: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QuoteLock {
    /// Type of the object.
    pub object: String,
    /// ID of the object.
    pub id: String,
    /// Whether a transfer can still be created with it.
    pub status: QuoteLockStatus,
    /// Currency that is sold.
    pub sell_currency: QuoteLockSellCurrency,
    /// Amount that is sold, as a decimal string.
    pub sell_amount: Decimal,
    /// Currency that is bought.
    pub buy_currency: QuoteLockBuyCurrency,
    /// Amount that is bought, as a decimal string; rounded down to the paisa.
    pub buy_amount: Decimal,
    /// The same as `sell_amount`.
    pub amount: Decimal,
    /// INR for one USD, six decimals.
    pub rate: Decimal,
    /// Market rate before the spread, INR for one USD.
    pub mid_market_rate: Decimal,
    /// What is kept of the amount before it is exchanged.
    pub fee: Fee,
    /// Until when a transfer can be created with it, in Unix seconds.
    pub expires_at: i64,
    /// ID of the transfer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfer_id: Option<String>,
    /// The caller's own names and values.
    pub metadata: BTreeMap<String, String>,
    /// When the object was created, in Unix seconds.
    pub created: i64,
    /// Whether the object belongs to live mode.
    pub livemode: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum QuoteLockStatus {
    #[serde(rename = "active")]
    Active,
    #[serde(rename = "used")]
    Used,
    #[serde(rename = "expired")]
    Expired,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum QuoteLockSellCurrency {
    #[serde(rename = "INR")]
    Inr,
    #[serde(rename = "USD")]
    Usd,
    #[serde(rename = "USDT")]
    Usdt,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum QuoteLockBuyCurrency {
    #[serde(rename = "INR")]
    Inr,
    #[serde(rename = "USD")]
    Usd,
    #[serde(rename = "USDT")]
    Usdt,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QuoteLockList {
    /// Type of the object.
    pub object: String,
    /// The objects of this page.
    pub data: Vec<QuoteLock>,
    /// Whether more objects follow in the direction of paging.
    pub has_next: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Refund {
    /// Type of the object.
    pub object: String,
    /// ID of the object.
    pub id: String,
    /// ID of the transfer.
    pub transfer_id: String,
    /// What the refund gives back.
    pub kind: RefundKind,
    /// Where the refund stands.
    pub status: RefundStatus,
    /// Why, as a stable word.
    pub reason: RefundReason,
    /// Amount of money as a decimal string.
    pub amount: Decimal,
    /// Token of the stablecoin rail.
    pub asset: String,
    /// Blockchain that the token moves on.
    pub chain: String,
    /// Blockchain address that the refund goes to; null until one is declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_address: Option<String>,
    /// Address that the payer gave for the refund; declare it to use it at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payer_address: Option<PayerAddress>,
    /// Hash of the transaction that paid the refund.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transaction_hash: Option<String>,
    /// When it was completed, in Unix seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<i64>,
    /// When the object was created, in Unix seconds.
    pub created: i64,
    /// Whether the object belongs to live mode.
    pub livemode: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RefundKind {
    #[serde(rename = "principal")]
    Principal,
    #[serde(rename = "excess")]
    Excess,
    #[serde(rename = "unmatched")]
    Unmatched,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RefundStatus {
    #[serde(rename = "requires_address")]
    RequiresAddress,
    #[serde(rename = "processing")]
    Processing,
    #[serde(rename = "completed")]
    Completed,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RefundReason {
    #[serde(rename = "underpaid")]
    Underpaid,
    #[serde(rename = "overpaid")]
    Overpaid,
    #[serde(rename = "late")]
    Late,
    #[serde(rename = "compliance_rejected")]
    ComplianceRejected,
    #[serde(rename = "payout_failed")]
    PayoutFailed,
    #[serde(rename = "payout_returned")]
    PayoutReturned,
    #[serde(rename = "unmatched")]
    Unmatched,
    #[serde(rename = "requoted")]
    Requoted,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RefundList {
    /// Type of the object.
    pub object: String,
    /// The objects of this page.
    pub data: Vec<Refund>,
    /// Whether more objects follow in the direction of paging.
    pub has_next: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RefundStatusChange {
    /// The status.
    pub status: RefundStatusChangeStatus,
    /// When the refund reached this status, in Unix seconds.
    pub at: i64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RefundStatusChangeStatus {
    #[serde(rename = "funding")]
    Funding,
    #[serde(rename = "funding_hold")]
    FundingHold,
    #[serde(rename = "funded")]
    Funded,
    #[serde(rename = "payout_processing")]
    PayoutProcessing,
    #[serde(rename = "payout_settled")]
    PayoutSettled,
    #[serde(rename = "payout_failed")]
    PayoutFailed,
    #[serde(rename = "payout_returned")]
    PayoutReturned,
    #[serde(rename = "refund_processing")]
    RefundProcessing,
    #[serde(rename = "refunded")]
    Refunded,
    #[serde(rename = "expired")]
    Expired,
    #[serde(rename = "cancelled")]
    Cancelled,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReplayWebhooks {
    /// Deliver this event again, in place of a period.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_id: Option<String>,
    /// Replay events from this time on, in Unix seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<i64>,
    /// Replay events up to this time, itself included, in Unix seconds: now if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<i64>,
    /// Replay only what the receiver has not taken: failed deliveries, those that were recorded while the endpoint was disabled, and those that wait for another attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only_failed: Option<bool>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Requirement {
    /// The field concerned, nested names joined with dots.
    pub field_name: String,
    /// What is wrong with the field, as a stable word.
    pub code: String,
    /// Text for humans; may change.
    pub message: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResolveFunding {
    /// What to do with the money in the hold.
    pub action: ResolveFundingAction,
    /// ID of the quote lock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quote_lock_id: Option<String>,
    /// Blockchain address that a refund goes to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refund_address: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ResolveFundingAction {
    #[serde(rename = "requote")]
    Requote,
    #[serde(rename = "refund")]
    Refund,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RotateWebhookSecret {
    /// How long the old secret signs too, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap_seconds: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sender {
    /// Type of the object.
    pub object: String,
    /// ID of the object.
    pub id: String,
    /// Name of the remitter.
    pub name: String,
    /// Kind of remitter.
    pub r#type: String,
    /// ISO 3166-1 alpha-2 code of the country.
    pub country: String,
    /// Email address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// Postal address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<PostalAddress>,
    /// Date of birth, YYYY-MM-DD: a past date, not before 1900.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date_of_birth: Option<String>,
    /// ISO 3166-1 alpha-2 code of the nationality.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nationality: Option<String>,
    /// Document that identifies the person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identification: Option<Identification>,
    /// The caller's own names and values.
    pub metadata: BTreeMap<String, String>,
    /// When the object was created, in Unix seconds.
    pub created: i64,
    /// Whether the object belongs to live mode.
    pub livemode: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SenderList {
    /// Type of the object.
    pub object: String,
    /// The objects of this page.
    pub data: Vec<Sender>,
    /// Whether more objects follow in the direction of paging.
    pub has_next: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SettledPayout {
    /// ID of the object.
    pub id: String,
    /// Where the rupee payment stands: `settled`, or `returned` later.
    pub status: SettledPayoutStatus,
    /// Amount of money as a decimal string.
    pub amount: Decimal,
    /// Code of the currency.
    pub currency: SettledPayoutCurrency,
    /// The UTR, by which the beneficiary's bank knows the payment.
    pub unique_transaction_reference: String,
    /// When the payout settled, in Unix seconds.
    pub settled_at: i64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SettledPayoutStatus {
    #[serde(rename = "initialized")]
    Initialized,
    #[serde(rename = "hold")]
    Hold,
    #[serde(rename = "processing")]
    Processing,
    #[serde(rename = "settled")]
    Settled,
    #[serde(rename = "failed")]
    Failed,
    #[serde(rename = "returned")]
    Returned,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SettledPayoutCurrency {
    #[serde(rename = "INR")]
    Inr,
    #[serde(rename = "USD")]
    Usd,
    #[serde(rename = "USDT")]
    Usdt,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SimulateDeposit {
    /// Amount that the payer sends, with at most six decimals: what is missing if left out. From 0.000001 to 1000000.00.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amount: Option<Decimal>,
    /// Token that is sent, USDT if left out; no other one is credited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asset: Option<String>,
    /// Time of the deposit's block in Unix seconds: now if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_time: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SimulateFailure {
    /// Why the bank refuses the payout or sends it back. If left out, `account_closed` for a refusal and `returned_by_beneficiary_bank` for a return. For `outcome_unknown` no helper is needed: an account number that ends in `1003` leads to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<SimulateFailureCode>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SimulateFailureCode {
    #[serde(rename = "beneficiary_name_mismatch")]
    BeneficiaryNameMismatch,
    #[serde(rename = "account_invalid")]
    AccountInvalid,
    #[serde(rename = "account_closed")]
    AccountClosed,
    #[serde(rename = "account_frozen")]
    AccountFrozen,
    #[serde(rename = "account_not_nre")]
    AccountNotNre,
    #[serde(rename = "ifsc_invalid")]
    IfscInvalid,
    #[serde(rename = "beneficiary_bank_unavailable")]
    BeneficiaryBankUnavailable,
    #[serde(rename = "returned_by_beneficiary_bank")]
    ReturnedByBeneficiaryBank,
    #[serde(rename = "compliance_rejected")]
    ComplianceRejected,
    #[serde(rename = "technical_error")]
    TechnicalError,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StartChaos {
    /// How long the attacks go on, in seconds: 600 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_seconds: Option<i64>,
    /// Number that chooses which requests and events are attacked; the same number chooses the same ones. If left out, the service draws one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<i64>,
    /// Percentage of requests and events that are attacked: 50 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percentage: Option<i64>,
    /// Attacks on requests: every kind if left out, none for an empty list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_attacks: Option<Vec<StartChaosRequestAttacks>>,
    /// By how much a delayed answer is late, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_milliseconds: Option<i64>,
    /// ID of the webhook endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook_endpoint_id: Option<String>,
    /// Attacks on deliveries to the endpoint: every kind if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook_attacks: Option<Vec<StartChaosWebhookAttacks>>,
    /// By how much a late delivery is late, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook_delay_milliseconds: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StartChaosRequestAttacks {
    #[serde(rename = "answer_dropped")]
    AnswerDropped,
    #[serde(rename = "answer_delayed")]
    AnswerDelayed,
    #[serde(rename = "service_unavailable")]
    ServiceUnavailable,
    #[serde(rename = "resource_locked")]
    ResourceLocked,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StartChaosWebhookAttacks {
    #[serde(rename = "duplicated")]
    Duplicated,
    #[serde(rename = "late")]
    Late,
    #[serde(rename = "forged")]
    Forged,
    #[serde(rename = "missing")]
    Missing,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Statement {
    /// Type of the object.
    pub object: String,
    /// First second of the period, in Unix seconds.
    pub from: i64,
    /// End of the period, in Unix seconds; not in it.
    pub to: i64,
    /// The objects of this page.
    pub data: Vec<StatementRow>,
    /// Sums of the period.
    pub totals: Vec<StatementTotal>,
    /// Whether the object belongs to live mode.
    pub livemode: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatementRow {
    /// ID of the transfer.
    pub transfer_id: String,
    /// Status of the transfer when the statement is made.
    pub status: StatementRowStatus,
    /// When the transfer was created, in Unix seconds.
    pub created: i64,
    /// Hashes of the completed deposits, in chain order; at most 100.
    pub deposit_transaction_hashes: Vec<String>,
    /// How many completed deposits there are, including those whose hashes are not listed.
    pub deposits_count: i64,
    /// USDT that came in during the period. USDT that a failed or returned payout gave back counts too.
    pub usdt_in: Decimal,
    /// USDT that left in the period, fee and refunds included.
    pub usdt_out: Decimal,
    /// INR for one USD.
    pub rate: Decimal,
    /// In USD.
    pub fee: Decimal,
    /// ID of the payout, from funded on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payout_id: Option<String>,
    /// What the beneficiary receives, as a decimal string.
    pub payout_amount: Decimal,
    /// Indian payment system that the payout goes by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<StatementRowMethod>,
    /// The UTR, by which the beneficiary's bank knows the payment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unique_transaction_reference: Option<String>,
    /// When the payout settled, in Unix seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled_at: Option<i64>,
    /// INR that was bought in the period.
    pub inr_in: Decimal,
    /// INR that left in the period: paid out, or exchanged back into USDT after a failed payout.
    pub inr_out: Decimal,
    /// USDT of completed refunds.
    pub refunded: Decimal,
    /// Hashes of the completed refunds, oldest first; at most 100.
    pub refund_transaction_hashes: Vec<String>,
    /// How many completed refunds there are, including those whose hashes are not listed.
    pub refunds_count: i64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StatementRowStatus {
    #[serde(rename = "funding")]
    Funding,
    #[serde(rename = "funding_hold")]
    FundingHold,
    #[serde(rename = "funded")]
    Funded,
    #[serde(rename = "payout_processing")]
    PayoutProcessing,
    #[serde(rename = "payout_settled")]
    PayoutSettled,
    #[serde(rename = "payout_failed")]
    PayoutFailed,
    #[serde(rename = "payout_returned")]
    PayoutReturned,
    #[serde(rename = "refund_processing")]
    RefundProcessing,
    #[serde(rename = "refunded")]
    Refunded,
    #[serde(rename = "expired")]
    Expired,
    #[serde(rename = "cancelled")]
    Cancelled,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StatementRowMethod {
    #[serde(rename = "neft")]
    Neft,
    #[serde(rename = "rtgs")]
    Rtgs,
    #[serde(rename = "internal")]
    Internal,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatementTotal {
    /// Code of the currency.
    pub currency: StatementTotalCurrency,
    /// Balance at the start of the period.
    pub opening: Decimal,
    /// What the period added: `closing` less `opening`.
    pub movements: Decimal,
    /// Balance at the end of the period.
    pub closing: Decimal,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StatementTotalCurrency {
    #[serde(rename = "INR")]
    Inr,
    #[serde(rename = "USD")]
    Usd,
    #[serde(rename = "USDT")]
    Usdt,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TestClock {
    /// Type of the object.
    pub object: String,
    /// The test clock in Unix seconds.
    pub now: i64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Transfer {
    /// Type of the object.
    pub object: String,
    /// ID of the object.
    pub id: String,
    /// Where the transfer stands; see the guide on the life of a transfer.
    pub status: TransferStatus,
    /// Why the transfer waits in funding_hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_reason: Option<TransferStatusReason>,
    /// ID of the sender.
    pub sender_id: String,
    /// ID of the beneficiary.
    pub beneficiary_id: String,
    /// ID of the quote lock.
    pub quote_lock_id: String,
    /// Amount that the payer deposits, in `currency`.
    pub amount: Decimal,
    /// Code of the currency.
    pub currency: TransferCurrency,
    /// What the beneficiary receives, as a decimal string.
    pub payout_amount: Decimal,
    /// Currency of the payout.
    pub payout_currency: TransferPayoutCurrency,
    /// INR for one USD, six decimals.
    pub rate: Decimal,
    /// What is kept of the amount before it is exchanged.
    pub fee: Fee,
    /// RBI purpose code of the remittance.
    pub purpose_code: TransferPurposeCode,
    /// The stablecoin leg.
    pub funding: Funding,
    /// ID of the payout, from funded on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payout_id: Option<String>,
    /// The rupee leg; null until it has settled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payout: Option<SettledPayout>,
    /// The newest refund of the transfer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refund: Option<Refund>,
    /// The caller's own reference, unique among the account's transfers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// Where the payer's page leads to at the end, over https.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub return_url: Option<String>,
    /// Statuses in the order in which the object reached them.
    pub status_history: Vec<RefundStatusChange>,
    /// The caller's own names and values.
    pub metadata: BTreeMap<String, String>,
    /// When the object was created, in Unix seconds.
    pub created: i64,
    /// Whether the object belongs to live mode.
    pub livemode: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TransferStatus {
    #[serde(rename = "funding")]
    Funding,
    #[serde(rename = "funding_hold")]
    FundingHold,
    #[serde(rename = "funded")]
    Funded,
    #[serde(rename = "payout_processing")]
    PayoutProcessing,
    #[serde(rename = "payout_settled")]
    PayoutSettled,
    #[serde(rename = "payout_failed")]
    PayoutFailed,
    #[serde(rename = "payout_returned")]
    PayoutReturned,
    #[serde(rename = "refund_processing")]
    RefundProcessing,
    #[serde(rename = "refunded")]
    Refunded,
    #[serde(rename = "expired")]
    Expired,
    #[serde(rename = "cancelled")]
    Cancelled,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TransferStatusReason {
    #[serde(rename = "underpaid")]
    Underpaid,
    #[serde(rename = "overpaid")]
    Overpaid,
    #[serde(rename = "late")]
    Late,
    #[serde(rename = "compliance_review")]
    ComplianceReview,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TransferCurrency {
    #[serde(rename = "INR")]
    Inr,
    #[serde(rename = "USD")]
    Usd,
    #[serde(rename = "USDT")]
    Usdt,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TransferPayoutCurrency {
    #[serde(rename = "INR")]
    Inr,
    #[serde(rename = "USD")]
    Usd,
    #[serde(rename = "USDT")]
    Usdt,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TransferPurposeCode {
    #[serde(rename = "P0014")]
    P0014,
    #[serde(rename = "P1301")]
    P1301,
    #[serde(rename = "P1302")]
    P1302,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TransferList {
    /// Type of the object.
    pub object: String,
    /// The objects of this page.
    pub data: Vec<Transfer>,
    /// Whether more objects follow in the direction of paging.
    pub has_next: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UpdateBeneficiary {
    /// Name of the account holder, as the bank holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Number of the bank account; no answer shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account_number: Option<String>,
    /// IFSC of the branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ifsc: Option<String>,
    /// Type of the bank account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account_type: Option<String>,
    /// Email address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<Option<String>>,
    /// Telephone number in E.164 form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phone: Option<Option<String>>,
    /// The caller's own names and values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Option<BTreeMap<String, Option<String>>>>,
    /// Indian permanent account number; no answer shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pan: Option<Option<String>>,
    /// Passport number; no answer shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passport_number: Option<Option<String>>,
    /// Date of birth, YYYY-MM-DD: a past date, not before 1900.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date_of_birth: Option<Option<String>>,
    /// ISO 3166-1 alpha-2 code of the nationality.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nationality: Option<Option<String>>,
    /// How the sender and the beneficiary are related.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relationship: Option<Option<UpdateBeneficiaryRelationship>>,
    /// Whether verification begins: if left out, true in `input_required` and false in `draft`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submit: Option<Option<bool>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum UpdateBeneficiaryRelationship {
    #[serde(rename = "self")]
    Self_,
    #[serde(rename = "family")]
    Family,
    #[serde(rename = "other")]
    Other,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UpdateWebhookEndpoint {
    /// Where events are sent. Two endpoints may have the same address: each is sent every event that it enables, signed with its own secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Event types: full names, prefixes such as transfer.status.*, or *; * if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled_events: Option<Option<Vec<String>>>,
    /// The caller's own description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<Option<String>>,
    /// The caller's own names and values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Option<BTreeMap<String, Option<String>>>>,
    /// `enabled` takes deliveries again after the endpoint was disabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ValidateBeneficiary {
    /// Name of the account holder, as the bank holds it.
    pub name: String,
    /// Number of the bank account; no answer shows it.
    pub account_number: String,
    /// IFSC of the branch.
    pub ifsc: String,
    /// Type of the bank account.
    pub account_type: String,
    /// Email address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// Telephone number in E.164 form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phone: Option<String>,
    /// The caller's own names and values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<BTreeMap<String, String>>,
    /// Indian permanent account number; no answer shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pan: Option<String>,
    /// Passport number; no answer shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passport_number: Option<String>,
    /// Date of birth, YYYY-MM-DD: a past date, not before 1900.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date_of_birth: Option<String>,
    /// ISO 3166-1 alpha-2 code of the nationality.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nationality: Option<String>,
    /// How the sender and the beneficiary are related.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relationship: Option<ValidateBeneficiaryRelationship>,
    /// Changes nothing here: it is taken so that the body of a create can be sent as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submit: Option<bool>,
    /// Amount in INR that the payment system is chosen by, with at most two decimals: from 0.01 to 999999999999.99.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amount: Option<Decimal>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ValidateBeneficiaryRelationship {
    #[serde(rename = "self")]
    Self_,
    #[serde(rename = "family")]
    Family,
    #[serde(rename = "other")]
    Other,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verification {
    /// How the name compares with the one that the bank holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name_match: Option<VerificationNameMatch>,
    /// When the account was checked, in Unix seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked_at: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum VerificationNameMatch {
    #[serde(rename = "match")]
    Match,
    #[serde(rename = "partial")]
    Partial,
    #[serde(rename = "mismatch")]
    Mismatch,
    #[serde(rename = "unavailable")]
    Unavailable,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WebhookAttempt {
    /// When the attempt began, in Unix seconds; a test clock does not move it.
    pub attempted_at: i64,
    /// The status of the answer; `null` where none came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_status: Option<i64>,
    /// How long the attempt took, in milliseconds.
    pub duration_milliseconds: i64,
    /// Why no answer came, such as `connect_timeout`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The beginning of the answer's body, at most 2 KiB.
    pub answer: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WebhookDelivery {
    /// Type of the object.
    pub object: String,
    /// ID of the object.
    pub id: String,
    /// ID of the webhook endpoint.
    pub webhook_endpoint_id: String,
    /// ID of the event.
    pub event_id: String,
    /// Where the delivery stands.
    pub status: WebhookDeliveryStatus,
    /// Attempts of the delivery, oldest first.
    pub attempts: Vec<WebhookAttempt>,
    /// When the next attempt is due, in Unix seconds; null where none is. A test clock does not move it. A time that is past says that the attempt waits for its turn, or is under way. During an attempt, the time can also be that of the attempt after it, which begins if the present one gives no result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt_at: Option<i64>,
    /// When the event happened, in Unix seconds: `created` of the event, so in test mode a time of the test clock. The times of attempts are real.
    pub created: i64,
    /// Whether the object belongs to live mode.
    pub livemode: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WebhookDeliveryStatus {
    #[serde(rename = "pending")]
    Pending,
    #[serde(rename = "succeeded")]
    Succeeded,
    #[serde(rename = "failed")]
    Failed,
    #[serde(rename = "recorded")]
    Recorded,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WebhookDeliveryList {
    /// Type of the object.
    pub object: String,
    /// The objects of this page.
    pub data: Vec<WebhookDelivery>,
    /// Whether more objects follow in the direction of paging.
    pub has_next: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WebhookDrill {
    /// Type of the object.
    pub object: String,
    /// ID of the webhook endpoint.
    pub webhook_endpoint_id: String,
    /// Whether the drill still runs.
    pub status: WebhookDrillStatus,
    /// `passed` if every check passed; null while the drill runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grade: Option<WebhookDrillGrade>,
    /// What was sent, and how it was answered.
    pub checks: Vec<DrillCheck>,
    /// When the object was created, in Unix seconds.
    pub created: i64,
    /// When it was completed, in Unix seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<i64>,
    /// Whether the object belongs to live mode.
    pub livemode: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WebhookDrillStatus {
    #[serde(rename = "running")]
    Running,
    #[serde(rename = "completed")]
    Completed,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WebhookDrillGrade {
    #[serde(rename = "passed")]
    Passed,
    #[serde(rename = "failed")]
    Failed,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WebhookEndpoint {
    /// Type of the object.
    pub object: String,
    /// ID of the object.
    pub id: String,
    /// Where events are sent. Two endpoints may have the same address: each is sent every event that it enables, signed with its own secret.
    pub url: String,
    /// The caller's own description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Event types: full names, prefixes such as transfer.status.*, or *; * if left out.
    pub enabled_events: Vec<String>,
    /// Whether events are delivered, by how deliveries went.
    pub status: WebhookEndpointStatus,
    /// Why nothing is delivered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled_reason: Option<String>,
    /// Shown when the endpoint is created and when its secret is rotated, and never again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// The caller's own names and values.
    pub metadata: BTreeMap<String, String>,
    /// When the object was created, in Unix seconds.
    pub created: i64,
    /// Whether the object belongs to live mode.
    pub livemode: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WebhookEndpointStatus {
    #[serde(rename = "enabled")]
    Enabled,
    #[serde(rename = "failing")]
    Failing,
    #[serde(rename = "disabled")]
    Disabled,
    /// A word that is newer than these types.
    #[serde(untagged)]
    Unknown(String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WebhookEndpointList {
    /// Type of the object.
    pub object: String,
    /// The objects of this page.
    pub data: Vec<WebhookEndpoint>,
    /// Whether more objects follow in the direction of paging.
    pub has_next: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WebhookReplay {
    /// Type of the object.
    pub object: String,
    /// ID of the webhook endpoint.
    pub webhook_endpoint_id: String,
    /// How many deliveries were scheduled.
    pub deliveries_count: i64,
}

#[cfg(test)]
pub(crate) fn round_trip(name: &str, object: &str) -> serde_json::Result<serde_json::Value> {
    fn again<T: Serialize + serde::de::DeserializeOwned>(object: &str) -> serde_json::Result<serde_json::Value> {
        serde_json::to_value(serde_json::from_str::<T>(object)?)
    }
    match name {
        "AdvanceClock" => again::<AdvanceClock>(object),
        "AdviceBeneficiary" => again::<AdviceBeneficiary>(object),
        "AdviceDeposit" => again::<AdviceDeposit>(object),
        "AdviceGst" => again::<AdviceGst>(object),
        "AdviceMilestone" => again::<AdviceMilestone>(object),
        "AdviceSender" => again::<AdviceSender>(object),
        "AdviceSignature" => again::<AdviceSignature>(object),
        "ApiError" => again::<ApiError>(object),
        "ApiErrorEntry" => again::<ApiErrorEntry>(object),
        "ApiErrorMetadata" => again::<ApiErrorMetadata>(object),
        "Balance" => again::<Balance>(object),
        "BalanceItem" => again::<BalanceItem>(object),
        "Beneficiary" => again::<Beneficiary>(object),
        "BeneficiaryList" => again::<BeneficiaryList>(object),
        "BeneficiaryValidation" => again::<BeneficiaryValidation>(object),
        "ChainView" => again::<ChainView>(object),
        "ChaosCheck" => again::<ChaosCheck>(object),
        "ChaosFault" => again::<ChaosFault>(object),
        "ChaosProfile" => again::<ChaosProfile>(object),
        "ChaosReport" => again::<ChaosReport>(object),
        "Corridor" => again::<Corridor>(object),
        "CorridorFunding" => again::<CorridorFunding>(object),
        "CorridorList" => again::<CorridorList>(object),
        "CreateBeneficiary" => again::<CreateBeneficiary>(object),
        "CreateQuoteLock" => again::<CreateQuoteLock>(object),
        "CreateSender" => again::<CreateSender>(object),
        "CreateSenderAddress" => again::<CreateSenderAddress>(object),
        "CreateSenderIdentification" => again::<CreateSenderIdentification>(object),
        "CreateTransfer" => again::<CreateTransfer>(object),
        "CreateTransferFunding" => again::<CreateTransferFunding>(object),
        "CreateTransferFundingPolicy" => again::<CreateTransferFundingPolicy>(object),
        "CreateWebhookEndpoint" => again::<CreateWebhookEndpoint>(object),
        "DeclareRefundAddress" => again::<DeclareRefundAddress>(object),
        "DeletedWebhookEndpoint" => again::<DeletedWebhookEndpoint>(object),
        "Deposit" => again::<Deposit>(object),
        "DepositList" => again::<DepositList>(object),
        "DiagnoseFunding" => again::<DiagnoseFunding>(object),
        "DrillCheck" => again::<DrillCheck>(object),
        "EmptyBody" => again::<EmptyBody>(object),
        "Event" => again::<Event>(object),
        "EventCheckpoint" => again::<EventCheckpoint>(object),
        "EventList" => again::<EventList>(object),
        "Fee" => again::<Fee>(object),
        "FeeDetail" => again::<FeeDetail>(object),
        "Funding" => again::<Funding>(object),
        "FundingDiagnosis" => again::<FundingDiagnosis>(object),
        "FundingPolicy" => again::<FundingPolicy>(object),
        "Identification" => again::<Identification>(object),
        "PayerAddress" => again::<PayerAddress>(object),
        "PaymentAdvice" => again::<PaymentAdvice>(object),
        "PaymentAdviceDocument" => again::<PaymentAdviceDocument>(object),
        "Payout" => again::<Payout>(object),
        "PayoutFailure" => again::<PayoutFailure>(object),
        "PayoutList" => again::<PayoutList>(object),
        "PostalAddress" => again::<PostalAddress>(object),
        "QuoteLock" => again::<QuoteLock>(object),
        "QuoteLockList" => again::<QuoteLockList>(object),
        "Refund" => again::<Refund>(object),
        "RefundList" => again::<RefundList>(object),
        "RefundStatusChange" => again::<RefundStatusChange>(object),
        "ReplayWebhooks" => again::<ReplayWebhooks>(object),
        "Requirement" => again::<Requirement>(object),
        "ResolveFunding" => again::<ResolveFunding>(object),
        "RotateWebhookSecret" => again::<RotateWebhookSecret>(object),
        "Sender" => again::<Sender>(object),
        "SenderList" => again::<SenderList>(object),
        "SettledPayout" => again::<SettledPayout>(object),
        "SimulateDeposit" => again::<SimulateDeposit>(object),
        "SimulateFailure" => again::<SimulateFailure>(object),
        "StartChaos" => again::<StartChaos>(object),
        "Statement" => again::<Statement>(object),
        "StatementRow" => again::<StatementRow>(object),
        "StatementTotal" => again::<StatementTotal>(object),
        "TestClock" => again::<TestClock>(object),
        "Transfer" => again::<Transfer>(object),
        "TransferList" => again::<TransferList>(object),
        "UpdateBeneficiary" => again::<UpdateBeneficiary>(object),
        "UpdateWebhookEndpoint" => again::<UpdateWebhookEndpoint>(object),
        "ValidateBeneficiary" => again::<ValidateBeneficiary>(object),
        "Verification" => again::<Verification>(object),
        "WebhookAttempt" => again::<WebhookAttempt>(object),
        "WebhookDelivery" => again::<WebhookDelivery>(object),
        "WebhookDeliveryList" => again::<WebhookDeliveryList>(object),
        "WebhookDrill" => again::<WebhookDrill>(object),
        "WebhookEndpoint" => again::<WebhookEndpoint>(object),
        "WebhookEndpointList" => again::<WebhookEndpointList>(object),
        "WebhookReplay" => again::<WebhookReplay>(object),
        _ => panic!("{name} has no type"),
    }
}
