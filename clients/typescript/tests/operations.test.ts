// Each operation of the API's document has a method. clients/methods.json names it, for each language.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { ApiPromise, Client } from "../src/index.js";

type Document = { paths: Record<string, Record<string, { operationId?: string }>> };
type Method = (...values: unknown[]) => unknown;

// npm runs the tests in the package's folder.
const METHODS = JSON.parse(readFileSync("../methods.json", "utf8")) as Record<string, string>;
const DOCUMENT = JSON.parse(readFileSync(process.env.HUNDI_OPENAPI ?? "", "utf8")) as Document;
const ID = "an_id";

/** The requests that the method sends. */
async function requestsOf(name: string, path: string): Promise<string[]> {
  const sent: string[] = [];
  const client = new Client("sk_test_of_no_account");
  const request = (verb: string, to: string) => {
    sent.push(`${verb} ${to}`);
    return ApiPromise.of(Promise.resolve({ data: { data: [], has_next: false }, status: 200, headers: new Headers(), requestId: null, isReplayed: false }));
  };
  Object.assign(client, { request });
  const parts = name.split(".").map((part) => part.replace(/_(.?)/g, (_, letter: string) => letter.toUpperCase()));
  const last = parts.pop() ?? "";
  let owner: unknown = client;
  for (const part of parts) owner = (owner as Record<string, unknown>)[part];
  const method = (owner as Record<string, Method | undefined>)[last];
  if (!method) return sent;
  const answer = method.call(owner, ...(path.includes("{id}") ? [ID] : []));
  if (typeof answer === "object" && answer !== null && Symbol.asyncIterator in answer) {
    for await (const _ of answer as AsyncIterable<unknown>);
  } else {
    await answer;
  }
  return sent;
}

async function faults(document: Document): Promise<string[]> {
  const found: string[] = [];
  const known = new Set<string>();
  for (const [path, item] of Object.entries(document.paths)) {
    for (const [verb, { operationId }] of Object.entries(item)) {
      if (operationId === undefined) continue;
      known.add(operationId);
      const name = METHODS[operationId];
      const wanted = `${verb.toUpperCase()} ${path.replace("{id}", ID)}`;
      const sent = name === undefined ? [] : await requestsOf(name, path);
      if (sent.join() !== wanted) found.push(`${operationId} is ${wanted}, and ${name} sends ${sent.join()}`);
    }
  }
  for (const operation of Object.keys(METHODS)) if (!known.has(operation)) found.push(`the document has no ${operation}`);
  return found;
}

test("each operation has a method", async () => {
  assert.deepEqual(await faults(DOCUMENT), []);
});

test("a new or moved operation is noticed", async () => {
  const document = structuredClone(DOCUMENT);
  document.paths["/v1/news"] = { get: { operationId: "list_news" } };
  document.paths["/v1/funds"] = document.paths["/v1/balance"] ?? {};
  delete document.paths["/v1/balance"];
  assert.deepEqual(await faults(document), [
    "list_news is GET /v1/news, and undefined sends ",
    "get_balance is GET /v1/funds, and balance.retrieve sends GET /v1/balance",
  ]);
});
