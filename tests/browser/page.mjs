// What every script that drives Chromium uses: the browser, the API and the rules of axe. The server's address is the
// script's first argument; HUNDI_API_KEY is a test key.
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";

export const require = createRequire(resolve(process.env.HUNDI_TEST_BROWSER_TOOLS, "package.json"));
const { chromium } = require("playwright-core");
const axeSource = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

export const address = process.argv[2];
const key = process.env.HUNDI_API_KEY;
// Of a machine that is busy.
export const WAIT_MILLISECONDS = 90_000;

export const call = async (method, path, body) => {
  const headers = { authorization: `Bearer ${key}`, "idempotency-key": randomUUID(), "content-type": "application/json" };
  const answer = await fetch(address + path, { method, headers, body: body && JSON.stringify(body) });
  const found = await answer.json();
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(found)}`);
  return found;
};
export const sleep = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));
export const until = async (what, wanted, milliseconds = WAIT_MILLISECONDS) => {
  const end = Date.now() + milliseconds;
  for (;;) {
    const found = await wanted();
    if (found) return found;
    if (Date.now() > end) throw new Error(`waited in vain: ${what}`);
    await sleep(50);
  }
};
export const fail = (text) => { throw new Error(text); };
export const same = (found, wanted, what) =>
  found === wanted || fail(`${what}: found ${JSON.stringify(found)}, wanted ${JSON.stringify(wanted)}`);

// Chromium sometimes never answers that something was closed. Nobody waits for that for long: what is still open ends with
// the browser, and the browser ends with the script.
const CLOSE_MILLISECONDS = 20_000;
const closedSoon = (closable, givenUp = () => {}) => {
  const close = closable.close.bind(closable);
  closable.close = () => new Promise((done, failed) => {
    const enough = setTimeout(() => { givenUp(); done(); }, CLOSE_MILLISECONDS);
    close().then(done, failed).finally(() => clearTimeout(enough));
  });
  return closable;
};

export const launch = async () => {
  const browser = closedSoon(await chromium.launch({
    executablePath: "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  }), () => setTimeout(() => process.exit(), CLOSE_MILLISECONDS).unref());
  const newContext = browser.newContext.bind(browser);
  browser.newContext = async (options) => closedSoon(await newContext(options));
  return browser;
};

// A browser's profile in which nothing comes from another origin. Its pages note what the browser complains about.
export const open = async (browser, { origin = address, width = 1280, height = 900, scheme = "light", ...more } = {}) => {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme, ...more });
  context.setDefaultTimeout(WAIT_MILLISECONDS);
  await context.route((target) => target.origin !== origin, (route) => route.abort());
  const page = await context.newPage();
  page.complaints = [];
  page.on("console", (message) => { if (["error", "warning"].includes(message.type())) page.complaints.push(message.text()); });
  page.on("pageerror", (error) => page.complaints.push(String(error)));
  return page;
};

const judgeByAxe = async (page) => {
  const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
  const found = await page.evaluate((values) => window.axe.run(document, { runOnly: { type: "tag", values } }), tags);
  const faults = found.violations.map((one) => `${one.id}: ${one.nodes.map((node) => `${node.html.slice(0, 90)} ${node.any[0]?.message ?? ""}`).join(" | ")}`);
  if (faults.length) fail(`${faults.join("\n")}\n${page.url()}`);
  if (!found.passes.some((one) => one.id === "color-contrast")) fail("no contrast was judged");
};
// The page as it stands, and once more with everything opened: axe does not see what is closed, nor what an open menu
// covers.
export const axe = async (page) => {
  await page.evaluate(axeSource);
  await judgeByAxe(page);
  const closed = await page.evaluateHandle(() => [...document.querySelectorAll("details:not([open])")]);
  const setOpen = (isOpen) => closed.evaluate((all, isOpen) => { for (const one of all) one.open = isOpen; return all.length; }, isOpen);
  if (await setOpen(true)) await judgeByAxe(page);
  await setOpen(false);
};
