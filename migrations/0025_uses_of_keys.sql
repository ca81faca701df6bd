-- When a key was last used, in Unix seconds. Each process stores this once a minute, and when it ends.
ALTER TABLE api_keys ADD COLUMN used_at BIGINT;
