-- A caller's own reference of a transfer, which no other transfer of the account and mode can have; and who declared the
-- address of a refund, and why.

ALTER TABLE transfers ADD COLUMN reference TEXT;
CREATE UNIQUE INDEX transfers_reference ON transfers (scope, reference) WHERE reference IS NOT NULL;

ALTER TABLE refunds ADD COLUMN is_held BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE refunds ADD COLUMN address_declared_by TEXT;
ALTER TABLE refunds ADD COLUMN address_reason TEXT;
