-- Partial indexes, so that no planner takes them for a look-up by the primary key: their conditions hold for every row, and only a
-- query that names the column implies them. With stale statistics PostgreSQL otherwise finds "one row of this account" through an
-- index that begins with the account and filters all of the account's rows.
CREATE INDEX events_by_linked ON events (scope, linked_id, id) WHERE linked_id IS NOT NULL;
DROP INDEX events_linked;
CREATE UNIQUE INDEX webhook_deliveries_by_event ON webhook_deliveries (endpoint_id, event_id) WHERE event_id IS NOT NULL;
DROP INDEX webhook_deliveries_event;
