// What the scripts that look at the payer's page share: the API, the page in a browser, and the checks. Arguments of
// each script: the server's address and the folder for screenshots. HUNDI_API_KEY is a test key.
// HUNDI_TEST_STEP_SECONDS is the length of a step of the simulation, where that is too long to wait for.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { WAIT_MILLISECONDS, address, axe, call, fail, launch, require, same, sleep, until } from "../browser/page.mjs";

export { address, axe, call, fail, same, sleep, until };
export const pictures = process.argv[3];
const { PNG } = require("pngjs");
const jsQR = require("jsqr");
mkdirSync(pictures, { recursive: true });

export const sizes = { phone: { width: 360, height: 740 }, desktop: { width: 1440, height: 900 } };
export const languages = ["en", "hi", "ml", "ta", "te", "gu", "pa", "ar"];
const PAGE_BYTES_MAX = 60 * 1024;

// The API.

const stepSeconds = Number(process.env.HUNDI_TEST_STEP_SECONDS ?? 0);
export const advance = (seconds) => call("POST", "/v1/test_helpers/clock", { advance_seconds: seconds });
const beneficiaries = new Map();
const beneficiary = async (number) => {
  if (!beneficiaries.has(number)) {
    const made = await call("POST", "/v1/beneficiaries", { name: "Asha Rao", account_number: number, ifsc: "HDFC0000001", account_type: "nre" });
    if (stepSeconds) await advance(stepSeconds);
    await until("the beneficiary is active", async () => (await call("GET", `/v1/beneficiaries/${made.id}`)).status === "active");
    beneficiaries.set(number, made.id);
  }
  return beneficiaries.get(number);
};
export const transfer = async (number = "50100012345678", funding = {}, more = {}) => {
  const sender = await call("POST", "/v1/senders", { name: "Ravi Rao", type: "individual", country: "AE" });
  const lock = await call("POST", "/v1/quote_locks", { sell_currency: "USD", buy_currency: "INR", amount: "1234.50" });
  const made = await call("POST", "/v1/transfers", {
    sender_id: sender.id, beneficiary_id: await beneficiary(number), quote_lock_id: lock.id, amount: "1234.50", currency: "USD",
    payout_currency: "INR", funding: { rail: "stablecoin", asset: "USDT", chain: "tron", ...funding }, ...more,
  });
  return { ...made, page: address + new URL(made.funding.instructions_url).pathname };
};
export const deposit = (made, body = {}) => call("POST", `/v1/test_helpers/transfers/${made.id}/deposit`, body);
export const status = (made, wanted) =>
  until(`${made.id} is ${wanted}`, async () => (await call("GET", `/v1/transfers/${made.id}`)).status === wanted);

// The browser.

export const browser = await launch();

// Opens a page and watches it: what it asks for, and what it complains of. `broken` changes the answer on its way.
export const open = async (url, { size = "phone", scheme = "light", scripts = true, broken } = {}) => {
  const context = await browser.newContext({
    viewport: sizes[size], colorScheme: scheme, javaScriptEnabled: scripts, deviceScaleFactor: 2, timezoneId: "Asia/Dubai", locale: "en-GB",
  });
  context.setDefaultTimeout(WAIT_MILLISECONDS);
  await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: address });
  const page = await context.newPage();
  const seen = { requests: [], complaints: [], loads: 0 };
  page.on("request", (request) => seen.requests.push(request.url()));
  page.on("framenavigated", () => { seen.loads += 1; });
  page.on("console", (message) => { if (["error", "warning"].includes(message.type())) seen.complaints.push(message.text()); });
  page.on("pageerror", (error) => seen.complaints.push(String(error)));
  // A broken copy may ask elsewhere; it must not get there.
  await context.route((target) => target.origin !== address, (route) => route.abort());
  if (broken) {
    await context.route(url, async (route) => {
      const answer = await route.fetch();
      const headers = { ...answer.headers() };
      const body = broken.change(await answer.text());
      if (broken.withoutPolicy) delete headers["content-security-policy"];
      await route.fulfill({ status: answer.status(), headers, body });
    });
  }
  const answer = await page.goto(url);
  const weight = (await answer.body()).length;
  return { page, seen, context, url, weight };
};

// The checks. Each takes an opened page and the transfer that it shows.

