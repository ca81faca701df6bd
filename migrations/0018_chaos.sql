-- Chaos: the service attacks the caller of a test key. A key has at most one profile, and none if its row has no
-- `chaos_until`. That column is in Unix milliseconds.
ALTER TABLE api_keys ADD COLUMN chaos_until BIGINT;
ALTER TABLE webhook_endpoints ADD COLUMN chaos_key_id BYTEA;

CREATE TABLE chaos_profiles (
  scope BIGINT NOT NULL,
  key_id BYTEA NOT NULL,
  seed BIGINT NOT NULL,
  percentage BIGINT NOT NULL,
  request_attacks TEXT NOT NULL,
  webhook_attacks TEXT NOT NULL,
  delay_milliseconds BIGINT NOT NULL,
  webhook_delay_milliseconds BIGINT NOT NULL,
  endpoint_id BYTEA,
  started_milliseconds BIGINT NOT NULL,
  ends_milliseconds BIGINT NOT NULL,
  completes_milliseconds BIGINT NOT NULL,
  writes_count BIGINT NOT NULL,
  writes_attacked BIGINT NOT NULL,
  reads_count BIGINT NOT NULL,
  reads_attacked BIGINT NOT NULL,
  events_count BIGINT NOT NULL,
  events_attacked BIGINT NOT NULL,
  PRIMARY KEY (scope, key_id)
) WITHOUT ROWID;

CREATE INDEX chaos_profiles_by_end ON chaos_profiles (completes_milliseconds);

-- What a caller asked for under a profile, with all its attempts: each POST, found by its idempotency key, and each GET that
-- was attacked.
CREATE TABLE chaos_requests (
  scope BIGINT NOT NULL,
  key_id BYTEA NOT NULL,
  number BIGINT NOT NULL,
  request_hash BYTEA NOT NULL,
  fingerprint BYTEA NOT NULL,
  method TEXT NOT NULL,
  route TEXT NOT NULL,
  attack TEXT,
  failures_left BIGINT NOT NULL,
  attempts TEXT NOT NULL,
  PRIMARY KEY (scope, key_id, number)
) WITHOUT ROWID;
CREATE INDEX chaos_requests_by_hash ON chaos_requests (scope, key_id, request_hash, number);

-- Events for the attacked endpoint, and how the receiver answered.
CREATE TABLE chaos_events (
  scope BIGINT NOT NULL,
  key_id BYTEA NOT NULL,
  event_id BYTEA NOT NULL,
  number BIGINT NOT NULL,
  linked_id TEXT NOT NULL,
  attack TEXT,
  http_status BIGINT,
  attacked_http_status BIGINT,
  duration_milliseconds BIGINT NOT NULL,
  was_read BOOLEAN NOT NULL,
  PRIMARY KEY (scope, key_id, event_id)
) WITHOUT ROWID;
