-- The name under which a payment file stands in the bank's folders, and the last number that each series of names gave:
-- a day of India's, or "all". A number is never given twice.
ALTER TABLE bank_messages ADD COLUMN file_name TEXT;
CREATE INDEX bank_messages_file_name ON bank_messages (file_name) WHERE file_name IS NOT NULL;
CREATE TABLE bank_file_numbers (
  series TEXT NOT NULL PRIMARY KEY,
  last_number BIGINT NOT NULL CHECK (last_number > 0)
) WITHOUT ROWID;
