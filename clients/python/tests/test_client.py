"""Against a real server, and through a proxy that breaks what a network breaks."""

import base64
import hashlib
import hmac
import json
import os
import threading
import time
import urllib.error
import urllib.request
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import hundi

BENEFICIARY = {"name": "Asha Rao", "account_number": "50100012345678", "ifsc": "HDFC0000001", "account_type": "nre"}
QUOTE = {"sell_currency": "USD", "buy_currency": "INR", "amount": Decimal("1000.00")}
WAIT_SECONDS_MAX = 30


def wait_for(retrieve, id, status):
    end = time.monotonic() + WAIT_SECONDS_MAX
    while (found := retrieve(id))["status"] != status:
        assert time.monotonic() < end, f"{id} is {found['status']} and not {status}"
        time.sleep(0.02)
    return found


def test_six_steps_lead_to_a_utr(client):
    beneficiary = client.beneficiaries.create(**BENEFICIARY)
    wait_for(client.beneficiaries.retrieve, beneficiary["id"], "active")
    sender = client.senders.create(name="Ravi Rao", type="individual", country="AE")
    lock = client.quote_locks.create(**QUOTE)
    assert lock["buy_amount"] == lock["amount"] * lock["rate"], "decimals, and no fee in test mode"
    transfer = client.transfers.create(
        sender_id=sender["id"], beneficiary_id=beneficiary["id"], quote_lock_id=lock["id"], amount=Decimal("1000.00"),
        currency="USD", payout_currency="INR", funding={"rail": "stablecoin", "asset": "USDT", "chain": "tron"},
        metadata={"amount": "not a number", "rate": "5"})
    assert transfer["metadata"] == {"amount": "not a number", "rate": "5"}, "the caller's own texts stay texts"
    deposit = client.test_helpers.transfers.deposit(transfer["id"])
    assert deposit["amount"] == Decimal("1000.00")
    settled = wait_for(client.transfers.retrieve, transfer["id"], "payout_settled")
    assert settled["payout"]["unique_transaction_reference"].startswith("TEST")
    assert [deposit["id"] for deposit in client.deposits.list(transfer_id=transfer["id"])] == [deposit["id"]]


def test_lists_page_through_all_objects_both_ways(client):
    made = [client.senders.create(name=f"Sender {number}", type="individual", country="AE")["id"] for number in range(7)]
    forward = [sender["id"] for sender in client.senders.list(limit=3)]
    assert forward[-7:] == made
    newer = [sender["id"] for sender in client.senders.list(limit=2, starting_after=made[1])]
    assert newer == made[2:]
    back = [sender["id"] for sender in client.senders.list(limit=2, ending_before=made[3])]
    assert back[:3] == made[2::-1]


def test_refusals_tell_every_problem(client):
    with pytest.raises(hundi.ApiError) as refusal:
        client.beneficiaries.create(**dict(BENEFICIARY, ifsc="nonsense", name=""))
    assert refusal.value.status == 400
    assert sorted(refusal.value.codes) == ["parameter_empty", "parameter_min_length_invalid"]
    assert refusal.value.request_id.startswith("request_")
    assert not refusal.value.new_key_required


def test_a_float_is_no_amount(client):
    with pytest.raises(TypeError):
        client.quote_locks.create(**dict(QUOTE, amount=1000.0))


def test_the_sandbox_attacks_this_client_and_it_passes(client):
    client.test_helpers.chaos.start(seed=7, percentage=100, delay_milliseconds=100)
    made = [client.senders.create(name=f"Chaos {number}", type="individual", country="AE")["id"] for number in range(4)]
    for id in made[:2]:
        assert client.senders.retrieve(id)["id"] == id
    client.test_helpers.chaos.stop()
    report = client.test_helpers.chaos.report()
    assert report["grade"] == "passed", report
    assert len(set(made)) == 4 and report["requests_attacked_count"] == 6


def test_the_sandbox_sees_a_client_that_does_not_retry(client, url):
    with hundi.Client(os.environ["HUNDI_API_KEY"], base_url=url, attempts_max=1) as hasty:
        hasty.test_helpers.chaos.start(seed=7, percentage=100, delay_milliseconds=0)
        for number in range(4):
            try:
                hasty.senders.create(name=f"Hasty {number}", type="individual", country="AE")
            except (hundi.ApiError, hundi.ConnectionFailed):
                pass
        hasty.test_helpers.chaos.stop()
        report = hasty.test_helpers.chaos.report()
    failed = {check["code"] for check in report["checks"] if check["result"] == "failed"}
    assert report["grade"] == "failed"
    assert failed == {"dropped_answer_abandoned", "unavailable_taken_as_final", "locked_taken_as_final"}


