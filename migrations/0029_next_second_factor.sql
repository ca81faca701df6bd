-- The secret of a second factor that is being set up, sealed, with when that began. The confirmed one counts until this
-- one takes its place.
ALTER TABLE operators ADD COLUMN next_totp_secret BYTEA;
-- Where one was being set up before, the operator begins again.
UPDATE operators SET totp_secret = NULL WHERE NOT is_totp_confirmed;
