"""The client for asyncio, against a real server. The other client is made from it, so these tests are few."""

import asyncio
import os
import time

import httpx
import pytest

import hundi

BENEFICIARY = {"name": "Asha Rao", "account_number": "50100012345678", "ifsc": "HDFC0000001", "account_type": "nre"}
SENDER = {"name": "Ravi Rao", "type": "individual", "country": "AE"}
WAIT_SECONDS_MAX = 30


def run(program):
    async def with_client():
        async with hundi.AsyncClient(os.environ["HUNDI_API_KEY"], base_url=os.environ["HUNDI_BASE_URL"]) as client:
            return await program(client)

    return asyncio.run(with_client())


def test_calls_go_side_by_side():
    async def program(client):
        made = await asyncio.gather(*(client.senders.create(**SENDER) for _ in range(5)))
        ids = sorted(sender["id"] for sender in made)
        found = [sender["id"] async for sender in client.senders.list(limit=2, starting_after=ids[0])]
        pages = [page async for page in client.senders.list(limit=2, starting_after=ids[0]).pages()]
        return ids, found, pages

    ids, found, pages = run(program)
    assert found == ids[1:] and [page.has_next for page in pages] == [True, False]


def test_each_task_sees_its_own_answer():
    async def program(client):
        async def one():
            sender = await client.senders.create(**SENDER)
            await asyncio.sleep(0)
            return sender == client.last_response.data

        return await asyncio.gather(*(one() for _ in range(5)))

    assert run(program) == [True] * 5


def test_events_are_followed():
    async def program(client):
        last = [event["id"] async for event in client.events.list()][-1:]
        made = await client.beneficiaries.create(**BENEFICIARY)
        async for event in client.events.follow(last[0] if last else None, wait_seconds=5):
            if event["linked_id"] == made["id"]:
                return event["type"]

    assert run(program) == "beneficiary.status.verifying"


def test_retries_keep_the_key():
    keys, pauses = [], []

    def answer(request):
        keys.append(request.headers["Idempotency-Key"])
        if len(keys) == 1:
            raise httpx.ConnectError("gone", request=request)
        return httpx.Response(503 if len(keys) == 2 else 200, json={"object": "sender"}, headers={"Retry-After": "7"})

    async def sleep(seconds):
        pauses.append(seconds)

    async def program():
        http = httpx.AsyncClient(transport=httpx.MockTransport(answer))
        client = hundi.AsyncClient("sk_test_stub", http_client=http, sleep=sleep)
        return await client.senders.create(**SENDER)

    assert asyncio.run(program()) == {"object": "sender"}
    assert len(keys) == 3 and len(set(keys)) == 1
    assert 0 < pauses[0] < 7 and pauses[1] == 7


def test_refusals_are_the_same_errors():
    async def program(client):
        with pytest.raises(hundi.BadRequestError):
            await client.beneficiaries.create(**dict(BENEFICIARY, name=""))
        with pytest.raises(TypeError):
            await client.quote_locks.create(sell_currency="USD", buy_currency="INR", amount=1.5)

    run(program)


def test_a_wait_can_be_cancelled():
    async def program(client):
        last = [event["id"] async for event in client.events.list()][-1]
        begun = time.monotonic()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                async for _ in client.events.follow(last, wait_seconds=20):
                    pass
        return time.monotonic() - begun

    assert run(program) < WAIT_SECONDS_MAX
