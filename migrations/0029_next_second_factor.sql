-- Sealed: the secret of a second factor that is being set up, and when that began. The confirmed factor counts until the new
-- one takes its place.
ALTER TABLE operators ADD COLUMN next_totp_secret BYTEA;
-- An operator who was just setting one up begins again.
UPDATE operators SET totp_secret = NULL WHERE NOT is_totp_confirmed;
