-- The first schema: one text for every store. BIGINT, TEXT, BOOLEAN and BYTEA only.
-- `scope` is the account's number times 2, plus 1 in live mode. It leads the primary key of nearly every table of callers'
-- objects. Identifiers are 16 bytes and rise with the time, so rows are appended.
-- Clustered tables say WITHOUT ROWID, which is left out for PostgreSQL.

CREATE TABLE meta (
  name TEXT NOT NULL PRIMARY KEY,
  value BYTEA NOT NULL
) WITHOUT ROWID;

-- Where several nodes serve the same data: which node does what only one may do at a time. Each new holder has a higher
-- token.
CREATE TABLE leases (
  name TEXT NOT NULL PRIMARY KEY,
  holder BYTEA NOT NULL,
  token BIGINT NOT NULL,
  ends_milliseconds BIGINT NOT NULL,
  last_id BYTEA
) WITHOUT ROWID;

-- Where several nodes serve the same keys: the token bucket of each API key. Each node takes a handful of tokens at a
-- time.
CREATE TABLE rate_limits (
  key_id BYTEA NOT NULL,
  is_write BOOLEAN NOT NULL,
  tokens_milli BIGINT NOT NULL,
  filled_milliseconds BIGINT NOT NULL,
  PRIMARY KEY (key_id, is_write)
) WITHOUT ROWID;

CREATE TABLE accounts (
  number BIGINT NOT NULL PRIMARY KEY,
  id BYTEA NOT NULL UNIQUE,
  name TEXT NOT NULL UNIQUE,
  suspended BOOLEAN NOT NULL,
  clock_offset_seconds BIGINT NOT NULL CHECK (clock_offset_seconds >= 0),
  created BIGINT NOT NULL
);

CREATE TABLE api_keys (
  secret_hash BYTEA NOT NULL PRIMARY KEY,
  id BYTEA NOT NULL UNIQUE,
  scope BIGINT NOT NULL,
  hint TEXT NOT NULL,
  permissions TEXT NOT NULL,
  created BIGINT NOT NULL,
  expires_at BIGINT,
  revoked_at BIGINT
) WITHOUT ROWID;

-- A narrow index of keyed hashes beside answers that only append. The answers are not clustered by their key: there, a row
-- of more than a quarter page would spill into a page of its own. `part` is the number of a segment (store/key_segments.rs).
CREATE TABLE idempotency_keys (
  part BIGINT NOT NULL,
  key_hash BYTEA NOT NULL,
  answer_id BYTEA NOT NULL,
  PRIMARY KEY (part, key_hash)
) WITHOUT ROWID;

-- Which keys a closed segment may hold. A segment without a row here is searched for every key.
CREATE TABLE idempotency_filters (
  part BIGINT NOT NULL PRIMARY KEY,
  checksum BIGINT NOT NULL,
  filter BYTEA NOT NULL
);

CREATE TABLE idempotency_answers (
  answer_id BYTEA NOT NULL PRIMARY KEY,
  key_hash BYTEA NOT NULL,
  fingerprint BYTEA NOT NULL,
  completed_at BIGINT NOT NULL,
  http_status BIGINT NOT NULL,
  form BIGINT NOT NULL,
  body BYTEA NOT NULL
);

CREATE TABLE beneficiaries (
  scope BIGINT NOT NULL,
  id BYTEA NOT NULL,
  version BIGINT NOT NULL,
  status TEXT NOT NULL,
  payouts_enabled BOOLEAN NOT NULL,
  payouts_disabled_reason TEXT,
  name TEXT NOT NULL,
  account_number_sealed BYTEA NOT NULL,
  account_number_last4 TEXT NOT NULL,
  ifsc TEXT NOT NULL,
  bank_name TEXT,
  branch_name TEXT,
  email TEXT,
  phone TEXT,
  kyc_sealed BYTEA NOT NULL,
  pan_last4 TEXT,
  passport_number_last4 TEXT,
  requirements TEXT NOT NULL,
  name_match TEXT,
  checked_at BIGINT,
  failed_passes_count BIGINT NOT NULL,
  metadata TEXT NOT NULL,
  status_history TEXT NOT NULL,
  created BIGINT NOT NULL,
  PRIMARY KEY (scope, id)
) WITHOUT ROWID;

