-- What the operator stopped, for an account or, with account_number 0, for everybody.
CREATE TABLE pauses (
    operation TEXT NOT NULL,
    account_number BIGINT NOT NULL,
    reason TEXT NOT NULL,
    actor TEXT NOT NULL,
    paused_at BIGINT NOT NULL,
    PRIMARY KEY (operation, account_number)
) WITHOUT ROWID;
