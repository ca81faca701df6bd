"""For mypy, which `clients/run.sh` runs over this file: what a list's filters may be. Nothing of it is run.

With `--strict`, mypy fails where a line is right that is marked as wrong.
"""

import hundi
from hundi import types as t


def right(client: hundi.Client, cursor: str | None, since: int) -> list[str]:
    found: list[t.Transfer] = list(client.transfers.list(status="funding", sender_id="sender_1", order="desc", limit=5))
    deposits: list[t.Deposit] = list(client.deposits.list(created={"gte": since, "lt": None}, starting_after=cursor))
    events: list[t.Event] = list(client.events.list(type="transfer.status.payout_settled", wait=20))
    deliveries: list[t.WebhookDelivery] = list(client.webhook_endpoints.list_deliveries("id", status="failed"))
    filters: t.ListPayouts = {"status": "settled"}
    payouts: list[t.Payout] = list(client.payouts.list(**filters))
    return [each["id"] for each in found] + [str((deposits, events, deliveries, payouts))]


def wrong(client: hundi.Client, asynchronous: hundi.AsyncClient) -> None:
    client.transfers.list(status="fundng")  # type: ignore[arg-type]
    client.transfers.list(sender="sender_1")  # type: ignore[call-arg]
    client.senders.list(status="active")  # type: ignore[call-arg]
    client.deposits.list(created={"since": 1790000000})  # type: ignore[arg-type]
    client.deposits.list(created={"gte": "2026-11-01"})  # type: ignore[arg-type]
    client.events.list(type="transfer.status.paid")  # type: ignore[arg-type]
    client.refunds.list(limit="5")  # type: ignore[arg-type]
    client.webhook_endpoints.list_deliveries("id", status="enabled")  # type: ignore[arg-type]
    asynchronous.quote_locks.list(order="newest")  # type: ignore[arg-type]
