"""The client: one attribute a resource, one method an operation."""

from __future__ import annotations

import os
import random
import time
import uuid
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

import httpx
from typing_extensions import Unpack

from . import types as t
from .errors import ApiError, ConnectionFailed, HundiError

T = TypeVar("T")

ATTEMPTS_MAX = 6
PAUSE_SECONDS_FIRST = 0.5
PAUSE_SECONDS_MAX = 30.0
TIMEOUT_SECONDS = 30.0
PAGE_OBJECTS = 100


def _to_wire(value: Any) -> Any:
    """Amounts become text; a float is never one."""
    if isinstance(value, float):
        raise TypeError("an amount is a Decimal or a text, never a float")
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, dict):
        return {name: _to_wire(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_to_wire(inner) for inner in value]
    return value


def _from_wire(value: Any, name: str = "") -> Any:
    """Amounts become decimals, but for what the caller's own metadata holds."""
    if name == "metadata":
        return value
    if isinstance(value, dict):
        return {inner: _from_wire(held, inner) for inner, held in value.items()}
    if isinstance(value, list):
        return [_from_wire(held) for held in value]
    return Decimal(value) if name in t.DECIMAL_FIELDS and isinstance(value, str) else value


def _parse(answer: httpx.Response) -> Any:
    try:
        return _from_wire(answer.json())
    except ValueError:
        return None


def _is_worth_a_retry(answer: httpx.Response) -> bool:
    """The specification's table: 5xx, 429, and 409 while the first request runs."""
    if answer.status_code == 409:
        body = _parse(answer) or {}
        return any(error.get("code") == "resource_locked" for error in body.get("errors", []))
    return answer.status_code == 429 or answer.status_code >= 500


def _find_key(given: str | None) -> str:
    file = os.environ.get("HUNDI_API_KEY_FILE")
    key = given or os.environ.get("HUNDI_API_KEY") or (Path(file).read_text() if file else "")
    if not key.strip():
        raise HundiError("no API key: pass api_key, or set HUNDI_API_KEY or HUNDI_API_KEY_FILE")
    return key.strip()


class Client:
    """Calls the service with one API key: the argument, or HUNDI_API_KEY, or what the file HUNDI_API_KEY_FILE holds.

    `attempts_max` bounds the attempts of one call, `timeout` the seconds of one attempt. `sleep` is for tests.
    """

    def __init__(
        self,
        api_key: str | None = None,
        *,
        base_url: str = "http://127.0.0.1:8080",
        attempts_max: int = ATTEMPTS_MAX,
        timeout: float = TIMEOUT_SECONDS,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._http = httpx.Client(
            base_url=base_url.rstrip("/"),
            timeout=timeout,
            headers={"Authorization": f"Bearer {_find_key(api_key)}", "User-Agent": "hundi-python/0.2.0"},
        )
        self._attempts_max = max(1, attempts_max)
        self._sleep = sleep
        self.beneficiaries = Beneficiaries(self, "beneficiaries")
        self.senders = Senders(self, "senders")
        self.quote_locks = QuoteLocks(self, "quote_locks")
        self.transfers = Transfers(self, "transfers")
        self.deposits = Resource[t.Deposit](self, "deposits")
        self.payouts = Payouts(self, "payouts")
        self.refunds = Refunds(self, "refunds")
        self.events = Events(self, "events")
        self.webhook_endpoints = WebhookEndpoints(self, "webhook_endpoints")
        self.test_helpers = TestHelpers(self)

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def balance(self) -> t.Balance:
        return cast(t.Balance, self.request("GET", "/v1/balance"))

    def corridors(self) -> t.CorridorList:
        return cast(t.CorridorList, self.request("GET", "/v1/corridors"))

    def statement(self, **query: Any) -> t.Statement:
        """What transfers moved in a period."""
        return cast(t.Statement, self.request("GET", "/v1/statements", query=query))

    def request(
        self,
        method: str,
        path: str,
        *,
        body: dict[str, Any] | None = None,
        query: dict[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> Any:
        """Sends a request until its answer is one that a retry would not change."""
        headers = {}
        if method == "POST":
            idempotency_key = idempotency_key or str(uuid.uuid4())
            headers["Idempotency-Key"] = idempotency_key
        wire = _to_wire(body or {}) if method == "POST" else None
        query = {name: value for name, value in (query or {}).items() if value is not None}
        for attempt in range(1, self._attempts_max + 1):
            pause = min(PAUSE_SECONDS_MAX, PAUSE_SECONDS_FIRST * 2 ** (attempt - 1))
            pause *= random.uniform(0.5, 1)
            try:
                answer = self._http.request(method, path, json=wire, params=query, headers=headers)
            except httpx.TransportError as error:
                if attempt == self._attempts_max:
                    raise ConnectionFailed(error, idempotency_key) from error
            else:
                if answer.is_success:
                    return _parse(answer)
                if attempt == self._attempts_max or not _is_worth_a_retry(answer):
                    request_id = answer.headers.get("Request-Id")
                    raise ApiError(answer.status_code, _parse(answer), request_id)
                told = answer.headers.get("Retry-After", "")
                pause = max(pause, float(told)) if told.isdigit() else pause
            self._sleep(pause)
        raise AssertionError("the last attempt returns or raises")


class Resource(Generic[T]):
    """A kind of object that can be read."""

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self._path = f"/v1/{name}"

    def retrieve(self, id: str) -> T:
        return cast(T, self._client.request("GET", f"{self._path}/{id}"))

    def list(self, **query: Any) -> Iterator[T]:
        """Iterates over all objects, oldest first. Filters of the API are keywords; `created.gte` and its like go
        into a dictionary: `list(**{"created.gte": 1790000000})`."""
        return self._pages(self._path, query)

    def _pages(self, path: str, query: dict[str, Any]) -> Iterator[Any]:
        query = {"limit": PAGE_OBJECTS, **query}
        cursor = "ending_before" if "ending_before" in query else "starting_after"
        while True:
            page = self._client.request("GET", path, query=query)
            yield from page["data"]
            if not page["has_next"]:
                return
            query[cursor] = page["data"][-1]["id"]

    def _post(self, path: str, body: Any = None, idempotency_key: str | None = None) -> Any:
        return self._client.request("POST", self._path + path, body=body, idempotency_key=idempotency_key)


class Beneficiaries(Resource[t.Beneficiary]):
    def create(self, *, idempotency_key: str | None = None, **body: Unpack[t.CreateBeneficiary]) -> t.Beneficiary:
        return cast(t.Beneficiary, self._post("", body, idempotency_key))

    def update(self, id: str, *, idempotency_key: str | None = None, **body: Unpack[t.UpdateBeneficiary]) -> t.Beneficiary:
        return cast(t.Beneficiary, self._post(f"/{id}", body, idempotency_key))

    def validate(self, *, idempotency_key: str | None = None, **body: Unpack[t.ValidateBeneficiary]) -> t.BeneficiaryValidation:
        """Checks the details of a beneficiary and creates none."""
        return cast(t.BeneficiaryValidation, self._post("/validate", body, idempotency_key))


class Senders(Resource[t.Sender]):
    def create(self, *, idempotency_key: str | None = None, **body: Unpack[t.CreateSender]) -> t.Sender:
        return cast(t.Sender, self._post("", body, idempotency_key))


class QuoteLocks(Resource[t.QuoteLock]):
    def create(self, *, idempotency_key: str | None = None, **body: Unpack[t.CreateQuoteLock]) -> t.QuoteLock:
        return cast(t.QuoteLock, self._post("", body, idempotency_key))


class Transfers(Resource[t.Transfer]):
    def create(self, *, idempotency_key: str | None = None, **body: Unpack[t.CreateTransfer]) -> t.Transfer:
        return cast(t.Transfer, self._post("", body, idempotency_key))

    def cancel(self, id: str, *, idempotency_key: str | None = None) -> t.Transfer:
        return cast(t.Transfer, self._post(f"/{id}/cancel", None, idempotency_key))

    def resolve_funding(self, id: str, *, idempotency_key: str | None = None, **body: Unpack[t.ResolveFunding]) -> t.Transfer:
        return cast(t.Transfer, self._post(f"/{id}/resolve_funding", body, idempotency_key))

    def diagnose_funding(self, id: str, *, idempotency_key: str | None = None, **body: Unpack[t.DiagnoseFunding]) -> t.FundingDiagnosis:
        return cast(t.FundingDiagnosis, self._post(f"/{id}/funding/diagnose", body, idempotency_key))


class Payouts(Resource[t.Payout]):
    def payment_advice(self, id: str) -> t.PaymentAdviceDocument:
        return cast(t.PaymentAdviceDocument, self._client.request("GET", f"{self._path}/{id}/payment_advice"))


class Refunds(Resource[t.Refund]):
    def update(self, id: str, *, idempotency_key: str | None = None, **body: Unpack[t.DeclareRefundAddress]) -> t.Refund:
        """Declares where the refund goes."""
        return cast(t.Refund, self._post(f"/{id}", body, idempotency_key))


class Events(Resource[t.Event]):
    def checkpoint(self) -> t.EventCheckpoint:
        return cast(t.EventCheckpoint, self._client.request("GET", f"{self._path}/checkpoint"))

    def follow(self, after: str | None = None, *, wait_seconds: int = 20) -> Iterator[t.Event]:
        """Iterates over events after an ID, oldest first, and waits for new ones: it never ends by itself.

        Store the ID of each event together with what you did about it, and go on from it: none is missed.
        """
        while True:
            query = {"limit": PAGE_OBJECTS, "wait": wait_seconds, "starting_after": after}
            for event in self._client.request("GET", self._path, query=query)["data"]:
                yield event
                after = event["id"]


class WebhookEndpoints(Resource[t.WebhookEndpoint]):
    def create(self, *, idempotency_key: str | None = None, **body: Unpack[t.CreateWebhookEndpoint]) -> t.WebhookEndpoint:
        """The answer shows the secret, this once."""
        return cast(t.WebhookEndpoint, self._post("", body, idempotency_key))

    def update(self, id: str, *, idempotency_key: str | None = None, **body: Unpack[t.UpdateWebhookEndpoint]) -> t.WebhookEndpoint:
        return cast(t.WebhookEndpoint, self._post(f"/{id}", body, idempotency_key))

    def delete(self, id: str) -> t.DeletedWebhookEndpoint:
        return cast(t.DeletedWebhookEndpoint, self._client.request("DELETE", f"{self._path}/{id}"))

    def rotate_secret(self, id: str, *, idempotency_key: str | None = None, **body: Unpack[t.RotateWebhookSecret]) -> t.WebhookEndpoint:
        return cast(t.WebhookEndpoint, self._post(f"/{id}/rotate_secret", body, idempotency_key))

    def replay(self, id: str, *, idempotency_key: str | None = None, **body: Unpack[t.ReplayWebhooks]) -> t.WebhookReplay:
        return cast(t.WebhookReplay, self._post(f"/{id}/replay", body, idempotency_key))

    def drill(self, id: str, *, idempotency_key: str | None = None) -> t.WebhookDrill:
        """Starts a drill of the endpoint."""
        return cast(t.WebhookDrill, self._post(f"/{id}/drill", None, idempotency_key))

    def retrieve_drill(self, id: str) -> t.WebhookDrill:
        return cast(t.WebhookDrill, self._client.request("GET", f"{self._path}/{id}/drill"))

    def deliveries(self, id: str, **query: Any) -> Iterator[t.WebhookDelivery]:
        return self._pages(f"{self._path}/{id}/deliveries", query)


class TestHelpers:
    """Moves the simulated world; test keys only."""

    __test__ = False

    def __init__(self, client: Client) -> None:
        self._client = client

    def _post(self, path: str, body: Any = None) -> Any:
        return self._client.request("POST", f"/v1/test_helpers/{path}", body=body)

    def deposit(self, transfer_id: str, **body: Unpack[t.SimulateDeposit]) -> t.Deposit:
        return cast(t.Deposit, self._post(f"transfers/{transfer_id}/deposit", body))

    def advance_clock(self, seconds: int) -> t.TestClock:
        return cast(t.TestClock, self._post("clock", {"advance_seconds": seconds}))

    def start_chaos(self, **body: Unpack[t.StartChaos]) -> t.ChaosProfile:
        """Lets the sandbox attack this key's requests, and one webhook endpoint, for a while."""
        return cast(t.ChaosProfile, self._post("chaos", body))

    def retrieve_chaos(self) -> t.ChaosProfile:
        return cast(t.ChaosProfile, self._client.request("GET", "/v1/test_helpers/chaos"))

    def stop_chaos(self) -> t.ChaosProfile:
        return cast(t.ChaosProfile, self._post("chaos/stop"))

    def chaos_report(self) -> t.ChaosReport:
        """What the sandbox saw this key's program do, graded."""
        return cast(t.ChaosReport, self._client.request("GET", "/v1/test_helpers/chaos/report"))

    def activate_beneficiary(self, id: str) -> t.Beneficiary:
        return cast(t.Beneficiary, self._post(f"beneficiaries/{id}/activate"))

    def reject_beneficiary(self, id: str) -> t.Beneficiary:
        return cast(t.Beneficiary, self._post(f"beneficiaries/{id}/reject"))

    def require_beneficiary_input(self, id: str) -> t.Beneficiary:
        return cast(t.Beneficiary, self._post(f"beneficiaries/{id}/require_input"))

    def settle_payout(self, id: str) -> t.Payout:
        return cast(t.Payout, self._post(f"payouts/{id}/settle"))

    def fail_payout(self, id: str, **body: Unpack[t.SimulateFailure]) -> t.Payout:
        return cast(t.Payout, self._post(f"payouts/{id}/fail", body))

    def return_payout(self, id: str, **body: Unpack[t.SimulateFailure]) -> t.Payout:
        return cast(t.Payout, self._post(f"payouts/{id}/return", body))

    def complete_refund(self, id: str) -> t.Refund:
        return cast(t.Refund, self._post(f"refunds/{id}/complete"))
