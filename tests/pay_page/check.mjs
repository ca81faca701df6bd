// Opens the payer's page in Chromium and checks what only a browser can tell.
//
// Every check also has a control: a copy of the page that is broken on its way to the browser must fail it.
import { WAIT_MILLISECONDS } from "../browser/page.mjs";
import {
  address, advance, attempt, call, checks, deposit, end, fail, languages, open, picture, same, sizes, sleep, status, transfer, until,
} from "./payer.mjs";

const withoutScript = {
  "without scripts the page says it all and reloads itself": async ({ page, seen }, made) => {
    same(await page.locator("#address").textContent(), made.funding.deposit_address, "the address");
    same(await page.locator("#amount").textContent(), made.funding.amount_expected, "the amount");
    same(await page.locator("button[type=button]:visible").count(), 0, "buttons that need scripts");
    if (!/^\d+ min$/.test(await page.locator("#left").textContent())) fail("the time left");
    await until("the page reloads itself", () => seen.loads > 1, 45_000);
  },
};

// Copies that are broken on their way, and the check that must notice.
const foreign = async () => (await (await fetch((await transfer()).page)).text()).match(/<path d="[^"]*"/)[0];
const controls = async () => {
  const otherQr = await foreign();
  // An unbroken copy passes, so what fails on the others is what was broken.
  const unbroken = Object.keys({ ...checks, ...withoutScript }).map((check, number) =>
    ({ name: "nothing", check, withoutPolicy: number % 2 === 0, scripts: !(check in withoutScript), change: (html) => html, passes: true }));
  return [
    ...unbroken,
    { name: "another address in the QR code", reason: /the QR code: found "T/, check: "the QR code is the address", change: (html) => html.replace(/<path d="[^"]*"/, otherQr) },
    { name: "a copy button with another source", reason: /the address copied: found "T/, check: "the buttons copy", change: (html) => html.replace('data-copy="address"', 'data-copy="contract"') },
    { name: "a changed script", reason: /no countdown/, check: "the countdown counts", change: (html) => html.replace('"use strict";', '"use strict"; ') },
    { name: "a changed script", reason: /Content Security Policy/, check: "nothing is asked of others, and nobody complains", change: (html) => html.replace('"use strict";', '"use strict"; ') },
    { name: "a picture from elsewhere", reason: /asked: https:..example.com/, check: "nothing is asked of others, and nobody complains", withoutPolicy: true, change: (html) => html.replace('<div id="paragraphs">', '<img alt="" src="https://example.com/x.png"><div id="paragraphs">') },
    { name: "a picture above what to pay", reason: /#amount ends at/, check: "what to pay is on the first screen", change: (html) => html.replace('<div id="paragraphs">', `${"<p>More words.</p>".repeat(40)}<div id="paragraphs">`) },
    { name: "a heavy comment", reason: /bytes/, check: "the page is light", change: (html) => html.replace("</body>", `<!--${"x".repeat(40000)}--></body>`) },
    { name: "a line that does not break", reason: /<pre>/, check: "nothing overflows", change: (html) => html.replace('<div id="paragraphs">', `<pre>${"x".repeat(200)}</pre><div id="paragraphs">`) },
    { name: "too little contrast", reason: /^color-contrast/, check: "accessible by the rules of axe", withoutPolicy: true, change: (html) => html.replace("--muted: #555e6a", "--muted: #a0a0a0") },
    { name: "a button without a name", reason: /button-name/, check: "accessible by the rules of axe", change: (html) => html.replace(">Copy amount<", "><") },
    { name: "an answer that cannot be read, in a closed question", reason: /^color-contrast/, check: "accessible by the rules of axe", withoutPolicy: true, change: (html) => html.replace("</summary><p>", '</summary><p style="color: #a0a0a0">') },
    { name: "no reload", reason: /reloads itself/, check: "without scripts the page says it all and reloads itself", scripts: false, change: (html) => html.replace(/<meta http-equiv="refresh"[^>]*>/, "") },
  ];
};


try {
  const awaiting = await transfer();
  const looks = Object.keys(sizes).flatMap((size) => ["light", "dark"].map((scheme) => ({ size, scheme })));
  for (const look of looks) {
    const opened = await open(awaiting.page, look);
    await picture(opened, `awaiting_payment-${look.size}-${look.scheme}`);
    for (const [name, check] of Object.entries(checks)) {
      await attempt(`${look.size}, ${look.scheme}: ${name}`, () => check(opened, awaiting));
    }
    await opened.context.close();
  }

  const control = (one) => attempt(`control: broken is ${one.name}; "${one.check}" ${one.passes ? "passes" : "fails"}`, async () => {
    const opened = await open(awaiting.page, { broken: one, scripts: one.scripts });
    const check = { ...checks, ...withoutScript }[one.check];
    const error = await check(opened, awaiting).then(() => null, (thrown) => thrown);
    await opened.context.close();
    if (one.passes && error) throw error;
    if (!one.passes && !error) fail("it passed on the broken copy");
    if (!one.passes && !one.reason.test(error.message)) fail(`it failed for another reason: ${error.message}`);
  });
  const all = await controls();
  // What mostly waits runs beside the others.
  const waiting = [
    ...Object.entries(withoutScript).map(([name, check]) => attempt(name, async () => {
      const opened = await open(awaiting.page, { scripts: false });
      await picture(opened, "awaiting_payment-phone-without_script");
      await check(opened, awaiting);
      await opened.context.close();
    })),
    ...all.filter((one) => one.scripts === false).map(control),
  ];

  waiting.push(attempt("the state moves by itself until the payment is received", async () => {
    const made = await transfer();
    const opened = await open(made.page);
    await opened.page.evaluate(() => { window.isSameDocument = true; });
    const headlines = [await opened.page.locator("#headline").textContent()];
    const watch = (async () => {
      await until("the page says that it was received", async () => {
        const headline = await opened.page.locator("#headline").textContent();
        if (headlines.at(-1) !== headline) headlines.push(headline);
        return ["Your payment was received", "Paid out"].includes(headline);
      });
    })();
    await deposit(made);
    await watch;
    same(headlines[0], "Waiting for your payment", "the first headline");
    if (opened.seen.requests.some((url) => url.includes("/state"))) fail("the page asked, although there is a stream");
    const between = headlines.filter((headline) => ["Your payment was seen", "Your payment is being confirmed"].includes(headline));
    if (!between.length) fail(`nothing between: ${headlines}`);
    same(await opened.page.evaluate(() => window.isSameDocument), true, "the document");
    same(await opened.page.locator("#pay").count(), 0, "sections that ask for money");
    same(await opened.page.locator("#received").textContent(), "1234.50", "received");
    await until("paid out", async () => (await opened.page.locator("#headline").textContent()) === "Paid out");
    const asked = opened.seen.requests.length;
    await sleep(5000);
    same(opened.seen.requests.length, asked, "requests after the end");
    await checks["nothing is asked of others, and nobody complains"](opened);
    same(await opened.page.locator("#receipt:visible #receipt-sent").textContent(), "1234.50 USDT", "the receipt");
    await checks["test mode is told on paper"](opened);
    same(await opened.page.locator("#help").count(), 0, "help that is left over");
    await picture(opened, "paid_out-live");
    await opened.context.close();
  }));
  waiting.push(attempt("a connection that is gone is told, and asked for again", async () => {
    const opened = await open((await transfer()).page);
    // The stream that is open goes on, so the page is opened again without one.
    await opened.context.route(/\/(state|stream)/, (route) => route.abort());
    await opened.page.reload();
    await opened.page.locator("#trouble:visible").waitFor({ timeout: WAIT_MILLISECONDS });
    await opened.context.unroute(/\/(state|stream)/);
    await opened.page.locator("#trouble").waitFor({ state: "hidden", timeout: WAIT_MILLISECONDS });
    await opened.context.close();
  }));
  waiting.push(attempt("without streams the page asks", async () => {
    const made = await transfer();
    const opened = await open(`${made.page}?lang=en`);
    await opened.context.route(/\/stream/, (route) => route.fulfill({ status: 503, body: "" }));
    await opened.page.reload();
    await deposit(made);
    await until("the page says that it was seen", async () => (await opened.page.locator("#headline").textContent()) !== "Waiting for your payment");
    if (!opened.seen.requests.some((url) => url.includes("/state"))) fail("it did not ask");
    await opened.context.close();
  }));
  waiting.push(attempt("a payment is simulated, a refund's address is given, and the page says so", async () => {
    const made = await transfer(undefined, { payer_sets_refund_address: true });
    await deposit(made, { amount: "1300.00" });
    await until("a refund waits", async () => (await call("GET", `/v1/transfers/${made.id}`)).refund?.status === "requires_address");
    const opened = await open(made.page, { size: "phone" });
    await opened.page.locator("#refund-address").fill("TMVQGm1qAQYVdetCeGRRkTWYYrLXuHK2HX");
    await opened.page.getByRole("button", { name: "Continue" }).click();
    await opened.page.getByRole("heading", { name: "Please check the address" }).waitFor();
    await picture(opened, "refund_address-wrong");
    await checks["accessible by the rules of axe"](opened);
    await opened.page.locator("#address").fill("TMVQGm1qAQYVdetCeGRRkTWYYrLXuHK2HC");
    await opened.page.getByRole("button", { name: "Continue" }).click();
    await opened.page.getByRole("heading", { name: "Is this your address?" }).waitFor();
    await picture(opened, "refund_address-confirm");
    await checks["nothing overflows"](opened);
    await checks["accessible by the rules of axe"](opened);
    await opened.page.getByRole("button", { name: "Yes" }).click();
    await opened.page.getByText("goes to the address that you gave").waitFor();
    same(await opened.page.locator("#refund").count(), 0, "forms after the address was given");
    const refund = (await call("GET", `/v1/transfers/${made.id}`)).refund;
    same(refund.payer_address?.to_address, "TMVQGm1qAQYVdetCeGRRkTWYYrLXuHK2HC", "the address that was kept");
    await opened.context.close();
    const other = await transfer();
    const simulated = await open(other.page);
    await simulated.page.getByRole("button", { name: "Simulate payment" }).click();
    await until("the payment is seen", async () => (await simulated.page.locator("#headline").textContent()) !== "Waiting for your payment");
    await simulated.context.close();
  }));
  for (const one of all.filter((one) => one.scripts !== false)) await control(one);
  await Promise.all(waiting);

  // Each language on both screens and in both themes, chosen by the switch and by the browser.
  for (const [number, code] of languages.entries()) {
    for (const size of Object.keys(sizes)) {
      const scheme = (number + (size === "phone" ? 0 : 1)) % 2 ? "dark" : "light";
      const opened = await open(`${awaiting.page}?lang=${code}`, { size, scheme });
      await picture(opened, `language-${code}-${size}-${scheme}`);
      for (const name of ["what to pay is on the first screen", "the page is light", "nothing overflows", "accessible by the rules of axe", "the QR code is the address"]) {
        await attempt(`${code}, ${size}, ${scheme}: ${name}`, () => checks[name](opened, awaiting));
      }
      await attempt(`${code}, ${size}: language and direction`, async () => {
        const box = await opened.page.locator("#headline").boundingBox();
        if (!box || box.height < 10) fail("no headline");
        same(await opened.page.evaluate(() => document.documentElement.lang), code, "the language");
        same(await opened.page.evaluate(() => document.documentElement.dir), code === "ar" ? "rtl" : "ltr", "the direction");
      });
      await opened.context.close();
    }
  }
  await attempt("the switch changes the language, and the page keeps it", async () => {
    const opened = await open(awaiting.page);
    await opened.page.locator(".languages summary").click();
    await opened.page.getByRole("link", { name: "हिन्दी" }).click();
    await opened.page.locator("#headline", { hasText: "आपके भुगतान की प्रतीक्षा है" }).waitFor();
    await opened.page.reload();
    same(await opened.page.evaluate(() => document.documentElement.lang), "hi", "the language after a reload");
    await opened.context.close();
  });

  // One page for each state that a payer can meet, then the same checks of form on all of them.
  const states = { partly_paid: await transfer(), too_little: await transfer(), too_late: await transfer(), expired: await transfer(), cancelled: await transfer() };
  states.too_much = await transfer(undefined, { policy: { overpaid: "hold" } });
  states.paid_out = await transfer();
  states.refund_needs_address = await transfer("50100012341001");
  states.refunded = await transfer("50100012341001", { refund_address: "TMVQGm1qAQYVdetCeGRRkTWYYrLXuHK2HC" });
  states.paying_out = await transfer("50100012341003");
  states.hurried = await transfer();
  await deposit(states.partly_paid, { amount: "1000.123456" });
  await deposit(states.partly_paid, { amount: "5.00", asset: "TRX" });
  await deposit(states.too_little, { amount: "200.00" });
  await deposit(states.too_much, { amount: "2000.00" });
  await deposit(states.paid_out, { amount: "1300.00" });
  for (const one of ["refund_needs_address", "refunded", "paying_out"]) await deposit(states[one]);
  await call("POST", `/v1/transfers/${states.cancelled.id}/cancel`, {});
  await status(states.too_much, "funding_hold");
  await status(states.paid_out, "payout_settled");
  await status(states.refund_needs_address, "refund_processing");
  await status(states.refunded, "refunded");
  await status(states.paying_out, "payout_processing");
  states.confirming = await transfer();
  await deposit(states.confirming);
  await until("it is confirming", async () => (await (await fetch(`${states.confirming.page}/state`)).json()).phase === "confirming");
  const look = async (name, made, options) => {
    const opened = await open(made.page, options);
    await attempt(`${name}: ${options.size}, ${options.scheme}`, async () => {
      const wanted = name === "hurried" ? "awaiting_payment" : name;
      same((await (await fetch(`${made.page}/state`)).json()).phase, wanted, "the state");
      await picture(opened, `${name}-${options.size}-${options.scheme}`);
      const text = await opened.page.locator("main").innerText();
      if (!text.includes("GST") || text.includes("UTC")) fail(`a time is not in the reader's zone: ${text}`);
      if (await opened.page.locator("#pay").count()) await checks["what to pay is on the first screen"](opened);
      await checks["nothing overflows"](opened);
      await checks["accessible by the rules of axe"](opened);
      await checks["nothing is asked of others, and nobody complains"](opened);
    });
    await opened.context.close();
  };
  for (const name of ["confirming", "partly_paid", "too_much", "paid_out", "refund_needs_address", "refunded", "paying_out", "cancelled"]) {
    await look(name, states[name], looks[(name.length + 1) % 4]);
  }
  // Time goes on to two minutes before the end.
  const now = (await (await fetch(`${states.hurried.page}/state`)).json()).now;
  await advance(states.hurried.funding.expires_at - now - 120);
  await look("hurried", states.hurried, { size: "phone", scheme: "light" });
  await advance(110);
  await attempt("the countdown ends, and nothing may be sent any more", async () => {
    const opened = await open(states.hurried.page);
    same(await opened.page.locator("#pay").count(), 1, "sections that ask for money");
    await opened.page.locator("#headline", { hasText: "The time is up" }).waitFor({ timeout: WAIT_MILLISECONDS });
    same(await opened.page.locator("#pay").count(), 0, "sections that ask for money after the end");
    await opened.context.close();
  });
  await status(states.expired, "expired");
  await status(states.too_little, "funding_hold");
  await deposit(states.too_late, { amount: "1234.50" });
  await status(states.too_late, "funding_hold");
  for (const name of ["expired", "too_little", "too_late"]) await look(name, states[name], looks[(name.length + 1) % 4]);
  const settled = (await call("GET", `/v1/transfers/${states.paid_out.id}`)).payout_id;
  const issued = await until("the payment advice is there", async () => (await call("GET", `/v1/payouts/${settled}`)).payment_advice.status === "available");
  if (issued) {
    const advice = await call("GET", `/v1/payouts/${settled}/payment_advice`);
    const path = new URL(advice.verification_url).pathname;
    for (const [number, code] of languages.entries()) {
      for (const [page, name] of [[path, "genuine"], ["/verify/nothing", "not_verified"]]) {
        const look = { size: number % 2 ? "phone" : "desktop", scheme: number % 3 ? "light" : "dark" };
        const opened = await open(`${address}${page}?lang=${code}`, look);
        await attempt(`verification page, ${name}, ${code}, ${look.size}, ${look.scheme}`, async () => {
          await picture(opened, `verify-${name}-${code}`);
          await checks["nothing overflows"](opened);
          await checks["accessible by the rules of axe"](opened);
          await checks["the page is light"](opened);
          if (name === "genuine") await checks["test mode is told on paper"](opened);
        });
        await opened.context.close();
      }
    }
  }
  await attempt("a wrong link is told in plain words", async () => {
    const opened = await open(`${address}/pay/nothing`, { size: "phone", scheme: "light" });
    await picture(opened, "not_found-phone-light");
    same(await opened.page.locator("h1").textContent(), "This payment link does not work", "the headline");
    await checks["nothing overflows"](opened);
    await checks["accessible by the rules of axe"](opened);
    await opened.context.close();
  });
} finally {
  await end();
}
