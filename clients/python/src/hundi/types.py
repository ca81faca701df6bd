"""The objects of the API. Made from the API's document by clients/generate.py. Do not edit."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Literal

from typing_extensions import NotRequired, TypedDict

#: Fields that hold a decimal number as text, in every object.
DECIMAL_FIELDS = frozenset(
    {
        "amount",
        "amount_excess",
        "amount_expected",
        "amount_fee",
        "amount_gross",
        "amount_maximum",
        "amount_minimum",
        "amount_received",
        "amount_sent",
        "buy_amount",
        "closing",
        "fee",
        "inr_in",
        "inr_out",
        "mid_market_rate",
        "movements",
        "opening",
        "payout_amount",
        "rate",
        "refunded",
        "sell_amount",
        "short_by",
        "taxable_value",
        "usdt_in",
        "usdt_out",
    }
)


class AdvanceClock(TypedDict):
    advance_seconds: int
    """By how many seconds the test clock advances."""


class AdviceBeneficiary(TypedDict):
    name: str
    """Name of the account holder."""
    account_number_last4: str
    """Last four characters of the account number."""
    account_type: str
    """Type of the bank account."""
    ifsc: str
    """IFSC of the branch."""
    bank_name: NotRequired[str | None]
    """Name of the bank by the IFSC directory."""
    branch_name: NotRequired[str | None]
    """Name of the branch by the IFSC directory."""


class AdviceDeposit(TypedDict):
    transaction_hash: str
    """Hash of the transaction on chain."""
    chain: str
    """Blockchain that the token moves on."""
    asset: str
    """Token of the stablecoin rail."""
    amount: Decimal
    """Amount of money as a decimal string."""
    explorer_url: NotRequired[str | None]
    """Where the chain shows the transaction, for a chain whose pages are known."""


class AdviceGst(TypedDict):
    taxable_value: Decimal
    """Value that the tax is computed on."""
    rate_percent: str
    """Rate of the tax in percent."""
    amount: Decimal
    """Amount of money as a decimal string."""


class AdviceMilestone(TypedDict):
    milestone: Literal["rate_locked", "funded", "instructed", "settled", "returned"]
    """Which milestone the payment reached."""
    at: int
    """When the payment reached it, in Unix seconds."""


class AdviceSender(TypedDict):
    name: str
    """Name of the remitter."""
    country: str
    """ISO 3166-1 alpha-2 code of the country."""
    address: NotRequired[PostalAddress | None]
    """Postal address."""


class AdviceSignature(TypedDict):
    algorithm: str
    """Always `Ed25519`."""
    key_id: str
    """The key's JWK thumbprint (RFC 7638), which finds it in the published key set."""
    value: str
    """64 bytes in base64url without padding."""


class ApiError(TypedDict):
    object: Literal["error"]
    """Type of the object."""
    errors: list[ApiErrorEntry]
    """Every problem of the request."""
    http_status_code: int
    """HTTP status of the answer."""


class ApiErrorEntry(TypedDict):
    code: str
    """Stable code that programs branch on. New codes can be added: treat one that you do not know by the HTTP status."""
    message: str
    """Text for humans; may change."""
    metadata: ApiErrorMetadata
    """What the problem is about."""


class ApiErrorMetadata(TypedDict):
    field_name: NotRequired[str]
    """Field, parameter or header concerned; nested names joined with dots."""
    maximum: NotRequired[str]
    """The largest value that is accepted; present if a value is outside its range."""
    minimum: NotRequired[str]
    """The smallest value that is accepted; present if a value is outside its range."""
    new_key_required: NotRequired[bool]
    """Always true: once the cause is gone, send a POST with a new idempotency key. With the old key, the refusal is repeated. A GET has no key, and is sent again as it is."""
    paused: NotRequired[str]
    """What the operator has paused, with `service_paused`."""
    policy: NotRequired[str]
    """Which limit was reached, with `rate_limit_exceeded`."""
    retry_after_seconds: NotRequired[str]
    """Seconds to wait, with `rate_limit_exceeded`."""
    transfer_id: NotRequired[str]
    """With `reference_already_used`: the transfer that has the reference. With `quote_lock_already_used`: the transfer that was created with the quote lock."""


class Balance(TypedDict):
    object: Literal["balance"]
    """Type of the object."""
    available: list[BalanceItem]
    """Final on the chain and not yet used or held."""
    pending: list[BalanceItem]
    """Seen on chain, not final."""
    processing: list[BalanceItem]
    """Funded, not exchanged yet."""
    payout_processing: list[BalanceItem]
    """Rupees that are with the bank."""
    hold: list[BalanceItem]
    """Waiting for a decision, or owed back."""
    livemode: bool
    """Whether the object belongs to live mode."""


class BalanceItem(TypedDict):
    amount: Decimal
    """Amount of money as a decimal string."""
    currency: Literal["INR", "USD", "USDT"]
    """Code of the currency."""


class Beneficiary(TypedDict):
    object: Literal["beneficiary"]
    """Type of the object."""
    id: str
    """ID of the object."""
    name: str
    """Name of the account holder, as the bank holds it."""
    account_number_last4: str
    """Last four characters of the account number."""
    ifsc: str
    """IFSC of the branch."""
    account_type: Literal["nre"]
    """Type of the bank account."""
    status: Literal["draft", "verifying", "active", "input_required", "rejected"]
    """Where the verification of the beneficiary stands."""
    payouts_enabled: bool
    """Whether the beneficiary can be paid."""
    payouts_disabled_reason: NotRequired[Literal["verification_pending", "name_mismatch", "account_invalid", "account_not_nre", "ifsc_unknown", "kyc_required", "compliance_hold", "returned_payout"] | None]
    """Why payouts are not enabled."""
    bank_name: NotRequired[str | None]
    """Name of the bank by the IFSC directory."""
    branch_name: NotRequired[str | None]
    """Name of the branch by the IFSC directory."""
    email: NotRequired[str | None]
    """Email address."""
    phone: NotRequired[str | None]
    """Telephone number in E.164 form."""
    pan_last4: NotRequired[str | None]
    """Last four characters of the PAN."""
    passport_number_last4: NotRequired[str | None]
    """Last four characters of the passport number."""
    requirements: list[Requirement]
    """What has to be updated to continue."""
    verification: Verification
    """What the last check of the account found, and when."""
    metadata: dict[str, str]
    """The caller's own names and values."""
    created: int
    """When the object was created, in Unix seconds."""
    livemode: bool
    """Whether the object belongs to live mode."""


class BeneficiaryList(TypedDict):
    object: Literal["list"]
    """Type of the object."""
    data: list[Beneficiary]
    """The objects of this page."""
    has_next: bool
    """Whether more objects follow in the direction of paging."""


class BeneficiaryValidation(TypedDict):
    object: Literal["beneficiary_validation"]
    """Type of the object."""
    account_number_last4: str
    """Last four characters of the account number."""
    ifsc: str
    """IFSC of the branch."""
    account_type: Literal["nre"]
    """Type of the bank account."""
    bank_name: NotRequired[str | None]
    """Name of the bank by the IFSC directory."""
    branch_name: NotRequired[str | None]
    """Name of the branch by the IFSC directory."""
    amount: NotRequired[str | None]
    """Amount in INR that was asked about; null without one."""
    currency: Literal["INR", "USD", "USDT"]
    """Code of the currency."""
    method: NotRequired[Literal["neft", "rtgs", "internal"] | None]
    """The payment system that a payout of the amount goes by; null without an amount."""
    requirements: list[Requirement]
    """What the caller would have to correct in live mode."""
    livemode: bool
    """Whether the object belongs to live mode."""


