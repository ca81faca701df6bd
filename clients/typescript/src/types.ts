// The objects of the API. Made from the API's document by clients/generate.py. Do not edit.

/** A decimal number as text, such as `1000.00`. Never make a floating-point number of it. */
export type Decimal = string;

export interface AdvanceClock {
  /** By how many seconds the test clock advances. */
  advance_seconds: number;
}

export interface AdviceBeneficiary {
  /** Name of the account holder. */
  name: string;
  /** Last four characters of the account number. */
  account_number_last4: string;
  /** Type of the bank account. */
  account_type: string;
  /** IFSC of the branch. */
  ifsc: string;
  /** Name of the bank by the IFSC directory. */
  bank_name?: string | null;
  /** Name of the branch by the IFSC directory. */
  branch_name?: string | null;
}

export interface AdviceDeposit {
  /** Hash of the transaction on chain. */
  transaction_hash: string;
  /** Blockchain that the token moves on. */
  chain: string;
  /** Token of the stablecoin rail. */
  asset: string;
  /** Amount of money as a decimal string. */
  amount: Decimal;
  /** Where the chain shows the transaction, for a chain whose pages are known. */
  explorer_url?: string | null;
}

export interface AdviceGst {
  /** Value that the tax is computed on. */
  taxable_value: Decimal;
  /** Rate of the tax in percent. */
  rate_percent: string;
  /** Amount of money as a decimal string. */
  amount: Decimal;
}

export interface AdviceMilestone {
  /** Which milestone the payment reached. */
  milestone: "rate_locked" | "funded" | "instructed" | "settled" | "returned";
  /** When the payment reached it, in Unix seconds. */
  at: number;
}

export interface AdviceSender {
  /** Name of the remitter. */
  name: string;
  /** ISO 3166-1 alpha-2 code of the country. */
  country: string;
  /** Postal address. */
  address?: PostalAddress | null;
}

export interface AdviceSignature {
  /** Always `Ed25519`. */
  algorithm: string;
  /** The key's JWK thumbprint (RFC 7638), which finds it in the published key set. */
  key_id: string;
  /** 64 bytes in base64url without padding. */
  value: string;
}

export interface ApiError {
  /** Type of the object. */
  object: "error";
  /** Every problem of the request. */
  errors: Array<ApiErrorEntry>;
  /** HTTP status of the answer. */
  http_status_code: number;
}

export interface ApiErrorEntry {
  /** Stable code that programs branch on. New codes can be added: treat one that you do not know by the HTTP status. */
  code: string;
  /** Text for humans; may change. */
  message: string;
  /** What the problem is about. */
  metadata: ApiErrorMetadata;
}

export interface ApiErrorMetadata {
  /** Field, parameter or header concerned; nested names joined with dots. */
  field_name?: string;
  /** The largest value that is accepted; present if a value is outside its range. */
  maximum?: string;
  /** The smallest value that is accepted; present if a value is outside its range. */
  minimum?: string;
  /** Always true: once the cause is gone, send a POST with a new idempotency key. With the old key, the refusal is repeated. A GET has no key, and is sent again as it is. */
  new_key_required?: boolean;
  /** What the operator has paused, with `service_paused`. */
  paused?: string;
  /** Which limit was reached, with `rate_limit_exceeded`. */
  policy?: string;
  /** Seconds to wait, with `rate_limit_exceeded`. */
  retry_after_seconds?: string;
  /** With `reference_already_used`: the transfer that has the reference. With `quote_lock_already_used`: the transfer that was created with the quote lock. */
  transfer_id?: string;
}

export interface Balance {
  /** Type of the object. */
  object: "balance";
  /** Final on the chain and not yet used or held. */
  available: Array<BalanceItem>;
  /** Seen on chain, not final. */
  pending: Array<BalanceItem>;
  /** Funded, not exchanged yet. */
  processing: Array<BalanceItem>;
  /** Rupees that are with the bank. */
  payout_processing: Array<BalanceItem>;
  /** Waiting for a decision, or owed back. */
  hold: Array<BalanceItem>;
  /** Whether the object belongs to live mode. */
  livemode: boolean;
}

export interface BalanceItem {
  /** Amount of money as a decimal string. */
  amount: Decimal;
  /** Code of the currency. */
  currency: "INR" | "USD" | "USDT";
}

export interface Beneficiary {
  /** Type of the object. */
  object: "beneficiary";
  /** ID of the object. */
  id: string;
  /** Name of the account holder, as the bank holds it. */
  name: string;
  /** Last four characters of the account number. */
  account_number_last4: string;
  /** IFSC of the branch. */
  ifsc: string;
  /** Type of the bank account. */
  account_type: "nre";
  /** Where the verification of the beneficiary stands. */
  status: "draft" | "verifying" | "active" | "input_required" | "rejected";
  /** Whether the beneficiary can be paid. */
  payouts_enabled: boolean;
  /** Why payouts are not enabled. */
  payouts_disabled_reason?: "verification_pending" | "name_mismatch" | "account_invalid" | "account_not_nre" | "ifsc_unknown" | "kyc_required" | "compliance_hold" | "returned_payout" | null;
  /** Name of the bank by the IFSC directory. */
  bank_name?: string | null;
  /** Name of the branch by the IFSC directory. */
  branch_name?: string | null;
  /** Email address. */
  email?: string | null;
  /** Telephone number in E.164 form. */
  phone?: string | null;
  /** Last four characters of the PAN. */
  pan_last4?: string | null;
  /** Last four characters of the passport number. */
  passport_number_last4?: string | null;
  /** What has to be updated to continue. */
  requirements: Array<Requirement>;
  /** What the last check of the account found, and when. */
  verification: Verification;
  /** The caller's own names and values. */
  metadata: Record<string, string>;
  /** When the object was created, in Unix seconds. */
  created: number;
  /** Whether the object belongs to live mode. */
  livemode: boolean;
}

export interface BeneficiaryList {
  /** Type of the object. */
  object: "list";
  /** The objects of this page. */
  data: Array<Beneficiary>;
  /** Whether more objects follow in the direction of paging. */
  has_next: boolean;
}

export interface BeneficiaryValidation {
  /** Type of the object. */
  object: "beneficiary_validation";
  /** Last four characters of the account number. */
  account_number_last4: string;
  /** IFSC of the branch. */
  ifsc: string;
  /** Type of the bank account. */
  account_type: "nre";
  /** Name of the bank by the IFSC directory. */
  bank_name?: string | null;
  /** Name of the branch by the IFSC directory. */
  branch_name?: string | null;
  /** Amount in INR that was asked about; null without one. */
  amount?: string | null;
  /** Code of the currency. */
  currency: "INR" | "USD" | "USDT";
  /** The payment system that a payout of the amount goes by; null without an amount. */
  method?: "neft" | "rtgs" | "internal" | null;
  /** What the caller would have to correct in live mode. */
  requirements: Array<Requirement>;
  /** Whether the object belongs to live mode. */
  livemode: boolean;
}

export interface ChainView {
  /** Whether the chain is followed, and whether something is wrong with it. */
  status: "following" | "behind" | "not_followed" | "token_deprecated";
  /** Number of the last block whose final content was read. */
  block_number?: number | null;
  /** Time of that block in Unix seconds. */
  block_time?: number | null;
  /** How far the service's view of the chain lies behind, in seconds. */
  seconds_behind?: number | null;
}

