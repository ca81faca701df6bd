// What both scripts share: the API, data to look at, and a browser that is signed in.
import { execFileSync } from "node:child_process";
import { createHmac } from "node:crypto";
import { createServer } from "node:http";
import { axe, call, fail, launch, open, same, until } from "../browser/page.mjs";

export { axe, call, fail, launch, same, until };
export const [consoleAddress, pictures] = process.argv.slice(3);
export const password = process.env.HUNDI_TEST_PASSWORD;

const beneficiaries = new Map();
const beneficiary = async (name, number) => {
  if (!beneficiaries.has(number)) {
    const made = await call("POST", "/v1/beneficiaries", { name, account_number: number, ifsc: "HDFC0000001", account_type: "nre" });
    await until("the beneficiary is active", async () => (await call("GET", `/v1/beneficiaries/${made.id}`)).status === "active");
    beneficiaries.set(number, made.id);
  }
  return beneficiaries.get(number);
};
export const transfer = async (amount, { number = "50100012345678", funding = {}, reference } = {}) => {
  const sender = await call("POST", "/v1/senders", { name: "Ravi Rao", type: "individual", country: "AE" });
  const lock = await call("POST", "/v1/quote_locks", { sell_currency: "USD", buy_currency: "INR", amount });
  return call("POST", "/v1/transfers", {
    sender_id: sender.id, beneficiary_id: await beneficiary("Asha Nair", number), quote_lock_id: lock.id, amount,
    currency: "USD", payout_currency: "INR", funding: { rail: "stablecoin", asset: "USDT", chain: "tron", ...funding }, reference,
  });
};
export const deposit = (made, body = {}) => call("POST", `/v1/test_helpers/transfers/${made.id}/deposit`, body);
export const status = (made, wanted) =>
  until(`${made.id} is ${wanted}`, async () => {
    const found = await call("GET", `/v1/transfers/${made.id}`);
    return found.status === wanted && found;
  });

// One of everything that the pages show.
export const furnish = async () => {
  const deliveries = [];
  const receiver = createServer((request, answer) => {
    deliveries.push(request.headers["webhook-id"]);
    request.resume();
    answer.writeHead(deliveries.length % 3 === 0 ? 500 : 204).end();
  });
  await new Promise((done) => receiver.listen(0, "127.0.0.1", done));
  const url = `http://127.0.0.1:${receiver.address().port}/hooks`;
  const endpoint = await call("POST", "/v1/webhook_endpoints", { url });
  const paid = await transfer("1234.50", { reference: "Invoice 4711" });
  await deposit(paid);
  const settled = await status(paid, "payout_settled");
  const waiting = await transfer("250.00");
  const held = await transfer("50000.00");
  await deposit(held, { amount: "49000.00" });
  await until("money came", async () => (await call("GET", `/v1/transfers/${held.id}`)).funding.amount_received === "49000.00");
  await call("POST", "/v1/test_helpers/clock", { advance_seconds: 2000 });
  await status(held, "funding_hold");
  const late = await transfer("75.00");
  await call("POST", `/v1/transfers/${late.id}/cancel`, {});
  const suspect = await call("POST", "/v1/senders", { name: process.env.HUNDI_TEST_SUSPECT, type: "individual", country: "AE" });
  await call("POST", "/v1/beneficiaries", { name: "Meera Pillai", account_number: "50100012345679", ifsc: "SBIN0000001", account_type: "nre", submit: false });
  await until("webhooks came", () => deliveries.length > 3);
  return { paid: settled, waiting, held, late, suspect, endpoint, receiver, deliveries };
};

