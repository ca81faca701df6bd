//! Every refusal that the service can give, in one table, and the body of its answer.

use std::fmt;

/// An error below the business rules. The caller did not cause it.
#[derive(Debug, thiserror::Error, Clone)]
pub enum StoreError {
    /// The store cannot take work now (disk full, I/O error, queue full, shutting down). Answered
    /// 503. Inside a transaction, return it only if other transactions cannot succeed either: on
    /// the embedded store it fails all transactions that share a commit with this one.
    #[error("store unavailable: {0}")]
    Unavailable(String),
    /// A conditional update found another state than the one it was computed from. On PostgreSQL
    /// the transaction is run again, and answered 503 if it takes too long. On the embedded store
    /// it is undone and answered 503.
    #[error("conflicting change: {0}")]
    Conflict(&'static str),
    /// On PostgreSQL: this transaction needs a row that another one has locked, and it has waited
    /// as long as it may. It is run again, and answered 503 if it takes too long. If the row is
    /// that of an idempotency key, the transaction is not run again: the answer is 409
    /// (`resource_locked`).
    #[error("a row is locked by another transaction")]
    Locked,
    /// The store and this process do not fit: for example, the store is sealed with another
    /// encryption key. A person has to change something; the text says what. Answered 500.
    #[error("{0}")]
    Unfit(String),
    /// A fault of ours (SQL, a row that does not parse, arithmetic): answered 500.
    #[error("store broken: {0}")]
    Broken(String),
}

macro_rules! codes {
    ($($variant:ident $word:literal $status:literal $new_key:literal $meaning:literal
        $remedy:literal),* $(,)?) => {
        /// The stable codes that clients branch on. One row each: word, HTTP status, whether the
        /// request needs a new idempotency key once the cause is gone, what the code means, and
        /// what the caller does about it.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
        pub enum Code { $($variant),* }

        impl Code {
            pub const ALL: &'static [Code] = &[$(Code::$variant),*];
            pub const fn as_str(self) -> &'static str { match self { $(Code::$variant =>
                $word),* } }
            pub const fn http_status(self) -> u16 { match self { $(Code::$variant => $status),* } }
            /// Whether the refusal is stored under its idempotency key although time or another
            /// call can remove its cause. Then the request needs a new key.
            pub const fn new_key_required(self) -> bool { match self { $(Code::$variant =>
                $new_key),* } }
            pub const fn meaning(self) -> &'static str { match self { $(Code::$variant =>
                $meaning),* } }
            pub const fn remedy(self) -> &'static str { match self { $(Code::$variant =>
                $remedy),* } }
        }
    };
}