export interface ChaosCheck {
  /** The mistake, as a stable word. */
  code: "retried_with_new_key" | "dropped_answer_abandoned" | "unavailable_taken_as_final" | "locked_taken_as_final" | "retry_after_ignored" | "retried_without_pause" | "key_reused_for_other_body" | "refusal_retried" | "timed_out_too_early" | "webhook_forgery_accepted" | "webhook_duplicate_refused" | "webhook_late_refused" | "webhook_answered_slowly" | "missing_event_not_read";
  /** `not_observed` where nothing showed whether the caller makes the mistake. */
  result: "passed" | "failed" | "not_observed";
  /** How often the caller could have made the mistake. */
  observed_count: number;
  /** How often the caller made the mistake. */
  faults_count: number;
  /** The first ten times that the caller made the mistake. */
  faults: Array<ChaosFault>;
  /** How to avoid the mistake. */
  remedy: string;
}

export interface ChaosFault {
  /** The route of the request; null for a webhook. */
  route?: string | null;
  /** The `Request-Id` of each request that shows the mistake. */
  request_ids: Array<string>;
  /** The event of the webhook; null for a request. */
  event_id?: string | null;
  /** What was seen. */
  message: string;
}

export interface ChaosProfile {
  /** Type of the object. */
  object: "chaos_profile";
  /** Whether the attacks go on, and whether the report is complete. */
  status: "running" | "settling" | "completed";
  /** Number that chooses which requests and events are attacked; the same number chooses the same ones. If left out, the service draws one. */
  seed: number;
  /** Percentage of requests and events that are attacked: 50 if left out. */
  percentage: number;
  /** Attacks on requests: every kind if left out, none for an empty list. */
  request_attacks: Array<"answer_dropped" | "answer_delayed" | "service_unavailable" | "resource_locked">;
  /** By how much a delayed answer is late, in milliseconds. */
  delay_milliseconds: number;
  /** ID of the webhook endpoint. */
  webhook_endpoint_id?: string | null;
  /** Attacks on deliveries to the endpoint: every kind if left out. */
  webhook_attacks: Array<"duplicated" | "late" | "forged" | "missing">;
  /** By how much a late delivery is late, in milliseconds. */
  webhook_delay_milliseconds: number;
  /** When the attacks began, in Unix seconds. */
  started_at: number;
  /** When the attacks end, in Unix seconds; a test clock does not move it. */
  ends_at: number;
  /** Whether the object belongs to live mode. */
  livemode: boolean;
}

export interface ChaosReport {
  /** Type of the object. */
  object: "chaos_report";
  /** Whether the attacks go on, and whether the report is complete. */
  status: "running" | "settling" | "completed";
  /** Null until the status is `completed`. */
  grade?: "passed" | "failed" | "incomplete" | null;
  /** Number that chooses which requests and events are attacked; the same number chooses the same ones. If left out, the service draws one. */
  seed: number;
  /** When the attacks began, in Unix seconds. */
  started_at: number;
  /** When the attacks end, in Unix seconds; a test clock does not move it. */
  ends_at: number;
  /** POSTs with different idempotency keys, and GETs. */
  requests_count: number;
  /** How many requests were attacked. */
  requests_attacked_count: number;
  /** Events for the attacked webhook endpoint. */
  events_count: number;
  /** How many events were attacked. */
  events_attacked_count: number;
  /** What was looked for, each with its own result. */
  checks: Array<ChaosCheck>;
  /** Whether the object belongs to live mode. */
  livemode: boolean;
}

export interface Corridor {
  /** Type of the object. */
  object: "corridor";
  /** Currency that is sold. */
  sell_currency: "INR" | "USD" | "USDT";
  /** Currency that is bought. */
  buy_currency: "INR" | "USD" | "USDT";
  /** Smallest amount that can be sent. */
  amount_minimum: Decimal;
  /** Largest amount that can be sent. */
  amount_maximum: Decimal;
  /** What is kept of the amount before it is exchanged. */
  fee: Fee;
  /** The stablecoin leg. */
  funding: Array<CorridorFunding>;
  /** How long a quote lock lives, in seconds. */
  quote_lock_seconds: number;
  /** How long a transfer waits for its deposit, in seconds. */
  funding_seconds: number;
  /** Types of bank account that can receive payouts. */
  account_types: Array<"nre">;
  /** Indian payment systems that payouts go by. */
  methods: Array<"neft" | "rtgs" | "internal">;
  /** RBI purpose codes that are taken. */
  purpose_codes: Array<string>;
  /** Whether the object belongs to live mode. */
  livemode: boolean;
}

export interface CorridorFunding {
  /** How the transfer is funded. */
  rail: "stablecoin";
  /** Token of the stablecoin rail. */
  asset: "USDT";
  /** Blockchain that the token moves on. */
  chain: "tron" | "ethereum" | "polygon" | "base" | "arbitrum" | "bnb";
  /** Contract of the token on its chain. */
  token_contract: string;
  /** How far the chain's final view is followed; null where the chain is simulated. */
  view?: ChainView | null;
}

export interface CorridorList {
  /** Type of the object. */
  object: "list";
  /** The objects of this page. */
  data: Array<Corridor>;
  /** Whether more objects follow in the direction of paging. */
  has_next: boolean;
}

export interface CreateBeneficiary {
  /** Name of the account holder, as the bank holds it. */
  name: string;
  /** Number of the bank account; no answer shows it. */
  account_number: string;
  /** IFSC of the branch. */
  ifsc: string;
  /** Type of the bank account. */
  account_type: "nre";
  /** Email address. */
  email?: string | null;
  /** Telephone number in E.164 form. */
  phone?: string | null;
  /** The caller's own names and values. */
  metadata?: Record<string, string> | null;
  /** Indian permanent account number; no answer shows it. */
  pan?: string | null;
  /** Passport number; no answer shows it. */
  passport_number?: string | null;
  /** Date of birth, YYYY-MM-DD: a past date, not before 1900. */
  date_of_birth?: string | null;
  /** ISO 3166-1 alpha-2 code of the nationality. */
  nationality?: string | null;
  /** How the sender and the beneficiary are related. */
  relationship?: "self" | "family" | "other" | null;
  /** Whether verification begins: true if left out. With false the beneficiary is a `draft`, until an update sends `submit` true. */
  submit?: boolean | null;
}

export interface CreateQuoteLock {
  /** Currency that is sold. */
  sell_currency: "USD";
  /** Currency that is bought. */
  buy_currency: "INR";
  /** Amount in `sell_currency`, with at most two decimals; in place of `buy_amount`. From 10.00 to 50000.00 USD, unless the operator has set other limits: `GET /v1/corridors` shows them. */
  amount?: Decimal | null;
  /** Amount in `buy_currency` to arrive, with at most two decimals; in place of `amount`. From what the smallest `amount` buys to what the largest buys; a refusal names both in `metadata.minimum` and `metadata.maximum`. */
  buy_amount?: Decimal | null;
  /** The caller's own names and values. */
  metadata?: Record<string, string> | null;
}