// A row in each queue, beside what `furnish` made: what no caller can bring about is written into the database.
export const queues = ["holds", "reviews", "verifications", "payouts", "refunds", "refund_addresses", "unmatched", "differences"];
export const crowd = async () => {
  for (const reference of ["Invoice 1", "Invoice 2"]) {
    const short = await transfer("120.00", { reference });
    await deposit(short, { amount: "100.00" });
    await until("money came", async () => (await call("GET", `/v1/transfers/${short.id}`)).funding.amount_received === "100.00");
  }
  await call("POST", "/v1/test_helpers/clock", { advance_seconds: 2000 });
  const name = process.env.HUNDI_TEST_SUSPECT;
  for (const country of ["AE", "US"]) await call("POST", "/v1/senders", { name, type: "individual", country });
  await call("POST", "/v1/beneficiaries", { name: "Kiran Menon", account_number: "50100012340004", ifsc: "ICIC0000001", account_type: "nre" });
  // Two that were paid too much, and two that were paid once more after their end.
  for (const again of ["7.50", "9.25"]) {
    const paid = await transfer("110.00");
    await deposit(paid, { amount: "115.00" });
    await status(paid, "payout_settled");
    const extra = await deposit(paid, { amount: again });
    await until("the deposit is final", async () => (await call("GET", `/v1/deposits/${extra.id}`)).status === "completed");
  }
  const unknown = await transfer("130.00", { number: "50100012341003" });
  await deposit(unknown);
  await status(unknown, "payout_processing");
  const payouts = async () => (await call("GET", "/v1/payouts?limit=100")).data;
  await until("an outcome is unknown", async () => (await payouts()).some((payout) => payout.failure?.code === "outcome_unknown"));
  execFileSync("python3", ["-c", differences, process.env.HUNDI_TEST_DATABASE]);
};
const differences = `
import os, sqlite3, sys, time
store = sqlite3.connect(sys.argv[1], timeout=60, isolation_level=None)
store.execute("BEGIN IMMEDIATE")
minted = lambda: int(time.time() * 1000 - 3_600_000).to_bytes(6, "big") + os.urandom(10)
chain = "INSERT INTO chain_differences (mode, chain, kind, subject, id, units, block_number, found_at) VALUES (?, 'tron', ?, ?, ?, ?, ?, ?)"
for mode in ("test", "live"):
    store.execute(chain, (mode, "movement_not_in_book", os.urandom(32).hex(), minted(), 12_500_000, 70_000_000, int(time.time())))
    store.execute(chain, (mode, "deposits_book", "deposits", minted(), 40_000_000, None, int(time.time())))
line = "INSERT INTO bank_statement_lines (id, sha256, statement_number, number, booking_day, units, sign, matching, reference) VALUES (?, ?, 1, ?, ?, ?, ?, ?, ?)"
for number, sign, matching, reference in ((1, "credit", "no_reference", "INTEREST 4711"), (2, "debit", "unknown_reference", "HDFCN52026112200000001")):
    store.execute(line, (minted(), os.urandom(32), number, time.strftime("%Y-%m-%d"), 12_345_600, sign, matching, reference))
one = "SELECT id FROM refunds WHERE status = 'requires_address' ORDER BY id LIMIT 1"
address = store.execute("SELECT address FROM deposit_addresses LIMIT 1").fetchone()[0]
store.execute(f"UPDATE refunds SET status = 'processing', to_address = ? WHERE id = ({one})", (address,))
store.execute("COMMIT")
`;

// A browser's profile that is signed in.
export const signIn = async (browser, name, { width = 1280, scheme = "light" } = {}) => {
  const page = await visit(browser, { width, scheme });
  await typeSignIn(page, name);
  await page.waitForURL(`${consoleAddress}/console`);
  return page;
};

// A profile that nobody is signed in to, at the sign-in's page.
export const visit = async (browser, { width = 1280, scheme = "light", locale = "en-GB" } = {}) => {
  const page = await open(browser, { origin: consoleAddress, width, scheme, timezoneId: "Asia/Dubai", locale });
  await page.goto(`${consoleAddress}/console/sign_in`);
  return page;
};
export const typeSignIn = async (page, name, code = "") => {
  await page.getByLabel("Name").fill(name);
  await page.getByLabel("Password").fill(password);
  await page.getByLabel("Code").fill(code);
  await page.getByRole("button", { name: "Sign in" }).click();
};

