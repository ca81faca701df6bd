//! What the OpenAPI document says of properties and parameters. Most names mean the same in every
//! object, and are described once; the others are described for each place.

/// The description of a property by its name.
pub fn of_name(name: &str) -> Option<&'static str> {
    let found = NAMES.binary_search_by(|(known, _)| (*known).cmp(name)).ok()?;
    Some(NAMES[found].1)
}

/// The description of a property where it stands, such as `CreateTransfer.funding`.
pub fn of_place(place: &str) -> Option<&'static str> {
    PLACES.iter().find(|(known, _)| *known == place).map(|(_, description)| *description)
}

/// The description of a parameter of a route that is no list.
pub fn of_parameter(name: &str) -> &'static str {
    match name {
        "format" => "The form of the answer: `json`, or `csv` for a spreadsheet.",
        "event_id" => "Count up to this event, in place of the newest one.",
        name => of_name(name).unwrap_or_default(),
    }
}

/// What the last part of a filter of times, such as `created.gte`, compares.
pub fn of_comparison(comparison: &str) -> &'static str {
    match comparison {
        "gt" => "after",
        "gte" => "at or after",
        "lt" => "before",
        "lte" => "at or before",
        _ => "",
    }
}

/// Members of the metadata of an error: name, type, description.
pub const ERROR_METADATA: &[(&str, &str, &str)] = &[
    (
        "field_name",
        "string",
        "Field, parameter or header concerned; nested names joined with dots.",
    ),
    (
        "maximum",
        "string",
        "The largest value that is accepted; present if a value is outside its range.",
    ),
    (
        "minimum",
        "string",
        "The smallest value that is accepted; present if a value is outside its range.",
    ),
    (
        "new_key_required",
        "boolean",
        "Always true: once the cause is gone, send a POST with a new idempotency key. With the \
         old key, the refusal is repeated. A GET has no key, and is sent again as it is.",
    ),
    ("paused", "string", "What the operator has paused, with `service_paused`."),
    ("policy", "string", "Which limit was reached, with `rate_limit_exceeded`."),
    ("retry_after_seconds", "string", "Seconds to wait, with `rate_limit_exceeded`."),
    (
        "transfer_id",
        "string",
        "With `reference_already_used`: the transfer that has the reference. With \
         `quote_lock_already_used`: the transfer that was created with the quote lock.",
    ),
];

