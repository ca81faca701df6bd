"""Sends every example request of the API's document to a test server, in an order that leads to a settled payout.

Arguments: the server's address, a test key and the file of the examples, by operation. With --write, puts the answers into
the file; without, fails where an answer has other fields than the file's, or where an operation has no example.
"""

import json
import sys
import time
import urllib.error
import urllib.request
import uuid

ADDRESS, KEY, FILE = sys.argv[1:4]
IS_WRITING = "--write" in sys.argv
WAIT_SECONDS_MAX = 30

examples = json.load(open(FILE))
answers = {}
known = {}


def call(method, path, body=None):
    headers = {"Authorization": f"Bearer {KEY}", "Idempotency-Key": str(uuid.uuid4()), "Content-Type": "application/json"}
    data = json.dumps(body).encode() if body is not None else None
    try:
        with urllib.request.urlopen(urllib.request.Request(ADDRESS + path, data, headers, method=method)) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        sys.exit(f"{method} {path} {json.dumps(body)}: {error.code} {error.read().decode()}")


def with_known_ids(value):
    """The value with every ID that stands under the name of an object that was made replaced by that object's."""
    if isinstance(value, dict):
        return {name: known.get(name, with_known_ids(inner)) if isinstance(inner, str) else with_known_ids(inner)
                for name, inner in value.items()}
    return value


def run(operation, **ids):
    """Sends the example of an operation, keeps its answer, and learns the ID of the object."""
    verb, path = operations[operation]
    for name, value in ids.items():
        path = path.replace("{" + name + "}", value)
    example = examples.setdefault(operation, {})
    answer = call(verb, path + example.get("query", ""), with_known_ids(example["request"]) if "request" in example else None)
    answers[operation] = answer
    return answer


def wait_for_event(event_type):
    end = time.monotonic() + WAIT_SECONDS_MAX
    while not call("GET", f"/v1/events?type={event_type}")["data"]:
        if time.monotonic() > end:
            sys.exit(f"{event_type} did not come")
        time.sleep(0.02)


def wait(path, status):
    end = time.monotonic() + WAIT_SECONDS_MAX
    while (found := call("GET", path))["status"] != status:
        if time.monotonic() > end:
            sys.exit(f"{path} did not become {status}: {found['status']}")
        time.sleep(0.02)
    return found


document = json.load(urllib.request.urlopen(ADDRESS + "/openapi.json"))
operations = {}
for route, methods in document["paths"].items():
    for method, operation in methods.items():
        operations[operation["operationId"]] = (method.upper(), route)


def beneficiary(account_number):
    example = dict(examples["create_beneficiary"]["request"], account_number=account_number)
    return call("POST", "/v1/beneficiaries", example)["id"]


def transfer(account_number, amount="1000.00"):
    payee = beneficiary(account_number)
    wait(f"/v1/beneficiaries/{payee}", "active")
    lock = call("POST", "/v1/quote_locks", dict(examples["create_quote_lock"]["request"], amount=amount))["id"]
    request = dict(with_known_ids(examples["create_transfer"]["request"]), beneficiary_id=payee, quote_lock_id=lock, amount=amount)
    request.pop("reference", None)
    return call("POST", "/v1/transfers", request)


def deposit(transfer_id, **body):
    return call("POST", f"/v1/test_helpers/transfers/{transfer_id}/deposit", body)


# The six steps.
endpoint = run("create_webhook_endpoint")["id"]
known["beneficiary_id"] = run("create_beneficiary")["id"]
wait(f"/v1/beneficiaries/{known['beneficiary_id']}", "active")
known["sender_id"] = run("create_sender")["id"]
known["quote_lock_id"] = run("create_quote_lock")["id"]
known["transfer_id"] = main = run("create_transfer")["id"]
run("validate_beneficiary")
deposited = run("test_deposit_transfer", id=main)["id"]
settled = wait(f"/v1/transfers/{main}", "payout_settled")
payout = settled["payout_id"]

for operation, found in [("beneficiary", known["beneficiary_id"]), ("sender", known["sender_id"]), ("quote_lock", known["quote_lock_id"]),
                         ("transfer", main), ("deposit", deposited), ("payout", payout), ("webhook_endpoint", endpoint)]:
    run(f"get_{operation}", id=found)