CREATE TABLE senders (
  scope BIGINT NOT NULL,
  id BYTEA NOT NULL,
  name TEXT NOT NULL,
  type TEXT NOT NULL,
  country TEXT NOT NULL,
  email TEXT,
  address TEXT,
  date_of_birth TEXT,
  nationality TEXT,
  identification_type TEXT,
  identification_sealed BYTEA,
  screening TEXT NOT NULL,
  metadata TEXT NOT NULL,
  created BIGINT NOT NULL,
  PRIMARY KEY (scope, id)
) WITHOUT ROWID;

-- What screening found: one row for each pair of a subject (a sender, a beneficiary, or the transfer that an address paid)
-- and a list entry. `basis` is a keyed fingerprint of both. `evidence` has what the list publishes, and nothing of the
-- subject.
CREATE TABLE screening_hits (
  scope BIGINT NOT NULL,
  id BYTEA NOT NULL,
  subject TEXT NOT NULL,
  subject_id BYTEA NOT NULL,
  list TEXT NOT NULL,
  entry_id TEXT NOT NULL,
  basis BYTEA NOT NULL,
  screening TEXT NOT NULL,
  score_basis_points BIGINT NOT NULL,
  evidence TEXT NOT NULL,
  decision TEXT,
  decided_by TEXT,
  decided_at BIGINT,
  created BIGINT NOT NULL,
  PRIMARY KEY (scope, id)
) WITHOUT ROWID;
CREATE UNIQUE INDEX screening_hits_subject ON screening_hits (scope, subject_id, list, entry_id);
CREATE INDEX screening_hits_open ON screening_hits (id) WHERE decision IS NULL;

CREATE TABLE quote_locks (
  scope BIGINT NOT NULL,
  id BYTEA NOT NULL,
  sell_currency TEXT NOT NULL,
  sell_units BIGINT NOT NULL CHECK (sell_units > 0),
  buy_currency TEXT NOT NULL,
  buy_units BIGINT NOT NULL CHECK (buy_units > 0),
  rate BIGINT NOT NULL CHECK (rate > 0),
  mid_market_rate BIGINT NOT NULL CHECK (mid_market_rate > 0),
  fee_units BIGINT NOT NULL CHECK (fee_units >= 0),
  gst_taxable_units BIGINT,
  gst_units BIGINT,
  expires_at BIGINT NOT NULL,
  transfer_id BYTEA,
  metadata TEXT NOT NULL,
  created BIGINT NOT NULL,
  PRIMARY KEY (scope, id)
) WITHOUT ROWID;

CREATE TABLE transfers (
  scope BIGINT NOT NULL,
  id BYTEA NOT NULL,
  version BIGINT NOT NULL,
  status TEXT NOT NULL,
  status_reason TEXT,
  sender_id BYTEA NOT NULL,
  beneficiary_id BYTEA NOT NULL,
  quote_lock_id BYTEA NOT NULL,
  sell_currency TEXT NOT NULL,
  sell_units BIGINT NOT NULL CHECK (sell_units > 0),
  payout_currency TEXT NOT NULL,
  payout_units BIGINT NOT NULL CHECK (payout_units > 0),
  rate BIGINT NOT NULL,
  fee_units BIGINT NOT NULL,
  gst_taxable_units BIGINT,
  gst_units BIGINT,
  purpose_code TEXT NOT NULL,
  asset TEXT NOT NULL,
  chain TEXT NOT NULL,
  token_contract BYTEA NOT NULL,
  deposit_address BYTEA NOT NULL,
  account_fingerprint BIGINT NOT NULL,
  derivation_index BIGINT NOT NULL,
  expected_units BIGINT NOT NULL,
  received_units BIGINT NOT NULL CHECK (received_units >= 0),
  excess_units BIGINT NOT NULL CHECK (excess_units >= 0),
  unsettled_count BIGINT NOT NULL CHECK (unsettled_count >= 0),
  expires_at BIGINT NOT NULL,
  hold_until BIGINT,
  refund_address BYTEA,
  policy TEXT NOT NULL,
  payout_id BYTEA,
  refund_id BYTEA,
  status_history TEXT NOT NULL,
  metadata TEXT NOT NULL,
  created BIGINT NOT NULL,
  PRIMARY KEY (scope, id)
) WITHOUT ROWID;
CREATE INDEX transfers_beneficiary ON transfers (scope, beneficiary_id, id);
CREATE INDEX transfers_sender ON transfers (scope, sender_id, id);