class ChainView(TypedDict):
    status: Literal["following", "behind", "not_followed", "token_deprecated"]
    """Whether the chain is followed, and whether something is wrong with it."""
    block_number: NotRequired[int | None]
    """Number of the last block whose final content was read."""
    block_time: NotRequired[int | None]
    """Time of that block in Unix seconds."""
    seconds_behind: NotRequired[int | None]
    """How far the service's view of the chain lies behind, in seconds."""


class ChaosCheck(TypedDict):
    code: Literal["retried_with_new_key", "dropped_answer_abandoned", "unavailable_taken_as_final", "locked_taken_as_final", "retry_after_ignored", "retried_without_pause", "key_reused_for_other_body", "refusal_retried", "timed_out_too_early", "webhook_forgery_accepted", "webhook_duplicate_refused", "webhook_late_refused", "webhook_answered_slowly", "missing_event_not_read"]
    """The mistake, as a stable word."""
    result: Literal["passed", "failed", "not_observed"]
    """`not_observed` where nothing showed whether the caller makes the mistake."""
    observed_count: int
    """How often the caller could have made the mistake."""
    faults_count: int
    """How often the caller made the mistake."""
    faults: list[ChaosFault]
    """The first ten times that the caller made the mistake."""
    remedy: str
    """How to avoid the mistake."""


class ChaosFault(TypedDict):
    route: NotRequired[str | None]
    """The route of the request; null for a webhook."""
    request_ids: list[str]
    """The `Request-Id` of each request that shows the mistake."""
    event_id: NotRequired[str | None]
    """The event of the webhook; null for a request."""
    message: str
    """What was seen."""


class ChaosProfile(TypedDict):
    object: Literal["chaos_profile"]
    """Type of the object."""
    status: Literal["running", "settling", "completed"]
    """Whether the attacks go on, and whether the report is complete."""
    seed: int
    """Number that chooses which requests and events are attacked; the same number chooses the same ones. If left out, the service draws one."""
    percentage: int
    """Percentage of requests and events that are attacked: 50 if left out."""
    request_attacks: list[Literal["answer_dropped", "answer_delayed", "service_unavailable", "resource_locked"]]
    """Attacks on requests: every kind if left out, none for an empty list."""
    delay_milliseconds: int
    """By how much a delayed answer is late, in milliseconds."""
    webhook_endpoint_id: NotRequired[str | None]
    """ID of the webhook endpoint."""
    webhook_attacks: list[Literal["duplicated", "late", "forged", "missing"]]
    """Attacks on deliveries to the endpoint: every kind if left out."""
    webhook_delay_milliseconds: int
    """By how much a late delivery is late, in milliseconds."""
    started_at: int
    """When the attacks began, in Unix seconds."""
    ends_at: int
    """When the attacks end, in Unix seconds; a test clock does not move it."""
    livemode: bool
    """Whether the object belongs to live mode."""


class ChaosReport(TypedDict):
    object: Literal["chaos_report"]
    """Type of the object."""
    status: Literal["running", "settling", "completed"]
    """Whether the attacks go on, and whether the report is complete."""
    grade: NotRequired[Literal["passed", "failed", "incomplete"] | None]
    """Null until the status is `completed`."""
    seed: int
    """Number that chooses which requests and events are attacked; the same number chooses the same ones. If left out, the service draws one."""
    started_at: int
    """When the attacks began, in Unix seconds."""
    ends_at: int
    """When the attacks end, in Unix seconds; a test clock does not move it."""
    requests_count: int
    """POSTs with different idempotency keys, and GETs."""
    requests_attacked_count: int
    """How many requests were attacked."""
    events_count: int
    """Events for the attacked webhook endpoint."""
    events_attacked_count: int
    """How many events were attacked."""
    checks: list[ChaosCheck]
    """What was looked for, each with its own result."""
    livemode: bool
    """Whether the object belongs to live mode."""


class Corridor(TypedDict):
    object: Literal["corridor"]
    """Type of the object."""
    sell_currency: Literal["INR", "USD", "USDT"]
    """Currency that is sold."""
    buy_currency: Literal["INR", "USD", "USDT"]
    """Currency that is bought."""
    amount_minimum: Decimal
    """Smallest amount that can be sent."""
    amount_maximum: Decimal
    """Largest amount that can be sent."""
    fee: Fee
    """What is kept of the amount before it is exchanged."""
    funding: list[CorridorFunding]
    """The stablecoin leg."""
    quote_lock_seconds: int
    """How long a quote lock lives, in seconds."""
    funding_seconds: int
    """How long a transfer waits for its deposit, in seconds."""
    account_types: list[Literal["nre"]]
    """Types of bank account that can receive payouts."""
    methods: list[Literal["neft", "rtgs", "internal"]]
    """Indian payment systems that payouts go by."""
    purpose_codes: list[str]
    """RBI purpose codes that are taken."""
    livemode: bool
    """Whether the object belongs to live mode."""


class CorridorFunding(TypedDict):
    rail: Literal["stablecoin"]
    """How the transfer is funded."""
    asset: Literal["USDT"]
    """Token of the stablecoin rail."""
    chain: Literal["tron", "ethereum", "polygon", "base", "arbitrum", "bnb"]
    """Blockchain that the token moves on."""
    token_contract: str
    """Contract of the token on its chain."""
    view: NotRequired[ChainView | None]
    """How far the chain's final view is followed; null where the chain is simulated."""


class CorridorList(TypedDict):
    object: Literal["list"]
    """Type of the object."""
    data: list[Corridor]
    """The objects of this page."""
    has_next: bool
    """Whether more objects follow in the direction of paging."""


class CreateBeneficiary(TypedDict):
    name: str
    """Name of the account holder, as the bank holds it."""
    account_number: str
    """Number of the bank account; no answer shows it."""
    ifsc: str
    """IFSC of the branch."""
    account_type: Literal["nre"]
    """Type of the bank account."""
    email: NotRequired[str | None]
    """Email address."""
    phone: NotRequired[str | None]
    """Telephone number in E.164 form."""
    metadata: NotRequired[dict[str, str] | None]
    """The caller's own names and values."""
    pan: NotRequired[str | None]
    """Indian permanent account number; no answer shows it."""
    passport_number: NotRequired[str | None]
    """Passport number; no answer shows it."""
    date_of_birth: NotRequired[str | None]
    """Date of birth, YYYY-MM-DD: a past date, not before 1900."""
    nationality: NotRequired[str | None]
    """ISO 3166-1 alpha-2 code of the nationality."""
    relationship: NotRequired[Literal["self", "family", "other"] | None]
    """How the sender and the beneficiary are related."""
    submit: NotRequired[bool | None]
    """Whether verification begins: true if left out. With false the beneficiary is a `draft`, until an update sends `submit` true."""


class CreateQuoteLock(TypedDict):
    sell_currency: Literal["USD"]
    """Currency that is sold."""
    buy_currency: Literal["INR"]
    """Currency that is bought."""
    amount: NotRequired[Decimal | None]
    """Amount in `sell_currency`, with at most two decimals; in place of `buy_amount`. From 10.00 to 50000.00 USD, unless the operator has set other limits: `GET /v1/corridors` shows them."""
    buy_amount: NotRequired[Decimal | None]
    """Amount in `buy_currency` to arrive, with at most two decimals; in place of `amount`. From what the smallest `amount` buys to what the largest buys; a refusal names both in `metadata.minimum` and `metadata.maximum`."""
    metadata: NotRequired[dict[str, str] | None]
    """The caller's own names and values."""


