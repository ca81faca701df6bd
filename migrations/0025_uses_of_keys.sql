-- When a key was last used, in Unix seconds: written down once a minute at most, and at the end of a process.
ALTER TABLE api_keys ADD COLUMN used_at BIGINT;
