-- The names as they were written for the bank, in the characters that the bank takes.
ALTER TABLE bank_instructions ADD COLUMN beneficiary_name_written TEXT;
ALTER TABLE bank_instructions ADD COLUMN sender_name_written TEXT;
