-- While a node works off an endpoint's backlog, it has one lease of the endpoint's queue, and not one of each delivery. Deliveries
-- that it took under that lease may be due before the queue's `due_milliseconds`, which is then no later than the lease's end.
ALTER TABLE webhook_queues ADD COLUMN leased_by BYTEA;
ALTER TABLE webhook_queues ADD COLUMN leased_until_milliseconds BIGINT;