/// Names that mean something else from place to place, and what they mean there.
const PLACES: &[(&str, &str)] = &[
    ("AdviceBeneficiary.name", "Name of the account holder."),
    ("AdviceMilestone.at", "When the payment reached it, in Unix seconds."),
    ("AdviceSender.name", "Name of the remitter."),
    ("ApiErrorEntry.message", "Text for humans; may change."),
    ("Beneficiary.name", "Name of the account holder, as the bank holds it."),
    ("Beneficiary.status", "Where the verification of the beneficiary stands."),
    ("BeneficiaryValidation.amount", "Amount in INR that was asked about; null without one."),
    ("ChainView.block_number", "Number of the last block whose final content was read."),
    ("ChainView.block_time", "Time of that block in Unix seconds."),
    ("ChainView.status", "Whether the chain is followed, and whether something is wrong with it."),
    ("ChaosProfile.status", "Whether the attacks go on, and whether the report is complete."),
    ("ChaosReport.status", "Whether the attacks go on, and whether the report is complete."),
    ("CreateBeneficiary.name", "Name of the account holder, as the bank holds it."),
    (
        "CreateBeneficiary.submit",
        "Whether verification begins: true if left out. With false the beneficiary is a `draft`, \
         until an update sends `submit` true.",
    ),
    (
        "CreateQuoteLock.amount",
        "Amount in `sell_currency`, with at most two decimals; in place of `buy_amount`. From \
         10.00 to 50000.00 USD, unless the operator has set other limits: `GET /v1/corridors` \
         shows them.",
    ),
    (
        "CreateQuoteLock.buy_amount",
        "Amount in `buy_currency` to arrive, with at most two decimals; in place of `amount`. \
         From what the smallest `amount` buys to what the largest buys; a refusal names both in \
         `metadata.minimum` and `metadata.maximum`.",
    ),
    (
        "CreateSender.address",
        "Postal address. Live mode needs it: the bank has to know `city` and `country`, and a \
         transfer whose sender has no address is refused there with `sender_not_eligible`. Test \
         mode does without.",
    ),
    ("CreateSender.identification.type", "Type of the document."),
    ("CreateSender.name", "Name of the remitter."),
    ("CreateSender.type", "Kind of remitter."),
    (
        "CreateTransfer.amount",
        "Amount that the payer deposits, in `currency`: that of the quote lock, so from 10.00 to \
         50000.00 USD, unless the operator has set other limits.",
    ),
    (
        "CreateTransfer.funding.chain",
        "Blockchain that the token moves on. Each mode takes one: a test key takes `tron`, unless \
         the operator has set up another test net; a live key takes the chain that the operator \
         follows. `GET /v1/corridors`, sent with the key, names it in `funding[0].chain`.",
    ),
    ("CreateWebhookEndpoint.url", WEBHOOK_URL),
    ("DeclareRefundAddress.to_address", "Blockchain address that the refund goes to."),
    ("Deposit.block_number", BLOCK_NUMBER),
    ("Deposit.block_time", BLOCK_TIME),
    ("Deposit.status", "How far the chain has confirmed the movement."),
    ("Deposit.to_address", "Deposit address of the transfer."),
    ("DiagnoseFunding.transaction_hash", "Hash of the transaction that is asked about."),
    ("DrillCheck.name", "What was tried."),
    ("Event.created", "When the change happened, in Unix seconds."),
    ("Event.type", "What changed, such as `transfer.status.payout_settled`."),
    ("FeeDetail.name", "What the part is: `service_fee` or `gst`."),
    ("Funding.expires_at", "Until when a deposit is in time, by its block's time in Unix seconds."),
    ("Funding.status", "Where the stablecoin leg stands."),
    ("FundingDiagnosis.block_number", BLOCK_NUMBER),
    ("FundingDiagnosis.block_time", BLOCK_TIME),
    ("FundingDiagnosis.code", "What became of the transaction, as a stable word."),
    ("FundingDiagnosis.to_address", "Blockchain address that the transaction paid."),
    ("Identification.type", "Type of the document."),
    ("PayerAddress.to_address", "Blockchain address that the payer gave."),
    ("PaymentAdvice.status", "Whether the payment advice can be fetched."),
    (
        "PaymentAdvice.url",
        "Where the payment advice is fetched with the API key; null until the advice is available.",
    ),
    (
        "Payout.failure",
        "Null where all is well. In `failed` it says why the payout failed, in `returned` why \
         it came back. In `processing` it is `outcome_unknown`: the payout may still arrive, so \
         wait, and do not pay again. Branch on `status`, not on this.",
    ),
    ("Payout.status", "Where the rupee payment stands."),
    (
        "PayoutFailure.code",
        "Why the payout failed or came back, as a stable word; `outcome_unknown` where the bank \
         has not said whether it paid.",
    ),
    ("QuoteLock.amount", "The same as `sell_amount`."),
    ("QuoteLock.expires_at", "Until when a transfer can be created with it, in Unix seconds."),
    ("QuoteLock.status", "Whether a transfer can still be created with it."),
    ("Refund.status", "Where the refund stands."),
    (
        "Refund.to_address",
        "Blockchain address that the refund goes to; null until one is declared.",
    ),
    ("Refund.transaction_hash", "Hash of the transaction that paid the refund."),
    ("RefundStatusChange.at", "When the refund reached this status, in Unix seconds."),
    ("RefundStatusChange.status", "The status."),
    ("ReplayWebhooks.event_id", "Deliver this event again, in place of a period."),
    ("Requirement.code", "What is wrong with the field, as a stable word."),
    ("Sender.name", "Name of the remitter."),
    ("Sender.type", "Kind of remitter."),
    ("SettledPayout.status", "Where the rupee payment stands: `settled`, or `returned` later."),
    (
        "SimulateDeposit.amount",
        "Amount that the payer sends, with at most six decimals: what is missing if left out. \
         From 0.000001 to 1000000.00.",
    ),
    ("SimulateDeposit.asset", "Token that is sent, USDT if left out; no other one is credited."),
    ("SimulateDeposit.block_time", "Time of the deposit's block in Unix seconds: now if left out."),
    (
        "SimulateFailure.code",
        "Why the bank refuses the payout or sends it back. If left out, `account_closed` for a \
         refusal and `returned_by_beneficiary_bank` for a return. For `outcome_unknown` no helper \
         is needed: an account number that ends in `1003` leads to it.",
    ),
    ("StatementRow.created", "When the transfer was created, in Unix seconds."),
    ("StatementRow.status", "Status of the transfer when the statement is made."),
    ("StatementTotal.movements", "What the period added: `closing` less `opening`."),
    ("Transfer.amount", "Amount that the payer deposits, in `currency`."),
    ("Transfer.status", "Where the transfer stands; see the guide on the life of a transfer."),
    ("UpdateBeneficiary.name", "Name of the account holder, as the bank holds it."),
    (
        "UpdateBeneficiary.submit",
        "Whether verification begins: if left out, true in `input_required` and false in `draft`.",
    ),
    (
        "UpdateWebhookEndpoint.status",
        "`enabled` takes deliveries again after the endpoint was disabled.",
    ),
    ("UpdateWebhookEndpoint.url", WEBHOOK_URL),
    (
        "ValidateBeneficiary.amount",
        "Amount in INR that the payment system is chosen by, with at most two decimals: from 0.01 \
         to 999999999999.99.",
    ),
    ("ValidateBeneficiary.name", "Name of the account holder, as the bank holds it."),
    (
        "ValidateBeneficiary.submit",
        "Changes nothing here: it is taken so that the body of a create can be sent as it is.",
    ),
    (
        "WebhookDelivery.created",
        "When the event happened, in Unix seconds: `created` of the event, so in test mode a time \
         of the test clock. The times of attempts are real.",
    ),
    ("WebhookDelivery.status", "Where the delivery stands."),
    ("WebhookDrill.status", "Whether the drill still runs."),
    ("WebhookEndpoint.status", "Whether events are delivered, by how deliveries went."),
    ("WebhookEndpoint.url", WEBHOOK_URL),
];

