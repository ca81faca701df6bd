-- Why a payout waits for the operator, what the bank gave as its reason, and the bank's own reference of the entry that
-- paid it.
ALTER TABLE bank_instructions ADD COLUMN attention TEXT;
ALTER TABLE bank_instructions ADD COLUMN attention_at BIGINT;
ALTER TABLE bank_instructions ADD COLUMN reason_code TEXT;
ALTER TABLE bank_instructions ADD COLUMN reason_text TEXT;
ALTER TABLE bank_instructions ADD COLUMN entry_reference TEXT;
CREATE INDEX bank_instructions_attention ON bank_instructions (payout_id) WHERE attention IS NOT NULL;
CREATE INDEX bank_instructions_entry ON bank_instructions (entry_reference) WHERE entry_reference IS NOT NULL;

-- Each reference that a payout was settled under belongs to that payout alone.
CREATE TABLE bank_references (
  reference TEXT NOT NULL PRIMARY KEY,
  payout_id BYTEA NOT NULL
) WITHOUT ROWID;
INSERT INTO bank_references (reference, payout_id) SELECT reference, payout_id FROM bank_instructions WHERE reference IS NOT NULL ON CONFLICT (reference) DO NOTHING;

-- A statement can have several pages, which share its identity and number.
ALTER TABLE bank_statements ADD COLUMN page BIGINT;
CREATE INDEX bank_statements_identity ON bank_statements (statement_id);

-- One debit can pay several payouts: each has its share of the line.
ALTER TABLE bank_statement_lines ADD COLUMN note TEXT;
CREATE TABLE bank_line_shares (
  line_id BYTEA NOT NULL,
  payout_id BYTEA NOT NULL,
  scope BIGINT NOT NULL,
  units BIGINT NOT NULL CHECK (units > 0),
  PRIMARY KEY (line_id, payout_id)
) WITHOUT ROWID;
CREATE INDEX bank_line_shares_payout ON bank_line_shares (payout_id);

-- Differences that the operator has explained; one comes back when its amount changes.
CREATE TABLE bank_closed_differences (
  kind TEXT NOT NULL,
  subject TEXT NOT NULL,
  units BIGINT NOT NULL,
  note TEXT NOT NULL,
  closed_at BIGINT NOT NULL,
  PRIMARY KEY (kind, subject)
) WITHOUT ROWID;

-- What the bank reported of the payout, if that keeps the refund from being sent.
ALTER TABLE refunds ADD COLUMN bank_hold TEXT;
