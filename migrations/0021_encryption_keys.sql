-- Changes of the encryption key. `place` and `after_key` say up to where the values have been sealed anew.
CREATE TABLE encryption_rotations (
  number BIGINT NOT NULL PRIMARY KEY,
  old_verifier BYTEA NOT NULL,
  new_verifier BYTEA NOT NULL,
  started_at BIGINT NOT NULL,
  finished_at BIGINT,
  place TEXT NOT NULL,
  after_key BYTEA NOT NULL,
  values_count BIGINT NOT NULL
);

-- Which keys each running node has. `verifiers` has their verifiers one after the other.
CREATE TABLE encryption_key_holders (
  node_id BYTEA NOT NULL PRIMARY KEY,
  name TEXT NOT NULL,
  verifiers BYTEA NOT NULL,
  seen_milliseconds BIGINT NOT NULL
) WITHOUT ROWID;
