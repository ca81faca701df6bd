"""What callers know from the clients of other services: options of one call, kinds of errors, pages, the whole answer."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version

import httpx
import pytest

import hundi


class Stub:
    """A server that gives the same answer to everything, and keeps what it was asked."""

    def __init__(self, status=200, body='{"object": "list", "data": [], "has_next": false}', **headers):
        self.asked = []
        stub = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                stub.asked.append((self.command, self.path, dict(self.headers)))
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                self.send_response(status)
                for name, value in {"Content-Type": "application/json", **headers}.items():
                    self.send_header(name.replace("_", "-"), value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body.encode())

            do_POST = do_GET

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def client(self, **options):
        return hundi.Client("sk_test_stub", base_url=self.url, sleep=lambda _: None, **options)


def refusal(code):
    return json.dumps({"object": "error", "errors": [{"code": code, "message": "No.", "metadata": {}}]})


@pytest.mark.parametrize("status, kind, attempts", [
    (400, hundi.BadRequestError, 1), (401, hundi.AuthenticationError, 1), (403, hundi.PermissionDeniedError, 1),
    (404, hundi.NotFoundError, 1), (409, hundi.ConflictError, 1), (418, hundi.ApiError, 1),
    (429, hundi.RateLimitError, 3), (500, hundi.ServerError, 3), (503, hundi.ServerError, 3)])
def test_each_status_has_its_error(status, kind, attempts):
    stub = Stub(status, refusal("some_code"), Retry_After="0", Request_Id="request_1")
    with pytest.raises(hundi.ApiError) as error:
        stub.client(attempts_max=3).senders.create(name="Ravi Rao", type="individual", country="AE", idempotency_key="a key of mine")
    assert type(error.value) is kind and len(stub.asked) == attempts
    assert (error.value.codes, error.value.request_id) == (["some_code"], "request_1")
    assert error.value.idempotency_key == "a key of mine", "a caller can send it again"
    assert error.value.headers["Retry-After"] == "0"


def test_an_answer_that_is_no_json_is_an_error_and_not_sent_again():
    stub = Stub(200, "<html>a proxy's page</html>", Content_Type="text/html")
    with pytest.raises(hundi.ApiError, match="not JSON"):
        stub.client().balance.retrieve()
    assert len(stub.asked) == 1


def test_options_of_one_call_leave_the_client_alone():
    stub = Stub(503, refusal("service_unavailable"))
    client = stub.client(attempts_max=4)
    with pytest.raises(hundi.ServerError):
        client.with_options(attempts_max=1, timeout=5).balance.retrieve()
    assert len(stub.asked) == 1
    with pytest.raises(hundi.ServerError):
        client.balance.retrieve()
    assert len(stub.asked) == 1 + 4


def test_a_time_out_is_told_from_another_failure():
    def never(request):
        assert request.extensions["timeout"]["read"] == 0.25
        raise httpx.ReadTimeout("no answer", request=request)

    client = hundi.Client("sk_test_stub", http_client=httpx.Client(transport=httpx.MockTransport(never)), attempts_max=1)
    with pytest.raises(hundi.ConnectionTimedOut) as failure:
        client.with_options(timeout=0.25).test_helpers.clock.advance(1, idempotency_key="a key of mine")
    assert isinstance(failure.value, hundi.ConnectionFailed) and failure.value.idempotency_key == "a key of mine"


def test_the_whole_answer_can_be_seen(client):
    body = {"name": "Ravi Rao", "type": "individual", "country": "AE", "idempotency_key": "the whole answer can be seen"}
    first = client.senders.create(**body)
    assert client.last_response.status == 200 and not client.last_response.is_replayed
    assert client.last_response.request_id.startswith("request_") and client.last_response.data == first
    assert client.senders.create(**body) == first and client.last_response.is_replayed
    with pytest.raises(hundi.NotFoundError):
        client.senders.retrieve("sender_01M818H3D0S3QZTV7KY4ZHFPM7")
    assert client.last_response.status == 404
    seen = []
    other = threading.Thread(target=lambda: seen.append(client.last_response))
    other.start()
    other.join()
    assert seen == [None], "the answers of another thread are not seen"


def test_lists_have_pages(client):
    made = [client.senders.create(name=f"Page {number}", type="individual", country="AE")["id"] for number in range(5)]
    pages = list(client.senders.list(limit=2, starting_after=made[0]).pages())
    assert [[sender["id"] for sender in page.data] for page in pages] == [made[1:3], made[3:5]]
    assert [page.has_next for page in pages] == [True, False]
    again = client.senders.list(limit=2, starting_after=made[2])
    assert [sender["id"] for sender in again] == [sender["id"] for sender in again] == made[3:]


def test_filters_are_keywords():
    stub = Stub()
    list(stub.client().transfers.list(status="funding", created={"gte": 1, "lt": None}, reference=None))
    [(_, path, _)] = stub.asked
    assert path == "/v1/transfers?limit=100&status=funding&created.gte=1"


@pytest.mark.parametrize("id, path", [("../keys", "/v1/transfers/..%2Fkeys"), ("a?b#c", "/v1/transfers/a%3Fb%23c")])
def test_an_id_stays_one_part_of_the_path(id, path):
    stub = Stub(404, refusal("object_not_found"))
    for call in (stub.client().transfers.retrieve, lambda id: stub.client().transfers.cancel(id)):
        with pytest.raises(hundi.NotFoundError):
            call(id)
    assert [asked for _, asked, _ in stub.asked] == [path, f"{path}/cancel"]


def test_an_empty_id_is_refused():
    stub = Stub()
    for call in (stub.client().transfers.retrieve, stub.client().webhook_endpoints.delete, stub.client().test_helpers.payouts.settle):
        with pytest.raises(ValueError):
            call("")
    assert stub.asked == []


def test_the_service_learns_who_asks(monkeypatch):
    stub = Stub()
    monkeypatch.setenv("HUNDI_BASE_URL", stub.url + "/")
    list(hundi.Client("sk_test_stub", app_info="shop/1.4").senders.list())
    [(_, path, headers)] = stub.asked
    assert path == "/v1/senders?limit=100", "the address comes from HUNDI_BASE_URL"
    assert headers["User-Agent"].startswith(f"hundi-python/{version('hundi')} python/3.") and headers["User-Agent"].endswith(" shop/1.4")


def test_statements_and_the_checkpoint(client):
    list(client.events.list())
    begun = int(time.time()) - 3600
    statement = client.statements.retrieve(from_=begun)
    assert statement["object"] == "statement"
    assert client.statements.retrieve_csv(from_=begun).count("\n") > 3
    events = list(client.events.list())
    assert client.events.checkpoint(events[0]["id"])["events_count"] == 1
    assert [corridor["buy_currency"] for corridor in client.corridors.list()] == ["INR"]


def test_the_advice_as_a_page(client):
    settled = next(iter(client.payouts.list(status="settled")))
    assert client.payouts.payment_advice(settled["id"])["payout_id"] == settled["id"]
    assert client.payouts.payment_advice_pdf(settled["id"]).startswith(b"%PDF-")
