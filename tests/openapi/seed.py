"""Runs whole payouts, and prints schemathesis' configuration with the identifiers of the objects they made.

Arguments: the server's address and a test key. Real objects let the run compare real answers with their schemas.
"""

import json
import sys
import time
import urllib.request
import uuid

ADDRESS, KEY = sys.argv[1:3]
WAIT_SECONDS_MAX = 20


def call(method, path, body=None):
    headers = {"Authorization": f"Bearer {KEY}", "Idempotency-Key": str(uuid.uuid4()), "Content-Type": "application/json"}
    data = json.dumps(body).encode() if body is not None else None
    with urllib.request.urlopen(urllib.request.Request(ADDRESS + path, data, headers, method=method)) as answer:
        return json.load(answer)


def wait(path, status):
    end = time.monotonic() + WAIT_SECONDS_MAX
    while (found := call("GET", path))["status"] != status:
        if time.monotonic() > end:
            sys.exit(f"{path} did not become {status}: {found}")
        time.sleep(0.01)
    return found


def transfer(account_number, deposit, status):
    beneficiary = call("POST", "/v1/beneficiaries", {"name": "Asha Rao", "account_number": account_number, "ifsc": "HDFC0000001", "account_type": "nre"})
    wait(f"/v1/beneficiaries/{beneficiary['id']}", "active")
    sender = call("POST", "/v1/senders", {"name": "Ravi Rao", "type": "individual", "country": "AE", "address": {"line1": "1 Creek Road", "city": "Dubai", "country": "AE"}})
    lock = call("POST", "/v1/quote_locks", {"sell_currency": "USD", "buy_currency": "INR", "amount": "1000.00"})
    funding = {"rail": "stablecoin", "asset": "USDT", "chain": "tron"}
    created = call("POST", "/v1/transfers", {
        "sender_id": sender["id"], "beneficiary_id": beneficiary["id"], "quote_lock_id": lock["id"], "amount": "1000.00",
        "currency": "USD", "payout_currency": "INR", "funding": funding, "metadata": {"order": "1"}})
    path = f"/v1/transfers/{created['id']}"
    made = call("POST", f"/v1/test_helpers/transfers/{created['id']}/deposit", {"amount": deposit}) if deposit else None
    return {"transfer": wait(path, status), "deposit": made, "sender": sender, "lock": lock, "beneficiary": beneficiary}


settled = transfer("50100012345678", "1250.00", "payout_settled")
failed = transfer("50100012341001", "1000.00", "refund_processing")
waiting = transfer("50100012341003", "1000.00", "payout_processing")
unfunded = transfer("50100012345679", None, "funding")
draft = call("POST", "/v1/beneficiaries", {"name": "Asha Rao", "account_number": "50100012345678", "ifsc": "HDFC0000001", "account_type": "nre", "submit": False})
checking = call("POST", "/v1/beneficiaries", {"name": "Asha Rao", "account_number": "50100012340004", "ifsc": "HDFC0000001", "account_type": "nre"})
endpoint = call("POST", "/v1/webhook_endpoints", {"url": "https://192.0.2.1.example.com/hook", "enabled_events": ["refund.status.*"]})
event = call("GET", "/v1/events?limit=1")["data"][0]
wait(f"/v1/payouts/{settled['transfer']['payout_id']}", "settled")

IDS = {
    "GET /v1/beneficiaries/{id}": settled["beneficiary"],
    "POST /v1/beneficiaries/{id}": draft,
    "POST /v1/test_helpers/beneficiaries/{id}/activate": checking,
    "POST /v1/test_helpers/beneficiaries/{id}/require_input": checking,
    "POST /v1/test_helpers/beneficiaries/{id}/reject": checking,
    "GET /v1/senders/{id}": settled["sender"],
    "GET /v1/quote_locks/{id}": settled["lock"],
    "GET /v1/transfers/{id}": settled["transfer"],
    "POST /v1/transfers/{id}/cancel": unfunded["transfer"],
    "POST /v1/transfers/{id}/resolve_funding": unfunded["transfer"],
    "POST /v1/transfers/{id}/funding/diagnose": unfunded["transfer"],
    "POST /v1/test_helpers/transfers/{id}/deposit": unfunded["transfer"],
    "GET /v1/deposits/{id}": settled["deposit"],
    "GET /v1/payouts/{id}": {"id": settled["transfer"]["payout_id"]},
    "GET /v1/payouts/{id}/payment_advice": {"id": settled["transfer"]["payout_id"]},
    "POST /v1/test_helpers/payouts/{id}/settle": {"id": waiting["transfer"]["payout_id"]},
    "POST /v1/test_helpers/payouts/{id}/fail": {"id": failed["transfer"]["payout_id"]},
    "POST /v1/test_helpers/payouts/{id}/return": {"id": settled["transfer"]["payout_id"]},
    "GET /v1/refunds/{id}": failed["transfer"]["refund"],
    "POST /v1/refunds/{id}": failed["transfer"]["refund"],
    "POST /v1/test_helpers/refunds/{id}/complete": failed["transfer"]["refund"],
    "GET /v1/events/{id}": event,
    "GET /v1/webhook_endpoints/{id}": endpoint,
    "GET /v1/webhook_endpoints/{id}/deliveries": endpoint,
    "POST /v1/webhook_endpoints/{id}/drill": endpoint,
    "GET /v1/webhook_endpoints/{id}/drill": endpoint,
}

print(f'[auth.openapi.api_key]\nbearer = "{KEY}"')
for name, found in IDS.items():
    print(f'\n[[operations]]\ninclude-name = "{name}"\nparameters = {{ "path.id" = "{found["id"]}" }}')
# A profile would answer the run's own requests with its attacks; tests/http/chaos.rs has its limits.
print('\n[[operations]]\ninclude-name = "POST /v1/test_helpers/chaos"\nenabled = false')