class CreateSender(TypedDict):
    name: str
    """Name of the remitter."""
    type: Literal["individual"]
    """Kind of remitter."""
    country: str
    """ISO 3166-1 alpha-2 code of the country."""
    email: NotRequired[str | None]
    """Email address."""
    address: NotRequired[CreateSenderAddress | None]
    """Postal address. Live mode needs it: the bank has to know `city` and `country`, and a transfer whose sender has no address is refused there with `sender_not_eligible`. Test mode does without."""
    metadata: NotRequired[dict[str, str] | None]
    """The caller's own names and values."""
    date_of_birth: NotRequired[str | None]
    """Date of birth, YYYY-MM-DD: a past date, not before 1900."""
    nationality: NotRequired[str | None]
    """ISO 3166-1 alpha-2 code of the nationality."""
    identification: NotRequired[CreateSenderIdentification | None]
    """Document that identifies the person."""


class CreateSenderAddress(TypedDict):
    line1: str
    """Street and number."""
    city: str
    """City."""
    state: NotRequired[str | None]
    """State or province."""
    postal_code: NotRequired[str | None]
    """Postal code."""
    country: str
    """ISO 3166-1 alpha-2 code of the country."""


class CreateSenderIdentification(TypedDict):
    type: Literal["passport", "national_id", "driving_licence"]
    """Type of the document."""
    number: str
    """Number of the document; no answer shows it."""


class CreateTransfer(TypedDict):
    sender_id: str
    """ID of the sender."""
    beneficiary_id: str
    """ID of the beneficiary."""
    amount: Decimal
    """Amount that the payer deposits, in `currency`: that of the quote lock, so from 10.00 to 50000.00 USD, unless the operator has set other limits."""
    currency: Literal["USD"]
    """Code of the currency."""
    payout_currency: Literal["INR"]
    """Currency of the payout."""
    quote_lock_id: str
    """ID of the quote lock."""
    funding: CreateTransferFunding
    """The stablecoin leg."""
    reference: NotRequired[str | None]
    """The caller's own reference, unique among the account's transfers."""
    return_url: NotRequired[str | None]
    """Where the payer's page leads to at the end, over https."""
    metadata: NotRequired[dict[str, str] | None]
    """The caller's own names and values."""
    purpose_code: NotRequired[Literal["P0014", "P1301", "P1302"] | None]
    """RBI purpose code of the remittance."""


class CreateTransferFunding(TypedDict):
    rail: Literal["stablecoin"]
    """How the transfer is funded."""
    asset: Literal["USDT"]
    """Token of the stablecoin rail."""
    chain: Literal["tron", "ethereum", "polygon", "base", "arbitrum", "bnb"]
    """Blockchain that the token moves on. Each mode takes one: a test key takes `tron`, unless the operator has set up another test net; a live key takes the chain that the operator follows. `GET /v1/corridors`, sent with the key, names it in `funding[0].chain`."""
    refund_address: NotRequired[str | None]
    """Blockchain address that a refund goes to."""
    payer_sets_refund_address: NotRequired[bool | None]
    """Whether the payer may give a refund's address on the page."""
    policy: NotRequired[CreateTransferFundingPolicy | None]
    """What to do with money that does not fit."""


class CreateTransferFundingPolicy(TypedDict):
    underpaid: NotRequired[Literal["hold", "refund"] | None]
    """What to do with too little money at expiry."""
    overpaid: NotRequired[Literal["refund_excess", "hold"] | None]
    """What to do with money above the amount."""
    late: NotRequired[Literal["hold", "refund"] | None]
    """What to do with money that arrives late."""


class CreateWebhookEndpoint(TypedDict):
    url: str
    """Where events are sent. Two endpoints may have the same address: each is sent every event that it enables, signed with its own secret."""
    enabled_events: NotRequired[list[str] | None]
    """Event types: full names, prefixes such as transfer.status.*, or *; * if left out."""
    description: NotRequired[str | None]
    """The caller's own description."""
    metadata: NotRequired[dict[str, str] | None]
    """The caller's own names and values."""


class CreatedPeriod(TypedDict):
    gt: NotRequired[int | None]
    """Only objects that were created after this time, in Unix seconds."""
    gte: NotRequired[int | None]
    """Only objects that were created at or after this time, in Unix seconds."""
    lt: NotRequired[int | None]
    """Only objects that were created before this time, in Unix seconds."""
    lte: NotRequired[int | None]
    """Only objects that were created at or before this time, in Unix seconds."""


class DeclareRefundAddress(TypedDict):
    to_address: str
    """Blockchain address that the refund goes to."""


class DeletedWebhookEndpoint(TypedDict):
    object: Literal["webhook_endpoint"]
    """Type of the object."""
    id: str
    """ID of the object."""
    deleted: bool
    """Always true."""


class Deposit(TypedDict):
    object: Literal["deposit"]
    """Type of the object."""
    id: str
    """ID of the object."""
    transfer_id: str
    """ID of the transfer."""
    status: Literal["initialized", "processing", "completed", "failed"]
    """How far the chain has confirmed the movement."""
    amount: Decimal
    """Amount of money as a decimal string."""
    currency: str
    """Code of the currency."""
    asset: str
    """Token of the stablecoin rail."""
    chain: str
    """Blockchain that the token moves on."""
    from_address: str
    """Blockchain address that paid."""
    to_address: str
    """Deposit address of the transfer."""
    transaction_hash: str
    """Hash of the transaction on chain."""
    log_index: int
    """Index of the movement's log in its block."""
    block_number: NotRequired[int | None]
    """Number of the block that holds the transaction."""
    block_time: NotRequired[int | None]
    """Time of that block in Unix seconds."""
    confirmations: int
    """Blocks from the transaction's block to the chain's newest one."""
    classification: NotRequired[Literal["exact", "partial", "over", "late", "unmatched", "unsupported"] | None]
    """What the deposit meant for its transfer; null until it is final."""
    reason_code: NotRequired[Literal["asset_unsupported", "dropped"] | None]
    """Why the deposit failed."""
    completed_at: NotRequired[int | None]
    """When it was completed, in Unix seconds."""
    created: int
    """When the object was created, in Unix seconds."""
    livemode: bool
    """Whether the object belongs to live mode."""


class DepositList(TypedDict):
    object: Literal["list"]
    """Type of the object."""
    data: list[Deposit]
    """The objects of this page."""
    has_next: bool
    """Whether more objects follow in the direction of paging."""


class DiagnoseFunding(TypedDict):
    transaction_hash: str
    """Hash of the transaction that is asked about."""


class DrillCheck(TypedDict):
    name: str
    """What was tried."""
    passed: bool
    """Whether the receiver answered as it should."""
    expected: str
    """The answer that is right: `2xx` or `4xx`. `any` where only the time counts."""
    event_types: list[str]
    """Type of the event in each delivery, in the order in which they were sent."""
    http_statuses: list[int]
    """HTTP statuses of the answers; 0 where none came."""
    duration_milliseconds: int
    """The longest time to an answer, in milliseconds."""
    message: str
    """What the check is for, and what to correct if it failed."""


class EmptyBody(TypedDict):
    pass


class Event(TypedDict):
    object: Literal["event"]
    """Type of the object."""
    id: str
    """ID of the object."""
    type: str
    """What changed, such as `transfer.status.payout_settled`."""
    linked_id: str
    """ID of the object that changed."""
    linked_object: str
    """Type of the object that changed."""
    created: int
    """When the change happened, in Unix seconds."""
    livemode: bool
    """Whether the object belongs to live mode."""


class EventCheckpoint(TypedDict):
    object: Literal["event_checkpoint"]
    """Type of the object."""
    event_id: NotRequired[str | None]
    """The last event that is counted."""
    events_count: int
    """How many events there are up to this one, itself included."""
    hash: str
    """Chained hash over the events up to this one, 64 hexadecimal digits."""
    livemode: bool
    """Whether the object belongs to live mode."""