class Proxy:
    """Passes requests on, and spoils the first answers as told."""

    def __init__(self, target, faults):
        self.keys = []
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                proxy.keys.append(self.headers["Idempotency-Key"])
                fault = faults.pop(0) if faults else None
                if isinstance(fault, int):
                    self.answer(fault, {"Retry-After": "0"}, json.dumps(
                        {"object": "error", "errors": [{"code": "resource_locked", "message": "", "metadata": {}}]}).encode())
                    return
                headers = {name: self.headers[name] for name in ("Authorization", "Idempotency-Key", "Content-Type")}
                request = urllib.request.Request(target + self.path, body, headers, method="POST")
                with urllib.request.urlopen(request) as answer:
                    if fault == "lost":
                        # The effect has happened, and nobody learns of it.
                        self.close_connection = True
                        return
                    self.answer(answer.status, {"Idempotent-Replayed": answer.headers.get("Idempotent-Replayed", "")}, answer.read())

            def answer(self, status, headers, body):
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.mark.parametrize("faults", [["lost"], [503], [429], [409], ["lost", 503, "lost"]])
def test_retries_keep_the_key_and_make_one_effect(url, client, faults):
    expected = len(faults) + 1
    proxy = Proxy(url, list(faults))
    pauses = []
    through = hundi.Client(os.environ["HUNDI_API_KEY"], base_url=proxy.url, sleep=pauses.append)
    before = len(list(client.senders.list()))
    sender = through.senders.create(name="Ravi Rao", type="individual", country="AE")
    assert len(proxy.keys) == expected and len(set(proxy.keys)) == 1
    assert len(pauses) == len(faults) and all(pause > 0 for pause in pauses)
    made = list(client.senders.list())
    assert len(made) == before + 1 and made[-1]["id"] == sender["id"]


def test_an_unknown_outcome_names_the_key(url):
    proxy = Proxy(url, ["lost"] * 10)
    through = hundi.Client(os.environ["HUNDI_API_KEY"], base_url=proxy.url, attempts_max=2, sleep=lambda _: None)
    with pytest.raises(hundi.ConnectionFailed) as failure:
        through.senders.create(name="Ravi Rao", type="individual", country="AE", idempotency_key="0123456789abcdef")
    assert failure.value.idempotency_key == "0123456789abcdef"
    assert len(proxy.keys) == 2


def test_a_refusal_is_not_retried(url):
    proxy = Proxy(url, [])
    pauses = []
    through = hundi.Client("sk_test_wrong", base_url=url, sleep=pauses.append)
    with pytest.raises(hundi.ApiError) as refusal:
        through.senders.create(name="Ravi Rao", type="individual", country="AE")
    assert refusal.value.codes == ["secret_key_invalid"] and pauses == []
    proxy.server.shutdown()


def test_events_are_followed_without_end(client):
    last = [event["id"] for event in client.events.list()][-1:]
    made = client.beneficiaries.create(**BENEFICIARY)["id"]
    events = client.events.follow(last[0] if last else None, wait_seconds=5)
    while (event := next(events))["linked_id"] != made:
        pass
    assert event["type"] == "beneficiary.status.verifying"


def test_real_deliveries_verify(client):
    received = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self):
            received.append((self.rfile.read(int(self.headers["Content-Length"])), dict(self.headers)))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    endpoint = client.webhook_endpoints.create(url=f"http://127.0.0.1:{server.server_port}/")
    made = client.beneficiaries.create(**BENEFICIARY)
    end = time.monotonic() + WAIT_SECONDS_MAX
    # What earlier tests made can send events yet.
    while not (of_made := [one for one in received if made["id"].encode() in one[0]]):
        assert time.monotonic() < end, "no delivery came"
        time.sleep(0.02)
    body, headers = of_made[0]
    assert hundi.verify_webhook(body, headers, endpoint["secret"])["linked_id"] == made["id"]
    with pytest.raises(hundi.WebhookVerificationError):
        hundi.verify_webhook(body + b" ", headers, endpoint["secret"])
    with pytest.raises(hundi.WebhookVerificationError):
        hundi.verify_webhook(body, headers, "whsec_another")
    client.webhook_endpoints.delete(endpoint["id"])


def test_old_and_malformed_deliveries_are_refused():
    secret, body, now = "whsec_c2VjcmV0", b'{"object":"event"}', 1_790_000_000

    def headers(sent_at):
        digest = hmac.new(secret.encode(), f"event_1.{sent_at}.".encode() + body, hashlib.sha256).digest()
        return {"Webhook-Id": "event_1", "Webhook-Timestamp": str(sent_at),
                "Webhook-Signature": f"v1,AAAA v1,{base64.b64encode(digest).decode()}"}

    for sent_at in (now - 300, now, now + 300):
        assert hundi.verify_webhook(body, headers(sent_at), secret, now=now) == {"object": "event"}
    for sent_at in (now - 301, now + 301):
        with pytest.raises(hundi.WebhookVerificationError):
            hundi.verify_webhook(body, headers(sent_at), secret, now=now)
    for missing in headers(now):
        short = {name: value for name, value in headers(now).items() if name != missing}
        with pytest.raises(hundi.WebhookVerificationError):
            hundi.verify_webhook(body, short, secret, now=now)
