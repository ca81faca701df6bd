-- For the first total of an account in a day or a month.
CREATE INDEX payouts_submitted ON payouts (scope, submitted_milliseconds) WHERE submitted_milliseconds IS NOT NULL;
