-- While a node works off an endpoint's backlog, it has a lease of the endpoint's queue in place of a lease of each delivery. What it
-- took under that lease may be due before the queue's `due_milliseconds`, which is then no later than the end of the lease.
ALTER TABLE webhook_queues ADD COLUMN leased_by BYTEA;
ALTER TABLE webhook_queues ADD COLUMN leased_until_milliseconds BIGINT;
