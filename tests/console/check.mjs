// Does in a browser what operators do, and looks for what a browser can tell. Arguments: the server's address, the
// console's.
import { createServer } from "node:http";
import {
  axe, call, consoleAddress, crowd, decide, deposit, fail, furnish, labelled, launch, makeKey, pagesOf, queues, same, signIn, totp, transfer, typeSignIn,
  until, visit,
} from "./drive.mjs";

const made = await furnish();
const browser = await launch();
const utr = made.paid.payout.unique_transaction_reference;
let count = 0;
const check = async (name, run) => {
  try {
    await run();
    count += 1;
  } catch (error) {
    throw new Error(`${name}: ${error.message}`, { cause: error });
  }
};
const shown = async (page, text) => {
  await page.getByText(text, { exact: false }).first().waitFor();
};

// What the console itself says, and not data, in Latin letters alone: of a language that has others.
const leftover = (page) => page.evaluate((known) => {
  const own = "nav a, h2, h3, th, dt, label, legend, button, summary, .chip, .theme, .story strong, .note, .empty, .figure .label, .stage .label";
  const texts = [...document.querySelectorAll(own)].filter((one) => !one.closest(".who, dialog")).map((one) => one.innerText.trim());
  return texts.filter((text) => /[A-Za-z]{3}/.test(text) && !/[^\u0000-\u02AF\u2000-\u2BFF]/.test(text) && !known.includes(text));
}, ["IFSC", "UTR", "NEFT", "IMPS", "RTGS"]);

// Fails if a table is wider than its card, so that a column is out of sight.
const whole = async (page) => {
  const cut = await page.evaluate(() => [...document.querySelectorAll(".scroll")]
    .filter((one) => one.scrollWidth > one.clientWidth)
    .map((one) => one.getAttribute("aria-label")));
  if (cut.length) fail(`tables are cut at 768 pixels: ${cut.join(" | ")}`);
};

// Parts of codes that a page breaks in the middle though they are short.
const torn = (page) => page.evaluate(() => {
  const found = [];
  for (const code of document.querySelectorAll("td code, dd code")) {
    const walker = document.createTreeWalker(code, NodeFilter.SHOW_TEXT);
    const letters = [];
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      for (let at = 0; at < node.data.length; at += 1) letters.push([node, at]);
    }
    for (const part of code.textContent.matchAll(/[^._:\s]+[._:]?/g)) {
      if (part[0].length > 16) continue;
      const lines = letters.slice(part.index, part.index + part[0].length).map(([node, at]) => {
        const range = document.createRange();
        range.setStart(node, at);
        range.setEnd(node, at + 1);
        return Math.round(range.getBoundingClientRect().top);
      });
      if (new Set(lines).size > 1) found.push(`${part[0]} of ${code.textContent}`);
    }
  }
  return found;
});

// Fails if a page is wider than the screen.
const fits = async (page) => {
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  if (wide > 0) fail(`the page is ${wide} pixels too wide`);
};

// A page, with its tables at 768 pixels and everything else at a width.
const looksRight = async (page, path, width) => {
  await page.setViewportSize({ width: 768, height: 900 });
  await page.goto(consoleAddress + path);
  await whole(page);
  await page.setViewportSize({ width, height: 900 });
  await fits(page);
  const broken = await torn(page);
  if (broken.length) fail(`codes are torn: ${broken.join(" | ")}`);
  await axe(page);
};

const WAITS = "Another person has to approve it";