export interface CreateSender {
  /** Name of the remitter. */
  name: string;
  /** Kind of remitter. */
  type: "individual";
  /** ISO 3166-1 alpha-2 code of the country. */
  country: string;
  /** Email address. */
  email?: string | null;
  /** Postal address. Live mode needs it: the bank has to know `city` and `country`, and a transfer whose sender has no address is refused there with `sender_not_eligible`. Test mode does without. */
  address?: CreateSenderAddress | null;
  /** The caller's own names and values. */
  metadata?: Record<string, string> | null;
  /** Date of birth, YYYY-MM-DD: a past date, not before 1900. */
  date_of_birth?: string | null;
  /** ISO 3166-1 alpha-2 code of the nationality. */
  nationality?: string | null;
  /** Document that identifies the person. */
  identification?: CreateSenderIdentification | null;
}

export interface CreateSenderAddress {
  /** Street and number. */
  line1: string;
  /** City. */
  city: string;
  /** State or province. */
  state?: string | null;
  /** Postal code. */
  postal_code?: string | null;
  /** ISO 3166-1 alpha-2 code of the country. */
  country: string;
}

export interface CreateSenderIdentification {
  /** Type of the document. */
  type: "passport" | "national_id" | "driving_licence";
  /** Number of the document; no answer shows it. */
  number: string;
}

export interface CreateTransfer {
  /** ID of the sender. */
  sender_id: string;
  /** ID of the beneficiary. */
  beneficiary_id: string;
  /** Amount that the payer deposits, in `currency`: that of the quote lock, so from 10.00 to 50000.00 USD, unless the operator has set other limits. */
  amount: Decimal;
  /** Code of the currency. */
  currency: "USD";
  /** Currency of the payout. */
  payout_currency: "INR";
  /** ID of the quote lock. */
  quote_lock_id: string;
  /** The stablecoin leg. */
  funding: CreateTransferFunding;
  /** The caller's own reference, unique among the account's transfers. */
  reference?: string | null;
  /** Where the payer's page leads to at the end, over https. */
  return_url?: string | null;
  /** The caller's own names and values. */
  metadata?: Record<string, string> | null;
  /** RBI purpose code of the remittance. */
  purpose_code?: "P0014" | "P1301" | "P1302" | null;
}

export interface CreateTransferFunding {
  /** How the transfer is funded. */
  rail: "stablecoin";
  /** Token of the stablecoin rail. */
  asset: "USDT";
  /** Blockchain that the token moves on. Each mode takes one: a test key takes `tron`, unless the operator has set up another test net; a live key takes the chain that the operator follows. `GET /v1/corridors`, sent with the key, names it in `funding[0].chain`. */
  chain: "tron" | "ethereum" | "polygon" | "base" | "arbitrum" | "bnb";
  /** Blockchain address that a refund goes to. */
  refund_address?: string | null;
  /** Whether the payer may give a refund's address on the page. */
  payer_sets_refund_address?: boolean | null;
  /** What to do with money that does not fit. */
  policy?: CreateTransferFundingPolicy | null;
}

export interface CreateTransferFundingPolicy {
  /** What to do with too little money at expiry. */
  underpaid?: "hold" | "refund" | null;
  /** What to do with money above the amount. */
  overpaid?: "refund_excess" | "hold" | null;
  /** What to do with money that arrives late. */
  late?: "hold" | "refund" | null;
}

export interface CreateWebhookEndpoint {
  /** Where events are sent. Two endpoints may have the same address: each is sent every event that it enables, signed with its own secret. */
  url: string;
  /** Event types: full names, prefixes such as transfer.status.*, or *; * if left out. */
  enabled_events?: Array<string> | null;
  /** The caller's own description. */
  description?: string | null;
  /** The caller's own names and values. */
  metadata?: Record<string, string> | null;
}

export interface CreatedPeriod {
  /** Only objects that were created after this time, in Unix seconds. */
  gt?: number;
  /** Only objects that were created at or after this time, in Unix seconds. */
  gte?: number;
  /** Only objects that were created before this time, in Unix seconds. */
  lt?: number;
  /** Only objects that were created at or before this time, in Unix seconds. */
  lte?: number;
}

export interface DeclareRefundAddress {
  /** Blockchain address that the refund goes to. */
  to_address: string;
}

export interface DeletedWebhookEndpoint {
  /** Type of the object. */
  object: "webhook_endpoint";
  /** ID of the object. */
  id: string;
  /** Always true. */
  deleted: boolean;
}

export interface Deposit {
  /** Type of the object. */
  object: "deposit";
  /** ID of the object. */
  id: string;
  /** ID of the transfer. */
  transfer_id: string;
  /** How far the chain has confirmed the movement. */
  status: "initialized" | "processing" | "completed" | "failed";
  /** Amount of money as a decimal string. */
  amount: Decimal;
  /** Code of the currency. */
  currency: string;
  /** Token of the stablecoin rail. */
  asset: string;
  /** Blockchain that the token moves on. */
  chain: string;
  /** Blockchain address that paid. */
  from_address: string;
  /** Deposit address of the transfer. */
  to_address: string;
  /** Hash of the transaction on chain. */
  transaction_hash: string;
  /** Index of the movement's log in its block. */
  log_index: number;
  /** Number of the block that holds the transaction. */
  block_number?: number | null;
  /** Time of that block in Unix seconds. */
  block_time?: number | null;
  /** Blocks from the transaction's block to the chain's newest one. */
  confirmations: number;
  /** What the deposit meant for its transfer; null until it is final. */
  classification?: "exact" | "partial" | "over" | "late" | "unmatched" | "unsupported" | null;
  /** Why the deposit failed. */
  reason_code?: "asset_unsupported" | "dropped" | null;
  /** When it was completed, in Unix seconds. */
  completed_at?: number | null;
  /** When the object was created, in Unix seconds. */
  created: number;
  /** Whether the object belongs to live mode. */
  livemode: boolean;
}

export interface DepositList {
  /** Type of the object. */
  object: "list";
  /** The objects of this page. */
  data: Array<Deposit>;
  /** Whether more objects follow in the direction of paging. */
  has_next: boolean;
}

export interface DiagnoseFunding {
  /** Hash of the transaction that is asked about. */
  transaction_hash: string;
}

export interface DrillCheck {
  /** What was tried. */
  name: string;
  /** Whether the receiver answered as it should. */
  passed: boolean;
  /** The answer that is right: `2xx` or `4xx`. `any` where only the time counts. */
  expected: string;
  /** Type of the event in each delivery, in the order in which they were sent. */
  event_types: Array<string>;
  /** HTTP statuses of the answers; 0 where none came. */
  http_statuses: Array<number>;
  /** The longest time to an answer, in milliseconds. */
  duration_milliseconds: number;
  /** What the check is for, and what to correct if it failed. */
  message: string;
}

export interface EmptyBody {
}

export interface Event {
  /** Type of the object. */
  object: "event";
  /** ID of the object. */
  id: string;
  /** What changed, such as `transfer.status.payout_settled`. */
  type: string;
  /** ID of the object that changed. */
  linked_id: string;
  /** Type of the object that changed. */
  linked_object: string;
  /** When the change happened, in Unix seconds. */
  created: number;
  /** Whether the object belongs to live mode. */
  livemode: boolean;
}

export interface EventCheckpoint {
  /** Type of the object. */
  object: "event_checkpoint";
  /** The last event that is counted. */
  event_id?: string | null;
  /** How many events there are up to this one, itself included. */
  events_count: number;
  /** Chained hash over the events up to this one, 64 hexadecimal digits. */
  hash: string;
  /** Whether the object belongs to live mode. */
  livemode: boolean;
}

