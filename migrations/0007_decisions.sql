-- What the operator decided, about what, who did and why.
CREATE TABLE decisions (
  id BYTEA NOT NULL PRIMARY KEY,
  subject TEXT NOT NULL,
  decision TEXT NOT NULL,
  actor TEXT NOT NULL,
  reason TEXT NOT NULL,
  decided_at BIGINT NOT NULL
) WITHOUT ROWID;
CREATE INDEX decisions_subject ON decisions (subject, id);

-- The listed name that a hit agrees with, as the list has it.
ALTER TABLE screening_hits ADD COLUMN listed_name TEXT;