export const checks = {
  "nothing overflows": async ({ page }) => {
    const wide = await page.evaluate(() => {
      const limit = document.documentElement.clientWidth;
      const out = [...document.querySelectorAll("body *")].filter((one) => one.checkVisibility() && !one.closest("svg, .spoken, input"))
        .filter((one) => one.getBoundingClientRect().right > limit + 0.5 || one.getBoundingClientRect().left < -0.5 || one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).display !== "inline");
      return { scroll: document.documentElement.scrollWidth - limit, out: out.map((one) => one.outerHTML.slice(0, 80)) };
    });
    if (wide.scroll > 0 || wide.out.length) fail(JSON.stringify(wide));
  },
  // An amount is written before its currency in every language, and a day before its month in the language's direction.
  "amounts and dates keep their order": async ({ page }) => {
    const turned = await page.evaluate(() => {
      const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
      const found = [];
      for (let text = texts.nextNode(); text; text = texts.nextNode()) {
        if (!text.parentElement.checkVisibility()) continue;
        const amounts = [...text.data.matchAll(/([0-9][0-9.,]*) (USDT|USD|INR)/g)];
        const dates = [...text.data.matchAll(/([0-9]{1,2}) ([\u0621-\u064a]+) [0-9]{4}/g)];
        for (const match of [...amounts, ...dates]) {
          const place = (start, length) => {
            const range = document.createRange();
            range.setStart(text, start);
            range.setEnd(text, start + length);
            return range.getBoundingClientRect();
          };
          const first = place(match.index, match[1].length);
          const second = place(match.index + match[1].length + 1, match[2].length);
          const isTurned = first.left > second.left !== dates.includes(match);
          if (Math.abs(first.top - second.top) < 4 && isTurned) found.push(text.data);
        }
      }
      return found;
    });
    if (turned.length) fail(`turned around: ${turned}`);
  },
  // A browser that does not know the names of a language's months writes `M11`.
  "months have names or numbers": async ({ page }) => {
    const odd = await page.evaluate(() => [...document.querySelectorAll("time")].map((time) => time.textContent).filter((text) => /\bM\d\d\b/.test(text)));
    if (odd.length) fail(`a month without a name: ${odd[0]}`);
  },
  "what to pay is on the first screen": async ({ page }) => {
    const height = page.viewportSize().height;
    for (const part of ["#amount", "#qr", "#address", ".arrives", "#left"]) {
      const box = await page.locator(part).boundingBox();
      if (!box) fail(`${part} is not shown`);
      if (box.y < 0 || box.y + box.height > height) fail(`${part} ends at ${Math.round(box.y + box.height)} of ${height}`);
    }
  },
  "the page is light": async ({ weight }) => {
    if (weight > PAGE_BYTES_MAX) fail(`${weight} bytes`);
  },
  "test mode is told on paper": async ({ page }) => {
    await page.emulateMedia({ media: "print" });
    const is = await page.locator(".banner").isVisible();
    await page.emulateMedia({ media: null });
    if (!is) fail("the print does not say that it is of test mode");
  },
  "accessible by the rules of axe": ({ page }) => axe(page),
  "the QR code is the address": async ({ page }, made) => {
    const box = await page.locator("#qr").boundingBox();
    const clip = { x: Math.max(0, box.x - 8), y: box.y - 8, width: box.width + 16, height: box.height + 16 };
    const picture = PNG.sync.read(await page.screenshot({ fullPage: true, clip }));
    const read = jsQR(new Uint8ClampedArray(picture.data), picture.width, picture.height);
    same(read?.data, made.funding.deposit_address, "the QR code");
  },
  "the buttons copy": async ({ page }, made) => {
    const clipboard = () => page.evaluate(() => navigator.clipboard.readText());
    await page.getByRole("button", { name: "Copy amount" }).click();
    await until("the amount is copied", async () => (await clipboard()) !== "").catch(() => {});
    same(await clipboard(), made.funding.amount_expected, "the amount copied");
    // With the keyboard.
    await page.getByRole("button", { name: "Copy address" }).focus();
    await page.keyboard.press("Enter");
    await page.locator("#copied", { hasText: "Copied: T" }).waitFor({ state: "attached" }).catch(() => {});
    same(await clipboard(), made.funding.deposit_address, "the address copied");
    same(await page.locator("#address").textContent(), made.funding.deposit_address, "the address shown");
  },
  "the countdown counts": async ({ page }, made) => {
    const left = async () => {
      const parts = /^(\d\d):(\d\d)$/.exec(await page.locator("#left").textContent());
      return parts ? Number(parts[1]) * 60 + Number(parts[2]) : fail("no countdown");
    };
    const first = await left();
    const begun = Date.now();
    await until("two seconds fewer are left", async () => (await left()) <= first - 2);
    if (Date.now() - begun < 500) fail("the countdown runs");
    const before = await left();
    const state = await (await fetch(`${made.page}/state`)).json();
    const servers = state.expires_at - state.now;
    if (servers > before + 2 || servers < (await left()) - 2) fail("the countdown is not the server's");
  },
  "nothing is asked of others, and nobody complains": async ({ page, seen }) => {
    await sleep(300);
    const others = seen.requests.filter((url) => !url.startsWith(`${address}/pay/`) && url !== "data:,");
    if (others.length) fail(`asked: ${others}`);
    if (seen.complaints.length) fail(`complaints: ${seen.complaints}`);
    same(await page.evaluate(() => document.cookie + localStorage.length + sessionStorage.length), "00", "kept in the browser");
  },
};

let failures = 0;
export const attempt = async (name, work) => {
  const begun = Date.now();
  const error = await work().then(() => null, (thrown) => thrown);
  failures += error ? 1 : 0;
  const seconds = ((Date.now() - begun) / 1000).toFixed(1).padStart(5);
  console.log(`${error ? "FAILED" : "ok    "} ${seconds} s  ${name}${error ? `\n        ${error.message}` : ""}`);
};
export const picture = ({ page }, name) => page.screenshot({ path: join(pictures, `${name}.png`), fullPage: true });

// Ends the browser, and the script with it.
export const end = async () => {
  await browser.close();
  if (!failures) return;
  console.log(`${failures} failed`);
  process.exit(1);
};
