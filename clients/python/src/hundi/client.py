# Made from async_client.py by clients/generate.py. Do not edit.
"""The client: one attribute a resource, one method an operation."""

from __future__ import annotations

import builtins
import copy
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar, cast

import httpx
from typing_extensions import Unpack

from . import types as t
from . import wire
from .errors import ConnectionFailed, ConnectionTimedOut

T = TypeVar("T")


class Client:
    """Calls the service with one API key: the argument, or HUNDI_API_KEY, or what the file HUNDI_API_KEY_FILE holds.

    The service's address is `base_url`, or HUNDI_BASE_URL. `attempts_max` bounds the attempts of one call, `timeout`
    the seconds of one attempt. `app_info` names your program to the operator, such as `shop/1.4`. `http_client` is for
    a proxy or certificates of your own. `sleep` is for tests.
    """

    def __init__(
        self,
        api_key: str | None = None,
        *,
        base_url: str | None = None,
        attempts_max: int = wire.ATTEMPTS_MAX,
        timeout: float = wire.TIMEOUT_SECONDS,
        app_info: str | None = None,
        http_client: httpx.Client | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._headers = wire.headers_of(wire.find_key(api_key), app_info)
        self._url = wire.find_url(base_url)
        self._http = http_client or httpx.Client()
        self._attempts_max = max(1, attempts_max)
        self._timeout = timeout
        self._sleep = sleep
        self._make_resources()

    def _make_resources(self) -> None:
        self.balance = Balance(self)
        self.beneficiaries = Beneficiaries(self, "beneficiaries")
        self.corridors = Corridors(self)
        self.senders = Senders(self, "senders")
        self.quote_locks = QuoteLocks(self, "quote_locks")
        self.transfers = Transfers(self, "transfers")
        self.deposits = Deposits(self, "deposits")
        self.payouts = Payouts(self, "payouts")
        self.refunds = Refunds(self, "refunds")
        self.statements = Statements(self)
        self.events = Events(self, "events")
        self.webhook_endpoints = WebhookEndpoints(self, "webhook_endpoints")
        self.test_helpers = TestHelpers(self)

    def with_options(self, *, attempts_max: int | None = None, timeout: float | None = None) -> Client:
        """This client with other options, for one call or several. It uses the same connections."""
        other = copy.copy(self)
        other._attempts_max = self._attempts_max if attempts_max is None else max(1, attempts_max)
        other._timeout = self._timeout if timeout is None else timeout
        other._make_resources()
        return other

    @property
    def last_response(self) -> wire.Response | None:
        """The last answer in this thread, or in this task: status, headers and request ID."""
        return wire.last_response.get()

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def request(
        self,
        method: str,
        path: str,
        *,
        body: dict[str, Any] | None = None,
        query: dict[str, Any] | None = None,
        idempotency_key: str | None = None,
        accept: str = wire.JSON,
    ) -> Any:
        """Sends a request until its answer is one that a retry would not change."""
        headers = self._headers.copy()
        headers["Accept"] = accept
        if method == "POST":
            idempotency_key = idempotency_key or str(uuid.uuid4())
            headers["Idempotency-Key"] = idempotency_key
        json = wire.to_wire(body or {}) if method == "POST" else None
        params = wire.to_query(query)
        for attempt in range(1, self._attempts_max + 1):
            answer = None
            try:
                answer = self._http.request(
                    method, self._url + path, json=json, params=params, headers=headers, timeout=self._timeout
                )
            except httpx.TransportError as error:
                if attempt == self._attempts_max:
                    kind = ConnectionTimedOut if isinstance(error, httpx.TimeoutException) else ConnectionFailed
                    raise kind(error, idempotency_key) from error
            else:
                if attempt == self._attempts_max or not wire.is_worth_a_retry(answer):
                    return wire.take(answer, idempotency_key)
            self._sleep(wire.pause_after(attempt, answer))
        raise AssertionError("the last attempt returns or raises")


class Pager(Generic[T]):
    """All objects of a list, which is asked for page by page. `pages()` are the pages."""

    def __init__(self, client: Client, path: str, query: dict[str, Any]) -> None:
        self._client = client
        self._path = path
        self._query = {"limit": wire.PAGE_OBJECTS, **query}

    def pages(self) -> Iterator[wire.Page[T]]:
        query = dict(self._query)
        cursor = "ending_before" if "ending_before" in query else "starting_after"
        while True:
            page = self._client.request("GET", self._path, query=query)
            yield wire.Page(page["data"], page["has_next"])
            if not page["has_next"]:
                return
            query[cursor] = page["data"][-1]["id"]

    def __iter__(self) -> Iterator[T]:
        for page in self.pages():
            for found in page.data:
                yield found


class Resource(Generic[T]):
    """A kind of object that can be read.

    `list` of each kind is all objects, oldest first. Filters of the API are keywords, such as `status="funding"` or
    `created={"gte": 1790000000}`.
    """

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self._path = f"/v1/{name}"

    def retrieve(self, id: str) -> T:
        return cast(T, self._get(id))

    def _list(self, query: Any, below: str = "") -> Pager[Any]:
        return Pager[Any](self._client, self._path + below, query)

    def _get(self, id: str, below: str = "", **options: Any) -> Any:
        return self._client.request("GET", f"{self._path}/{wire.segment(id)}{below}", **options)

    def _make(self, body: Any, idempotency_key: str | None, below: str = "") -> Any:
        return self._client.request("POST", self._path + below, body=body, idempotency_key=idempotency_key)

    def _post(self, id: str, below: str, body: Any, idempotency_key: str | None) -> Any:
        path = f"{self._path}/{wire.segment(id)}{below}"
        return self._client.request("POST", path, body=body, idempotency_key=idempotency_key)


class Balance:
    def __init__(self, client: Client) -> None:
        self._client = client

    def retrieve(self) -> t.Balance:
        return cast(t.Balance, self._client.request("GET", "/v1/balance"))


class Corridors:
    def __init__(self, client: Client) -> None:
        self._client = client

    def list(self) -> builtins.list[t.Corridor]:
        """What can be sent where, with the limits of an amount."""
        answer = cast(t.CorridorList, self._client.request("GET", "/v1/corridors"))
        return answer["data"]


class Statements:
    def __init__(self, client: Client) -> None:
        self._client = client

    def retrieve(self, from_: int | None = None, to: int | None = None) -> t.Statement:
        """What transfers moved in a period, from one Unix second up to another."""
        query = {"from": from_, "to": to}
        return cast(t.Statement, self._client.request("GET", "/v1/statements", query=query))

    def retrieve_csv(self, from_: int | None = None, to: int | None = None) -> str:
        """The same for a spreadsheet."""
        query = {"from": from_, "to": to, "format": "csv"}
        return cast(str, self._client.request("GET", "/v1/statements", query=query, accept=wire.CSV))


class Beneficiaries(Resource[t.Beneficiary]):
    def list(self, **query: Unpack[t.ListBeneficiaries]) -> Pager[t.Beneficiary]:
        return self._list(query)

    def create(self, *, idempotency_key: str | None = None, **body: Unpack[t.CreateBeneficiary]) -> t.Beneficiary:
        return cast(t.Beneficiary, self._make(body, idempotency_key))

    def update(
        self, id: str, *, idempotency_key: str | None = None, **body: Unpack[t.UpdateBeneficiary]
    ) -> t.Beneficiary:
        return cast(t.Beneficiary, self._post(id, "", body, idempotency_key))

    def validate(
        self, *, idempotency_key: str | None = None, **body: Unpack[t.ValidateBeneficiary]
    ) -> t.BeneficiaryValidation:
        """Checks the details of a beneficiary and creates none."""
        return cast(t.BeneficiaryValidation, self._make(body, idempotency_key, "/validate"))


class Senders(Resource[t.Sender]):
    def list(self, **query: Unpack[t.ListSenders]) -> Pager[t.Sender]:
        return self._list(query)

    def create(self, *, idempotency_key: str | None = None, **body: Unpack[t.CreateSender]) -> t.Sender:
        return cast(t.Sender, self._make(body, idempotency_key))


class QuoteLocks(Resource[t.QuoteLock]):
    def list(self, **query: Unpack[t.ListQuoteLocks]) -> Pager[t.QuoteLock]:
        return self._list(query)

    def create(self, *, idempotency_key: str | None = None, **body: Unpack[t.CreateQuoteLock]) -> t.QuoteLock:
        return cast(t.QuoteLock, self._make(body, idempotency_key))


class Transfers(Resource[t.Transfer]):
    def list(self, **query: Unpack[t.ListTransfers]) -> Pager[t.Transfer]:
        return self._list(query)

    def create(self, *, idempotency_key: str | None = None, **body: Unpack[t.CreateTransfer]) -> t.Transfer:
        return cast(t.Transfer, self._make(body, idempotency_key))

    def cancel(self, id: str, *, idempotency_key: str | None = None) -> t.Transfer:
        return cast(t.Transfer, self._post(id, "/cancel", None, idempotency_key))

    def resolve_funding(
        self, id: str, *, idempotency_key: str | None = None, **body: Unpack[t.ResolveFunding]
    ) -> t.Transfer:
        return cast(t.Transfer, self._post(id, "/resolve_funding", body, idempotency_key))

    def diagnose_funding(
        self, id: str, *, idempotency_key: str | None = None, **body: Unpack[t.DiagnoseFunding]
    ) -> t.FundingDiagnosis:
        return cast(t.FundingDiagnosis, self._post(id, "/funding/diagnose", body, idempotency_key))


class Deposits(Resource[t.Deposit]):
    def list(self, **query: Unpack[t.ListDeposits]) -> Pager[t.Deposit]:
        return self._list(query)


class Payouts(Resource[t.Payout]):
    def list(self, **query: Unpack[t.ListPayouts]) -> Pager[t.Payout]:
        return self._list(query)

    def payment_advice(self, id: str) -> t.PaymentAdviceDocument:
        """The signed receipt."""
        return cast(t.PaymentAdviceDocument, self._get(id, "/payment_advice"))

    def payment_advice_pdf(self, id: str) -> bytes:
        """The receipt as a page to print."""
        return cast(bytes, self._get(id, "/payment_advice", accept=wire.PDF))


class Refunds(Resource[t.Refund]):
    def list(self, **query: Unpack[t.ListRefunds]) -> Pager[t.Refund]:
        return self._list(query)

    def update(
        self, id: str, *, idempotency_key: str | None = None, **body: Unpack[t.DeclareRefundAddress]
    ) -> t.Refund:
        """Declares where the refund goes."""
        return cast(t.Refund, self._post(id, "", body, idempotency_key))


class Events(Resource[t.Event]):
    def list(self, **query: Unpack[t.ListEvents]) -> Pager[t.Event]:
        return self._list(query)

    def checkpoint(self, event_id: str | None = None) -> t.EventCheckpoint:
        """Count and chained hash of all events up to a given event, or up to the newest."""
        query = {"event_id": event_id}
        return cast(t.EventCheckpoint, self._client.request("GET", f"{self._path}/checkpoint", query=query))

    def follow(self, after: str | None = None, *, wait_seconds: int = 20) -> Iterator[t.Event]:
        """Iterates over events after an ID, oldest first, and waits for new ones: it never ends by itself.

        Store the ID of each event together with what you did about it, and go on from it: none is missed.
        """
        while True:
            query = {"limit": wire.PAGE_OBJECTS, "wait": wait_seconds, "starting_after": after}
            page = self._client.request("GET", self._path, query=query)
            for event in page["data"]:
                yield event
                after = event["id"]


class WebhookEndpoints(Resource[t.WebhookEndpoint]):
    def list(self, **query: Unpack[t.ListWebhookEndpoints]) -> Pager[t.WebhookEndpoint]:
        return self._list(query)

    def create(
        self, *, idempotency_key: str | None = None, **body: Unpack[t.CreateWebhookEndpoint]
    ) -> t.WebhookEndpoint:
        """The answer shows the secret, this once."""
        return cast(t.WebhookEndpoint, self._make(body, idempotency_key))

    def update(
        self, id: str, *, idempotency_key: str | None = None, **body: Unpack[t.UpdateWebhookEndpoint]
    ) -> t.WebhookEndpoint:
        return cast(t.WebhookEndpoint, self._post(id, "", body, idempotency_key))

    def delete(self, id: str) -> t.DeletedWebhookEndpoint:
        path = f"{self._path}/{wire.segment(id)}"
        return cast(t.DeletedWebhookEndpoint, self._client.request("DELETE", path))

    def rotate_secret(
        self, id: str, *, idempotency_key: str | None = None, **body: Unpack[t.RotateWebhookSecret]
    ) -> t.WebhookEndpoint:
        return cast(t.WebhookEndpoint, self._post(id, "/rotate_secret", body, idempotency_key))

    def replay(
        self, id: str, *, idempotency_key: str | None = None, **body: Unpack[t.ReplayWebhooks]
    ) -> t.WebhookReplay:
        return cast(t.WebhookReplay, self._post(id, "/replay", body, idempotency_key))

    def drill(self, id: str, *, idempotency_key: str | None = None) -> t.WebhookDrill:
        """Starts a drill of the endpoint."""
        return cast(t.WebhookDrill, self._post(id, "/drill", None, idempotency_key))

    def retrieve_drill(self, id: str) -> t.WebhookDrill:
        return cast(t.WebhookDrill, self._get(id, "/drill"))

    def list_deliveries(
        self, id: str, **query: Unpack[t.ListWebhookEndpointDeliveries]
    ) -> Pager[t.WebhookDelivery]:
        """Each attempt to deliver, with what your receiver answered."""
        return self._list(query, f"/{wire.segment(id)}/deliveries")


class TestHelpers:
    """Moves the simulated world; test keys only."""

    __test__ = False

    def __init__(self, client: Client) -> None:
        self.beneficiaries = BeneficiaryHelpers(client, "beneficiaries")
        self.chaos = Chaos(client, "chaos")
        self.clock = Clock(client, "clock")
        self.payouts = PayoutHelpers(client, "payouts")
        self.refunds = RefundHelpers(client, "refunds")
        self.transfers = TransferHelpers(client, "transfers")


class Helper:
    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self._path = f"/v1/test_helpers/{name}"

    def _move(self, id: str, verb: str, body: Any, idempotency_key: str | None) -> Any:
        path = f"{self._path}/{wire.segment(id)}/{verb}"
        return self._client.request("POST", path, body=body, idempotency_key=idempotency_key)


class BeneficiaryHelpers(Helper):
    def activate(self, id: str, *, idempotency_key: str | None = None) -> t.Beneficiary:
        return cast(t.Beneficiary, self._move(id, "activate", None, idempotency_key))

    def reject(self, id: str, *, idempotency_key: str | None = None) -> t.Beneficiary:
        return cast(t.Beneficiary, self._move(id, "reject", None, idempotency_key))

    def require_input(self, id: str, *, idempotency_key: str | None = None) -> t.Beneficiary:
        return cast(t.Beneficiary, self._move(id, "require_input", None, idempotency_key))


class TransferHelpers(Helper):
    def deposit(
        self, id: str, *, idempotency_key: str | None = None, **body: Unpack[t.SimulateDeposit]
    ) -> t.Deposit:
        """The payer sends USDT: what is missing, unless the body says how much."""
        return cast(t.Deposit, self._move(id, "deposit", body, idempotency_key))


class PayoutHelpers(Helper):
    def settle(self, id: str, *, idempotency_key: str | None = None) -> t.Payout:
        return cast(t.Payout, self._move(id, "settle", None, idempotency_key))

    def fail(
        self, id: str, *, idempotency_key: str | None = None, **body: Unpack[t.SimulateFailure]
    ) -> t.Payout:
        return cast(t.Payout, self._move(id, "fail", body, idempotency_key))

    def return_(
        self, id: str, *, idempotency_key: str | None = None, **body: Unpack[t.SimulateFailure]
    ) -> t.Payout:
        """The beneficiary's bank sends the money back. The method's name ends with `_`, as `return` is a keyword."""
        return cast(t.Payout, self._move(id, "return", body, idempotency_key))


class RefundHelpers(Helper):
    def complete(self, id: str, *, idempotency_key: str | None = None) -> t.Refund:
        return cast(t.Refund, self._move(id, "complete", None, idempotency_key))


class Clock(Helper):
    def advance(self, seconds: int, *, idempotency_key: str | None = None) -> t.TestClock:
        """Moves the account's test clock forward."""
        body = {"advance_seconds": seconds}
        answer = self._client.request("POST", self._path, body=body, idempotency_key=idempotency_key)
        return cast(t.TestClock, answer)


class Chaos(Helper):
    def start(self, *, idempotency_key: str | None = None, **body: Unpack[t.StartChaos]) -> t.ChaosProfile:
        """Lets the sandbox attack this key's requests, and one webhook endpoint, for a while."""
        answer = self._client.request(
            "POST", self._path, body=cast(dict[str, Any], body), idempotency_key=idempotency_key
        )
        return cast(t.ChaosProfile, answer)

    def retrieve(self) -> t.ChaosProfile:
        return cast(t.ChaosProfile, self._client.request("GET", self._path))

    def stop(self, *, idempotency_key: str | None = None) -> t.ChaosProfile:
        answer = self._client.request("POST", f"{self._path}/stop", idempotency_key=idempotency_key)
        return cast(t.ChaosProfile, answer)

    def report(self) -> t.ChaosReport:
        """What the sandbox saw this key's program do, graded."""
        return cast(t.ChaosReport, self._client.request("GET", f"{self._path}/report"))