class EventList(TypedDict):
    object: Literal["list"]
    """Type of the object."""
    data: list[Event]
    """The objects of this page."""
    has_next: bool
    """Whether more objects follow in the direction of paging."""


class Fee(TypedDict):
    amount: Decimal
    """Amount of money as a decimal string."""
    currency: Literal["INR", "USD", "USDT"]
    """Code of the currency."""
    details: list[FeeDetail]
    """Parts of the fee."""


class FeeDetail(TypedDict):
    name: str
    """What the part is: `service_fee` or `gst`."""
    amount: Decimal
    """Amount of money as a decimal string."""
    currency: NotRequired[Literal["INR", "USD", "USDT"] | None]
    """Present only if it differs from the fee's currency: GST is in rupees."""
    taxable_value: NotRequired[Decimal | None]
    """For a tax: the value that it is computed on."""
    rate_percent: NotRequired[str | None]
    """For a tax: its rate in percent."""


class Funding(TypedDict):
    rail: Literal["stablecoin"]
    """How the transfer is funded."""
    asset: str
    """Token of the stablecoin rail."""
    chain: str
    """Blockchain that the token moves on."""
    deposit_address: str
    """Blockchain address that the payer sends to."""
    status: Literal["awaiting_funds", "confirming", "partially_funded", "funded", "hold", "expired", "cancelled", "refund_processing", "refunded"]
    """Where the stablecoin leg stands."""
    amount_expected: Decimal
    """What has to arrive at the deposit address."""
    amount_received: Decimal
    """Sum of the final deposits that counted."""
    amount_excess: Decimal
    """What was received above the expected amount and is owed back."""
    expires_at: int
    """Until when a deposit is in time, by its block's time in Unix seconds."""
    refund_address: NotRequired[str | None]
    """Blockchain address that a refund goes to."""
    payer_sets_refund_address: bool
    """Whether the payer may give a refund's address on the page."""
    policy: FundingPolicy
    """What to do with money that does not fit."""
    token_contract: str
    """Contract of the token on its chain."""
    instructions_url: str
    """Page that shows the payer what to send and where."""


class FundingDiagnosis(TypedDict):
    object: Literal["funding_diagnosis"]
    """Type of the object."""
    transfer_id: str
    """ID of the transfer."""
    transaction_hash: str
    """Hash of the transaction on chain."""
    code: Literal["credited", "confirming", "short_by", "late_by", "after_cancel", "unmatched", "not_credited", "zero_value", "look_alike_token", "wrong_token", "wrong_address", "unrelated", "no_token", "reverted", "not_found"]
    """What became of the transaction, as a stable word."""
    message: str
    """A sentence or two that a payer can be shown."""
    deposit_id: NotRequired[str | None]
    """ID of the deposit."""
    amount: NotRequired[Decimal | None]
    """Amount of money as a decimal string."""
    currency: NotRequired[str | None]
    """Code of the currency."""
    short_by: NotRequired[Decimal | None]
    """What will still be missing from the transfer's amount once this transaction is final."""
    late_by_seconds: NotRequired[int | None]
    """By how many seconds the block is later than `funding.expires_at`; null if it was in time, or if its time does not matter."""
    block_number: NotRequired[int | None]
    """Number of the block that holds the transaction."""
    block_time: NotRequired[int | None]
    """Time of that block in Unix seconds."""
    confirmations: NotRequired[int | None]
    """Blocks from the transaction's block to the chain's newest one."""
    to_address: NotRequired[str | None]
    """Blockchain address that the transaction paid."""
    token_contract: NotRequired[str | None]
    """Contract of the token on its chain."""
    livemode: bool
    """Whether the object belongs to live mode."""


class FundingPolicy(TypedDict):
    underpaid: Literal["hold", "refund"]
    """What to do with too little money at expiry."""
    overpaid: Literal["refund_excess", "hold"]
    """What to do with money above the amount."""
    late: Literal["hold", "refund"]
    """What to do with money that arrives late."""


class Identification(TypedDict):
    type: Literal["passport", "national_id", "driving_licence"]
    """Type of the document."""


class ListBeneficiaries(TypedDict):
    limit: NotRequired[int | None]
    """Objects on a page."""
    starting_after: NotRequired[str | None]
    """The page after this ID. Not combined with ending_before."""
    ending_before: NotRequired[str | None]
    """What lies before this ID, nearest first. Not combined with starting_after."""
    order: NotRequired[Literal["asc", "desc"] | None]
    """Oldest first (asc) or newest first (desc)."""
    created: NotRequired[CreatedPeriod | None]
    """Only objects of this period."""
    status: NotRequired[Literal["draft", "verifying", "active", "input_required", "rejected"] | None]
    """Only objects with this status."""


class ListDeposits(TypedDict):
    limit: NotRequired[int | None]
    """Objects on a page."""
    starting_after: NotRequired[str | None]
    """The page after this ID. Not combined with ending_before."""
    ending_before: NotRequired[str | None]
    """What lies before this ID, nearest first. Not combined with starting_after."""
    order: NotRequired[Literal["asc", "desc"] | None]
    """Oldest first (asc) or newest first (desc)."""
    created: NotRequired[CreatedPeriod | None]
    """Only objects of this period."""
    status: NotRequired[Literal["initialized", "processing", "completed", "failed"] | None]
    """Only objects with this status."""
    transfer_id: NotRequired[str | None]
    """Only objects with this transfer_id."""
    transaction_hash: NotRequired[str | None]
    """Only objects with this transaction_hash."""


class ListEvents(TypedDict):
    limit: NotRequired[int | None]
    """Objects on a page."""
    starting_after: NotRequired[str | None]
    """The page after this ID. Not combined with ending_before."""
    ending_before: NotRequired[str | None]
    """What lies before this ID, nearest first. Not combined with starting_after."""
    order: NotRequired[Literal["asc", "desc"] | None]
    """Oldest first (asc) or newest first (desc)."""
    created: NotRequired[CreatedPeriod | None]
    """Only objects of this period."""
    type: NotRequired[Literal["beneficiary.payouts_enabled.updated", "beneficiary.status.active", "beneficiary.status.draft", "beneficiary.status.input_required", "beneficiary.status.rejected", "beneficiary.status.verifying", "deposit.status.completed", "payout.payment_advice.available", "payout.status.failed", "payout.status.hold", "payout.status.initialized", "payout.status.processing", "payout.status.returned", "payout.status.settled", "refund.payer_address.updated", "refund.status.completed", "refund.status.processing", "refund.status.requires_address", "transfer.status.cancelled", "transfer.status.expired", "transfer.status.funded", "transfer.status.funding", "transfer.status.funding_hold", "transfer.status.payout_failed", "transfer.status.payout_processing", "transfer.status.payout_returned", "transfer.status.payout_settled", "transfer.status.refund_processing", "transfer.status.refunded", "webhook_endpoint.status.disabled", "webhook_endpoint.status.enabled", "webhook_endpoint.status.failing"] | None]
    """Only objects with this type."""
    linked_id: NotRequired[str | None]
    """Only objects with this linked_id."""
    linked_object: NotRequired[Literal["beneficiary", "deposit", "payout", "refund", "transfer", "webhook_endpoint"] | None]
    """Only objects with this linked_object."""
    wait: NotRequired[int | None]
    """Seconds to wait for an object where the page would be empty; the answer comes as soon as there is one. Not combined with ending_before or order=desc."""


