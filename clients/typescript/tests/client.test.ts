// Against a real server, which HUNDI_BASE_URL and HUNDI_API_KEY name, and through a proxy that breaks what a network breaks.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { type IncomingHttpHeaders, type IncomingMessage, type Server, type ServerResponse, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";

import { ApiError, Client, ConnectionFailed, WebhookVerificationError, verifyWebhook } from "../src/index.js";

const url = process.env.HUNDI_BASE_URL ?? "";
const key = process.env.HUNDI_API_KEY ?? "";
const client = new Client(key, { baseUrl: url });
const BENEFICIARY = { name: "Asha Rao", account_number: "50100012345678", ifsc: "HDFC0000001", account_type: "nre" } as const;
const SENDER = { name: "Ravi Rao", type: "individual", country: "AE" } as const;
const WAIT_MILLISECONDS_MAX = 30_000;

async function until<T>(what: string, probe: () => Promise<T | undefined> | T | undefined): Promise<T> {
  const end = Date.now() + WAIT_MILLISECONDS_MAX;
  for (;;) {
    const found = await probe();
    if (found !== undefined) return found;
    assert.ok(Date.now() < end, `waited in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

async function bytesOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

/** A server of the test on a free port. */
async function serve(answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<{ server: Server; url: string }> {
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

test("six steps lead to a UTR", async () => {
  const beneficiary = await client.beneficiaries.create(BENEFICIARY);
  await until("the beneficiary", async () => ((await client.beneficiaries.retrieve(beneficiary.id)).status === "active" ? true : undefined));
  const sender = await client.senders.create(SENDER);
  const lock = await client.quoteLocks.create({ sell_currency: "USD", buy_currency: "INR", amount: "1000.00" });
  const transfer = await client.transfers.create({
    sender_id: sender.id, beneficiary_id: beneficiary.id, quote_lock_id: lock.id, amount: "1000.00", currency: "USD",
    payout_currency: "INR", funding: { rail: "stablecoin", asset: "USDT", chain: "tron" },
  });
  await client.testHelpers.transfers.deposit(transfer.id);
  const settled = await until("the payout", async () => {
    const found = await client.transfers.retrieve(transfer.id);
    return found.status === "payout_settled" ? found : undefined;
  });
  assert.match(settled.payout?.unique_transaction_reference ?? "", /^TEST/);
  assert.equal((await all(client.deposits.list({ transfer_id: transfer.id }))).length, 1);
});

test("lists page through all objects, both ways", async () => {
  const made: string[] = [];
  for (let number = 0; number < 5; number += 1) made.push((await client.senders.create(SENDER)).id);
  const newer = await all(client.senders.list({ limit: 2, starting_after: made[0] }));
  assert.deepEqual(newer.map((sender) => sender.id), made.slice(1));
  const older = await all(client.senders.list({ limit: 2, ending_before: made[2] }));
  assert.deepEqual(older.slice(0, 2).map((sender) => sender.id), [made[1], made[0]]);
});

test("refusals tell every problem and are not retried", async () => {
  const pauses: number[] = [];
  const impatient = new Client(key, { baseUrl: url, sleep: async (seconds) => { pauses.push(seconds); } });
  await assert.rejects(impatient.beneficiaries.create({ ...BENEFICIARY, ifsc: "nonsense", name: "" }), (error) => {
    assert.ok(error instanceof ApiError);
    assert.deepEqual([error.status, error.codes.sort(), error.newKeyRequired], [400, ["parameter_empty", "parameter_min_length_invalid"], false]);
    assert.match(error.requestId ?? "", /^request_/);
    return true;
  });
  assert.deepEqual(pauses, []);
});

type Fault = "lost" | number;

async function proxy(faults: Fault[]): Promise<{ server: Server; url: string; keys: string[] }> {
  const keys: string[] = [];
  const made = await serve(async (request, response) => {
    const body = await bytesOf(request);
    keys.push(String(request.headers["idempotency-key"]));
    const fault = faults.shift();
    if (typeof fault === "number") {
      response.writeHead(fault, { "Retry-After": "0" });
      response.end(JSON.stringify({ object: "error", errors: [{ code: "resource_locked", message: "", metadata: {} }] }));
      return;
    }
    const { authorization = "", "content-type": type = "" } = request.headers;
    const headers = { authorization, "content-type": type, "idempotency-key": keys.at(-1) ?? "" };
    const answer = await fetch(url + request.url, { method: request.method ?? "", headers, body: new Uint8Array(body) });
    const text = await answer.text();
    // The effect has happened, and nobody learns of it.
    if (fault === "lost") request.socket.destroy();
    else response.writeHead(answer.status).end(text);
  });
  return { ...made, keys };
}

for (const faults of [["lost"], [503], [429], [409], ["lost", 503, "lost"]] as Fault[][]) {
  test(`a retry after ${faults} keeps the key and makes one effect`, async () => {
    const count = faults.length;
    const broken = await proxy([...faults]);
    const through = new Client(key, { baseUrl: broken.url, sleep: async () => {} });
    const before = (await all(client.senders.list())).length;
    const sender = await through.senders.create(SENDER);
    const made = await all(client.senders.list());
    assert.equal(made.length, before + 1);
    assert.equal(made.at(-1)?.id, sender.id);
    assert.equal(broken.keys.length, count + 1);
    assert.equal(new Set(broken.keys).size, 1);
    broken.server.closeAllConnections();
    broken.server.close();
  });
}

test("an unknown outcome names the key", async () => {
  const broken = await proxy(Array<Fault>(10).fill("lost"));
  const through = new Client(key, { baseUrl: broken.url, attemptsMax: 2, sleep: async () => {} });
  await assert.rejects(through.senders.create(SENDER, { idempotencyKey: "0123456789abcdef" }), (error) => {
    assert.ok(error instanceof ConnectionFailed);
    assert.equal(error.idempotencyKey, "0123456789abcdef");
    return true;
  });
  assert.equal(broken.keys.length, 2);
  broken.server.closeAllConnections();
  broken.server.close();
});

test("events are followed without end", async () => {
  const last = (await all(client.events.list())).at(-1)?.id;
  const made = await client.beneficiaries.create(BENEFICIARY);
  for await (const event of client.events.follow(last, 5)) {
    if (event.linked_id !== made.id) continue;
    assert.equal(event.type, "beneficiary.status.verifying");
    break;
  }
});

test("real deliveries verify", async (context) => {
  const received: Array<[Buffer, IncomingHttpHeaders]> = [];
  const { server, url: receiver } = await serve(async (request, response) => {
    received.push([await bytesOf(request), request.headers]);
    response.writeHead(200).end();
  });
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const endpoint = await client.webhookEndpoints.create({ url: receiver });
  const made = await client.beneficiaries.create(BENEFICIARY);
  // What earlier tests made can send events yet.
  const isOfMade = ([body]: [Buffer, IncomingHttpHeaders]) => JSON.parse(body.toString()).linked_id === made.id;
  const [body, headers] = await until("a delivery", () => received.find(isOfMade));
  const secret = endpoint.secret ?? "";
  assert.equal(verifyWebhook(body, headers, secret).linked_id, made.id);
  assert.throws(() => verifyWebhook(Buffer.concat([body, Buffer.from(" ")]), headers, secret), WebhookVerificationError);
  assert.throws(() => verifyWebhook(body, headers, "whsec_another"), WebhookVerificationError);
  await client.webhookEndpoints.delete(endpoint.id);
});

test("the sandbox attacks this client, and it passes", async () => {
  await client.testHelpers.chaos.start({ seed: 7, percentage: 100, delay_milliseconds: 100 });
  const made: string[] = [];
  for (let number = 0; number < 4; number += 1) made.push((await client.senders.create(SENDER)).id);
  for (const id of made.slice(0, 2)) assert.equal((await client.senders.retrieve(id)).id, id);
  await client.testHelpers.chaos.stop();
  const report = await client.testHelpers.chaos.report();
  assert.equal(report.grade, "passed", JSON.stringify(report));
  assert.equal(new Set(made).size, 4);
});

test("old and malformed deliveries are refused", () => {
  const secret = "whsec_c2VjcmV0";
  const body = '{"object":"event"}';
  const now = 1_790_000_000;
  const headers = (sentAt: number): Record<string, string> => ({
    "Webhook-Id": "event_1",
    "Webhook-Timestamp": String(sentAt),
    "Webhook-Signature": `v1,AAAA v1,${createHmac("sha256", secret).update(`event_1.${sentAt}.${body}`).digest("base64")}`,
  });
  for (const sentAt of [now - 300, now, now + 300]) assert.deepEqual(verifyWebhook(body, headers(sentAt), secret, now), { object: "event" });
  for (const sentAt of [now - 301, now + 301]) assert.throws(() => verifyWebhook(body, headers(sentAt), secret, now), WebhookVerificationError);
  for (const missing of Object.keys(headers(now))) {
    const { [missing]: _, ...rest } = headers(now);
    assert.throws(() => verifyWebhook(body, rest, secret, now), WebhookVerificationError);
  }
});