for resource in ["beneficiaries", "senders", "quote_locks", "transfers", "deposits", "payouts", "webhook_endpoints"]:
    run(f"list_{resource}")
run("get_corridors")
run("get_balance")
run("get_statements")
wait_for_event("payout.payment_advice.available")
run("get_payout_payment_advice", id=payout)
event = run("list_events")["data"][0]["id"]
run("get_event", id=event)
run("get_event_checkpoint")
run("drill_webhook_endpoint", id=endpoint)
run("get_webhook_endpoint_drill", id=endpoint)
known["webhook_endpoint_id"] = endpoint
run("test_chaos")
run("test_get_chaos")
run("test_stop_chaos")
run("test_get_chaos_report")
run("list_webhook_endpoint_deliveries", id=endpoint)
run("update_webhook_endpoint", id=endpoint)
known["event_id"] = event
run("replay_webhook_endpoint", id=endpoint)
run("rotate_webhook_endpoint_secret", id=endpoint)
run("delete_webhook_endpoint", id=endpoint)

# Beneficiaries that wait.
draft = call("POST", "/v1/beneficiaries", dict(examples["create_beneficiary"]["request"], submit=False))["id"]
run("update_beneficiary", id=draft)
run("test_activate_beneficiary", id=beneficiary("50100012340004"))
run("test_require_beneficiary_input", id=beneficiary("50100012350004"))
run("test_reject_beneficiary", id=beneficiary("50100012360004"))

# Payouts that are decided by hand.
for operation in ["test_settle_payout", "test_fail_payout"]:
    stuck = transfer("50100012341003")
    deposit(stuck["id"])
    run(operation, id=wait(f"/v1/transfers/{stuck['id']}", "payout_processing")["payout_id"])
refunded = wait(f"/v1/transfers/{stuck['id']}", "refund_processing")["refund"]["id"]
run("get_refund", id=refunded)
run("list_refunds")
run("update_refund", id=refunded)
run("test_complete_refund", id=refunded)
run("test_return_payout", id=payout)

# Money that is short, and a transfer that nobody paid.
short = transfer("50100012345679")
deposit(short["id"], amount="400.00")
call("POST", "/v1/test_helpers/clock", {"advance_seconds": 1900})
wait(f"/v1/transfers/{short['id']}", "funding_hold")
run("diagnose_transfer_funding", id=short["id"])
run("resolve_transfer_funding", id=short["id"])
run("cancel_transfer", id=transfer("50100012345680")["id"])
run("test_clock")

missing = sorted(set(operations) - set(answers))
if missing:
    sys.exit(f"no example for {', '.join(missing)}")


def shape(value):
    """The fields of an answer, without what they hold: null may stand for anything."""
    if isinstance(value, dict):
        return {name: shape(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return None


def differences(place, before, now):
    if isinstance(before, dict) and isinstance(now, dict) and "metadata" not in place:
        for name in sorted(set(before) ^ set(now)):
            yield f"{place}.{name}"
        for name in set(before) & set(now):
            yield from differences(f"{place}.{name}", before[name], now[name])
    elif isinstance(before, list) and isinstance(now, list) and before and now:
        yield from differences(f"{place}[]", before[0], now[0])


if IS_WRITING:
    # Nobody takes these for real: an address that exists nowhere, and a secret that opens nothing.
    answers = json.loads(json.dumps(answers).replace(ADDRESS, "https://hundi.example"))
    for operation, answer in answers.items():
        if "secret" in answer:
            answer["secret"] = "whsec_" + "EXAMPLE0" * 5 + "AAA="
        if isinstance(answer.get("data"), list):
            answer = dict(answer, data=answer["data"][:1])
        examples[operation]["response"] = answer
    with open(FILE, "w") as file:
        json.dump(examples, file, indent=1, ensure_ascii=False)
        file.write("\n")
else:
    found = [line for operation, answer in answers.items()
             for line in differences(operation, shape(examples[operation].get("response")), shape(answer))]
    if found:
        sys.exit("these fields differ from the examples; write them anew with tests/openapi/examples.sh --write:\n" + "\n".join(found))
    print(f"{len(answers)} examples were sent and answered as the document says")
