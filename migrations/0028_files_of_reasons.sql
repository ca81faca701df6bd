-- The file from the bank that brought the reason of an instruction: its key in bank_files. Reasons from before have
-- none.
ALTER TABLE bank_instructions ADD COLUMN reason_sha256 BYTEA;
