-- The chain over an account's events at some of them: how many there are up to that event, and the hash over them.
-- Events that are here already join it when they are first computed, beginning with the oldest that is kept.
CREATE TABLE event_checkpoints (
  scope BIGINT NOT NULL,
  event_id BYTEA NOT NULL,
  events_count BIGINT NOT NULL,
  hash BYTEA NOT NULL,
  PRIMARY KEY (scope, event_id)
) WITHOUT ROWID;
