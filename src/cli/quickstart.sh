export HUNDI_BASE_URL=@URL@
: "${HUNDI_API_KEY:?set it to a test key}"

call() { curl -sS --fail-with-body "$HUNDI_BASE_URL/v1/$1" -H "Authorization: Bearer $HUNDI_API_KEY" -H "Content-Type: application/json" -H "Idempotency-Key: $(openssl rand -hex 16)" "${@:2}"; }
id() { local answer; answer=$(cat); grep -o '"id":"[^"]*' <<< "$answer" | head -n 1 | cut -d '"' -f 4 | grep . || { echo "$answer" >&2; return 1; }; }
wait_for() { local answer; for _ in $(seq 150); do answer=$(call "$1"); grep -o "$2" <<< "$answer" && return; grep -Eq '"status":"(input_required|rejected|refund_processing|expired)"' <<< "$answer" && break; sleep 0.2; done; echo "$1 has no $2: $answer" >&2; return 1; }

BENEFICIARY=$(call beneficiaries -d '{"name": "Asha Rao", "account_number": "50100012345678", "ifsc": "HDFC0000001", "account_type": "nre"}' | id) &&
wait_for "beneficiaries/$BENEFICIARY" '"status":"active"' &&
SENDER=$(call senders -d '{"name": "Ravi Rao", "type": "individual", "country": "AE"}' | id) &&
LOCK=$(call quote_locks -d '{"sell_currency": "USD", "buy_currency": "INR", "amount": "1000.00"}' | id) &&
TRANSFER=$(call transfers -d '{"sender_id": "'"$SENDER"'", "beneficiary_id": "'"$BENEFICIARY"'", "quote_lock_id": "'"$LOCK"'", "amount": "1000.00", "currency": "USD", "payout_currency": "INR", "funding": {"rail": "stablecoin", "asset": "USDT", "chain": "tron"}}' | id) &&
call "test_helpers/transfers/$TRANSFER/deposit" -d '{}' | id > /dev/null &&
wait_for "transfers/$TRANSFER" '"unique_transaction_reference":"[^"]*"'
