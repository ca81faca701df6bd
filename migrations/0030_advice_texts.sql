-- What payment advices say of the issuer and the bank: a row for each state of the settings under which a payout was
-- instructed. The number comes from the texts.
CREATE TABLE advice_texts (
  number BIGINT NOT NULL PRIMARY KEY,
  issuer TEXT NOT NULL,
  issuer_address TEXT,
  issuer_licence TEXT,
  sponsor_bank TEXT,
  debited_account_last4 TEXT
);

-- Payouts that were instructed before have none: their advices say what the settings say.
ALTER TABLE payouts ADD COLUMN advice_texts_number BIGINT;
