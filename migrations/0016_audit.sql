-- What people and the service did that somebody may ask about. Rows are only added. Each has a hash over itself and the hash
-- of the row before.
CREATE TABLE audit_log (
  number BIGINT NOT NULL PRIMARY KEY,
  at_milliseconds BIGINT NOT NULL,
  actor TEXT NOT NULL,
  via TEXT NOT NULL,
  action TEXT NOT NULL,
  subject TEXT NOT NULL,
  details TEXT NOT NULL,
  hash BYTEA NOT NULL
);
CREATE INDEX audit_log_by_subject ON audit_log (subject, number);
CREATE INDEX audit_log_by_action ON audit_log (action, number);

-- The last row's number and hash. A transaction that adds a row locks this one, so that the rows of all nodes have one order.
CREATE TABLE audit_tail (
  name TEXT NOT NULL PRIMARY KEY,
  number BIGINT NOT NULL,
  hash BYTEA NOT NULL
) WITHOUT ROWID;

-- What one person asked for and a second one approves or rejects.
CREATE TABLE decision_requests (
  number BIGINT NOT NULL PRIMARY KEY,
  subject TEXT NOT NULL,
  word TEXT NOT NULL,
  cause TEXT NOT NULL,
  status TEXT NOT NULL,
  requested_by BIGINT NOT NULL,
  requester TEXT NOT NULL,
  reason TEXT NOT NULL,
  requested_at BIGINT NOT NULL,
  decider TEXT,
  decided_at BIGINT,
  asked TEXT NOT NULL
);
CREATE UNIQUE INDEX decision_requests_pending ON decision_requests (subject) WHERE status = 'pending';

ALTER TABLE decisions ADD COLUMN approved_by TEXT NOT NULL DEFAULT '';