CREATE TABLE deposit_addresses (
  address BYTEA NOT NULL PRIMARY KEY,
  scope BIGINT NOT NULL,
  transfer_id BYTEA NOT NULL
) WITHOUT ROWID;

CREATE TABLE deposits (
  scope BIGINT NOT NULL,
  id BYTEA NOT NULL,
  version BIGINT NOT NULL,
  transfer_id BYTEA NOT NULL,
  status TEXT NOT NULL,
  units BIGINT NOT NULL CHECK (units > 0),
  asset TEXT NOT NULL,
  chain TEXT NOT NULL,
  from_address BYTEA NOT NULL,
  to_address BYTEA NOT NULL,
  transaction_hash TEXT NOT NULL,
  log_index BIGINT NOT NULL,
  block_number BIGINT,
  block_time BIGINT,
  confirmations BIGINT NOT NULL,
  unseen_since BIGINT,
  classification TEXT,
  reason_code TEXT,
  completed_at BIGINT,
  status_history TEXT NOT NULL,
  created BIGINT NOT NULL,
  PRIMARY KEY (scope, id)
) WITHOUT ROWID;
CREATE INDEX deposits_transfer ON deposits (scope, transfer_id, id);
CREATE INDEX deposits_transaction ON deposits (scope, transaction_hash, log_index);
CREATE INDEX deposits_unsettled ON deposits (chain, scope, id) WHERE status IN ('initialized', 'processing');
CREATE INDEX deposits_pending ON deposits (scope, asset, units) WHERE status IN ('initialized', 'processing');
CREATE UNIQUE INDEX deposits_final ON deposits (scope, chain, transaction_hash, log_index) WHERE status = 'completed';
CREATE INDEX deposits_block ON deposits (chain, block_number) WHERE status = 'completed';

CREATE TABLE payouts (
  scope BIGINT NOT NULL,
  id BYTEA NOT NULL,
  version BIGINT NOT NULL,
  transfer_id BYTEA NOT NULL,
  beneficiary_id BYTEA NOT NULL,
  status TEXT NOT NULL,
  currency TEXT NOT NULL,
  units BIGINT NOT NULL CHECK (units > 0),
  method TEXT NOT NULL,
  purpose_code TEXT NOT NULL,
  unique_transaction_reference TEXT,
  submitted_milliseconds BIGINT,
  settled_at BIGINT,
  failure_code TEXT,
  failure_message TEXT,
  failure_source TEXT,
  advice_available_at BIGINT,
  status_history TEXT NOT NULL,
  created BIGINT NOT NULL,
  PRIMARY KEY (scope, id)
) WITHOUT ROWID;
CREATE INDEX payouts_transfer ON payouts (scope, transfer_id);
CREATE INDEX payouts_held ON payouts (scope, beneficiary_id) WHERE status = 'hold';
CREATE INDEX payouts_reference ON payouts (scope, unique_transaction_reference) WHERE unique_transaction_reference IS NOT NULL;