export interface EventList {
  /** Type of the object. */
  object: "list";
  /** The objects of this page. */
  data: Array<Event>;
  /** Whether more objects follow in the direction of paging. */
  has_next: boolean;
}

export interface Fee {
  /** Amount of money as a decimal string. */
  amount: Decimal;
  /** Code of the currency. */
  currency: "INR" | "USD" | "USDT";
  /** Parts of the fee. */
  details: Array<FeeDetail>;
}

export interface FeeDetail {
  /** What the part is: `service_fee` or `gst`. */
  name: string;
  /** Amount of money as a decimal string. */
  amount: Decimal;
  /** Present only if it differs from the fee's currency: GST is in rupees. */
  currency?: "INR" | "USD" | "USDT" | null;
  /** For a tax: the value that it is computed on. */
  taxable_value?: Decimal | null;
  /** For a tax: its rate in percent. */
  rate_percent?: string | null;
}

export interface Funding {
  /** How the transfer is funded. */
  rail: "stablecoin";
  /** Token of the stablecoin rail. */
  asset: string;
  /** Blockchain that the token moves on. */
  chain: string;
  /** Blockchain address that the payer sends to. */
  deposit_address: string;
  /** Where the stablecoin leg stands. */
  status: "awaiting_funds" | "confirming" | "partially_funded" | "funded" | "hold" | "expired" | "cancelled" | "refund_processing" | "refunded";
  /** What has to arrive at the deposit address. */
  amount_expected: Decimal;
  /** Sum of the final deposits that counted. */
  amount_received: Decimal;
  /** What was received above the expected amount and is owed back. */
  amount_excess: Decimal;
  /** Until when a deposit is in time, by its block's time in Unix seconds. */
  expires_at: number;
  /** Blockchain address that a refund goes to. */
  refund_address?: string | null;
  /** Whether the payer may give a refund's address on the page. */
  payer_sets_refund_address: boolean;
  /** What to do with money that does not fit. */
  policy: FundingPolicy;
  /** Contract of the token on its chain. */
  token_contract: string;
  /** Page that shows the payer what to send and where. */
  instructions_url: string;
}

export interface FundingDiagnosis {
  /** Type of the object. */
  object: "funding_diagnosis";
  /** ID of the transfer. */
  transfer_id: string;
  /** Hash of the transaction on chain. */
  transaction_hash: string;
  /** What became of the transaction, as a stable word. */
  code: "credited" | "confirming" | "short_by" | "late_by" | "after_cancel" | "unmatched" | "not_credited" | "zero_value" | "look_alike_token" | "wrong_token" | "wrong_address" | "unrelated" | "no_token" | "reverted" | "not_found";
  /** A sentence or two that a payer can be shown. */
  message: string;
  /** ID of the deposit. */
  deposit_id?: string | null;
  /** Amount of money as a decimal string. */
  amount?: Decimal | null;
  /** Code of the currency. */
  currency?: string | null;
  /** What will still be missing from the transfer's amount once this transaction is final. */
  short_by?: Decimal | null;
  /** By how many seconds the block is later than `funding.expires_at`; null if it was in time, or if its time does not matter. */
  late_by_seconds?: number | null;
  /** Number of the block that holds the transaction. */
  block_number?: number | null;
  /** Time of that block in Unix seconds. */
  block_time?: number | null;
  /** Blocks from the transaction's block to the chain's newest one. */
  confirmations?: number | null;
  /** Blockchain address that the transaction paid. */
  to_address?: string | null;
  /** Contract of the token on its chain. */
  token_contract?: string | null;
  /** Whether the object belongs to live mode. */
  livemode: boolean;
}

export interface FundingPolicy {
  /** What to do with too little money at expiry. */
  underpaid: "hold" | "refund";
  /** What to do with money above the amount. */
  overpaid: "refund_excess" | "hold";
  /** What to do with money that arrives late. */
  late: "hold" | "refund";
}

export interface Identification {
  /** Type of the document. */
  type: "passport" | "national_id" | "driving_licence";
}

export interface ListBeneficiaries {
  /** Objects on a page. */
  limit?: number;
  /** The page after this ID. Not combined with ending_before. */
  starting_after?: string;
  /** What lies before this ID, nearest first. Not combined with starting_after. */
  ending_before?: string;
  /** Oldest first (asc) or newest first (desc). */
  order?: "asc" | "desc";
  /** Only objects of this period. */
  created?: CreatedPeriod;
  /** Only objects with this status. */
  status?: "draft" | "verifying" | "active" | "input_required" | "rejected";
}

export interface ListDeposits {
  /** Objects on a page. */
  limit?: number;
  /** The page after this ID. Not combined with ending_before. */
  starting_after?: string;
  /** What lies before this ID, nearest first. Not combined with starting_after. */
  ending_before?: string;
  /** Oldest first (asc) or newest first (desc). */
  order?: "asc" | "desc";
  /** Only objects of this period. */
  created?: CreatedPeriod;
  /** Only objects with this status. */
  status?: "initialized" | "processing" | "completed" | "failed";
  /** Only objects with this transfer_id. */
  transfer_id?: string;
  /** Only objects with this transaction_hash. */
  transaction_hash?: string;
}

export interface ListEvents {
  /** Objects on a page. */
  limit?: number;
  /** The page after this ID. Not combined with ending_before. */
  starting_after?: string;
  /** What lies before this ID, nearest first. Not combined with starting_after. */
  ending_before?: string;
  /** Oldest first (asc) or newest first (desc). */
  order?: "asc" | "desc";
  /** Only objects of this period. */
  created?: CreatedPeriod;
  /** Only objects with this type. */
  type?: "beneficiary.payouts_enabled.updated" | "beneficiary.status.active" | "beneficiary.status.draft" | "beneficiary.status.input_required" | "beneficiary.status.rejected" | "beneficiary.status.verifying" | "deposit.status.completed" | "payout.payment_advice.available" | "payout.status.failed" | "payout.status.hold" | "payout.status.initialized" | "payout.status.processing" | "payout.status.returned" | "payout.status.settled" | "refund.payer_address.updated" | "refund.status.completed" | "refund.status.processing" | "refund.status.requires_address" | "transfer.status.cancelled" | "transfer.status.expired" | "transfer.status.funded" | "transfer.status.funding" | "transfer.status.funding_hold" | "transfer.status.payout_failed" | "transfer.status.payout_processing" | "transfer.status.payout_returned" | "transfer.status.payout_settled" | "transfer.status.refund_processing" | "transfer.status.refunded" | "webhook_endpoint.status.disabled" | "webhook_endpoint.status.enabled" | "webhook_endpoint.status.failing";
  /** Only objects with this linked_id. */
  linked_id?: string;
  /** Only objects with this linked_object. */
  linked_object?: "beneficiary" | "deposit" | "payout" | "refund" | "transfer" | "webhook_endpoint";
  /** Seconds to wait for an object where the page would be empty; the answer comes as soon as there is one. Not combined with ending_before or order=desc. */
  wait?: number;
}

export interface ListPayouts {
  /** Objects on a page. */
  limit?: number;
  /** The page after this ID. Not combined with ending_before. */
  starting_after?: string;
  /** What lies before this ID, nearest first. Not combined with starting_after. */
  ending_before?: string;
  /** Oldest first (asc) or newest first (desc). */
  order?: "asc" | "desc";
  /** Only objects of this period. */
  created?: CreatedPeriod;
  /** Only objects with this status. */
  status?: "initialized" | "hold" | "processing" | "settled" | "failed" | "returned";
  /** Only objects with this transfer_id. */
  transfer_id?: string;
  /** Only objects with this beneficiary_id. */
  beneficiary_id?: string;
  /** Only objects with this unique_transaction_reference. */
  unique_transaction_reference?: string;
}

