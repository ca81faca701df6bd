-- The newest drill of a webhook endpoint, and its report. While it is `running`, a worker holds it under a lease.
CREATE TABLE webhook_drills (
  scope BIGINT NOT NULL,
  endpoint_id BYTEA NOT NULL,
  status TEXT NOT NULL,
  report TEXT NOT NULL,
  lease_milliseconds BIGINT NOT NULL,
  created BIGINT NOT NULL,
  completed_at BIGINT,
  PRIMARY KEY (scope, endpoint_id)
) WITHOUT ROWID;
CREATE INDEX webhook_drills_running ON webhook_drills (endpoint_id) WHERE status = 'running';