CREATE TABLE refunds (
  scope BIGINT NOT NULL,
  id BYTEA NOT NULL,
  version BIGINT NOT NULL,
  transfer_id BYTEA NOT NULL,
  deposit_id BYTEA,
  kind TEXT NOT NULL,
  status TEXT NOT NULL,
  reason TEXT NOT NULL,
  units BIGINT NOT NULL CHECK (units > 0),
  asset TEXT NOT NULL,
  chain TEXT NOT NULL,
  to_address BYTEA,
  sent_transaction_hash TEXT,
  sent_fault TEXT,
  log_index BIGINT,
  transaction_hash TEXT,
  completed_at BIGINT,
  status_history TEXT NOT NULL,
  created BIGINT NOT NULL,
  PRIMARY KEY (scope, id)
) WITHOUT ROWID;
CREATE INDEX refunds_transfer ON refunds (scope, transfer_id, id);
CREATE INDEX refunds_open ON refunds (chain, scope, id) WHERE status <> 'completed';
CREATE UNIQUE INDEX refunds_deposit ON refunds (scope, deposit_id) WHERE deposit_id IS NOT NULL;
CREATE UNIQUE INDEX refunds_final ON refunds (chain, transaction_hash, log_index) WHERE log_index IS NOT NULL;

-- The ledger. A posting moves one amount of one currency from one ledger account to another, so an imbalance cannot be
-- written down.
CREATE TABLE ledger_postings (
  scope BIGINT NOT NULL,
  id BYTEA NOT NULL,
  entry_id BYTEA NOT NULL,
  entry TEXT NOT NULL,
  debit_account TEXT NOT NULL,
  credit_account TEXT NOT NULL,
  currency TEXT NOT NULL,
  units BIGINT NOT NULL CHECK (units > 0),
  transfer_id BYTEA NOT NULL,
  posted_at BIGINT NOT NULL,
  PRIMARY KEY (scope, id),
  CHECK (debit_account <> credit_account),
  CHECK (currency IN ('INR', 'USD', 'USDT'))
) WITHOUT ROWID;

-- The running sums of the postings, so that reading a balance costs the same however many postings there are.
CREATE TABLE ledger_balances (
  scope BIGINT NOT NULL,
  account TEXT NOT NULL,
  currency TEXT NOT NULL,
  debit_units BIGINT NOT NULL CHECK (debit_units >= 0),
  credit_units BIGINT NOT NULL CHECK (credit_units >= 0),
  PRIMARY KEY (scope, account, currency)
) WITHOUT ROWID;

-- What handlers write; the sequencer turns it into events.
CREATE TABLE outbox (
  id BYTEA NOT NULL PRIMARY KEY,
  scope BIGINT NOT NULL,
  type TEXT NOT NULL,
  linked_id BYTEA NOT NULL,
  linked_object TEXT NOT NULL,
  created BIGINT NOT NULL,
  -- Where several nodes write, the place that the database gave the row; elsewhere the identifiers are in order.
  place BIGINT
) WITHOUT ROWID;

CREATE TABLE events (
  scope BIGINT NOT NULL,
  id BYTEA NOT NULL,
  type TEXT NOT NULL,
  linked_id BYTEA NOT NULL,
  linked_object TEXT NOT NULL,
  created BIGINT NOT NULL,
  PRIMARY KEY (scope, id)
) WITHOUT ROWID;
CREATE INDEX events_linked ON events (scope, linked_id, id);

CREATE TABLE webhook_endpoints (
  scope BIGINT NOT NULL,
  id BYTEA NOT NULL,
  version BIGINT NOT NULL,
  url TEXT NOT NULL,
  description TEXT,
  enabled_events TEXT NOT NULL,
  status TEXT NOT NULL,
  disabled_reason TEXT,
  disabled_milliseconds BIGINT,
  secrets_sealed BYTEA NOT NULL,
  metadata TEXT NOT NULL,
  created BIGINT NOT NULL,
  PRIMARY KEY (scope, id)
) WITHOUT ROWID;

