-- The hash chain over an account's events, at some of the events: how many events there are up to that one, and the hash
-- over them. Events from before this migration join the chain when it is first computed, from the oldest that is kept.
CREATE TABLE event_checkpoints (
  scope BIGINT NOT NULL,
  event_id BYTEA NOT NULL,
  events_count BIGINT NOT NULL,
  hash BYTEA NOT NULL,
  PRIMARY KEY (scope, event_id)
) WITHOUT ROWID;
