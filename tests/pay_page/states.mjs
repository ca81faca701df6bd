// Opens every state of the payer's page, its forms and messages, and the verification page, in every language, as an
// issuer shows them that has a logo, a colour and a long name. HUNDI_TEST_DATABASE is the server's database.
//
// Each page is fetched once for each language when its state is reached, and then looked at. So no state goes by while it is
// looked at.
import { execFileSync } from "node:child_process";
import { WAIT_MILLISECONDS } from "../browser/page.mjs";
import {
  address, advance, attempt, browser, call, checks, deposit, end, fail, languages, picture, same, sizes, transfer, until,
} from "./payer.mjs";

const STEP = Number(process.env.HUNDI_TEST_STEP_SECONDS);
const FAILS = "50100012341001";
const COMES_BACK = "50100012341002";
const STAYS = "50100012341003";
const OWN_ADDRESS = "TMVQGm1qAQYVdetCeGRRkTWYYrLXuHK2HC";
// The shortest and the longest words, and those from right to left.
const PICTURED = ["en", "ta", "ar"];
const PHASES = [
  "awaiting_payment", "partly_paid", "seen", "confirming", "time_up", "too_little", "too_much", "too_late", "on_hold", "received",
  "paying_out", "paid_out", "refund_needs_address", "refunding", "refunded", "expired", "cancelled",
];

// Pages as they were.

const stills = [];
const phase = async (made) => (await (await fetch(`${made.page}/state`)).json()).phase;
const take = async (name, url, { wanted = 200, form, made } = {}) => {
  const taken = await Promise.all(languages.map(async (language) => {
    const request = { headers: { accept: "text/html" } };
    if (form) Object.assign(request, { method: "POST", body: new URLSearchParams(form) });
    const answer = await fetch(`${url}?lang=${language}`, request);
    same(answer.status, wanted, `${name} in ${language}`);
    const state = made && await (await fetch(`${made.page}/state?lang=${language}`)).json();
    return { name, language, made, state, url: answer.url, headers: Object.fromEntries(answer.headers), body: await answer.text() };
  }));
  stills.push(...taken);
};
const reach = async (name, made, more = {}) => {
  await until(`${name} is reached`, async () => (await phase(made)) === (more.phase ?? name));
  await take(name, made.page, { made });
  same(await phase(made), more.phase ?? name, `the state after ${name} was taken`);
};

// The same again, in the browser. What the page's script asks for is answered as it was.
const surfaces = new Map();
const surface = async (size, scheme) => {
  const key = `${size}-${scheme}`;
  if (!surfaces.has(key)) {
    const context = await browser.newContext({ viewport: sizes[size], colorScheme: scheme, deviceScaleFactor: 2, timezoneId: "Asia/Dubai", locale: "en-GB" });
    context.setDefaultTimeout(WAIT_MILLISECONDS);
    const page = await context.newPage();
    const shown = {};
    await context.route(() => true, (route) => {
      const url = route.request().url();
      const { still } = shown;
      if (url === still.url) return route.fulfill({ status: 200, headers: still.headers, body: still.body });
      if (url.startsWith(`${still.made?.page}/state`)) return route.fulfill({ json: still.state });
      return route.abort();
    });
    surfaces.set(key, { page, shown, key });
  }
  return surfaces.get(key);
};
const show = async (still, size, scheme) => {
  const seen = await surface(size, scheme);
  seen.shown.still = still;
  await seen.page.goto(still.url);
  return { ...seen, weight: Buffer.byteLength(still.body) };
};
const judge = async (opened, still) => {
  const { made, state, language } = still;
  same(await opened.page.evaluate(() => document.documentElement.lang), language, "the language");
  await checks["nothing overflows"](opened);
  await checks["amounts and dates keep their order"](opened);
  await checks["months have names or numbers"](opened);
  await checks["the page is light"](opened);
  if (state?.is_payable) {
    await checks["what to pay is on the first screen"](opened);
    await checks["the QR code is the address"](opened, made);
  }
  await checks["accessible by the rules of axe"](opened);
};

// What is looked at.