export interface ListQuoteLocks {
  /** Objects on a page. */
  limit?: number;
  /** The page after this ID. Not combined with ending_before. */
  starting_after?: string;
  /** What lies before this ID, nearest first. Not combined with starting_after. */
  ending_before?: string;
  /** Oldest first (asc) or newest first (desc). */
  order?: "asc" | "desc";
  /** Only objects of this period. */
  created?: CreatedPeriod;
  /** Only objects with this status. */
  status?: "active" | "used" | "expired";
  /** Only objects with this transfer_id. */
  transfer_id?: string;
}

export interface ListRefunds {
  /** Objects on a page. */
  limit?: number;
  /** The page after this ID. Not combined with ending_before. */
  starting_after?: string;
  /** What lies before this ID, nearest first. Not combined with starting_after. */
  ending_before?: string;
  /** Oldest first (asc) or newest first (desc). */
  order?: "asc" | "desc";
  /** Only objects of this period. */
  created?: CreatedPeriod;
  /** Only objects with this status. */
  status?: "requires_address" | "processing" | "completed";
  /** Only objects with this transfer_id. */
  transfer_id?: string;
  /** Only objects with this transaction_hash. */
  transaction_hash?: string;
}

export interface ListSenders {
  /** Objects on a page. */
  limit?: number;
  /** The page after this ID. Not combined with ending_before. */
  starting_after?: string;
  /** What lies before this ID, nearest first. Not combined with starting_after. */
  ending_before?: string;
  /** Oldest first (asc) or newest first (desc). */
  order?: "asc" | "desc";
  /** Only objects of this period. */
  created?: CreatedPeriod;
}

export interface ListTransfers {
  /** Objects on a page. */
  limit?: number;
  /** The page after this ID. Not combined with ending_before. */
  starting_after?: string;
  /** What lies before this ID, nearest first. Not combined with starting_after. */
  ending_before?: string;
  /** Oldest first (asc) or newest first (desc). */
  order?: "asc" | "desc";
  /** Only objects of this period. */
  created?: CreatedPeriod;
  /** Only objects with this status. */
  status?: "funding" | "funding_hold" | "funded" | "payout_processing" | "payout_settled" | "payout_failed" | "payout_returned" | "refund_processing" | "refunded" | "expired" | "cancelled";
  /** Only objects with this beneficiary_id. */
  beneficiary_id?: string;
  /** Only objects with this sender_id. */
  sender_id?: string;
  /** Only objects with this reference. */
  reference?: string;
}

export interface ListWebhookEndpointDeliveries {
  /** Objects on a page. */
  limit?: number;
  /** The page after this ID. Not combined with ending_before. */
  starting_after?: string;
  /** What lies before this ID, nearest first. Not combined with starting_after. */
  ending_before?: string;
  /** Oldest first (asc) or newest first (desc). */
  order?: "asc" | "desc";
  /** Only objects of this period. */
  created?: CreatedPeriod;
  /** Only objects with this status. */
  status?: "pending" | "succeeded" | "failed" | "recorded";
}

export interface ListWebhookEndpoints {
  /** Objects on a page. */
  limit?: number;
  /** The page after this ID. Not combined with ending_before. */
  starting_after?: string;
  /** What lies before this ID, nearest first. Not combined with starting_after. */
  ending_before?: string;
  /** Oldest first (asc) or newest first (desc). */
  order?: "asc" | "desc";
  /** Only objects of this period. */
  created?: CreatedPeriod;
  /** Only objects with this status. */
  status?: "enabled" | "failing" | "disabled";
}

export interface PayerAddress {
  /** Blockchain address that the payer gave. */
  to_address: string;
  /** When it was declared, in Unix seconds. */
  declared_at: number;
  /** When it becomes the refund's address, in Unix seconds, unless another one is declared before. */
  active_at: number;
}

export interface PaymentAdvice {
  /** Whether the payment advice can be fetched. */
  status: "pending" | "available";
  /** Since when it is available, in Unix seconds. */
  available_at?: number | null;
  /** Where the payment advice is fetched with the API key; null until the advice is available. */
  url?: string | null;
}

export interface PaymentAdviceDocument {
  /** Type of the object. */
  object: "payment_advice";
  /** Number of the payment advice. */
  advice_number: string;
  /** Who made the document: the operator's name. */
  issuer: string;
  /** The issuer's postal address, where the operator has named it. */
  issuer_address?: string | null;
  /** The licence that the issuer works under, where the operator has named it. */
  issuer_licence?: string | null;
  /** When it became available, in Unix seconds. */
  issued_at?: number | null;
  /** ID of the payout, from funded on. */
  payout_id: string;
  /** ID of the transfer. */
  transfer_id: string;
  /** `settled`, or `returned` where the beneficiary's bank sent the money back. */
  status: "initialized" | "hold" | "processing" | "settled" | "failed" | "returned";
  /** The UTR, by which the beneficiary's bank knows the payment. */
  unique_transaction_reference?: string | null;
  /** Indian payment system that the payout goes by. */
  method: "neft" | "rtgs" | "internal";
  /** When the payout settled, in Unix seconds. */
  settled_at?: number | null;
  /** When the bank sent the money back, in Unix seconds. */
  returned_at?: number | null;
  /** The milestones that the payment has reached, oldest first. */
  milestones: Array<AdviceMilestone>;
  /** Who sent the money. */
  sender: AdviceSender;
  /** Who was paid. */
  beneficiary: AdviceBeneficiary;
  /** RBI purpose code of the remittance. */
  purpose_code: string;
  /** What the purpose code means. */
  purpose: string;
  /** What the sender sold. */
  amount_sent: Decimal;
  /** Currency of what the sender sold. */
  amount_sent_currency: "INR" | "USD" | "USDT";
  /** In the currency that was sent. */
  fee: Decimal;
  /** INR for one USD, six decimals. */
  rate: Decimal;
  /** When the rate was locked, in Unix seconds. */
  rate_locked_at?: number | null;
  /** `amount_sent` at `rate`, before the fee. It is not what GST is computed on, which is after the fee. */
  amount_gross: Decimal;
  /** The fee in the currency of the payout: `amount_gross` less `gst` and `amount`. */
  amount_fee: Decimal;
  /** The GST that was deducted, where it is charged. */
  gst?: AdviceGst | null;
  /** Amount of money as a decimal string. */
  amount: Decimal;
  /** Code of the currency. */
  currency: "INR" | "USD" | "USDT";
  /** The amount in words. */
  amount_in_words?: string | null;
  /** At most 20, oldest first. */
  deposits: Array<AdviceDeposit>;
  /** How many deposits count towards the transfer. */
  deposits_count: number;
  /** The bank that sent the INR, where the operator has named one. */
  sponsor_bank?: string | null;
  /** Last four characters of the operator's account at `sponsor_bank` that was debited; only in live mode. */
  debited_account_last4?: string | null;
  /** What is certified. */
  statement: string;
  /** Where anybody can compare amount, date, reference and last four digits with what the service knows. */
  verification_url: string;
  /** Where the keys are that verify `signature`. */
  key_set_url: string;
  /** Whether the object belongs to live mode. */
  livemode: boolean;
  /** Signature of the document. */
  signature: AdviceSignature;
}