// The code that an authenticator app shows (RFC 6238), `ahead` steps of 30 seconds from now.
export const totp = (secret, ahead = 0) => {
  const bits = [...secret.replaceAll(/\s/g, "")].map((letter) => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".indexOf(letter).toString(2).padStart(5, "0")).join("");
  const bytes = Buffer.from(bits.match(/.{8}/g).map((eight) => Number.parseInt(eight, 2)));
  const step = Buffer.alloc(8);
  step.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 30_000) + ahead));
  const tag = createHmac("sha1", bytes).update(step).digest();
  const number = tag.readUInt32BE(tag.at(-1) & 15) & 0x7fffffff;
  return String(number % 1_000_000).padStart(6, "0");
};

export const pagesOf = (made) => ({
  overview: "/console",
  search: "/console/search?q=ravi",
  "search-empty": "/console/search?q=nobody",
  transfers: "/console/transfers",
  transfer: `/console/transfers/${made.paid.id}`,
  held: `/console/transfers/${made.held.id}`,
  beneficiary: `/console/beneficiaries/${made.paid.beneficiary_id}`,
  sender: `/console/senders/${made.suspect.id}`,
  holds: "/console/queues/holds",
  reviews: "/console/queues/reviews",
  verifications: "/console/queues/verifications",
  payouts: "/console/queues/payouts",
  refunds: "/console/queues/refunds",
  "refund-addresses": "/console/queues/refund_addresses",
  unmatched: "/console/queues/unmatched",
  differences: "/console/queues/differences",
  "differences-live": "/console/queues/differences?mode=live",
  accounts: "/console/accounts",
  account: "/console/accounts/1",
  webhooks: "/console/webhooks",
  webhook: `/console/webhooks/${made.endpoint.id}`,
  pauses: "/console/pauses",
  settings: "/console/settings",
  operators: "/console/operators",
  decisions: "/console/decisions",
  reports: "/console/reports",
  audit: "/console/audit",
  "audit-verified": "/console/audit?verify=all",
  limits: "/console/limits",
  work: "/console/work",
  approvals: "/console/approvals",
  own: "/console/account",
  runbook: "/console/runbooks/HundiChainBehind",
  runbooks: "/console/runbooks",
  "second-factor": "/console/account/second_factor",
});

// What administrators alone see; the last one is a page that follows a form.
export const adminPages = { "admin-accounts": "/console/accounts", "admin-account": "/console/accounts/1", "key-made": "/console/accounts" };
export const makeKey = async (page, account) => {
  const form = page.locator("form.form[action='/console/keys/make']");
  if (account) await form.locator("input[name=account]").fill(account);
  await form.locator("select[name=access]").selectOption("reading");
  await form.locator("select[name=days]").selectOption("30");
  await form.locator("input[name=reason]").fill("the browser's test");
  await form.getByRole("button").click();
  const key = await page.locator(".secret code").innerText();
  if (!/^rk_test_\w{38}$/.test(key)) fail(`no key is shown, but ${key}`);
  return key;
};

// What shows decisions, once there are some, to who approves.
export const decidedPages = {
  "overview-paused": "/console",
  "pauses-set": "/console/pauses",
  "approvals-waiting": "/console/approvals",
  "decisions-made": "/console/decisions",
  "audit-decisions": "/console/audit?action=decision",
};
// From the beginning of the label: an identifier such as event_01M837M60VRZDJ1V77EWHY88HS may hold a short word.
export const labelled = (within, label) => within.getByLabel(new RegExp(`^\\s*${label}`));
// Gives a reason and what else a form asks for, and presses its button.
export const decide = async (page, button, fields = {}, within = page) => {
  for (const [label, value] of Object.entries({ Why: "the browser's test", ...fields })) await labelled(within, label).first().fill(value);
  await within.getByRole("button", { name: button, exact: true }).first().click();
};

// Pauses quotes, asks to let them go on, which takes a second person, and approves the sender that a list may name.
export const decideSome = async (page) => {
  await page.goto(`${consoleAddress}/console/pauses`);
  await decide(page, "Pause", {}, page.locator("form", { has: page.getByLabel("For whom") }));
  await page.getByText("Paused.", { exact: true }).waitFor();
  await decide(page, "Let go on");
  await page.getByText("Another person has to approve it").first().waitFor();
  await page.goto(`${consoleAddress}/console/queues/reviews`);
  await page.getByRole("checkbox").first().check();
  await decide(page, "Approve");
  await page.getByText("Decided.", { exact: true }).waitFor();
};