class ListPayouts(TypedDict):
    limit: NotRequired[int | None]
    """Objects on a page."""
    starting_after: NotRequired[str | None]
    """The page after this ID. Not combined with ending_before."""
    ending_before: NotRequired[str | None]
    """What lies before this ID, nearest first. Not combined with starting_after."""
    order: NotRequired[Literal["asc", "desc"] | None]
    """Oldest first (asc) or newest first (desc)."""
    created: NotRequired[CreatedPeriod | None]
    """Only objects of this period."""
    status: NotRequired[Literal["initialized", "hold", "processing", "settled", "failed", "returned"] | None]
    """Only objects with this status."""
    transfer_id: NotRequired[str | None]
    """Only objects with this transfer_id."""
    beneficiary_id: NotRequired[str | None]
    """Only objects with this beneficiary_id."""
    unique_transaction_reference: NotRequired[str | None]
    """Only objects with this unique_transaction_reference."""


class ListQuoteLocks(TypedDict):
    limit: NotRequired[int | None]
    """Objects on a page."""
    starting_after: NotRequired[str | None]
    """The page after this ID. Not combined with ending_before."""
    ending_before: NotRequired[str | None]
    """What lies before this ID, nearest first. Not combined with starting_after."""
    order: NotRequired[Literal["asc", "desc"] | None]
    """Oldest first (asc) or newest first (desc)."""
    created: NotRequired[CreatedPeriod | None]
    """Only objects of this period."""
    status: NotRequired[Literal["active", "used", "expired"] | None]
    """Only objects with this status."""
    transfer_id: NotRequired[str | None]
    """Only objects with this transfer_id."""


class ListRefunds(TypedDict):
    limit: NotRequired[int | None]
    """Objects on a page."""
    starting_after: NotRequired[str | None]
    """The page after this ID. Not combined with ending_before."""
    ending_before: NotRequired[str | None]
    """What lies before this ID, nearest first. Not combined with starting_after."""
    order: NotRequired[Literal["asc", "desc"] | None]
    """Oldest first (asc) or newest first (desc)."""
    created: NotRequired[CreatedPeriod | None]
    """Only objects of this period."""
    status: NotRequired[Literal["requires_address", "processing", "completed"] | None]
    """Only objects with this status."""
    transfer_id: NotRequired[str | None]
    """Only objects with this transfer_id."""
    transaction_hash: NotRequired[str | None]
    """Only objects with this transaction_hash."""


class ListSenders(TypedDict):
    limit: NotRequired[int | None]
    """Objects on a page."""
    starting_after: NotRequired[str | None]
    """The page after this ID. Not combined with ending_before."""
    ending_before: NotRequired[str | None]
    """What lies before this ID, nearest first. Not combined with starting_after."""
    order: NotRequired[Literal["asc", "desc"] | None]
    """Oldest first (asc) or newest first (desc)."""
    created: NotRequired[CreatedPeriod | None]
    """Only objects of this period."""


class ListTransfers(TypedDict):
    limit: NotRequired[int | None]
    """Objects on a page."""
    starting_after: NotRequired[str | None]
    """The page after this ID. Not combined with ending_before."""
    ending_before: NotRequired[str | None]
    """What lies before this ID, nearest first. Not combined with starting_after."""
    order: NotRequired[Literal["asc", "desc"] | None]
    """Oldest first (asc) or newest first (desc)."""
    created: NotRequired[CreatedPeriod | None]
    """Only objects of this period."""
    status: NotRequired[Literal["funding", "funding_hold", "funded", "payout_processing", "payout_settled", "payout_failed", "payout_returned", "refund_processing", "refunded", "expired", "cancelled"] | None]
    """Only objects with this status."""
    beneficiary_id: NotRequired[str | None]
    """Only objects with this beneficiary_id."""
    sender_id: NotRequired[str | None]
    """Only objects with this sender_id."""
    reference: NotRequired[str | None]
    """Only objects with this reference."""


class ListWebhookEndpointDeliveries(TypedDict):
    limit: NotRequired[int | None]
    """Objects on a page."""
    starting_after: NotRequired[str | None]
    """The page after this ID. Not combined with ending_before."""
    ending_before: NotRequired[str | None]
    """What lies before this ID, nearest first. Not combined with starting_after."""
    order: NotRequired[Literal["asc", "desc"] | None]
    """Oldest first (asc) or newest first (desc)."""
    created: NotRequired[CreatedPeriod | None]
    """Only objects of this period."""
    status: NotRequired[Literal["pending", "succeeded", "failed", "recorded"] | None]
    """Only objects with this status."""


class ListWebhookEndpoints(TypedDict):
    limit: NotRequired[int | None]
    """Objects on a page."""
    starting_after: NotRequired[str | None]
    """The page after this ID. Not combined with ending_before."""
    ending_before: NotRequired[str | None]
    """What lies before this ID, nearest first. Not combined with starting_after."""
    order: NotRequired[Literal["asc", "desc"] | None]
    """Oldest first (asc) or newest first (desc)."""
    created: NotRequired[CreatedPeriod | None]
    """Only objects of this period."""
    status: NotRequired[Literal["enabled", "failing", "disabled"] | None]
    """Only objects with this status."""


class PayerAddress(TypedDict):
    to_address: str
    """Blockchain address that the payer gave."""
    declared_at: int
    """When it was declared, in Unix seconds."""
    active_at: int
    """When it becomes the refund's address, in Unix seconds, unless another one is declared before."""


class PaymentAdvice(TypedDict):
    status: Literal["pending", "available"]
    """Whether the payment advice can be fetched."""
    available_at: NotRequired[int | None]
    """Since when it is available, in Unix seconds."""
    url: NotRequired[str | None]
    """Where the payment advice is fetched with the API key; null until the advice is available."""


class PaymentAdviceDocument(TypedDict):
    object: Literal["payment_advice"]
    """Type of the object."""
    advice_number: str
    """Number of the payment advice."""
    issuer: str
    """Who made the document: the operator's name."""
    issuer_address: NotRequired[str | None]
    """The issuer's postal address, where the operator has named it."""
    issuer_licence: NotRequired[str | None]
    """The licence that the issuer works under, where the operator has named it."""
    issued_at: NotRequired[int | None]
    """When it became available, in Unix seconds."""
    payout_id: str
    """ID of the payout, from funded on."""
    transfer_id: str
    """ID of the transfer."""
    status: Literal["initialized", "hold", "processing", "settled", "failed", "returned"]
    """`settled`, or `returned` where the beneficiary's bank sent the money back."""
    unique_transaction_reference: NotRequired[str | None]
    """The UTR, by which the beneficiary's bank knows the payment."""
    method: Literal["neft", "rtgs", "internal"]
    """Indian payment system that the payout goes by."""
    settled_at: NotRequired[int | None]
    """When the payout settled, in Unix seconds."""
    returned_at: NotRequired[int | None]
    """When the bank sent the money back, in Unix seconds."""
    milestones: list[AdviceMilestone]
    """The milestones that the payment has reached, oldest first."""
    sender: AdviceSender
    """Who sent the money."""
    beneficiary: AdviceBeneficiary
    """Who was paid."""
    purpose_code: str
    """RBI purpose code of the remittance."""
    purpose: str
    """What the purpose code means."""
    amount_sent: Decimal
    """What the sender sold."""
    amount_sent_currency: Literal["INR", "USD", "USDT"]
    """Currency of what the sender sold."""
    fee: Decimal
    """In the currency that was sent."""
    rate: Decimal
    """INR for one USD, six decimals."""
    rate_locked_at: NotRequired[int | None]
    """When the rate was locked, in Unix seconds."""
    amount_gross: Decimal
    """`amount_sent` at `rate`, before the fee. It is not what GST is computed on, which is after the fee."""
    amount_fee: Decimal
    """The fee in the currency of the payout: `amount_gross` less `gst` and `amount`."""
    gst: NotRequired[AdviceGst | None]
    """The GST that was deducted, where it is charged."""
    amount: Decimal
    """Amount of money as a decimal string."""
    currency: Literal["INR", "USD", "USDT"]
    """Code of the currency."""
    amount_in_words: NotRequired[str | None]
    """The amount in words."""
    deposits: list[AdviceDeposit]
    """At most 20, oldest first."""
    deposits_count: int
    """How many deposits count towards the transfer."""
    sponsor_bank: NotRequired[str | None]
    """The bank that sent the INR, where the operator has named one."""
    debited_account_last4: NotRequired[str | None]
    """Last four characters of the operator's account at `sponsor_bank` that was debited; only in live mode."""
    statement: str
    """What is certified."""
    verification_url: str
    """Where anybody can compare amount, date, reference and last four digits with what the service knows."""
    key_set_url: str
    """Where the keys are that verify `signature`."""
    livemode: bool
    """Whether the object belongs to live mode."""
    signature: AdviceSignature
    """Signature of the document."""


