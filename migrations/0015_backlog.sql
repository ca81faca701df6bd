-- For counting what waits. Each index has only the rows that wait.
CREATE INDEX transfers_on_hold ON transfers (id) WHERE status = 'funding_hold';
CREATE INDEX payouts_unknown ON payouts (id) WHERE status = 'processing' AND failure_code = 'outcome_unknown';
