-- The people who operate the service, what they sign in with, and where they are signed in.

CREATE TABLE operators (
  number BIGINT NOT NULL PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  role TEXT NOT NULL,
  password_hash TEXT NOT NULL,
  is_disabled BOOLEAN NOT NULL,
  -- Sealed. Without a confirmed one there is no second factor yet.
  totp_secret BYTEA,
  is_totp_confirmed BOOLEAN NOT NULL,
  -- The last step whose code was taken: no code is taken twice.
  totp_step BIGINT NOT NULL,
  language TEXT NOT NULL,
  theme TEXT NOT NULL,
  created BIGINT NOT NULL
);

CREATE TABLE operator_recovery_codes (
  operator_number BIGINT NOT NULL,
  code_hash BYTEA NOT NULL,
  PRIMARY KEY (operator_number, code_hash)
) WITHOUT ROWID;

CREATE TABLE operator_sessions (
  token_hash BYTEA NOT NULL PRIMARY KEY,
  operator_number BIGINT NOT NULL,
  created BIGINT NOT NULL,
  used_at BIGINT NOT NULL,
  ends_at BIGINT NOT NULL,
  address TEXT NOT NULL,
  browser TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX operator_sessions_by_operator ON operator_sessions (operator_number, created);

-- Failed attempts to sign in, counted by a keyed hash of a name or an address.
CREATE TABLE sign_in_failures (
  subject_hash BYTEA NOT NULL PRIMARY KEY,
  count BIGINT NOT NULL,
  first_at BIGINT NOT NULL
) WITHOUT ROWID;