codes! {
    ParameterEmpty "parameter_empty" 400 false "A required field or header is missing."
        "Send the field or header that field_name names.",
    ParameterValueInvalid "parameter_value_invalid" 400 false "Not an accepted value."
        "The message says what field_name accepts.",
    ParameterMinLengthInvalid "parameter_min_length_invalid" 400 false "Too short."
        "Send a longer value for field_name.",
    ParameterMaxLengthInvalid "parameter_max_length_invalid" 400 false "Too long."
        "Send a shorter value for field_name.",
    ParameterRangeInvalid "parameter_range_invalid" 400 false "Outside the allowed range."
        "The message says the range; metadata.minimum and metadata.maximum name its ends.",
    ParameterUnexpected "parameter_unexpected" 400 false "A field that this route does not take."
        "Leave the field out, or correct the spelling of its name.",
    RequestBodyInvalid "request_body_invalid" 400 false "The body is not one JSON object within \
     the limits."
        "Send one JSON object of at most 64 KiB with Content-Type: application/json.",
    RequestQueryParameterInvalid "request_query_parameter_invalid" 400 false "A query parameter \
     is unknown, repeated or malformed."
        "Correct or leave out the parameter that field_name names.",
    SecretKeyInvalid "secret_key_invalid" 401 false "No API key, or one that does not exist or \
     was revoked."
        "Send Authorization: Bearer with a key of this server.",
    ActionUnauthorizedNow "action_unauthorized" 401 false "The key is real but may not act at all \
     now."
        "The key has expired or the account is suspended. Use another key, or ask the operator.",
    ActionUnauthorized "action_unauthorized" 403 false "The key lacks the permission or the mode \
     for this operation."
        "Use a key of the right mode that has the permission, or ask the operator for one.",
    TestmodeActionOnly "testmode_action_only" 403 false "Test helpers take test keys only."
        "Use a test key.",
    ObjectNotFound "object_not_found" 404 false "No such object or route."
        "Check the ID and the path. Objects of another account or mode are not found either.",
    RequestMethodInvalid "request_method_invalid" 405 false "The route exists, but not for this \
     method."
        "The Allow header names the methods that the route takes.",
    IdempotencyKeyReuse "idempotency_key_reuse" 409 false "The idempotency key was used for \
     another request."
        "Use a new key for a new request. On a retry, send exactly the same request.",
    ResourceLocked "resource_locked" 409 false "The first request with this idempotency key is \
     still running."
        "Wait as long as Retry-After says, or a second where there is none, and send the same \
         request with the same key.",
    RateLimitExceeded "rate_limit_exceeded" 429 false "Too many requests with this key."
        "Wait as long as Retry-After says, then send the same request again, a POST with the same \
         idempotency key.",
    InternalError "internal_error" 500 false "A fault of ours; the Request-Id finds it in the log."
        "Send the same request again, a POST with the same idempotency key. If it persists, give \
         the operator the Request-Id.",
    QuoteUnavailable "quote_unavailable" 503 false "No trustworthy exchange rate at the moment."
        "Wait as long as Retry-After says and try again.",
    ServicePaused "service_paused" 503 false "The operator has paused this operation."
        "metadata.paused names what is paused. Try again later with the same key.",
    ServiceUnavailable "service_unavailable" 503 false "The service cannot take the request now."
        "Wait as long as Retry-After says, then send the same request again, a POST with the same \
         idempotency key.",
    BeneficiaryNotPayable "beneficiary_not_payable" 400 true "The beneficiary is not active with \
     payouts enabled."
        "Wait for the event beneficiary.status.active, or see payouts_disabled_reason of the \
         beneficiary.",
    BeneficiaryNotEditable "beneficiary_not_editable" 400 true "The beneficiary is neither in \
     draft nor in input_required."
        "Create another beneficiary. A verified one is not changed.",
    QuoteLockExpired "quote_lock_expired" 400 false "The quote lock has expired."
        "Create a new quote lock and create the transfer right away.",
    QuoteLockAlreadyUsed "quote_lock_already_used" 400 false "A transfer was created with this \
     quote lock; metadata.transfer_id names it."
        "Look at that transfer: a request whose answer you lost may have created it. For another \
         transfer, create a new quote lock.",
    QuoteLockMismatch "quote_lock_mismatch" 400 false "The quote lock is for another amount or \
     pair."
        "Send the amount and the currencies of the quote lock, or create another one.",
    SenderNotEligible "sender_not_eligible" 400 true "Screening does not let this sender send now."
        "The operator reviews the sender. Ask the operator.",
    ReferenceAlreadyUsed "reference_already_used" 400 false "Another transfer of this account has \
     this reference; metadata.transfer_id names it."
        "Look at that transfer before you create another one.",
    TransferNotCancellable "transfer_not_cancellable" 400 false "The transfer is past funding, or \
     a deposit was seen."
        "Read the transfer: what was paid is paid out or refunded by itself.",
    TransferActionInvalid "transfer_action_invalid" 400 true "The object's status does not take \
     this action."
        "Read the object, and decide by its present status.",
    RefundAddressRequired "refund_address_required" 400 true "No refund address is known."
        "Send refund_address with the request.",
    PaymentAdviceNotReady "payment_advice_not_ready" 400 true "The payment advice is not \
     available yet."
        "Wait for the event payout.payment_advice.available, and send the GET again.",
    WebhookEndpointLimitExceeded "webhook_endpoint_limit_exceeded" 400 true "The account \
     already has the largest number of webhook endpoints, or the endpoint the largest number of \
     signing secrets."
        "The message says which. Delete an endpoint that is not needed any more; or wait until the \
         overlap of a secret is over.",
    TestHelperNotApplicable "test_helper_not_applicable" 400 true "The object is not in a state \
     for this test helper."
        "Read the object: the message says which state the helper needs.",
}

