-- Who an operator is at an OpenID Connect provider; an operator is linked to one person, and a person to one operator.
CREATE TABLE operator_identities (
  operator_number BIGINT NOT NULL PRIMARY KEY,
  issuer TEXT NOT NULL,
  subject TEXT NOT NULL,
  created BIGINT NOT NULL
);
CREATE UNIQUE INDEX operator_identities_by_subject ON operator_identities (issuer, subject);

-- Whether the provider asked for the second factor of a session.
ALTER TABLE operator_sessions ADD COLUMN has_other_factor BOOLEAN NOT NULL DEFAULT FALSE;
