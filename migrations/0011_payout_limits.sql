-- Why a payout is on hold.
ALTER TABLE payouts ADD COLUMN held_for TEXT;

-- Rupees that went out for a sender, a beneficiary or an account in a day or a month, where the operator limits them.
CREATE TABLE payout_totals (
  scope BIGINT NOT NULL,
  subject TEXT NOT NULL,
  subject_id BYTEA NOT NULL,
  period TEXT NOT NULL,
  units BIGINT NOT NULL CHECK (units >= 0),
  until_milliseconds BIGINT NOT NULL,
  PRIMARY KEY (scope, subject, subject_id, period)
) WITHOUT ROWID;
CREATE INDEX payout_totals_until ON payout_totals (until_milliseconds);