/// One problem of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RefusalEntry {
    pub code: Code,
    pub message: String,
    pub field_name: Option<String>,
    /// More members of `metadata`, such as `minimum` and `maximum`.
    pub details: Vec<(&'static str, String)>,
}

impl RefusalEntry {
    pub fn new(code: Code, message: impl Into<String>) -> RefusalEntry {
        RefusalEntry { code, message: message.into(), field_name: None, details: Vec::new() }
    }
    /// A problem of one field, nested names joined with dots.
    pub fn field(
        code: Code,
        field_name: impl Into<String>,
        message: impl Into<String>,
    ) -> RefusalEntry {
        RefusalEntry { field_name: Some(field_name.into()), ..RefusalEntry::new(code, message) }
    }
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> RefusalEntry {
        self.details.push((name, value.into()));
        self
    }
}

/// The most entries in one answer. A body with nothing but wrong field names would cause thousands.
pub const ENTRIES_MAX: usize = 100;

/// All problems of one stage of a request; the answer's status is that of the first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    entries: Vec<RefusalEntry>,
    /// Seconds for `Retry-After`: on 429, on most 503, and on 409 `resource_locked`.
    pub retry_after_seconds: Option<u64>,
}

impl Refusal {
    pub fn one(entry: RefusalEntry) -> Refusal {
        let retry_after_seconds = (entry.code.http_status() == 503).then_some(1);
        Refusal { entries: vec![entry], retry_after_seconds }
    }
    pub fn new(code: Code, message: impl Into<String>) -> Refusal {
        Refusal::one(RefusalEntry::new(code, message))
    }
    pub fn field(code: Code, field_name: impl Into<String>, message: impl Into<String>) -> Refusal {
        Refusal::one(RefusalEntry::field(code, field_name, message))
    }
    /// The refusal of one request too many. `policy` names the limit. How many seconds the caller
    /// has to wait is in the metadata and in `Retry-After`.
    pub fn rate_limited(
        message: impl Into<String>,
        policy: &str,
        retry_after_seconds: u64,
    ) -> Refusal {
        let entry = RefusalEntry::new(Code::RateLimitExceeded, message)
            .with("policy", policy)
            .with("retry_after_seconds", retry_after_seconds.to_string());
        Refusal { entries: vec![entry], retry_after_seconds: Some(retry_after_seconds) }
    }
    /// `Ok` without entries, otherwise a refusal with the first [`ENTRIES_MAX`] of them.
    pub fn check(mut entries: Vec<RefusalEntry>) -> Result<(), Refusal> {
        entries.truncate(ENTRIES_MAX);
        if entries.is_empty() {
            Ok(())
        } else {
            Err(Refusal { entries, retry_after_seconds: None })
        }
    }
    /// The value if two checks of one stage both pass, else all problems that either found.
    pub fn both<T>(value: Result<T, Refusal>, more: Result<(), Refusal>) -> Result<T, Refusal> {
        match (value, more) {
            (value, Ok(())) => value,
            (Ok(_), Err(refusal)) => Err(refusal),
            (Err(mut refusal), Err(more)) => {
                refusal.entries.extend(more.entries);
                refusal.entries.truncate(ENTRIES_MAX);
                Err(refusal)
            }
        }
    }
    /// The refusal for an object in the path that does not exist, is another account's, or is of
    /// the other mode.
    pub fn not_found() -> Refusal {
        let message = "No such object. Check the ID, and that the key is of its account and mode.";
        Refusal::new(Code::ObjectNotFound, message)
    }
    pub fn internal() -> Refusal {
        Refusal::new(
            Code::InternalError,
            "Something went wrong on our side. Send the same request again, a POST with the same \
             idempotency key. The Request-Id identifies the failure.",
        )
    }
    pub fn unavailable() -> Refusal {
        Refusal::new(
            Code::ServiceUnavailable,
            "The service cannot take the request now. Send the same request again, a POST with the \
             same idempotency key.",
        )
    }
    pub fn entries(&self) -> &[RefusalEntry] {
        &self.entries
    }
    pub fn http_status(&self) -> u16 {
        self.entries.first().map_or(500, |entry| entry.code.http_status())
    }
    /// Whether this refusal is stored as the answer for its idempotency key.
    pub fn is_kept(&self) -> bool {
        let status = self.http_status();
        (400..500).contains(&status) && !matches!(status, 409 | 429)
    }
    /// The body: `{object, errors: [{code, message, metadata}], http_status_code}`.
    pub fn body(&self) -> Vec<u8> {
        let errors: Vec<serde_json::Value> = self
            .entries
            .iter()
            .map(|entry| {
                let mut metadata = serde_json::Map::new();
                if let Some(field_name) = &entry.field_name {
                    metadata.insert("field_name".into(), field_name.as_str().into());
                }
                for (name, value) in &entry.details {
                    metadata.insert((*name).into(), value.as_str().into());
                }
                if entry.code.new_key_required() {
                    metadata.insert("new_key_required".into(), true.into());
                }
                serde_json::json!({ "code": entry.code.as_str(), "message": entry.message,
                    "metadata": metadata })
            })
            .collect();
        serde_json::json!({ "object": "error", "errors": errors,
            "http_status_code": self.http_status() })
        .to_string()
        .into_bytes()
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, entry) in self.entries.iter().enumerate() {
            let separator = if index > 0 { ", " } else { "" };
            let field = entry.field_name.as_deref().unwrap_or("-");
            write!(f, "{separator}{}({field})", entry.code.as_str())?;
        }
        Ok(())
    }
}