try {
  const page = await signIn(browser, "asha");
  const second = await signIn(browser, "meera");
  // What a second person finds and approves; answers what the page of requests said of it.
  const approve = async (subject) => {
    await second.goto(`${consoleAddress}/console/approvals`);
    const request = second.locator("section.card", { hasText: subject });
    const said = await request.innerText();
    await request.getByRole("button", { name: "Approve and carry out" }).click();
    await shown(second, "Approved and carried out.");
    return said;
  };

  await check("a transfer is found by its UTR", async () => {
    await page.getByRole("searchbox").fill(utr.toLowerCase());
    await page.keyboard.press("Enter");
    await page.getByRole("link", { name: `transfer_…${made.paid.id.slice(-8)}` }).click();
    await page.waitForURL(`${consoleAddress}/console/transfers/${made.paid.id}`);
    await shown(page, utr);
    await shown(page, "Invoice 4711");
  });

  await check("a hold is put under review and resolved", async () => {
    await page.goto(`${consoleAddress}/console/queues/holds`);
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await page.waitForURL(new RegExp(`/console/transfers/${made.held.id}`));
    await decide(page, "Put under review");
    await shown(page, "Decided.");
    await decide(page, "Refuse");
    await shown(page, WAITS);
    same((await call("GET", `/v1/transfers/${made.held.id}`)).status, "funding_hold", "before the second person");
    const said = await approve(made.held.id);
    for (const part of ["Refuse", "asha", "the browser's test", "above the limit"]) if (!said.includes(part)) fail(`no ${part} in ${said}`);
    await page.goto(`${consoleAddress}/console/transfers/${made.held.id}`);
    const found = await call("GET", `/v1/transfers/${made.held.id}`);
    same(found.status, "refund_processing", "the transfer");
    // Who decided, and why, stands in its story.
    await page.locator(".story").getByText("the browser's test").first().waitFor();
    await page.locator(".story").getByText("asha").first().waitFor();
  });

  await check("a refund gets its address", async () => {
    await page.goto(`${consoleAddress}/console/transfers/${made.held.id}`);
    await decide(page, "Set the address", { "Address on the refund's chain": "TMVQGm1qAQYVdetCeGRRkTWYYrLXuHK2HC" },
      page.locator("form.form", { hasText: "goes" }).last());
    await shown(page, WAITS);
    const said = await approve("TMVQGm1qAQYVdetCeGRRkTWYYrLXuHK2HC");
    if (!said.includes("Set the address")) fail(said);
    await until("the refund has its address", async () => {
      const found = await call("GET", `/v1/refunds?transfer_id=${made.held.id}`);
      return found.data[0].to_address === "TMVQGm1qAQYVdetCeGRRkTWYYrLXuHK2HC";
    });
  });

  await check("a hit is cleared from its queue", async () => {
    await page.goto(`${consoleAddress}/console/queues/reviews`);
    await shown(page, process.env.HUNDI_TEST_SUSPECT);
    await page.getByRole("checkbox").first().check();
    await decide(page, "Approve");
    await shown(page, "Decided.");
    await shown(page, "No hit waits");
  });

  await check("a decision without a reason is not taken", async () => {
    await page.goto(`${consoleAddress}/console/pauses`);
    await page.getByRole("button", { name: "Pause", exact: true }).click();
    same(await page.evaluate(() => document.querySelector("input:invalid")?.name), "reason", "what the browser asks for");
  });

  await check("payouts are paused and resumed", async () => {
    const form = page.locator("form", { has: page.getByLabel("For whom") });
    await labelled(form, "What").selectOption("payouts");
    await decide(page, "Pause", {}, form);
    await shown(page, "Paused.");
    await shown(page, "asha");
    const ready = await (await fetch(`${process.argv[2]}/readyz`)).text();
    if (!ready.includes("payouts are paused")) fail(ready);
    await decide(page, "Let go on");
    await shown(page, WAITS);
    await approve("payouts");
    await page.goto(`${consoleAddress}/console/pauses`);
    await shown(page, "Nothing is paused");
  });

  await check("who asks cannot approve, and of two at once one is told", async () => {
    const form = page.locator("form", { has: page.getByLabel("For whom") });
    await labelled(form, "What").selectOption("quotes");
    await decide(page, "Pause", {}, form);
    await shown(page, "Paused.");
    await second.goto(`${consoleAddress}/console/pauses`);
    await decide(second, "Let go on");
    await shown(second, WAITS);
    await second.goto(`${consoleAddress}/console/approvals`);
    const own = second.locator("section.card", { hasText: "You asked for this" });
    same(await own.getByRole("button", { name: "Approve and carry out" }).count(), 0, "buttons to approve one's own");
    await decide(second, "Reject", { "Why not": "asked by the other one" }, own).catch(async () => {});
    await shown(second, "Rejected.");
    await page.goto(`${consoleAddress}/console/pauses`);
    await decide(page, "Let go on");
    await shown(page, WAITS);
    // Both have the page open, and decide at the same moment.
    const third = await signIn(browser, "ravi");
    const both = [second, third];
    for (const person of both) await person.goto(`${consoleAddress}/console/approvals`);
    await Promise.all(both.map((person) => person.getByRole("button", { name: "Approve and carry out" }).click()));
    const told = await Promise.all(both.map(async (person) => {
      await person.getByText(/Approved and carried out\.|Nothing was changed|already/).first().waitFor();
      return person.locator("main").innerText();
    }));
    same(told.filter((text) => text.includes("Approved and carried out.")).length, 1, "who won");
    same(told.filter((text) => /approved it already/.test(text)).length, 1, "who was told");
    await page.goto(`${consoleAddress}/console/pauses`);
    await shown(page, "Nothing is paused");
    await third.context().close();
  });

  await check("a second factor is set up, asked for, and replaced by a recovery code", async () => {
    const tara = await signIn(browser, "tara");
    await tara.goto(`${consoleAddress}/console/account/second_factor`);
    await tara.getByRole("button", { name: "Set it up" }).click();
    const secret = await tara.locator("#secret").innerText();
    await tara.getByRole("img", { name: "QR code" }).waitFor();
    await axe(tara);
    await tara.getByLabel("The code that the app shows").fill(totp(secret));
    await tara.getByRole("button", { name: "Confirm" }).click();
    await shown(tara, "Recovery codes");
    const codes = await tara.locator(".codes code").allInnerTexts();
    same(codes.length, 10, "recovery codes");
    await axe(tara);
    await tara.context().close();
    const fresh = await visit(browser);
    await typeSignIn(fresh, "tara");
    await fresh.getByRole("alert").getByText("is wrong").waitFor();
    // No code is taken twice, so this is the next one.
    await typeSignIn(fresh, "tara", totp(secret, 1));
    await fresh.waitForURL(`${consoleAddress}/console`);
    await fresh.context().close();
    const lost = await visit(browser);
    await typeSignIn(lost, "tara", codes[0]);
    await lost.waitForURL(`${consoleAddress}/console`);
    await lost.context().close();
  });

  await check("a full account number takes a reason and stands in the audit log", async () => {
    const path = `${consoleAddress}/console/beneficiaries/${made.paid.beneficiary_id}`;
    await page.goto(path);
    if ((await page.content()).includes("50100012345678")) fail("it is shown unasked");
    const form = page.locator("form", { has: page.getByRole("button", { name: "Show it" }) });
    await labelled(form, "Why").fill("the bank asks for it");
    await form.getByRole("button", { name: "Show it" }).click();
    same(await page.locator(".account-number").innerText(), "50100012345678", "the number");
    await axe(page);
    await page.goto(`${consoleAddress}/console/audit?action=account_number_seen`);
    const row = page.getByRole("row").filter({ hasText: "the bank asks for it" });
    for (const part of ["asha", "Looked at an account number", "Fits"]) await row.getByText(part).first().waitFor();
  });

  await check("the audit log is filtered and verified", async () => {
    await page.goto(`${consoleAddress}/console/audit`);
    await page.getByLabel("Who").selectOption("tara");
    await page.getByRole("button", { name: "Show", exact: true }).click();
    await page.getByRole("row").filter({ hasText: "Second factor set up" }).waitFor();
    same(await page.getByRole("row").filter({ hasText: "asha" }).count(), 0, "rows of others");
    await page.getByRole("link", { name: "Verify the whole log" }).click();
    await shown(page, "The whole log was verified");
  });

  await check("a delivery is made again", async () => {
    const before = made.deliveries.length;
    await page.goto(`${consoleAddress}/console/webhooks/${made.endpoint.id}`);
    await page.getByRole("checkbox").last().check();
    await decide(page, "Deliver again", {}, page.locator("form.picked"));
    await shown(page, "On its way again.");
    await until("the receiver is asked again", () => made.deliveries.length > before);
  });

  await check("a page follows without losing what one types", async () => {
    const waiting = await transfer("310.00");
    await page.goto(`${consoleAddress}/console/transfers/${waiting.id}`);
    await page.getByRole("searchbox").fill("half a wo");
    await deposit(waiting);
    await page.locator("#live .chip", { hasText: "Paid" }).first().waitFor();
    same(await page.getByRole("searchbox").inputValue(), "half a wo", "the search box");
  });

  await check("times are the viewer's, with India's beside them", async () => {
    await page.goto(`${consoleAddress}/console/transfers/${made.paid.id}`);
    const times = page.locator("main time");
    // Also those that came with a part of the page.
    for (const round of [1, 2]) {
      await times.first().filter({ hasText: "IST)" }).waitFor();
      for (const time of await times.all()) {
        const [at, text] = [new Date(await time.getAttribute("datetime")), await time.innerText()];
        const clock = (timeZone, second) => at.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", second, timeZone });
        if (!text.includes(clock("Asia/Dubai", "2-digit")) || !text.includes(clock("Asia/Kolkata")) || !text.includes("IST")) fail(text);
      }
      if (round === 1) await page.waitForResponse((answer) => answer.url().endsWith("/live") && answer.ok());
    }
  });

  await check("the keys tell themselves", async () => {
    await page.goto(`${consoleAddress}/console/transfers`);
    await page.keyboard.press("?");
    await page.getByRole("dialog").getByText("Enter opens the row").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "hidden" });
    await page.keyboard.press("/");
    same(await page.evaluate(() => document.activeElement.id || document.activeElement.outerHTML.slice(0, 300)), "find", "where / goes");
  });

  await check("a closing and a statement are downloaded", async () => {
    await page.goto(`${consoleAddress}/console/reports`);
    const [closing] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: "Download as CSV" }).click()]);
    if (!/^closing-test-.*\.csv$/.test(closing.suggestedFilename())) fail(closing.suggestedFilename());
    const [statement] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Download as CSV" }).click()]);
    if (!/^statement-1-test-.*\.csv$/.test(statement.suggestedFilename())) fail(statement.suggestedFilename());
  });

  await check("an administrator makes a key, which is shown once, and revokes it", async () => {
    const admin = await signIn(browser, "nila");
    await admin.goto(`${consoleAddress}/console/accounts`);
    const key = await makeKey(admin, "browser");
    const ask = async () => (await fetch(`${process.argv[2]}/v1/transfers`, { headers: { authorization: `Bearer ${key}` } })).status;
    same(await ask(), 200, "what the key gets");
    for (const width of [360, 1280]) {
      await admin.setViewportSize({ width, height: 900 });
      await fits(admin);
    }
    await axe(admin);
    await admin.getByRole("link", { name: "I have kept it" }).click();
    await shown(admin, "rk_test_…");
    await axe(admin);
    await shown(admin, "webhook_endpoints:read");
    await admin.setViewportSize({ width: 360, height: 900 });
    same((await torn(admin)).join(" | "), "", "torn permissions");
    await admin.setViewportSize({ width: 1280, height: 900 });
    if ((await admin.content()).includes(key)) fail("the account's page shows it again");
    await admin.getByRole("checkbox").check();
    await decide(admin, "Revoke the ticked keys", {}, admin.locator("form.picked"));
    await shown(admin, "It stops working within a second");
    await until("the key is refused", async () => (await ask()) === 401);
    same(await admin.getByRole("checkbox").count(), 0, "keys to revoke");
    await admin.goto(`${consoleAddress}/console/audit?action=key_revoked`);
    const row = admin.getByRole("row").filter({ hasText: "the browser's test" });
    await row.getByText("nila").first().waitFor();
    await admin.context().close();
    // Who is no administrator has no form for it.
    await page.goto(`${consoleAddress}/console/accounts/1`);
    await shown(page, "An administrator makes and revokes keys here");
    same(await page.locator("form[action^='/console/keys/']").count(), 0, "forms for keys");
  });

  await check("a viewer reads and decides nothing", async () => {
    const viewer = await signIn(browser, "vijay");
    await viewer.goto(`${consoleAddress}/console/senders/${made.suspect.id}`);
    await shown(viewer, "Your role reads only");
    same(await viewer.locator("form[action='/console/decide']").count(), 0, "forms to decide");
    await viewer.goto(`${consoleAddress}/console/beneficiaries/${made.paid.beneficiary_id}`);
    same(await viewer.getByRole("button", { name: "Show it" }).count(), 0, "buttons to the account number");
    await viewer.goto(`${consoleAddress}/console/pauses`);
    same(await viewer.getByRole("button", { name: "Pause", exact: true }).count(), 0, "buttons to pause");
    // Whoever sends the form all the same is refused.
    const token = await viewer.locator("input[name=token]").first().inputValue();
    const status = await viewer.evaluate(async ([object, token]) => {
      const body = new URLSearchParams({ token, object, decision: "refuse", reason: "not allowed" });
      return (await fetch("/console/decide", { method: "POST", body })).status;
    }, [made.suspect.id, token]);
    same(status, 403, "the answer");
    await viewer.context().close();
  });

  await crowd();
  await check("each queue has its rows, which keys walk through", async () => {
    for (const queue of queues) {
      await page.goto(`${consoleAddress}/console/queues/${queue}`);
      const rows = page.locator("main tbody tr");
      if ((await rows.count()) < 1) fail(`${queue} has no rows`);
      for (let step = 0; step < 2; step += 1) await page.keyboard.press("j");
      const here = page.locator("tr.here");
      same(await here.count(), 1, `rows that ${queue} stands on`);
      await page.keyboard.press("k");
      same(await rows.first().evaluate((row) => row.classList.contains("here")), true, `the first row of ${queue}`);
      const href = await here.getAttribute("data-href");
      if (!href) continue;
      await page.keyboard.press("Enter");
      await page.waitForURL(consoleAddress + href);
    }
  });
  await check("a queue is filtered and sorted", async () => {
    await page.goto(`${consoleAddress}/console/queues/differences`);
    await page.locator("form.form select[name=sort]").selectOption("amount");
    await page.locator("form.form", { has: page.locator("select[name=sort]") }).getByRole("button").click();
    const first = page.locator("main tbody tr").first();
    await first.getByText("40.00").waitFor();
    await page.locator("form.form select[name=reason]").selectOption("movement_not_in_book");
    await page.locator("form.form", { has: page.locator("select[name=sort]") }).getByRole("button").click();
    await page.waitForURL(/reason=movement_not_in_book/);
    same(await page.locator("main tbody tr").count(), 1, "rows of that reason");
    // The bank's lines belong to live mode.
    await page.locator("form.form select[name=reason]").selectOption("");
    await page.locator("form.form select[name=mode]").selectOption("live");
    await page.locator("form.form", { has: page.locator("select[name=sort]") }).getByRole("button").click();
    await page.locator("main tbody tr", { hasText: "INTEREST 4711" }).waitFor();
  });
  await check("a queue follows without losing what one types and ticks", async () => {
    await second.setViewportSize({ width: 1280, height: 420 });
    await second.goto(`${consoleAddress}/console/queues/holds?sort=newest`);
    const oldest = second.locator("main tbody tr").last();
    await oldest.getByRole("checkbox").check();
    const ticked = await second.locator("main tbody input:checked").evaluateAll((all) => all.map((box) => box.value));
    const reason = labelled(second.locator("form.picked"), "Why");
    await reason.pressSequentially("a reason");
    for (let step = 0; step < 3; step += 1) await second.keyboard.press("ArrowLeft");
    // What one reads stays where it is.
    const top = (locator) => locator.evaluate((one) => Math.round(one.getBoundingClientRect().top));
    const before = [await top(oldest), await top(reason)];
    const short = await transfer("120.00");
    await deposit(short, { amount: "100.00" });
    await until("money came", async () => (await call("GET", `/v1/transfers/${short.id}`)).funding.amount_received === "100.00");
    await call("POST", "/v1/test_helpers/clock", { advance_seconds: 2000 });
    await second.locator(`tr[data-key="${short.id}"]`).waitFor();
    same(await second.locator("main tbody tr").first().getAttribute("data-key"), short.id, "the first row");
    await second.keyboard.type("--");
    same(await reason.inputValue(), "a rea--son", "what was typed on at the same place");
    const now = await second.locator("main tbody input:checked").evaluateAll((all) => all.map((box) => box.value));
    same(JSON.stringify(now), JSON.stringify(ticked), "ticked rows");
    same(JSON.stringify([await top(oldest), await top(reason)]), JSON.stringify(before), "places on the screen");
    // A row that one stands on keeps the focus too, and a server that does not answer changes nothing.
    await reason.blur();
    await second.keyboard.press("j");
    await second.route(/\/live/, (route) => route.fulfill({ status: 503, body: "busy" }));
    await second.locator("#stale").waitFor();
    const stands = () => second.evaluate(() => document.activeElement.closest("tr.here")?.dataset.key);
    same(await stands(), short.id, "the row that one stands on");
    await second.unroute(/\/live/);
    await second.locator("#stale").waitFor({ state: "hidden" });
    same(await stands(), short.id, "the row that one stands on, after new rows");
    await second.setViewportSize({ width: 1280, height: 900 });
  });
  await check("several rows are decided at once", async () => {
    await page.goto(`${consoleAddress}/console/queues/reviews`);
    const boxes = page.locator("main tbody input[type=checkbox]");
    const before = await boxes.count();
    if (before < 2) fail(`${before} hits`);
    // By keys alone: x ticks the row that one stands on.
    for (let step = 0; step < 2; step += 1) {
      await page.keyboard.press("j");
      await page.keyboard.press("x");
    }
    same(await page.locator("main tbody input:checked").count(), 2, "ticked rows");
    await decide(page, "Approve");
    await shown(page, "Decided.");
    same(await page.locator("main tbody tr").count(), before - 2, "rows that are left");
    for (const country of ["AE", "US"]) {
      await call("POST", "/v1/senders", { name: process.env.HUNDI_TEST_SUSPECT, type: "individual", country });
    }
  });

  const paths = Object.entries(pagesOf(made));
  for (const scheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme: scheme });
    for (const [name, path] of paths) {
      await check(`${name} in ${scheme}`, async () => {
        await looksRight(page, path, scheme === "light" ? 360 : 1440);
      });
    }
  }
  await check("a code breaks between its parts, and is copied whole", async () => {
    await page.setViewportSize({ width: 360, height: 900 });
    await page.goto(`${consoleAddress}/console/webhooks/${made.endpoint.id}`);
    const code = page.locator("td code", { hasText: "payout_processing" }).first();
    const text = await code.evaluate((one) => one.textContent);
    if (!/^[a-z_]+(\.[a-z_]+)+$/.test(text)) fail(text);
    const copied = await code.evaluate((one) => {
      getSelection().selectAllChildren(one);
      return getSelection().toString();
    });
    same(copied, text, "what is copied");
    same(await code.innerText(), text, "what is read");
    // The control: without the places to break, a narrow page tears codes.
    same((await torn(page)).length, 0, "torn codes");
    await page.evaluate(() => {
      for (const one of document.querySelectorAll("code wbr")) one.remove();
      document.body.normalize();
    });
    if (!(await torn(page)).length) fail("no code is torn without its places to break");
  });
  await page.emulateMedia({ colorScheme: "light" });
  const choice = page.locator("#language");
  await page.goto(`${consoleAddress}/console/account`);
  const languages = await choice.locator("option").evaluateAll((all) => all.map((one) => [one.value, one.textContent]));
  if (!languages.some(([code]) => code === "hi")) fail(`no Hindi among ${languages}`);
  for (const [code, language] of languages.filter(([code]) => code !== "en")) {
    await check(`the page that signs in is in ${language}`, async () => {
      const fresh = await visit(browser, { locale: code });
      same(await fresh.evaluate(() => document.documentElement.lang), code, "its language");
      await axe(fresh);
      await fresh.context().close();
    });
    await page.goto(`${consoleAddress}/console/account`);
    await choice.selectOption(code);
    await page.locator("form", { has: choice }).getByRole("button").click();
    await page.waitForFunction((code) => document.documentElement.lang === code, code);
    for (const [name, path] of paths) {
      await check(`${name} in ${language}`, async () => {
        await looksRight(page, path, 360);
        const english = /[A-Za-z]/.test(language) ? [] : await leftover(page);
        if (english.length) fail(`English is left: ${english.join(" | ")}`);
      });
    }
  }
  await check("axe notices a broken page", async () => {
    await page.goto(`${consoleAddress}/console/account`);
    await page.evaluate(() => document.querySelectorAll("label").forEach((label) => label.remove()));
    await axe(page).then(() => fail("nothing was noticed"), (error) => { if (!error.message.includes("label")) throw error; });
  });
  await check("no page of another origin frames the console", async () => {
    const host = createServer((request, answer) => {
      answer.writeHead(200, { "content-type": "text/html" }).end(`<title>A game</title><iframe src="${consoleAddress}/console/approvals"></iframe>`);
    });
    await new Promise((done) => host.listen(0, "127.0.0.1", done));
    // Another port of this machine is of the same site, so the frame's request has the session's cookie.
    const context = await browser.newContext({ storageState: await page.context().storageState() });
    // Whether the frame shows the console if its answer lacks these headers, and the policy this directive.
    const isFramed = async (headers, directive) => {
      const game = await context.newPage();
      let status;
      await game.route(`${consoleAddress}/**`, async (route) => {
        const answer = await route.fetch();
        status ??= answer.status();
        const kept = Object.entries(answer.headers()).filter(([name]) => !headers.includes(name));
        const loosened = kept.map(([name, value]) => [name, name === "content-security-policy" ? value.replace(directive, "") : value]);
        await route.fulfill({ response: answer, headers: Object.fromEntries(loosened) });
      });
      await game.goto(`http://127.0.0.1:${host.address().port}/`);
      same(status, 200, "what the frame asked for");
      const [, frame] = game.frames();
      const found = (await frame.locator("nav").count()) > 0 && (await frame.locator("main").innerText()).length > 0;
      await game.close();
      return found;
    };
    const [header, directive] = ["x-frame-options", "; frame-ancestors 'none'"];
    same(await isFramed([], ""), false, "the console as it is");
    same(await isFramed([header], ""), false, "with the policy alone");
    same(await isFramed([], directive), false, "with the header alone");
    // The control: without both it is framed.
    same(await isFramed([header], directive), true, "with neither");
    await context.close();
    host.close();
  });
  const complaints = page.complaints.filter((text) => !text.includes("axe"));
  if (complaints.length) fail(`the browser complains: ${complaints.join("\n")}`);
} finally {
  await browser.close();
  made.receiver.close();
}
console.log(`${count} checks of the console passed`);
