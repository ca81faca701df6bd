-- How far the last replay to an endpoint has come: when it began, the first event that does not belong to it, how many
-- deliveries it has, and how many of these have begun.
ALTER TABLE webhook_queues ADD COLUMN replayed_milliseconds BIGINT;
ALTER TABLE webhook_queues ADD COLUMN replayed_before_event_id BYTEA;
ALTER TABLE webhook_queues ADD COLUMN replayed_count BIGINT NOT NULL DEFAULT 0;
ALTER TABLE webhook_queues ADD COLUMN replayed_begun_count BIGINT NOT NULL DEFAULT 0;
