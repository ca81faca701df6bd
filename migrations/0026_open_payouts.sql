-- For a list of three values SQLite makes a temporary table, twice for each change of a payout. For one or two values it makes
-- none.
CREATE INDEX payouts_not_ended ON payouts (created, id) WHERE status IN ('initialized', 'processing') OR status = 'hold';
DROP INDEX payouts_open;