-- The narrow row of an endpoint that deliveries change. `due_milliseconds` is never later than the first due delivery,
-- except under the lease of migration 33. So finding what is due costs nothing for endpoints that have nothing due. The row
-- of a deleted endpoint is closed, and stays until its deliveries are purged.
CREATE TABLE webhook_queues (
  endpoint_id BYTEA NOT NULL PRIMARY KEY,
  scope BIGINT NOT NULL,
  due_milliseconds BIGINT,
  first_failure_milliseconds BIGINT,
  failures_count BIGINT NOT NULL CHECK (failures_count >= 0),
  closed BOOLEAN NOT NULL
) WITHOUT ROWID;
CREATE INDEX webhook_queues_due ON webhook_queues (due_milliseconds, endpoint_id, scope) WHERE due_milliseconds IS NOT NULL;
CREATE INDEX webhook_queues_closed ON webhook_queues (endpoint_id) WHERE closed;

-- One event for one endpoint. While an attempt is under way, `due_milliseconds` is the end of its lease, unless the attempt
-- runs under the lease of migration 33. `step` is the place of the next attempt in the schedule that began at
-- `schedule_start_milliseconds`.
CREATE TABLE webhook_deliveries (
  endpoint_id BYTEA NOT NULL,
  id BYTEA NOT NULL,
  event_id BYTEA NOT NULL,
  status TEXT NOT NULL,
  schedule_start_milliseconds BIGINT NOT NULL,
  step BIGINT NOT NULL,
  attempts_count BIGINT NOT NULL,
  due_milliseconds BIGINT,
  created BIGINT NOT NULL,
  PRIMARY KEY (endpoint_id, id)
) WITHOUT ROWID;
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (endpoint_id, due_milliseconds, id) WHERE due_milliseconds IS NOT NULL;
CREATE UNIQUE INDEX webhook_deliveries_event ON webhook_deliveries (endpoint_id, event_id);

CREATE TABLE webhook_attempts (
  endpoint_id BYTEA NOT NULL,
  delivery_id BYTEA NOT NULL,
  number BIGINT NOT NULL,
  attempted_at BIGINT NOT NULL,
  http_status BIGINT,
  duration_milliseconds BIGINT NOT NULL,
  error TEXT,
  answer TEXT NOT NULL,
  PRIMARY KEY (endpoint_id, delivery_id, number)
) WITHOUT ROWID;

-- Work that is due later. Due times are by the store's clock. `clock_offset_seconds` is how far the account's test clock was
-- ahead when the due time was computed.
CREATE TABLE tasks (
  due_milliseconds BIGINT NOT NULL,
  id BYTEA NOT NULL,
  scope BIGINT NOT NULL,
  clock_offset_seconds BIGINT NOT NULL CHECK (clock_offset_seconds >= 0),
  kind TEXT NOT NULL,
  object_id BYTEA NOT NULL,
  PRIMARY KEY (due_milliseconds, id)
) WITHOUT ROWID;

-- Questions about bank accounts: one row for each beneficiary, until the answer is applied. A new question has a new `id`,
-- so that a late answer to an older one is not taken for its answer. While a question is under way, `due_milliseconds` is
-- the end of its lease.
CREATE TABLE account_look_ups (
  scope BIGINT NOT NULL,
  beneficiary_id BYTEA NOT NULL,
  id BYTEA NOT NULL,
  due_milliseconds BIGINT NOT NULL,
  attempts_count BIGINT NOT NULL CHECK (attempts_count >= 0),
  created BIGINT NOT NULL,
  PRIMARY KEY (scope, beneficiary_id)
) WITHOUT ROWID;
CREATE INDEX account_look_ups_due ON account_look_ups (due_milliseconds);