const ways = async () => {
  const more = { return_url: "https://shop.example.com/orders/4711" };
  const payer = { payer_sets_refund_address: true };
  await reach("awaiting_payment", await transfer(undefined, payer, more));

  const partly = await transfer(undefined, payer, more);
  await deposit(partly, { amount: "1000.123456" });
  await deposit(partly, { amount: "5.00", asset: "TRX" });
  await advance(2 * STEP);
  await reach("partly_paid", partly);
  if (!stills.at(-1).state.notices.length) fail("no notice beside what is still to be paid");

  const cancelled = await transfer();
  await call("POST", `/v1/transfers/${cancelled.id}/cancel`, {});
  await reach("cancelled", cancelled);

  const paid = await transfer(undefined, payer, more);
  await deposit(paid, { amount: "1300.00" });
  await reach("seen", paid);
  await advance(STEP);
  await reach("confirming", paid);
  await advance(10 * STEP);
  await reach("paid_out", paid);
  if (!stills.at(-1).state.takes_refund_address) fail("no form beside the receipt");

  const staying = await transfer(STAYS);
  await deposit(staying);
  await advance(2 * STEP);
  await reach("paying_out", staying);

  const failing = await transfer(FAILS, payer);
  await deposit(failing);
  await advance(10 * STEP);
  await reach("refund_needs_address", failing);
  const form = `${failing.page}/refund_address`;
  await take("refund_address_wrong", form, { form: { address: "TMVQGm1qAQYVdetCeGRRkTWYYrLXuHK2HX" }, wanted: 400 });
  await take("refund_address_confirm", form, { form: { address: OWN_ADDRESS } });
  const { refund } = await call("GET", `/v1/transfers/${failing.id}`);
  await call("POST", `/v1/refunds/${refund.id}`, { to_address: OWN_ADDRESS });
  await reach("refunding", failing);
  await advance(2 * STEP);
  await reach("refunded", failing);

  const returning = await transfer(COMES_BACK);
  const second = await transfer(COMES_BACK);
  await deposit(returning);
  await advance(10 * STEP);
  await until("it came back", async () => (await call("GET", `/v1/transfers/${returning.id}`)).status === "refund_processing");
  await deposit(second);
  await advance(2 * STEP);
  await reach("received", second);

  const much = await transfer(undefined, { policy: { overpaid: "hold" } });
  await deposit(much, { amount: "2000.00" });
  await advance(2 * STEP);
  await reach("too_much", much);

  const little = await transfer();
  await deposit(little, { amount: "200.00" });
  const [looking, late, hurried] = [await transfer(), await transfer(), await transfer(undefined, payer, more)];
  const left = async (made) => {
    const { now, expires_at } = await (await fetch(`${made.page}/state`)).json();
    return expires_at - now;
  };
  await advance(await left(hurried) - 120);
  await reach("hurried", hurried, { phase: "awaiting_payment" });
  // What is not yet known when the time is up keeps the transfer from expiring.
  await advance(await left(looking) - 5);
  await deposit(looking, { amount: "1.00", asset: "USDC" });
  await advance(6);
  await reach("time_up", looking);
  await advance(5 * STEP);
  await reach("expired", looking);
  await reach("too_little", little);
  await deposit(late, { amount: "1234.50" });
  await advance(3 * STEP);
  await reach("too_late", late);
  // In time by its block, and found when the time was up.
  const found = await transfer();
  await advance(await left(found) + STEP);
  await deposit(found, { amount: "1234.50", block_time: found.funding.expires_at });
  await advance(3 * STEP);
  await reach("on_hold", found);

  // The page that an advice leads to, of one payout that was settled and one that came back.
  const verified = [];
  for (const [name, one] of [["genuine", paid], ["came_back", returning]]) {
    const { payout_id } = await call("GET", `/v1/transfers/${one.id}`);
    await until("the payment advice is there", async () => (await call("GET", `/v1/payouts/${payout_id}`)).payment_advice.status === "available");
    const advice = await call("GET", `/v1/payouts/${payout_id}/payment_advice`);
    verified.push(address + new URL(advice.verification_url).pathname);
    await take(`verify_${name}`, verified.at(-1));
  }
  await take("verify_wrong", `${address}/verify/nothing`, { wanted: 404 });
  await take("broken_link", `${address}/pay/nothing`, { wanted: 404 });

  // A database without payouts shows neither page.
  rename("payouts", "payouts_gone");
  await take("pay_unavailable", paid.page, { wanted: 503 });
  await take("verify_unavailable", verified[0], { wanted: 503 });
  await attempt("a page that could not be shown comes by itself", async () => {
    const page = await (await browser.newContext()).newPage();
    await page.goto(paid.page);
    await page.locator("h1", { hasText: "cannot be shown right now" }).waitFor();
    rename("payouts_gone", "payouts");
    await page.locator("#headline", { hasText: "Paid out" }).waitFor({ timeout: WAIT_MILLISECONDS });
    await page.context().close();
  });
};
const rename = (from, to) => execFileSync("python3", ["-c", renaming, process.env.HUNDI_TEST_DATABASE, from, to]);
const renaming = `
import sqlite3, sys
store = sqlite3.connect(sys.argv[1], timeout=60, isolation_level=None)
store.execute(f"ALTER TABLE {sys.argv[2]} RENAME TO {sys.argv[3]}")
`;

try {
  await ways();
  const reached = new Set(stills.map((still) => still.state?.phase));
  const missed = PHASES.filter((one) => !reached.has(one));
  if (missed.length) fail(`never reached: ${missed}`);

  const kinds = ["light", "dark"].flatMap((scheme) => Object.keys(sizes).map((size) => [size, scheme]));
  for (const [number, still] of stills.entries()) {
    // Each page is seen in each of them, and each language too.
    const [size, scheme] = kinds[(number + Math.floor(number / languages.length)) % kinds.length];
    // What has to fit on the first screen is looked at on both.
    const seen = still.state?.is_payable ? [[size, scheme], [size === "phone" ? "desktop" : "phone", scheme]] : [[size, scheme]];
    for (const [size, scheme] of seen) {
      await attempt(`issuer: ${still.name}, ${still.language}, ${size}, ${scheme}`, async () => {
        const opened = await show(still, size, scheme);
        if (PICTURED.includes(still.language)) await picture(opened, `issuer-${still.name}-${still.language}-${size}`);
        await judge(opened, still);
      });
    }
  }
  const awaiting = stills[0];
  for (const [name, reason, change] of [
    ["nothing", null, (html) => html],
    ["a language without its name, in the closed menu", /link-name/, (html) => html.replace(/(hreflang="hi"[^>]*>)[^<]*/, "$1")],
    ["a picture above what to pay", /#amount ends at/, (html) => html.replace(/<main[^>]*>/, '$&<p style="height: 60rem"></p>')],
    ["a name that does not break", /scroll|span/, (html) => html.replace(/<span>Gulf/, `<span style="white-space: nowrap">${"x".repeat(90)}`)],
  ]) {
    await attempt(`control: broken is ${name}`, async () => {
      const headers = { ...awaiting.headers };
      delete headers["content-security-policy"];
      const still = { ...awaiting, headers, body: change(awaiting.body) };
      const found = await show(still, "phone", "light").then((opened) => judge(opened, still)).then(() => null, (error) => error.message);
      if (reason ? !reason.test(found ?? "") : found) fail(`noticed: ${found}`);
    });
  }
} finally {
  await end();
}