class Payout(TypedDict):
    object: Literal["payout"]
    """Type of the object."""
    id: str
    """ID of the object."""
    transfer_id: str
    """ID of the transfer."""
    beneficiary_id: str
    """ID of the beneficiary."""
    status: Literal["initialized", "hold", "processing", "settled", "failed", "returned"]
    """Where the rupee payment stands."""
    amount: Decimal
    """Amount of money as a decimal string."""
    currency: Literal["INR", "USD", "USDT"]
    """Code of the currency."""
    method: Literal["neft", "rtgs", "internal"]
    """Indian payment system that the payout goes by."""
    purpose_code: str
    """RBI purpose code of the remittance."""
    unique_transaction_reference: NotRequired[str | None]
    """The UTR, by which the beneficiary's bank knows the payment."""
    waits_until: NotRequired[int | None]
    """Until when the payout waits, in Unix seconds, because the bank takes no payouts of its method now; null where it does not wait."""
    settled_at: NotRequired[int | None]
    """When the payout settled, in Unix seconds."""
    failure: NotRequired[PayoutFailure | None]
    """Null where all is well. In `failed` it says why the payout failed, in `returned` why it came back. In `processing` it is `outcome_unknown`: the payout may still arrive, so wait, and do not pay again. Branch on `status`, not on this."""
    payment_advice: PaymentAdvice
    """The document of a settled payout; pending for all others."""
    created: int
    """When the object was created, in Unix seconds."""
    livemode: bool
    """Whether the object belongs to live mode."""


class PayoutFailure(TypedDict):
    code: Literal["beneficiary_name_mismatch", "account_invalid", "account_closed", "account_frozen", "account_not_nre", "ifsc_invalid", "beneficiary_bank_unavailable", "returned_by_beneficiary_bank", "compliance_rejected", "technical_error", "outcome_unknown"]
    """Why the payout failed or came back, as a stable word; `outcome_unknown` where the bank has not said whether it paid."""
    message: str
    """Text for humans; may change."""
    source: Literal["beneficiary_bank", "sponsor_bank", "service"]
    """Who reported the failure."""


class PayoutList(TypedDict):
    object: Literal["list"]
    """Type of the object."""
    data: list[Payout]
    """The objects of this page."""
    has_next: bool
    """Whether more objects follow in the direction of paging."""


class PostalAddress(TypedDict):
    line1: str
    """Street and number."""
    city: str
    """City."""
    state: NotRequired[str | None]
    """State or province."""
    postal_code: NotRequired[str | None]
    """Postal code."""
    country: str
    """ISO 3166-1 alpha-2 code of the country."""


class QuoteLock(TypedDict):
    object: Literal["quote_lock"]
    """Type of the object."""
    id: str
    """ID of the object."""
    status: Literal["active", "used", "expired"]
    """Whether a transfer can still be created with it."""
    sell_currency: Literal["INR", "USD", "USDT"]
    """Currency that is sold."""
    sell_amount: Decimal
    """Amount that is sold, as a decimal string."""
    buy_currency: Literal["INR", "USD", "USDT"]
    """Currency that is bought."""
    buy_amount: Decimal
    """Amount that is bought, as a decimal string; rounded down to the paisa."""
    amount: Decimal
    """The same as `sell_amount`."""
    rate: Decimal
    """INR for one USD, six decimals."""
    mid_market_rate: Decimal
    """Market rate before the spread, INR for one USD."""
    fee: Fee
    """What is kept of the amount before it is exchanged."""
    expires_at: int
    """Until when a transfer can be created with it, in Unix seconds."""
    transfer_id: NotRequired[str | None]
    """ID of the transfer."""
    metadata: dict[str, str]
    """The caller's own names and values."""
    created: int
    """When the object was created, in Unix seconds."""
    livemode: bool
    """Whether the object belongs to live mode."""


class QuoteLockList(TypedDict):
    object: Literal["list"]
    """Type of the object."""
    data: list[QuoteLock]
    """The objects of this page."""
    has_next: bool
    """Whether more objects follow in the direction of paging."""


class Refund(TypedDict):
    object: Literal["refund"]
    """Type of the object."""
    id: str
    """ID of the object."""
    transfer_id: str
    """ID of the transfer."""
    kind: Literal["principal", "excess", "unmatched"]
    """What the refund gives back."""
    status: Literal["requires_address", "processing", "completed"]
    """Where the refund stands."""
    reason: Literal["underpaid", "overpaid", "late", "compliance_rejected", "payout_failed", "payout_returned", "unmatched", "requoted"]
    """Why, as a stable word."""
    amount: Decimal
    """Amount of money as a decimal string."""
    asset: str
    """Token of the stablecoin rail."""
    chain: str
    """Blockchain that the token moves on."""
    to_address: NotRequired[str | None]
    """Blockchain address that the refund goes to; null until one is declared."""
    payer_address: NotRequired[PayerAddress | None]
    """Address that the payer gave for the refund; declare it to use it at once."""
    transaction_hash: NotRequired[str | None]
    """Hash of the transaction that paid the refund."""
    completed_at: NotRequired[int | None]
    """When it was completed, in Unix seconds."""
    created: int
    """When the object was created, in Unix seconds."""
    livemode: bool
    """Whether the object belongs to live mode."""


class RefundList(TypedDict):
    object: Literal["list"]
    """Type of the object."""
    data: list[Refund]
    """The objects of this page."""
    has_next: bool
    """Whether more objects follow in the direction of paging."""


class RefundStatusChange(TypedDict):
    status: Literal["funding", "funding_hold", "funded", "payout_processing", "payout_settled", "payout_failed", "payout_returned", "refund_processing", "refunded", "expired", "cancelled"]
    """The status."""
    at: int
    """When the refund reached this status, in Unix seconds."""


class ReplayWebhooks(TypedDict):
    event_id: NotRequired[str | None]
    """Deliver this event again, in place of a period."""
    since: NotRequired[int | None]
    """Replay events from this time on, in Unix seconds."""
    until: NotRequired[int | None]
    """Replay events up to this time, itself included, in Unix seconds: now if left out."""
    only_failed: NotRequired[bool | None]
    """Replay only what the receiver has not taken: failed deliveries, those that were recorded while the endpoint was disabled, and those that wait for another attempt."""


class Requirement(TypedDict):
    field_name: str
    """The field concerned, nested names joined with dots."""
    code: str
    """What is wrong with the field, as a stable word."""
    message: str
    """Text for humans; may change."""


class ResolveFunding(TypedDict):
    action: Literal["requote", "refund"]
    """What to do with the money in the hold."""
    quote_lock_id: NotRequired[str | None]
    """ID of the quote lock."""
    refund_address: NotRequired[str | None]
    """Blockchain address that a refund goes to."""


class RotateWebhookSecret(TypedDict):
    overlap_seconds: NotRequired[int | None]
    """How long the old secret signs too, in seconds."""


