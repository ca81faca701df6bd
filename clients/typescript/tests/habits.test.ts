// What callers know from the clients of other services: options of one call, kinds of errors, pages, the whole answer.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { type IncomingHttpHeaders, createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";

import {
  ApiError, AuthenticationError, BadRequestError, Client, type ClientOptions, ConflictError, ConnectionFailed, ConnectionTimedOut,
  NotFoundError, PermissionDeniedError, RateLimitError, ServerError,
} from "../src/index.js";

const client = new Client();
const SENDER = { name: "Ravi Rao", type: "individual", country: "AE" } as const;
const EMPTY = '{ "object": "list", "data": [], "has_next": false }';
const refusal = (code: string) => JSON.stringify({ object: "error", errors: [{ code, message: "No.", metadata: {} }] });

type Asked = { path: string; headers: IncomingHttpHeaders };

/** A server that gives the same answer to everything, and keeps what it was asked. */
async function stub(context: TestContext, status = 200, body = EMPTY, headers: Record<string, string> = {}) {
  const asked: Asked[] = [];
  const server = createServer((request, response) => {
    asked.push({ path: request.url ?? "", headers: request.headers });
    request.resume();
    response.writeHead(status, { "Content-Type": "application/json", ...headers }).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { asked, baseUrl, client: (options: ClientOptions = {}) => new Client("sk_test_stub", { baseUrl, sleep: async () => {}, ...options }) };
}

for (const [status, kind, attempts] of [
  [400, BadRequestError, 1], [401, AuthenticationError, 1], [403, PermissionDeniedError, 1], [404, NotFoundError, 1],
  [409, ConflictError, 1], [418, ApiError, 1], [429, RateLimitError, 3], [500, ServerError, 3], [503, ServerError, 3],
] as const) {
  test(`the status ${status} has its error`, async (context) => {
    const { asked, client } = await stub(context, status, refusal("some_code"), { "Retry-After": "0", "Request-Id": "request_1" });
    await assert.rejects(client({ attemptsMax: 3 }).senders.create(SENDER, { idempotencyKey: "a key of mine" }), (error) => {
      assert.ok(error instanceof ApiError);
      assert.equal((error as object).constructor, kind);
      assert.deepEqual([error.codes, error.requestId, error.idempotencyKey], [["some_code"], "request_1", "a key of mine"]);
      assert.equal(error.headers.get("retry-after"), "0");
      assert.equal(error.name, kind.name);
      return true;
    });
    assert.equal(asked.length, attempts);
  });
}

test("an answer that is no JSON is an error, and not sent again", async (context) => {
  const { asked, client } = await stub(context, 200, "<html>a proxy's page</html>", { "Content-Type": "text/html" });
  await assert.rejects(client().balance.retrieve(), (error) => error instanceof ApiError && /not JSON/.test(error.message));
  assert.equal(asked.length, 1);
});

test("options of one call leave the client alone", async (context) => {
  const { asked, client } = await stub(context, 503, refusal("service_unavailable"));
  const patient = client({ attemptsMax: 4 });
  await assert.rejects(patient.balance.retrieve({ attemptsMax: 1 }), ServerError);
  assert.equal(asked.length, 1);
  await assert.rejects(patient.withOptions({ attemptsMax: 2 }).balance.retrieve(), ServerError);
  assert.equal(asked.length, 3);
  await assert.rejects(patient.balance.retrieve(), ServerError);
  assert.equal(asked.length, 7);
});

/** Never answers, until it is told to end. */
const never: typeof fetch = (_, init) =>
  new Promise((_, reject) => init?.signal?.addEventListener("abort", () => reject(init.signal?.reason), { once: true }));

test("a time-out is told from another failure", async () => {
  const slow = new Client("sk_test_stub", { fetch: never, attemptsMax: 1 });
  // A signal of AbortSignal.timeout alone keeps no program running.
  const alive = setInterval(() => {}, 1000);
  const call = slow.testHelpers.clock.advance(1, { idempotencyKey: "a key of mine", timeoutSeconds: 0.02 });
  await assert.rejects(call, (error) => error instanceof ConnectionTimedOut && error instanceof ConnectionFailed && error.idempotencyKey === "a key of mine");
  clearInterval(alive);
});

test("a call can be ended, also between two attempts", async (context) => {
  const ended = new AbortController();
  const call = new Client("sk_test_stub", { fetch: never }).balance.retrieve({ signal: ended.signal });
  ended.abort(new Error("enough"));
  await assert.rejects(call, /enough/);
  const { client, asked } = await stub(context, 503, refusal("service_unavailable"), { "Retry-After": "3600" });
  const waits = new AbortController();
  const waiting = new Client("sk_test_stub", { baseUrl: (await stub(context, 503, refusal("x"), { "Retry-After": "3600" })).baseUrl })
    .balance.retrieve({ signal: waits.signal });
  setTimeout(() => waits.abort(new Error("enough")), 100);
  await assert.rejects(waiting, /enough/);
  await assert.rejects(client().balance.retrieve({ signal: AbortSignal.abort(new Error("before")) }), /before/);
  assert.equal(asked.length, 0);
});

test("the whole answer can be seen", async () => {
  const options = { idempotencyKey: "the whole answer can be seen, in TypeScript" };
  const first = await client.senders.create(SENDER, options).withResponse();
  assert.deepEqual([first.status, first.isReplayed], [200, false]);
  assert.match(first.requestId ?? "", /^request_/);
  const again = await client.senders.create(SENDER, options).withResponse();
  assert.deepEqual([again.data, again.isReplayed], [first.data, true]);
  assert.equal((await client.corridors.list().withResponse()).data[0]?.buy_currency, "INR");
  await assert.rejects(client.senders.retrieve("sender_01M818H3D0S3QZTV7KY4ZHFPM7").withResponse(), NotFoundError);
});

test("lists have pages", async () => {
  const made: string[] = [];
  for (let number = 0; number < 5; number += 1) made.push((await client.senders.create(SENDER)).id);
  const pages: string[][] = [];
  for await (const page of client.senders.list({ limit: 2, starting_after: made[0] }).pages()) pages.push(page.data.map(({ id }) => id));
  assert.deepEqual(pages, [made.slice(1, 3), made.slice(3)]);
  const list = client.senders.list({ limit: 2, starting_after: made[2] });
  for (let round = 0; round < 2; round += 1) {
    const found: string[] = [];
    for await (const { id } of list) found.push(id);
    assert.deepEqual(found, made.slice(3));
  }
});

test("filters are members", async (context) => {
  const { asked, client } = await stub(context);
  for await (const _ of client().transfers.list({ status: "funding", created: { gte: 1, lt: undefined }, reference: undefined }));
  assert.deepEqual(asked.map(({ path }) => path), ["/v1/transfers?limit=100&status=funding&created.gte=1"]);
});

test("an ID stays one part of the path, and an empty one is refused", async (context) => {
  const { asked, client } = await stub(context, 404, refusal("object_not_found"));
  await assert.rejects(client().transfers.retrieve("../keys"), NotFoundError);
  await assert.rejects(client().transfers.cancel("a?b#c"), NotFoundError);
  assert.deepEqual(asked.map(({ path }) => path), ["/v1/transfers/..%2Fkeys", "/v1/transfers/a%3Fb%23c/cancel"]);
  for (const call of [() => client().transfers.retrieve(""), () => client().webhookEndpoints.delete(""), () => client().testHelpers.payouts.settle("")]) {
    assert.throws(call, TypeError);
  }
  assert.equal(asked.length, 2);
});

test("the service learns who asks", async (context) => {
  const { asked, baseUrl } = await stub(context);
  const before = process.env.HUNDI_BASE_URL;
  process.env.HUNDI_BASE_URL = `${baseUrl}/`;
  try {
    for await (const _ of new Client("sk_test_stub", { appInfo: "shop/1.4" }).senders.list());
  } finally {
    process.env.HUNDI_BASE_URL = before;
  }
  const { version } = JSON.parse(readFileSync("package.json", "utf8")) as { version: string };
  assert.deepEqual(asked.map(({ path, headers }) => [path, headers["user-agent"]]),
    [["/v1/senders?limit=100", `hundi-typescript/${version} node/${process.versions.node} shop/1.4`]]);
});

test("statements, the checkpoint, and the advice as a page", async () => {
  const from = Math.floor(Date.now() / 1000) - 3600;
  assert.equal((await client.statements.retrieve({ from })).object, "statement");
  assert.ok((await client.statements.retrieveCsv({ from })).split("\n").length > 3);
  for await (const { id } of client.events.list({ limit: 1 })) {
    assert.equal((await client.events.checkpoint(id)).events_count, 1);
    break;
  }
  for await (const { id } of client.payouts.list({ status: "settled" })) {
    assert.equal((await client.payouts.paymentAdvice(id)).payout_id, id);
    assert.equal(Buffer.from(await client.payouts.paymentAdvicePdf(id)).subarray(0, 5).toString(), "%PDF-");
    break;
  }
});
