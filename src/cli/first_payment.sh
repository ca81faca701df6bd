export HUNDI_BASE_URL=@URL@ HUNDI_API_KEY="@KEY@"
get() { curl -sS "$HUNDI_BASE_URL/v1/$1" -H "Authorization: Bearer $HUNDI_API_KEY"; }
post() { curl -sS "$HUNDI_BASE_URL/v1/$1" -H "Authorization: Bearer $HUNDI_API_KEY" -H "Content-Type: application/json" -H "Idempotency-Key: $(openssl rand -hex 16)" -d "$2"; }
id() { grep -o '"id":"[^"]*' | head -1 | cut -d'"' -f4; }
B=$(post beneficiaries '{"name":"Asha Rao","account_number":"50100012345678","ifsc":"HDFC0000001","account_type":"nre"}' | id)
S=$(post senders '{"name":"Ravi Rao","type":"individual","country":"AE"}' | id)
until get "beneficiaries/$B" | grep -q '"status":"active"'; do sleep 0.2; done
Q=$(post quote_locks '{"sell_currency":"USD","buy_currency":"INR","amount":"1000.00"}' | id)
T=$(post transfers '{"sender_id":"'$S'","beneficiary_id":"'$B'","quote_lock_id":"'$Q'","amount":"1000.00","currency":"USD","payout_currency":"INR","funding":{"rail":"stablecoin","asset":"USDT","chain":"tron"}}' | id)
post "test_helpers/transfers/$T/deposit" '{}' > /dev/null
until get "transfers/$T" | grep -o '"unique_transaction_reference":"[^"]*"'; do sleep 0.2; done
