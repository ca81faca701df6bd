-- The indexes that the console's overview and queues read leave out what is done: deposits that were given back, payouts that
-- came back and failed, and explained differences.
ALTER TABLE deposits ADD COLUMN is_given_back BOOLEAN NOT NULL DEFAULT FALSE;
UPDATE deposits SET is_given_back = TRUE WHERE classification = 'unmatched' AND EXISTS (SELECT 1 FROM refunds r WHERE r.scope = deposits.scope AND r.deposit_id = deposits.id);
CREATE INDEX IF NOT EXISTS deposits_unmatched_open ON deposits (id) WHERE classification = 'unmatched' AND NOT is_given_back;
DROP INDEX IF EXISTS deposits_unmatched;
CREATE INDEX IF NOT EXISTS bank_instructions_waiting ON bank_instructions (payout_id) WHERE attention IS NOT NULL AND attention <> 'returned_and_failed';
DROP INDEX IF EXISTS bank_instructions_attention;
CREATE INDEX IF NOT EXISTS chain_differences_open ON chain_differences (mode, chain, id) WHERE accepted_at IS NULL;