export interface Payout {
  /** Type of the object. */
  object: "payout";
  /** ID of the object. */
  id: string;
  /** ID of the transfer. */
  transfer_id: string;
  /** ID of the beneficiary. */
  beneficiary_id: string;
  /** Where the rupee payment stands. */
  status: "initialized" | "hold" | "processing" | "settled" | "failed" | "returned";
  /** Amount of money as a decimal string. */
  amount: Decimal;
  /** Code of the currency. */
  currency: "INR" | "USD" | "USDT";
  /** Indian payment system that the payout goes by. */
  method: "neft" | "rtgs" | "internal";
  /** RBI purpose code of the remittance. */
  purpose_code: string;
  /** The UTR, by which the beneficiary's bank knows the payment. */
  unique_transaction_reference?: string | null;
  /** Until when the payout waits, in Unix seconds, because the bank takes no payouts of its method now; null where it does not wait. */
  waits_until?: number | null;
  /** When the payout settled, in Unix seconds. */
  settled_at?: number | null;
  /** Null where all is well. In `failed` it says why the payout failed, in `returned` why it came back. In `processing` it is `outcome_unknown`: the payout may still arrive, so wait, and do not pay again. Branch on `status`, not on this. */
  failure?: PayoutFailure | null;
  /** The document of a settled payout; pending for all others. */
  payment_advice: PaymentAdvice;
  /** When the object was created, in Unix seconds. */
  created: number;
  /** Whether the object belongs to live mode. */
  livemode: boolean;
}

export interface PayoutFailure {
  /** Why the payout failed or came back, as a stable word; `outcome_unknown` where the bank has not said whether it paid. */
  code: "beneficiary_name_mismatch" | "account_invalid" | "account_closed" | "account_frozen" | "account_not_nre" | "ifsc_invalid" | "beneficiary_bank_unavailable" | "returned_by_beneficiary_bank" | "compliance_rejected" | "technical_error" | "outcome_unknown";
  /** Text for humans; may change. */
  message: string;
  /** Who reported the failure. */
  source: "beneficiary_bank" | "sponsor_bank" | "service";
}

export interface PayoutList {
  /** Type of the object. */
  object: "list";
  /** The objects of this page. */
  data: Array<Payout>;
  /** Whether more objects follow in the direction of paging. */
  has_next: boolean;
}

export interface PostalAddress {
  /** Street and number. */
  line1: string;
  /** City. */
  city: string;
  /** State or province. */
  state?: string | null;
  /** Postal code. */
  postal_code?: string | null;
  /** ISO 3166-1 alpha-2 code of the country. */
  country: string;
}

export interface QuoteLock {
  /** Type of the object. */
  object: "quote_lock";
  /** ID of the object. */
  id: string;
  /** Whether a transfer can still be created with it. */
  status: "active" | "used" | "expired";
  /** Currency that is sold. */
  sell_currency: "INR" | "USD" | "USDT";
  /** Amount that is sold, as a decimal string. */
  sell_amount: Decimal;
  /** Currency that is bought. */
  buy_currency: "INR" | "USD" | "USDT";
  /** Amount that is bought, as a decimal string; rounded down to the paisa. */
  buy_amount: Decimal;
  /** The same as `sell_amount`. */
  amount: Decimal;
  /** INR for one USD, six decimals. */
  rate: Decimal;
  /** Market rate before the spread, INR for one USD. */
  mid_market_rate: Decimal;
  /** What is kept of the amount before it is exchanged. */
  fee: Fee;
  /** Until when a transfer can be created with it, in Unix seconds. */
  expires_at: number;
  /** ID of the transfer. */
  transfer_id?: string | null;
  /** The caller's own names and values. */
  metadata: Record<string, string>;
  /** When the object was created, in Unix seconds. */
  created: number;
  /** Whether the object belongs to live mode. */
  livemode: boolean;
}

export interface QuoteLockList {
  /** Type of the object. */
  object: "list";
  /** The objects of this page. */
  data: Array<QuoteLock>;
  /** Whether more objects follow in the direction of paging. */
  has_next: boolean;
}

export interface Refund {
  /** Type of the object. */
  object: "refund";
  /** ID of the object. */
  id: string;
  /** ID of the transfer. */
  transfer_id: string;
  /** What the refund gives back. */
  kind: "principal" | "excess" | "unmatched";
  /** Where the refund stands. */
  status: "requires_address" | "processing" | "completed";
  /** Why, as a stable word. */
  reason: "underpaid" | "overpaid" | "late" | "compliance_rejected" | "payout_failed" | "payout_returned" | "unmatched" | "requoted";
  /** Amount of money as a decimal string. */
  amount: Decimal;
  /** Token of the stablecoin rail. */
  asset: string;
  /** Blockchain that the token moves on. */
  chain: string;
  /** Blockchain address that the refund goes to; null until one is declared. */
  to_address?: string | null;
  /** Address that the payer gave for the refund; declare it to use it at once. */
  payer_address?: PayerAddress | null;
  /** Hash of the transaction that paid the refund. */
  transaction_hash?: string | null;
  /** When it was completed, in Unix seconds. */
  completed_at?: number | null;
  /** When the object was created, in Unix seconds. */
  created: number;
  /** Whether the object belongs to live mode. */
  livemode: boolean;
}

export interface RefundList {
  /** Type of the object. */
  object: "list";
  /** The objects of this page. */
  data: Array<Refund>;
  /** Whether more objects follow in the direction of paging. */
  has_next: boolean;
}

export interface RefundStatusChange {
  /** The status. */
  status: "funding" | "funding_hold" | "funded" | "payout_processing" | "payout_settled" | "payout_failed" | "payout_returned" | "refund_processing" | "refunded" | "expired" | "cancelled";
  /** When the refund reached this status, in Unix seconds. */
  at: number;
}

export interface ReplayWebhooks {
  /** Deliver this event again, in place of a period. */
  event_id?: string | null;
  /** Replay events from this time on, in Unix seconds. */
  since?: number | null;
  /** Replay events up to this time, itself included, in Unix seconds: now if left out. */
  until?: number | null;
  /** Replay only what the receiver has not taken: failed deliveries, those that were recorded while the endpoint was disabled, and those that wait for another attempt. */
  only_failed?: boolean | null;
}

export interface Requirement {
  /** The field concerned, nested names joined with dots. */
  field_name: string;
  /** What is wrong with the field, as a stable word. */
  code: string;
  /** Text for humans; may change. */
  message: string;
}

export interface ResolveFunding {
  /** What to do with the money in the hold. */
  action: "requote" | "refund";
  /** ID of the quote lock. */
  quote_lock_id?: string | null;
  /** Blockchain address that a refund goes to. */
  refund_address?: string | null;
}

export interface RotateWebhookSecret {
  /** How long the old secret signs too, in seconds. */
  overlap_seconds?: number | null;
}

