-- What payment advices say of the issuer and the bank: a row for each set of these texts under which a payout was instructed.
-- The number is computed from the texts.
CREATE TABLE advice_texts (
  number BIGINT NOT NULL PRIMARY KEY,
  issuer TEXT NOT NULL,
  issuer_address TEXT,
  issuer_licence TEXT,
  sponsor_bank TEXT,
  debited_account_last4 TEXT
);

-- NULL for payouts that were instructed before this migration: their advices use the texts of the present settings.
ALTER TABLE payouts ADD COLUMN advice_texts_number BIGINT;
