// For tsc: what a list's filters may be. Nothing of it is run. tsc fails where a line is right that is marked as wrong.
import type { Client, Deposit, Event, ListPayouts, Pager, Payout, Transfer, WebhookDelivery } from "../src/index.js";

export function right(client: Client, cursor: string | undefined, since: number): unknown {
  const found: Pager<Transfer> = client.transfers.list({ status: "funding", sender_id: "sender_1", order: "desc", limit: 5 });
  const deposits: Pager<Deposit> = client.deposits.list({ created: { gte: since, lt: undefined }, starting_after: cursor });
  const events: Pager<Event> = client.events.list({ type: "transfer.status.payout_settled", wait: 20 });
  const deliveries: Pager<WebhookDelivery> = client.webhookEndpoints.listDeliveries("id", { status: "failed" });
  const filters: ListPayouts = { status: "settled" };
  const payouts: Pager<Payout> = client.payouts.list(filters);
  return [found, deposits, events, deliveries, payouts];
}

export function wrong(client: Client): void {
  // @ts-expect-error
  client.transfers.list({ status: "fundng" });
  // @ts-expect-error
  client.transfers.list({ sender: "sender_1" });
  // @ts-expect-error
  client.senders.list({ status: "active" });
  // @ts-expect-error
  client.deposits.list({ created: { since: 1790000000 } });
  // @ts-expect-error
  client.deposits.list({ created: { gte: "2026-11-01" } });
  // @ts-expect-error
  client.events.list({ type: "transfer.status.paid" });
  // @ts-expect-error
  client.refunds.list({ limit: "5" });
  // @ts-expect-error
  client.webhookEndpoints.listDeliveries("id", { status: "enabled" });
  // @ts-expect-error
  client.quoteLocks.list({ order: "newest" });
}
