-- SQLite puts a list of three values into a temporary table, twice for each change of a payout. It compares one and two values as they are.
CREATE INDEX payouts_not_ended ON payouts (created, id) WHERE status IN ('initialized', 'processing') OR status = 'hold';
DROP INDEX payouts_open;