export interface Sender {
  /** Type of the object. */
  object: "sender";
  /** ID of the object. */
  id: string;
  /** Name of the remitter. */
  name: string;
  /** Kind of remitter. */
  type: "individual";
  /** ISO 3166-1 alpha-2 code of the country. */
  country: string;
  /** Email address. */
  email?: string | null;
  /** Postal address. */
  address?: PostalAddress | null;
  /** Date of birth, YYYY-MM-DD: a past date, not before 1900. */
  date_of_birth?: string | null;
  /** ISO 3166-1 alpha-2 code of the nationality. */
  nationality?: string | null;
  /** Document that identifies the person. */
  identification?: Identification | null;
  /** The caller's own names and values. */
  metadata: Record<string, string>;
  /** When the object was created, in Unix seconds. */
  created: number;
  /** Whether the object belongs to live mode. */
  livemode: boolean;
}

export interface SenderList {
  /** Type of the object. */
  object: "list";
  /** The objects of this page. */
  data: Array<Sender>;
  /** Whether more objects follow in the direction of paging. */
  has_next: boolean;
}

export interface SettledPayout {
  /** ID of the object. */
  id: string;
  /** Where the rupee payment stands: `settled`, or `returned` later. */
  status: "initialized" | "hold" | "processing" | "settled" | "failed" | "returned";
  /** Amount of money as a decimal string. */
  amount: Decimal;
  /** Code of the currency. */
  currency: "INR" | "USD" | "USDT";
  /** The UTR, by which the beneficiary's bank knows the payment. */
  unique_transaction_reference: string;
  /** When the payout settled, in Unix seconds. */
  settled_at: number;
}

export interface SimulateDeposit {
  /** Amount that the payer sends, with at most six decimals: what is missing if left out. From 0.000001 to 1000000.00. */
  amount?: Decimal | null;
  /** Token that is sent, USDT if left out; no other one is credited. */
  asset?: string | null;
  /** Time of the deposit's block in Unix seconds: now if left out. */
  block_time?: number | null;
}

export interface SimulateFailure {
  /** Why the bank refuses the payout or sends it back. If left out, `account_closed` for a refusal and `returned_by_beneficiary_bank` for a return. For `outcome_unknown` no helper is needed: an account number that ends in `1003` leads to it. */
  code?: "beneficiary_name_mismatch" | "account_invalid" | "account_closed" | "account_frozen" | "account_not_nre" | "ifsc_invalid" | "beneficiary_bank_unavailable" | "returned_by_beneficiary_bank" | "compliance_rejected" | "technical_error" | null;
}

export interface StartChaos {
  /** How long the attacks go on, in seconds: 600 if left out. */
  duration_seconds?: number | null;
  /** Number that chooses which requests and events are attacked; the same number chooses the same ones. If left out, the service draws one. */
  seed?: number | null;
  /** Percentage of requests and events that are attacked: 50 if left out. */
  percentage?: number | null;
  /** Attacks on requests: every kind if left out, none for an empty list. */
  request_attacks?: Array<"answer_dropped" | "answer_delayed" | "service_unavailable" | "resource_locked"> | null;
  /** By how much a delayed answer is late, in milliseconds. */
  delay_milliseconds?: number | null;
  /** ID of the webhook endpoint. */
  webhook_endpoint_id?: string | null;
  /** Attacks on deliveries to the endpoint: every kind if left out. */
  webhook_attacks?: Array<"duplicated" | "late" | "forged" | "missing"> | null;
  /** By how much a late delivery is late, in milliseconds. */
  webhook_delay_milliseconds?: number | null;
}

export interface Statement {
  /** Type of the object. */
  object: "statement";
  /** First second of the period, in Unix seconds. */
  from: number;
  /** End of the period, in Unix seconds; not in it. */
  to: number;
  /** The objects of this page. */
  data: Array<StatementRow>;
  /** Sums of the period. */
  totals: Array<StatementTotal>;
  /** Whether the object belongs to live mode. */
  livemode: boolean;
}

export interface StatementRow {
  /** ID of the transfer. */
  transfer_id: string;
  /** Status of the transfer when the statement is made. */
  status: "funding" | "funding_hold" | "funded" | "payout_processing" | "payout_settled" | "payout_failed" | "payout_returned" | "refund_processing" | "refunded" | "expired" | "cancelled";
  /** When the transfer was created, in Unix seconds. */
  created: number;
  /** Hashes of the completed deposits, in chain order; at most 100. */
  deposit_transaction_hashes: Array<string>;
  /** How many completed deposits there are, including those whose hashes are not listed. */
  deposits_count: number;
  /** USDT that came in during the period. USDT that a failed or returned payout gave back counts too. */
  usdt_in: Decimal;
  /** USDT that left in the period, fee and refunds included. */
  usdt_out: Decimal;
  /** INR for one USD. */
  rate: Decimal;
  /** In USD. */
  fee: Decimal;
  /** ID of the payout, from funded on. */
  payout_id?: string | null;
  /** What the beneficiary receives, as a decimal string. */
  payout_amount: Decimal;
  /** Indian payment system that the payout goes by. */
  method?: "neft" | "rtgs" | "internal" | null;
  /** The UTR, by which the beneficiary's bank knows the payment. */
  unique_transaction_reference?: string | null;
  /** When the payout settled, in Unix seconds. */
  settled_at?: number | null;
  /** INR that was bought in the period. */
  inr_in: Decimal;
  /** INR that left in the period: paid out, or exchanged back into USDT after a failed payout. */
  inr_out: Decimal;
  /** USDT of completed refunds. */
  refunded: Decimal;
  /** Hashes of the completed refunds, oldest first; at most 100. */
  refund_transaction_hashes: Array<string>;
  /** How many completed refunds there are, including those whose hashes are not listed. */
  refunds_count: number;
}

export interface StatementTotal {
  /** Code of the currency. */
  currency: "INR" | "USD" | "USDT";
  /** Balance at the start of the period. */
  opening: Decimal;
  /** What the period added: `closing` less `opening`. */
  movements: Decimal;
  /** Balance at the end of the period. */
  closing: Decimal;
}

export interface TestClock {
  /** Type of the object. */
  object: "test_clock";
  /** The test clock in Unix seconds. */
  now: number;
}

export interface Transfer {
  /** Type of the object. */
  object: "transfer";
  /** ID of the object. */
  id: string;
  /** Where the transfer stands; see the guide on the life of a transfer. */
  status: "funding" | "funding_hold" | "funded" | "payout_processing" | "payout_settled" | "payout_failed" | "payout_returned" | "refund_processing" | "refunded" | "expired" | "cancelled";
  /** Why the transfer waits in funding_hold. */
  status_reason?: "underpaid" | "overpaid" | "late" | "compliance_review" | null;
  /** ID of the sender. */
  sender_id: string;
  /** ID of the beneficiary. */
  beneficiary_id: string;
  /** ID of the quote lock. */
  quote_lock_id: string;
  /** Amount that the payer deposits, in `currency`. */
  amount: Decimal;
  /** Code of the currency. */
  currency: "INR" | "USD" | "USDT";
  /** What the beneficiary receives, as a decimal string. */
  payout_amount: Decimal;
  /** Currency of the payout. */
  payout_currency: "INR" | "USD" | "USDT";
  /** INR for one USD, six decimals. */
  rate: Decimal;
  /** What is kept of the amount before it is exchanged. */
  fee: Fee;
  /** RBI purpose code of the remittance. */
  purpose_code: "P0014" | "P1301" | "P1302";
  /** The stablecoin leg. */
  funding: Funding;
  /** ID of the payout, from funded on. */
  payout_id?: string | null;
  /** The rupee leg; null until it has settled. */
  payout?: SettledPayout | null;
  /** The newest refund of the transfer. */
  refund?: Refund | null;
  /** The caller's own reference, unique among the account's transfers. */
  reference?: string | null;
  /** Where the payer's page leads to at the end, over https. */
  return_url?: string | null;
  /** Statuses in the order in which the object reached them. */
  status_history: Array<RefundStatusChange>;
  /** The caller's own names and values. */
  metadata: Record<string, string>;
  /** When the object was created, in Unix seconds. */
  created: number;
  /** Whether the object belongs to live mode. */
  livemode: boolean;
}

