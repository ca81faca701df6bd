-- Partial indexes, for the same reason as those of migration 3: no planner uses them for a look-up by the primary key.
CREATE INDEX transfers_by_beneficiary ON transfers (scope, beneficiary_id, id) WHERE beneficiary_id IS NOT NULL;
DROP INDEX transfers_beneficiary;
CREATE INDEX transfers_by_sender ON transfers (scope, sender_id, id) WHERE sender_id IS NOT NULL;
DROP INDEX transfers_sender;
CREATE INDEX deposits_by_transfer ON deposits (scope, transfer_id, id) WHERE transfer_id IS NOT NULL;
DROP INDEX deposits_transfer;
CREATE INDEX deposits_by_transaction ON deposits (scope, transaction_hash, log_index) WHERE transaction_hash IS NOT NULL;
DROP INDEX deposits_transaction;
CREATE INDEX payouts_by_transfer ON payouts (scope, transfer_id) WHERE transfer_id IS NOT NULL;
DROP INDEX payouts_transfer;
CREATE INDEX refunds_by_transfer ON refunds (scope, transfer_id, id) WHERE transfer_id IS NOT NULL;
DROP INDEX refunds_transfer;
CREATE UNIQUE INDEX screening_hits_by_subject ON screening_hits (scope, subject_id, list, entry_id) WHERE subject_id IS NOT NULL;
DROP INDEX screening_hits_subject;
