-- Whether the payer may set the refund address, where the payer goes after paying, and the address that the payer gave for a
-- refund, which takes effect a day later.
ALTER TABLE transfers ADD COLUMN payer_sets_refund_address BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE transfers ADD COLUMN return_url TEXT;
ALTER TABLE refunds ADD COLUMN payer_address BYTEA;
ALTER TABLE refunds ADD COLUMN payer_address_at BIGINT;