class Sender(TypedDict):
    object: Literal["sender"]
    """Type of the object."""
    id: str
    """ID of the object."""
    name: str
    """Name of the remitter."""
    type: Literal["individual"]
    """Kind of remitter."""
    country: str
    """ISO 3166-1 alpha-2 code of the country."""
    email: NotRequired[str | None]
    """Email address."""
    address: NotRequired[PostalAddress | None]
    """Postal address."""
    date_of_birth: NotRequired[str | None]
    """Date of birth, YYYY-MM-DD: a past date, not before 1900."""
    nationality: NotRequired[str | None]
    """ISO 3166-1 alpha-2 code of the nationality."""
    identification: NotRequired[Identification | None]
    """Document that identifies the person."""
    metadata: dict[str, str]
    """The caller's own names and values."""
    created: int
    """When the object was created, in Unix seconds."""
    livemode: bool
    """Whether the object belongs to live mode."""


class SenderList(TypedDict):
    object: Literal["list"]
    """Type of the object."""
    data: list[Sender]
    """The objects of this page."""
    has_next: bool
    """Whether more objects follow in the direction of paging."""


class SettledPayout(TypedDict):
    id: str
    """ID of the object."""
    status: Literal["initialized", "hold", "processing", "settled", "failed", "returned"]
    """Where the rupee payment stands: `settled`, or `returned` later."""
    amount: Decimal
    """Amount of money as a decimal string."""
    currency: Literal["INR", "USD", "USDT"]
    """Code of the currency."""
    unique_transaction_reference: str
    """The UTR, by which the beneficiary's bank knows the payment."""
    settled_at: int
    """When the payout settled, in Unix seconds."""


class SimulateDeposit(TypedDict):
    amount: NotRequired[Decimal | None]
    """Amount that the payer sends, with at most six decimals: what is missing if left out. From 0.000001 to 1000000.00."""
    asset: NotRequired[str | None]
    """Token that is sent, USDT if left out; no other one is credited."""
    block_time: NotRequired[int | None]
    """Time of the deposit's block in Unix seconds: now if left out."""


class SimulateFailure(TypedDict):
    code: NotRequired[Literal["beneficiary_name_mismatch", "account_invalid", "account_closed", "account_frozen", "account_not_nre", "ifsc_invalid", "beneficiary_bank_unavailable", "returned_by_beneficiary_bank", "compliance_rejected", "technical_error"] | None]
    """Why the bank refuses the payout or sends it back. If left out, `account_closed` for a refusal and `returned_by_beneficiary_bank` for a return. For `outcome_unknown` no helper is needed: an account number that ends in `1003` leads to it."""


class StartChaos(TypedDict):
    duration_seconds: NotRequired[int | None]
    """How long the attacks go on, in seconds: 600 if left out."""
    seed: NotRequired[int | None]
    """Number that chooses which requests and events are attacked; the same number chooses the same ones. If left out, the service draws one."""
    percentage: NotRequired[int | None]
    """Percentage of requests and events that are attacked: 50 if left out."""
    request_attacks: NotRequired[list[Literal["answer_dropped", "answer_delayed", "service_unavailable", "resource_locked"]] | None]
    """Attacks on requests: every kind if left out, none for an empty list."""
    delay_milliseconds: NotRequired[int | None]
    """By how much a delayed answer is late, in milliseconds."""
    webhook_endpoint_id: NotRequired[str | None]
    """ID of the webhook endpoint."""
    webhook_attacks: NotRequired[list[Literal["duplicated", "late", "forged", "missing"]] | None]
    """Attacks on deliveries to the endpoint: every kind if left out."""
    webhook_delay_milliseconds: NotRequired[int | None]
    """By how much a late delivery is late, in milliseconds."""


Statement = TypedDict(
    "Statement",
    {
        'object': 'Literal["statement"]',
        'from': 'int',
        'to': 'int',
        'data': 'list[StatementRow]',
        'totals': 'list[StatementTotal]',
        'livemode': 'bool',
    },
)


class StatementRow(TypedDict):
    transfer_id: str
    """ID of the transfer."""
    status: Literal["funding", "funding_hold", "funded", "payout_processing", "payout_settled", "payout_failed", "payout_returned", "refund_processing", "refunded", "expired", "cancelled"]
    """Status of the transfer when the statement is made."""
    created: int
    """When the transfer was created, in Unix seconds."""
    deposit_transaction_hashes: list[str]
    """Hashes of the completed deposits, in chain order; at most 100."""
    deposits_count: int
    """How many completed deposits there are, including those whose hashes are not listed."""
    usdt_in: Decimal
    """USDT that came in during the period. USDT that a failed or returned payout gave back counts too."""
    usdt_out: Decimal
    """USDT that left in the period, fee and refunds included."""
    rate: Decimal
    """INR for one USD."""
    fee: Decimal
    """In USD."""
    payout_id: NotRequired[str | None]
    """ID of the payout, from funded on."""
    payout_amount: Decimal
    """What the beneficiary receives, as a decimal string."""
    method: NotRequired[Literal["neft", "rtgs", "internal"] | None]
    """Indian payment system that the payout goes by."""
    unique_transaction_reference: NotRequired[str | None]
    """The UTR, by which the beneficiary's bank knows the payment."""
    settled_at: NotRequired[int | None]
    """When the payout settled, in Unix seconds."""
    inr_in: Decimal
    """INR that was bought in the period."""
    inr_out: Decimal
    """INR that left in the period: paid out, or exchanged back into USDT after a failed payout."""
    refunded: Decimal
    """USDT of completed refunds."""
    refund_transaction_hashes: list[str]
    """Hashes of the completed refunds, oldest first; at most 100."""
    refunds_count: int
    """How many completed refunds there are, including those whose hashes are not listed."""


class StatementTotal(TypedDict):
    currency: Literal["INR", "USD", "USDT"]
    """Code of the currency."""
    opening: Decimal
    """Balance at the start of the period."""
    movements: Decimal
    """What the period added: `closing` less `opening`."""
    closing: Decimal
    """Balance at the end of the period."""


class TestClock(TypedDict):
    object: Literal["test_clock"]
    """Type of the object."""
    now: int
    """The test clock in Unix seconds."""


class Transfer(TypedDict):
    object: Literal["transfer"]
    """Type of the object."""
    id: str
    """ID of the object."""
    status: Literal["funding", "funding_hold", "funded", "payout_processing", "payout_settled", "payout_failed", "payout_returned", "refund_processing", "refunded", "expired", "cancelled"]
    """Where the transfer stands; see the guide on the life of a transfer."""
    status_reason: NotRequired[Literal["underpaid", "overpaid", "late", "compliance_review"] | None]
    """Why the transfer waits in funding_hold."""
    sender_id: str
    """ID of the sender."""
    beneficiary_id: str
    """ID of the beneficiary."""
    quote_lock_id: str
    """ID of the quote lock."""
    amount: Decimal
    """Amount that the payer deposits, in `currency`."""
    currency: Literal["INR", "USD", "USDT"]
    """Code of the currency."""
    payout_amount: Decimal
    """What the beneficiary receives, as a decimal string."""
    payout_currency: Literal["INR", "USD", "USDT"]
    """Currency of the payout."""
    rate: Decimal
    """INR for one USD, six decimals."""
    fee: Fee
    """What is kept of the amount before it is exchanged."""
    purpose_code: Literal["P0014", "P1301", "P1302"]
    """RBI purpose code of the remittance."""
    funding: Funding
    """The stablecoin leg."""
    payout_id: NotRequired[str | None]
    """ID of the payout, from funded on."""
    payout: NotRequired[SettledPayout | None]
    """The rupee leg; null until it has settled."""
    refund: NotRequired[Refund | None]
    """The newest refund of the transfer."""
    reference: NotRequired[str | None]
    """The caller's own reference, unique among the account's transfers."""
    return_url: NotRequired[str | None]
    """Where the payer's page leads to at the end, over https."""
    status_history: list[RefundStatusChange]
    """Statuses in the order in which the object reached them."""
    metadata: dict[str, str]
    """The caller's own names and values."""
    created: int
    """When the object was created, in Unix seconds."""
    livemode: bool
    """Whether the object belongs to live mode."""


