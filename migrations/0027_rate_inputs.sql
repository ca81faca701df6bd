-- What the rate of a quote lock was made of, besides the market's rate. Older quote locks have NULL.
ALTER TABLE quote_locks ADD COLUMN rate_source TEXT;
ALTER TABLE quote_locks ADD COLUMN usdt_usd BIGINT;
ALTER TABLE quote_locks ADD COLUMN rate_observed_at BIGINT;