-- The last good rate of a source, and the anchor, which the rates of the day have to be near.
CREATE TABLE market_rates (
  source TEXT NOT NULL PRIMARY KEY,
  inr_per_usd BIGINT NOT NULL CHECK (inr_per_usd > 0),
  usd_per_usdt BIGINT NOT NULL CHECK (usd_per_usdt > 0),
  observed_at BIGINT NOT NULL,
  anchor BIGINT NOT NULL CHECK (anchor > 0),
  anchor_day BIGINT NOT NULL
) WITHOUT ROWID;

-- The chain that test mode simulates, one for each account.
CREATE TABLE simulated_transactions (
  scope BIGINT NOT NULL,
  transaction_hash TEXT NOT NULL,
  block_number BIGINT NOT NULL,
  block_time BIGINT NOT NULL,
  from_address BYTEA NOT NULL,
  to_address BYTEA NOT NULL,
  asset TEXT NOT NULL,
  units BIGINT NOT NULL CHECK (units > 0),
  sent_milliseconds BIGINT NOT NULL,
  PRIMARY KEY (scope, transaction_hash)
) WITHOUT ROWID;
CREATE INDEX simulated_transactions_block ON simulated_transactions (scope, block_number);

-- How far a real chain was followed: its network, the token's contract that is followed, the last block of the final view
-- that was read, and the contract that was deprecated in favour of another, if one was. One row for each chain and mode.
CREATE TABLE chain_cursors (
  mode TEXT NOT NULL,
  chain TEXT NOT NULL,
  chain_id BIGINT NOT NULL,
  token_contract BYTEA NOT NULL,
  height BIGINT NOT NULL CHECK (height >= 0),
  block_hash TEXT NOT NULL,
  block_time BIGINT NOT NULL,
  deprecated_contract BYTEA,
  deprecated_height BIGINT,
  updated_milliseconds BIGINT NOT NULL,
  PRIMARY KEY (mode, chain)
) WITHOUT ROWID;

-- Every contract that was the token's since the following of a real chain began. Each transfer keeps the contract that its
-- caller was told.
CREATE TABLE chain_tokens (
  mode TEXT NOT NULL,
  chain TEXT NOT NULL,
  contract BYTEA NOT NULL,
  decimals BIGINT NOT NULL,
  PRIMARY KEY (mode, chain, contract)
) WITHOUT ROWID;

-- Sweeps: token movements away from deposit addresses. The chain comes last in the keys that have it. There are only a few
-- chains, but without statistics the planner would expect that the chain alone tells rows apart.
CREATE TABLE chain_sweeps (
  chain TEXT NOT NULL,
  transaction_hash TEXT NOT NULL,
  log_index BIGINT NOT NULL,
  from_address BYTEA NOT NULL,
  to_address BYTEA NOT NULL,
  units BIGINT NOT NULL CHECK (units > 0),
  block_number BIGINT NOT NULL,
  block_time BIGINT NOT NULL,
  PRIMARY KEY (transaction_hash, log_index, chain)
) WITHOUT ROWID;
CREATE INDEX chain_sweeps_address ON chain_sweeps (from_address, chain);
CREATE INDEX chain_sweeps_recipient ON chain_sweeps (to_address, chain);
CREATE INDEX chain_sweeps_block ON chain_sweeps (block_number);

-- Up to which block the book was compared with a real chain, and when the whole was last compared. One row for each chain and
-- mode; it begins where following begins.
CREATE TABLE chain_audits (
  mode TEXT NOT NULL,
  chain TEXT NOT NULL,
  height BIGINT NOT NULL CHECK (height >= 0),
  block_hash TEXT NOT NULL,
  completed_milliseconds BIGINT NOT NULL,
  PRIMARY KEY (mode, chain)
) WITHOUT ROWID;

-- What those comparisons found. A row is removed when the same things are compared again and agree. Until then it is an open
-- difference, or one that the operator has explained.
CREATE TABLE chain_differences (
  mode TEXT NOT NULL,
  chain TEXT NOT NULL,
  kind TEXT NOT NULL,
  subject TEXT NOT NULL,
  id BYTEA NOT NULL UNIQUE,
  units BIGINT NOT NULL,
  block_number BIGINT,
  found_at BIGINT NOT NULL,
  accepted_at BIGINT,
  PRIMARY KEY (mode, chain, kind, subject)
) WITHOUT ROWID;