class TransferList(TypedDict):
    object: Literal["list"]
    """Type of the object."""
    data: list[Transfer]
    """The objects of this page."""
    has_next: bool
    """Whether more objects follow in the direction of paging."""


class UpdateBeneficiary(TypedDict):
    name: NotRequired[str]
    """Name of the account holder, as the bank holds it."""
    account_number: NotRequired[str]
    """Number of the bank account; no answer shows it."""
    ifsc: NotRequired[str]
    """IFSC of the branch."""
    account_type: NotRequired[Literal["nre"]]
    """Type of the bank account."""
    email: NotRequired[str | None]
    """Email address."""
    phone: NotRequired[str | None]
    """Telephone number in E.164 form."""
    metadata: NotRequired[dict[str, str | None] | None]
    """The caller's own names and values."""
    pan: NotRequired[str | None]
    """Indian permanent account number; no answer shows it."""
    passport_number: NotRequired[str | None]
    """Passport number; no answer shows it."""
    date_of_birth: NotRequired[str | None]
    """Date of birth, YYYY-MM-DD: a past date, not before 1900."""
    nationality: NotRequired[str | None]
    """ISO 3166-1 alpha-2 code of the nationality."""
    relationship: NotRequired[Literal["self", "family", "other"] | None]
    """How the sender and the beneficiary are related."""
    submit: NotRequired[bool | None]
    """Whether verification begins: if left out, true in `input_required` and false in `draft`."""


class UpdateWebhookEndpoint(TypedDict):
    url: NotRequired[str]
    """Where events are sent. Two endpoints may have the same address: each is sent every event that it enables, signed with its own secret."""
    enabled_events: NotRequired[list[str] | None]
    """Event types: full names, prefixes such as transfer.status.*, or *; * if left out."""
    description: NotRequired[str | None]
    """The caller's own description."""
    metadata: NotRequired[dict[str, str | None] | None]
    """The caller's own names and values."""
    status: NotRequired[Literal["enabled"]]
    """`enabled` takes deliveries again after the endpoint was disabled."""


class ValidateBeneficiary(TypedDict):
    name: str
    """Name of the account holder, as the bank holds it."""
    account_number: str
    """Number of the bank account; no answer shows it."""
    ifsc: str
    """IFSC of the branch."""
    account_type: Literal["nre"]
    """Type of the bank account."""
    email: NotRequired[str | None]
    """Email address."""
    phone: NotRequired[str | None]
    """Telephone number in E.164 form."""
    metadata: NotRequired[dict[str, str] | None]
    """The caller's own names and values."""
    pan: NotRequired[str | None]
    """Indian permanent account number; no answer shows it."""
    passport_number: NotRequired[str | None]
    """Passport number; no answer shows it."""
    date_of_birth: NotRequired[str | None]
    """Date of birth, YYYY-MM-DD: a past date, not before 1900."""
    nationality: NotRequired[str | None]
    """ISO 3166-1 alpha-2 code of the nationality."""
    relationship: NotRequired[Literal["self", "family", "other"] | None]
    """How the sender and the beneficiary are related."""
    submit: NotRequired[bool | None]
    """Changes nothing here: it is taken so that the body of a create can be sent as it is."""
    amount: NotRequired[Decimal | None]
    """Amount in INR that the payment system is chosen by, with at most two decimals: from 0.01 to 999999999999.99."""


class Verification(TypedDict):
    name_match: NotRequired[Literal["match", "partial", "mismatch", "unavailable"] | None]
    """How the name compares with the one that the bank holds."""
    checked_at: NotRequired[int | None]
    """When the account was checked, in Unix seconds."""


class WebhookAttempt(TypedDict):
    attempted_at: int
    """When the attempt began, in Unix seconds; a test clock does not move it."""
    http_status: NotRequired[int | None]
    """The status of the answer; `null` where none came."""
    duration_milliseconds: int
    """How long the attempt took, in milliseconds."""
    error: NotRequired[str | None]
    """Why no answer came, such as `connect_timeout`."""
    answer: str
    """The beginning of the answer's body, at most 2 KiB."""


class WebhookDelivery(TypedDict):
    object: Literal["webhook_delivery"]
    """Type of the object."""
    id: str
    """ID of the object."""
    webhook_endpoint_id: str
    """ID of the webhook endpoint."""
    event_id: str
    """ID of the event."""
    status: Literal["pending", "succeeded", "failed", "recorded"]
    """Where the delivery stands."""
    attempts: list[WebhookAttempt]
    """Attempts of the delivery, oldest first."""
    next_attempt_at: NotRequired[int | None]
    """When the next attempt is due, in Unix seconds; null where none is. A test clock does not move it. A time that is past says that the attempt waits for its turn, or is under way. During an attempt, the time can also be that of the attempt after it, which begins if the present one gives no result."""
    created: int
    """When the event happened, in Unix seconds: `created` of the event, so in test mode a time of the test clock. The times of attempts are real."""
    livemode: bool
    """Whether the object belongs to live mode."""


class WebhookDeliveryList(TypedDict):
    object: Literal["list"]
    """Type of the object."""
    data: list[WebhookDelivery]
    """The objects of this page."""
    has_next: bool
    """Whether more objects follow in the direction of paging."""


class WebhookDrill(TypedDict):
    object: Literal["webhook_drill"]
    """Type of the object."""
    webhook_endpoint_id: str
    """ID of the webhook endpoint."""
    status: Literal["running", "completed"]
    """Whether the drill still runs."""
    grade: NotRequired[Literal["passed", "failed"] | None]
    """`passed` if every check passed; null while the drill runs."""
    checks: list[DrillCheck]
    """What was sent, and how it was answered."""
    created: int
    """When the object was created, in Unix seconds."""
    completed_at: NotRequired[int | None]
    """When it was completed, in Unix seconds."""
    livemode: bool
    """Whether the object belongs to live mode."""


class WebhookEndpoint(TypedDict):
    object: Literal["webhook_endpoint"]
    """Type of the object."""
    id: str
    """ID of the object."""
    url: str
    """Where events are sent. Two endpoints may have the same address: each is sent every event that it enables, signed with its own secret."""
    description: NotRequired[str | None]
    """The caller's own description."""
    enabled_events: list[str]
    """Event types: full names, prefixes such as transfer.status.*, or *; * if left out."""
    status: Literal["enabled", "failing", "disabled"]
    """Whether events are delivered, by how deliveries went."""
    disabled_reason: NotRequired[Literal["delivery_failures"] | None]
    """Why nothing is delivered."""
    secret: NotRequired[str | None]
    """Shown when the endpoint is created and when its secret is rotated, and never again."""
    metadata: dict[str, str]
    """The caller's own names and values."""
    created: int
    """When the object was created, in Unix seconds."""
    livemode: bool
    """Whether the object belongs to live mode."""


class WebhookEndpointList(TypedDict):
    object: Literal["list"]
    """Type of the object."""
    data: list[WebhookEndpoint]
    """The objects of this page."""
    has_next: bool
    """Whether more objects follow in the direction of paging."""


class WebhookReplay(TypedDict):
    object: Literal["webhook_replay"]
    """Type of the object."""
    webhook_endpoint_id: str
    """ID of the webhook endpoint."""
    deliveries_count: int
    """How many deliveries were scheduled."""