/// Why an operation had no effect.
#[derive(Debug, Clone)]
pub enum OperationError {
    /// The caller gets this refusal.
    Refused(Refusal),
    /// The operator asked for something that cannot be done; the text says why. A command or the
    /// console shows it. The API never gives it to a caller.
    Declined(String),
    Store(StoreError),
}

impl fmt::Display for OperationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OperationError::Refused(refusal) => refusal.fmt(f),
            OperationError::Declined(reason) => f.write_str(reason),
            OperationError::Store(error) => error.fmt(f),
        }
    }
}

impl From<Refusal> for OperationError {
    fn from(refusal: Refusal) -> OperationError {
        OperationError::Refused(refusal)
    }
}
impl From<StoreError> for OperationError {
    fn from(error: StoreError) -> OperationError {
        OperationError::Store(error)
    }
}
impl From<RefusalEntry> for OperationError {
    fn from(entry: RefusalEntry) -> OperationError {
        OperationError::Refused(Refusal::one(entry))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_codes_have_the_same_word_and_http_status() {
        let mut words: Vec<_> =
            Code::ALL.iter().map(|code| (code.as_str(), code.http_status())).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), Code::ALL.len());
    }

    #[test]
    fn a_refusal_has_the_error_shape() {
        let refusal = Refusal::one(
            RefusalEntry::field(Code::ParameterRangeInvalid, "amount", "Too large.")
                .with("minimum", "10.00"),
        );
        let body: serde_json::Value = serde_json::from_slice(&refusal.body()).unwrap();
        assert_eq!(
            body,
            serde_json::json!({"object": "error", "http_status_code": 400, "errors": [
                {"code": "parameter_range_invalid", "message": "Too large.",
                    "metadata": {"field_name": "amount", "minimum": "10.00"}}]})
        );
    }
}