-- Payments that the bank is instructed to make, and how far each has come. `message_id` is the file that a payment was
-- written into. `reference` is the bank's reference of the settled payment, by which a payment that comes back is found.
CREATE TABLE bank_instructions (
  payout_id BYTEA NOT NULL PRIMARY KEY,
  scope BIGINT NOT NULL,
  units BIGINT NOT NULL CHECK (units > 0),
  method TEXT NOT NULL,
  status TEXT NOT NULL,
  message_id BYTEA,
  published_at BIGINT,
  is_answered BOOLEAN NOT NULL,
  reference TEXT,
  created BIGINT NOT NULL
) WITHOUT ROWID;
CREATE INDEX bank_instructions_reference ON bank_instructions (reference) WHERE reference IS NOT NULL;
CREATE INDEX bank_instructions_queued ON bank_instructions (payout_id) WHERE status = 'queued';
CREATE INDEX bank_instructions_message ON bank_instructions (message_id) WHERE message_id IS NOT NULL;
CREATE INDEX bank_instructions_open ON bank_instructions (published_at) WHERE status = 'published' AND NOT is_answered;

-- Files for the bank. `boot` is the boot of the machine during which the file was staged (workers/bank/publish.rs).
CREATE TABLE bank_messages (
  id BYTEA NOT NULL PRIMARY KEY,
  status TEXT NOT NULL,
  sha256 BYTEA,
  boot TEXT,
  instructions_count BIGINT NOT NULL,
  units BIGINT NOT NULL,
  created BIGINT NOT NULL,
  published_at BIGINT
) WITHOUT ROWID;
CREATE INDEX bank_messages_open ON bank_messages (id) WHERE status IN ('writing', 'staged');

-- Files that came from the bank; each is applied once.
CREATE TABLE bank_files (
  sha256 BYTEA NOT NULL PRIMARY KEY,
  kind TEXT NOT NULL,
  message_id TEXT NOT NULL,
  status TEXT NOT NULL,
  applied_count BIGINT NOT NULL,
  ignored_count BIGINT NOT NULL,
  unknown_count BIGINT NOT NULL,
  received_at BIGINT NOT NULL
) WITHOUT ROWID;
CREATE UNIQUE INDEX bank_files_message ON bank_files (kind, message_id);

CREATE TABLE bank_statements (
  sha256 BYTEA NOT NULL,
  number BIGINT NOT NULL,
  statement_id TEXT NOT NULL,
  sequence BIGINT,
  opening_units BIGINT,
  opening_day TEXT,
  closing_units BIGINT,
  closing_day TEXT,
  PRIMARY KEY (sha256, number)
) WITHOUT ROWID;

-- The lines of statements. One that belongs to no payout waits for the operator until `accepted_at`.
CREATE TABLE bank_statement_lines (
  id BYTEA NOT NULL PRIMARY KEY,
  sha256 BYTEA NOT NULL,
  statement_number BIGINT NOT NULL,
  number BIGINT NOT NULL,
  booking_day TEXT NOT NULL,
  value_day TEXT,
  units BIGINT NOT NULL CHECK (units >= 0),
  sign TEXT NOT NULL,
  matching TEXT NOT NULL,
  payout_id BYTEA,
  scope BIGINT,
  reference TEXT,
  accepted_at BIGINT
) WITHOUT ROWID;
CREATE UNIQUE INDEX bank_statement_lines_place ON bank_statement_lines (sha256, number);
CREATE INDEX bank_statement_lines_payout ON bank_statement_lines (payout_id) WHERE payout_id IS NOT NULL;
CREATE INDEX bank_statement_lines_unmatched ON bank_statement_lines (id) WHERE matching <> 'payout' AND accepted_at IS NULL;
