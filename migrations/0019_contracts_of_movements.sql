-- The token's contract that a movement was in. After the token's contract has changed, one address can hold tokens of both.
-- NULL stands for the contract that the address's transfer was told, as in all movements from before this migration.
ALTER TABLE deposits ADD COLUMN contract BYTEA;
ALTER TABLE chain_sweeps ADD COLUMN contract BYTEA;
