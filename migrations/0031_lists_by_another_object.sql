-- A list that is filtered by another object reads the index of that object, which is in the order of the list. An index that was
-- made by hand before is kept.
CREATE INDEX IF NOT EXISTS payouts_of_transfer ON payouts (scope, transfer_id, id) WHERE transfer_id IS NOT NULL;
DROP INDEX payouts_by_transfer;
CREATE INDEX IF NOT EXISTS payouts_of_beneficiary ON payouts (scope, beneficiary_id, id) WHERE beneficiary_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS quote_locks_of_transfer ON quote_locks (scope, transfer_id, id) WHERE transfer_id IS NOT NULL;
