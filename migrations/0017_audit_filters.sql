-- The audit log by person and by time, for the console's page of it.
CREATE INDEX audit_log_by_actor ON audit_log (actor, number);
CREATE INDEX audit_log_by_time ON audit_log (at_milliseconds, number);
