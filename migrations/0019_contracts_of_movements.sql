-- The token's contract that a movement was in: after the token's contract changed, one address can hold both. NULL is
-- what the address' transfer was told, as it is for every movement of before.
ALTER TABLE deposits ADD COLUMN contract BYTEA;
ALTER TABLE chain_sweeps ADD COLUMN contract BYTEA;
