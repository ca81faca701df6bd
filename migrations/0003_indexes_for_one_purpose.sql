-- Partial indexes, so that no planner uses them for a look-up by the primary key. Their conditions hold for every row, but only
-- a query that compares the column implies them. Otherwise, with stale statistics, PostgreSQL may look for a row by an index that
-- begins with the account, and read all rows of the account.
CREATE INDEX events_by_linked ON events (scope, linked_id, id) WHERE linked_id IS NOT NULL;
DROP INDEX events_linked;
CREATE UNIQUE INDEX webhook_deliveries_by_event ON webhook_deliveries (endpoint_id, event_id) WHERE event_id IS NOT NULL;
DROP INDEX webhook_deliveries_event;
