// Where the client takes its API key from.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { inspect } from "node:util";

import { Client, HundiError } from "../src/index.js";

test("the key is an argument, or a variable, or in a file", async () => {
  const server = createServer((request, response) => response.end(JSON.stringify(request.headers.authorization)));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const sent = (key?: string) => new Client(key, { baseUrl }).request("GET", "/");
  const folder = mkdtempSync(join(tmpdir(), "hundi-"));
  try {
    delete process.env.HUNDI_API_KEY;
    delete process.env.HUNDI_API_KEY_FILE;
    assert.throws(() => new Client(), HundiError);
    process.env.HUNDI_API_KEY_FILE = join(folder, "key");
    writeFileSync(process.env.HUNDI_API_KEY_FILE, "sk_test_file\n");
    assert.equal(await sent(), "Bearer sk_test_file");
    process.env.HUNDI_API_KEY = "sk_test_variable";
    assert.equal(await sent(), "Bearer sk_test_variable");
    assert.equal(await sent("sk_test_argument"), "Bearer sk_test_argument");
    assert.ok(!inspect(new Client("sk_test_argument"), { showHidden: true, depth: 9 }).includes("sk_test"));
  } finally {
    server.closeAllConnections();
    server.close();
    rmSync(folder, { recursive: true });
  }
});
