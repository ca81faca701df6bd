-- What the operator's console asks. Partial indexes of what waits for a person hold few rows, whatever the book holds.
CREATE INDEX transfers_held ON transfers (id) WHERE status = 'funding_hold';
CREATE INDEX deposits_unmatched ON deposits (id) WHERE classification = 'unmatched';
CREATE INDEX payouts_open ON payouts (created, id) WHERE status IN ('initialized', 'processing', 'hold');
CREATE INDEX beneficiaries_verifying ON beneficiaries (id) WHERE status = 'verifying';
CREATE INDEX bank_files_received ON bank_files (received_at);
-- What was posted for one transfer.
CREATE INDEX ledger_postings_by_transfer ON ledger_postings (scope, transfer_id, id) WHERE transfer_id IS NOT NULL;

-- The words of senders' and beneficiaries' names, case folded, for finding a person by the beginning of one. Bytes, because a text's
-- order depends on the database's locale, and the beginning of a word is a range.
CREATE TABLE name_words (
  word BYTEA NOT NULL,
  scope BIGINT NOT NULL,
  id BYTEA NOT NULL,
  object TEXT NOT NULL,
  PRIMARY KEY (word, scope, id)
) WITHOUT ROWID;