const BLOCK_NUMBER: &str = "Number of the block that holds the transaction.";
const BLOCK_TIME: &str = "Time of that block in Unix seconds.";
const WEBHOOK_URL: &str = "Where events are sent. Two endpoints may have the same address: each is \
    sent every event that it enables, signed with its own secret.";

/// Sorted by name.
const NAMES: &[(&str, &str)] = &[
    ("account_number", "Number of the bank account; no answer shows it."),
    ("account_number_last4", "Last four characters of the account number."),
    ("account_type", "Type of the bank account."),
    ("account_types", "Types of bank account that can receive payouts."),
    ("action", "What to do with the money in the hold."),
    (
        "active_at",
        "When it becomes the refund's address, in Unix seconds, unless another one is declared \
         before.",
    ),
    ("address", "Postal address."),
    ("advance_seconds", "By how many seconds the test clock advances."),
    ("advice_number", "Number of the payment advice."),
    ("amount", "Amount of money as a decimal string."),
    ("amount_excess", "What was received above the expected amount and is owed back."),
    ("amount_expected", "What has to arrive at the deposit address."),
    ("amount_in_words", "The amount in words."),
    ("amount_maximum", "Largest amount that can be sent."),
    ("amount_minimum", "Smallest amount that can be sent."),
    ("amount_received", "Sum of the final deposits that counted."),
    ("amount_sent", "What the sender sold."),
    ("amount_sent_currency", "Currency of what the sender sold."),
    ("asset", "Token of the stablecoin rail."),
    ("at", "When, in Unix seconds."),
    ("attempted_at", "When the attempt began, in Unix seconds; a test clock does not move it."),
    ("attempts", "Attempts of the delivery, oldest first."),
    ("available", "Final on the chain and not yet used or held."),
    ("available_at", "Since when it is available, in Unix seconds."),
    ("bank_name", "Name of the bank by the IFSC directory."),
    ("beneficiary", "Who was paid."),
    ("beneficiary_id", "ID of the beneficiary."),
    ("branch_name", "Name of the branch by the IFSC directory."),
    ("buy_amount", "Amount that is bought, as a decimal string; rounded down to the paisa."),
    ("buy_currency", "Currency that is bought."),
    ("chain", "Blockchain that the token moves on."),
    ("checked_at", "When the account was checked, in Unix seconds."),
    ("city", "City."),
    ("classification", "What the deposit meant for its transfer; null until it is final."),
    ("closing", "Balance at the end of the period."),
    ("completed_at", "When it was completed, in Unix seconds."),
    ("confirmations", "Blocks from the transaction's block to the chain's newest one."),
    ("country", "ISO 3166-1 alpha-2 code of the country."),
    ("created", "When the object was created, in Unix seconds."),
    ("currency", "Code of the currency."),
    ("data", "The objects of this page."),
    ("date_of_birth", "Date of birth, YYYY-MM-DD: a past date, not before 1900."),
    ("declared_at", "When it was declared, in Unix seconds."),
    ("delay_milliseconds", "By how much a delayed answer is late, in milliseconds."),
    ("deleted", "Always true."),
    ("deliveries_count", "How many deliveries were scheduled."),
    ("deposit_address", "Blockchain address that the payer sends to."),
    ("deposit_id", "ID of the deposit."),
    ("deposits_count", "How many deposits count towards the transfer."),
    ("description", "The caller's own description."),
    ("details", "Parts of the fee."),
    ("disabled_reason", "Why nothing is delivered."),
    ("duration_milliseconds", "How long the attempt took, in milliseconds."),
    ("duration_seconds", "How long the attacks go on, in seconds: 600 if left out."),
    ("email", "Email address."),
    (
        "enabled_events",
        "Event types: full names, prefixes such as transfer.status.*, or *; * if left out.",
    ),
    ("ends_at", "When the attacks end, in Unix seconds; a test clock does not move it."),
    ("errors", "Every problem of the request."),
    ("event_id", "ID of the event."),
    ("events_attacked_count", "How many events were attacked."),
    ("events_count", "How many events there are up to this one, itself included."),
    ("expires_at", "When it ends, in Unix seconds."),
    ("fee", "What is kept of the amount before it is exchanged."),
    ("field_name", "The field concerned, nested names joined with dots."),
    ("from", "First second of the period, in Unix seconds."),
    ("from_address", "Blockchain address that paid."),
    ("funding", "The stablecoin leg."),
    ("funding_seconds", "How long a transfer waits for its deposit, in seconds."),
    ("has_next", "Whether more objects follow in the direction of paging."),
    ("hash", "Chained hash over the events up to this one, 64 hexadecimal digits."),
    ("hold", "Waiting for a decision, or owed back."),
    ("http_status_code", "HTTP status of the answer."),
    ("id", "ID of the object."),
    ("identification", "Document that identifies the person."),
    ("ifsc", "IFSC of the branch."),
    ("inr_out", "Rupees that left: paid out, or exchanged back into USDT after a failed payout."),
    ("instructions_url", "Page that shows the payer what to send and where."),
    ("kind", "What the refund gives back."),
    ("late", "What to do with money that arrives late."),
    ("limit", "Objects on a page."),
    ("line1", "Street and number."),
    ("linked_id", "ID of the object that changed."),
    ("linked_object", "Type of the object that changed."),
    ("livemode", "Whether the object belongs to live mode."),
    ("log_index", "Index of the movement's log in its block."),
    ("message", "Text for humans; may change."),
    ("metadata", "The caller's own names and values."),
    ("method", "Indian payment system that the payout goes by."),
    ("methods", "Indian payment systems that payouts go by."),
    ("mid_market_rate", "Market rate before the spread, INR for one USD."),
    ("name_match", "How the name compares with the one that the bank holds."),
    ("nationality", "ISO 3166-1 alpha-2 code of the nationality."),
    ("now", "The test clock in Unix seconds."),
    ("number", "Number of the document; no answer shows it."),
    ("object", "Type of the object."),
    (
        "only_failed",
        "Replay only what the receiver has not taken: failed deliveries, those that were recorded \
         while the endpoint was disabled, and those that wait for another attempt.",
    ),
    ("opening", "Balance at the start of the period."),
    ("order", "Oldest first (asc) or newest first (desc)."),
    ("overlap_seconds", "How long the old secret signs too, in seconds."),
    ("overpaid", "What to do with money above the amount."),
    ("pan", "Indian permanent account number; no answer shows it."),
    ("pan_last4", "Last four characters of the PAN."),
    ("passport_number", "Passport number; no answer shows it."),
    ("passport_number_last4", "Last four characters of the passport number."),
    ("payer_address", "Address that the payer gave for the refund; declare it to use it at once."),
    ("payer_sets_refund_address", "Whether the payer may give a refund's address on the page."),
    ("payment_advice", "The document of a settled payout; pending for all others."),
    ("payout", "The rupee leg; null until it has settled."),
    ("payout_amount", "What the beneficiary receives, as a decimal string."),
    ("payout_currency", "Currency of the payout."),
    ("payout_id", "ID of the payout, from funded on."),
    ("payout_processing", "Rupees that are with the bank."),
    ("payouts_disabled_reason", "Why payouts are not enabled."),
    ("payouts_enabled", "Whether the beneficiary can be paid."),
    ("pending", "Seen on chain, not final."),
    ("percentage", "Percentage of requests and events that are attacked: 50 if left out."),
    ("phone", "Telephone number in E.164 form."),
    ("policy", "What to do with money that does not fit."),
    ("postal_code", "Postal code."),
    ("processing", "Funded, not exchanged yet."),
    ("purpose_code", "RBI purpose code of the remittance."),
    ("purpose_codes", "RBI purpose codes that are taken."),
    ("quote_lock_id", "ID of the quote lock."),
    ("quote_lock_seconds", "How long a quote lock lives, in seconds."),
    ("rail", "How the transfer is funded."),
    ("rate", "INR for one USD, six decimals."),
    ("rate_percent", "Rate of the tax in percent."),
    ("reason", "Why, as a stable word."),
    ("reason_code", "Why the deposit failed."),
    ("reference", "The caller's own reference, unique among the account's transfers."),
    ("refund", "The newest refund of the transfer."),
    ("refund_address", "Blockchain address that a refund goes to."),
    ("refund_transaction_hashes", "Hashes of the transactions that paid refunds."),
    ("relationship", "How the sender and the beneficiary are related."),
    ("request_attacks", "Attacks on requests: every kind if left out, none for an empty list."),
    ("requests_attacked_count", "How many requests were attacked."),
    ("requirements", "What has to be updated to continue."),
    ("return_url", "Where the payer's page leads to at the end, over https."),
    ("returned_at", "When the bank sent the money back, in Unix seconds."),
    ("seconds_behind", "How far the service's view of the chain lies behind, in seconds."),
    (
        "seed",
        "Number that chooses which requests and events are attacked; the same number chooses the \
         same ones. If left out, the service draws one.",
    ),
    ("sell_amount", "Amount that is sold, as a decimal string."),
    ("sell_currency", "Currency that is sold."),
    ("sender", "Who sent the money."),
    ("sender_id", "ID of the sender."),
    ("settled_at", "When the payout settled, in Unix seconds."),
    ("signature", "Signature of the document."),
    ("since", "Replay events from this time on, in Unix seconds."),
    ("source", "Who reported the failure."),
    ("started_at", "When the attacks began, in Unix seconds."),
    ("starting_after", "The page after this ID."),
    ("state", "State or province."),
    ("statement", "What is certified."),
    ("status_reason", "Why the transfer waits in funding_hold."),
    ("taxable_value", "Value that the tax is computed on."),
    ("to", "End of the period, in Unix seconds; not in it."),
    ("to_address", "Blockchain address that is paid."),
    ("token_contract", "Contract of the token on its chain."),
    ("totals", "Sums of the period."),
    ("transaction_hash", "Hash of the transaction on chain."),
    ("transfer_id", "ID of the transfer."),
    ("underpaid", "What to do with too little money at expiry."),
    ("unique_transaction_reference", "The UTR, by which the beneficiary's bank knows the payment."),
    ("until", "Replay events up to this time, itself included, in Unix seconds: now if left out."),
    ("usdt_out", "USDT that left."),
    ("verification", "What the last check of the account found, and when."),
    (
        "waits_until",
        "Until when the payout waits, in Unix seconds, because the bank takes no payouts of its \
         method now; null where it does not wait.",
    ),
    ("webhook_attacks", "Attacks on deliveries to the endpoint: every kind if left out."),
    ("webhook_delay_milliseconds", "By how much a late delivery is late, in milliseconds."),
    ("webhook_endpoint_id", "ID of the webhook endpoint."),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_places_are_sorted() {
        assert!(NAMES.is_sorted_by(|earlier, later| earlier.0 < later.0));
        assert!(PLACES.is_sorted_by(|earlier, later| earlier.0 < later.0));
    }

    #[test]
    fn every_place_is_in_the_document_and_has_its_own_words() {
        let document = super::super::document(
            &crate::routes::routes(),
            &crate::routes::resource_paths(),
            "http://127.0.0.1:8080",
        );
        for (place, description) in PLACES {
            let (schema, path) = place.split_once('.').unwrap();
            let path = path.replace('.', "/properties/");
            let pointer = format!("/components/schemas/{schema}/properties/{path}/description");
            assert_eq!(document.pointer(&pointer), Some(&(*description).into()), "{place}");
        }
    }
}
