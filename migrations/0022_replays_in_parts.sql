-- What is left of the replay of a range of events. An account has at most one in each mode.
CREATE TABLE webhook_replays (
  scope BIGINT NOT NULL PRIMARY KEY,
  endpoint_id BYTEA NOT NULL,
  next_event_id BYTEA NOT NULL,
  before_event_id BYTEA NOT NULL,
  created_from BIGINT NOT NULL,
  created_to BIGINT NOT NULL,
  only_failed BOOLEAN NOT NULL
) WITHOUT ROWID;

-- For the first total of an account in a day or a month.
CREATE INDEX payouts_submitted ON payouts (scope, submitted_milliseconds) WHERE submitted_milliseconds IS NOT NULL;
