-- The file from the bank that brought the reason of an instruction: its key in bank_files. Older reasons have NULL.
ALTER TABLE bank_instructions ADD COLUMN reason_sha256 BYTEA;