export interface TransferList {
  /** Type of the object. */
  object: "list";
  /** The objects of this page. */
  data: Array<Transfer>;
  /** Whether more objects follow in the direction of paging. */
  has_next: boolean;
}

export interface UpdateBeneficiary {
  /** Name of the account holder, as the bank holds it. */
  name?: string;
  /** Number of the bank account; no answer shows it. */
  account_number?: string;
  /** IFSC of the branch. */
  ifsc?: string;
  /** Type of the bank account. */
  account_type?: "nre";
  /** Email address. */
  email?: string | null;
  /** Telephone number in E.164 form. */
  phone?: string | null;
  /** The caller's own names and values. */
  metadata?: Record<string, string | null> | null;
  /** Indian permanent account number; no answer shows it. */
  pan?: string | null;
  /** Passport number; no answer shows it. */
  passport_number?: string | null;
  /** Date of birth, YYYY-MM-DD: a past date, not before 1900. */
  date_of_birth?: string | null;
  /** ISO 3166-1 alpha-2 code of the nationality. */
  nationality?: string | null;
  /** How the sender and the beneficiary are related. */
  relationship?: "self" | "family" | "other" | null;
  /** Whether verification begins: if left out, true in `input_required` and false in `draft`. */
  submit?: boolean | null;
}

export interface UpdateWebhookEndpoint {
  /** Where events are sent. Two endpoints may have the same address: each is sent every event that it enables, signed with its own secret. */
  url?: string;
  /** Event types: full names, prefixes such as transfer.status.*, or *; * if left out. */
  enabled_events?: Array<string> | null;
  /** The caller's own description. */
  description?: string | null;
  /** The caller's own names and values. */
  metadata?: Record<string, string | null> | null;
  /** `enabled` takes deliveries again after the endpoint was disabled. */
  status?: "enabled";
}

export interface ValidateBeneficiary {
  /** Name of the account holder, as the bank holds it. */
  name: string;
  /** Number of the bank account; no answer shows it. */
  account_number: string;
  /** IFSC of the branch. */
  ifsc: string;
  /** Type of the bank account. */
  account_type: "nre";
  /** Email address. */
  email?: string | null;
  /** Telephone number in E.164 form. */
  phone?: string | null;
  /** The caller's own names and values. */
  metadata?: Record<string, string> | null;
  /** Indian permanent account number; no answer shows it. */
  pan?: string | null;
  /** Passport number; no answer shows it. */
  passport_number?: string | null;
  /** Date of birth, YYYY-MM-DD: a past date, not before 1900. */
  date_of_birth?: string | null;
  /** ISO 3166-1 alpha-2 code of the nationality. */
  nationality?: string | null;
  /** How the sender and the beneficiary are related. */
  relationship?: "self" | "family" | "other" | null;
  /** Changes nothing here: it is taken so that the body of a create can be sent as it is. */
  submit?: boolean | null;
  /** Amount in INR that the payment system is chosen by, with at most two decimals: from 0.01 to 999999999999.99. */
  amount?: Decimal | null;
}

export interface Verification {
  /** How the name compares with the one that the bank holds. */
  name_match?: "match" | "partial" | "mismatch" | "unavailable" | null;
  /** When the account was checked, in Unix seconds. */
  checked_at?: number | null;
}

export interface WebhookAttempt {
  /** When the attempt began, in Unix seconds; a test clock does not move it. */
  attempted_at: number;
  /** The status of the answer; `null` where none came. */
  http_status?: number | null;
  /** How long the attempt took, in milliseconds. */
  duration_milliseconds: number;
  /** Why no answer came, such as `connect_timeout`. */
  error?: string | null;
  /** The beginning of the answer's body, at most 2 KiB. */
  answer: string;
}

export interface WebhookDelivery {
  /** Type of the object. */
  object: "webhook_delivery";
  /** ID of the object. */
  id: string;
  /** ID of the webhook endpoint. */
  webhook_endpoint_id: string;
  /** ID of the event. */
  event_id: string;
  /** Where the delivery stands. */
  status: "pending" | "succeeded" | "failed" | "recorded";
  /** Attempts of the delivery, oldest first. */
  attempts: Array<WebhookAttempt>;
  /** When the next attempt is due, in Unix seconds; null where none is. A test clock does not move it. A time that is past says that the attempt waits for its turn, or is under way. During an attempt, the time can also be that of the attempt after it, which begins if the present one gives no result. */
  next_attempt_at?: number | null;
  /** When the event happened, in Unix seconds: `created` of the event, so in test mode a time of the test clock. The times of attempts are real. */
  created: number;
  /** Whether the object belongs to live mode. */
  livemode: boolean;
}

export interface WebhookDeliveryList {
  /** Type of the object. */
  object: "list";
  /** The objects of this page. */
  data: Array<WebhookDelivery>;
  /** Whether more objects follow in the direction of paging. */
  has_next: boolean;
}

export interface WebhookDrill {
  /** Type of the object. */
  object: "webhook_drill";
  /** ID of the webhook endpoint. */
  webhook_endpoint_id: string;
  /** Whether the drill still runs. */
  status: "running" | "completed";
  /** `passed` if every check passed; null while the drill runs. */
  grade?: "passed" | "failed" | null;
  /** What was sent, and how it was answered. */
  checks: Array<DrillCheck>;
  /** When the object was created, in Unix seconds. */
  created: number;
  /** When it was completed, in Unix seconds. */
  completed_at?: number | null;
  /** Whether the object belongs to live mode. */
  livemode: boolean;
}

export interface WebhookEndpoint {
  /** Type of the object. */
  object: "webhook_endpoint";
  /** ID of the object. */
  id: string;
  /** Where events are sent. Two endpoints may have the same address: each is sent every event that it enables, signed with its own secret. */
  url: string;
  /** The caller's own description. */
  description?: string | null;
  /** Event types: full names, prefixes such as transfer.status.*, or *; * if left out. */
  enabled_events: Array<string>;
  /** Whether events are delivered, by how deliveries went. */
  status: "enabled" | "failing" | "disabled";
  /** Why nothing is delivered. */
  disabled_reason?: "delivery_failures" | null;
  /** Shown when the endpoint is created and when its secret is rotated, and never again. */
  secret?: string | null;
  /** The caller's own names and values. */
  metadata: Record<string, string>;
  /** When the object was created, in Unix seconds. */
  created: number;
  /** Whether the object belongs to live mode. */
  livemode: boolean;
}

export interface WebhookEndpointList {
  /** Type of the object. */
  object: "list";
  /** The objects of this page. */
  data: Array<WebhookEndpoint>;
  /** Whether more objects follow in the direction of paging. */
  has_next: boolean;
}

export interface WebhookReplay {
  /** Type of the object. */
  object: "webhook_replay";
  /** ID of the webhook endpoint. */
  webhook_endpoint_id: string;
  /** How many deliveries were scheduled. */
  deliveries_count: number;
}
