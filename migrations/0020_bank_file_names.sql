-- The name of a payment file in the bank's folders, and the last number that each series of names gave. A series is an Indian
-- day, or "all". It never gives a number twice.
ALTER TABLE bank_messages ADD COLUMN file_name TEXT;
CREATE INDEX bank_messages_file_name ON bank_messages (file_name) WHERE file_name IS NOT NULL;
CREATE TABLE bank_file_numbers (
  series TEXT NOT NULL PRIMARY KEY,
  last_number BIGINT NOT NULL CHECK (last_number > 0)
) WITHOUT ROWID;
