// Opens every page of the documentation in Chromium and checks what only a browser can tell. Argument: the server's
// address. HUNDI_API_KEY is a test key.
import { address, axe, call, fail, launch, open, same, until } from "../browser/page.mjs";

const PAGE_BYTES_MAX = 300 * 1024;
const PAGES_MIN = 25;
const MISSING = "/docs/no_such_page";
const views = [{ width: 360, height: 740, scheme: "light" }, { width: 1440, height: 900, scheme: "dark" }];

const browser = await launch();
let count = 0;
const failed = [];
const check = async (name, run) => {
  count += 1;
  await run().catch((error) => failed.push(`${name}: ${error.message}`));
};
const opened = async (path, view, change) => {
  const page = await open(browser, view);
  if (change) {
    await page.route(address + path, async (route) => {
      const answer = await route.fetch();
      await route.fulfill({ status: answer.status(), headers: answer.headers(), body: change(await answer.text()) });
    });
  }
  await page.goto(address + path, { waitUntil: "networkidle" });
  const weight = async () => {
    const loaded = await page.evaluate(() => performance.getEntriesByType("resource").map((entry) => entry.name));
    const sizeOf = async (url) => (await (await fetch(url)).arrayBuffer()).byteLength;
    const sizes = await Promise.all(loaded.filter((url) => url.startsWith(address)).map(sizeOf));
    return sizes.reduce((sum, size) => sum + size, Buffer.byteLength(await page.content()));
  };
  return { page, weight };
};
// Between the two views: a tablet, and the width at which a table has the least room.
const WIDTHS_BETWEEN = [801, 1024];
// The words in tables that stand on more than one line, and those of which an end can be neither seen nor scrolled to.
const brokenWords = () => {
  const found = [];
  for (const details of document.querySelectorAll("details:not([open])")) if (details.querySelector("table")) details.open = true;
  for (const table of document.querySelectorAll("main table")) {
    const words = document.createTreeWalker(table, NodeFilter.SHOW_TEXT);
    for (let node = words.nextNode(); node; node = words.nextNode()) {
      for (const { 0: word, index } of node.data.matchAll(/[^\s\u200b-]+/g)) {
        const range = document.createRange();
        range.setStart(node, index);
        range.setEnd(node, index + word.length);
        const boxes = [...range.getClientRects()].filter((box) => box.width > 0);
        const left = table.getBoundingClientRect().left - table.scrollLeft;
        const isOutside = boxes.some((box) => box.left < left - 1 || box.right > left + table.scrollWidth + 1);
        if (isOutside || new Set(boxes.map((box) => Math.round(box.top))).size > 1) found.push(word);
      }
    }
  }
  return found;
};
const judge = async ({ page, weight }) => {
  await axe(page);
  const view = page.viewportSize();
  for (const width of view.width > WIDTHS_BETWEEN[0] ? [view.width, ...WIDTHS_BETWEEN] : [view.width]) {
    await page.setViewportSize({ ...view, width });
    const broken = await page.evaluate(brokenWords);
    if (broken.length) fail(`broken words in tables: ${broken.join(" ")}\n${width} pixels`);
  }
  await page.setViewportSize(view);
  const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  if (over > 0) fail(`the page is ${over} pixels too wide`);
  const bytes = await weight();
  if (bytes > PAGE_BYTES_MAX) fail(`${bytes} bytes`);
  const complaints = page.complaints.filter((text) => !text.includes("axe") && !(page.url().endsWith(MISSING) && text.includes("404")));
  if (complaints.length) fail(complaints.join("\n"));
};

// Every page that a link leads to.
const paths = new Set(["/docs/"]);
for (const path of paths) {
  const text = await (await fetch(address + path)).text();
  for (const [, link] of text.matchAll(/href="(\/docs\/[a-z_/-]*)(?:#[^"]*)?"/g)) {
    if (!/^\/docs\/guides$/.test(link)) paths.add(link);
  }
}
if (paths.size < PAGES_MIN) fail(`only ${paths.size} pages were found`);
same((await fetch(address + MISSING, { headers: { accept: "text/html" } })).status, 404, "the answer where there is no page");
paths.add(MISSING);
for (const path of paths) {
  for (const view of views) {
    await check(`${path} at ${view.width} in ${view.scheme}`, async () => {
      const seen = await opened(path, view);
      await judge(seen);
      await seen.page.context().close();
    });
  }
}

// The same checks must notice a page that is broken on its way to the browser.
const faults = {
  "a page that does not say its language": [/html-has-lang/, (html) => html.replace(' lang="en"', "")],
  "a line that does not break": [/too wide/, (html) => html.replace('<h1 id="quick-start">', `<pre>${"x".repeat(400)}</pre>$&`)],
  "a table that breaks words": [/broken words in tables: [^ ]*x/, (html) => html.replace("</main>", `<table tabindex="0"><tr><td>${"x&shy;".repeat(90)}</td></tr></table></main>`)],
  "a heavy comment": [/bytes/, (html) => html.replace("</body>", `<!--${"x".repeat(PAGE_BYTES_MAX)}--></body>`)],
  "a script of the page's own": [/Content Security Policy/, (html) => html.replace("</body>", "<script>1</script></body>")],
  "a field without a label, in a closed form": [/^label: /, (html) => html.replace(/<label>(Body <textarea[^]*?)<\/label>/, "<p>$1</p>"), "/docs/api/transfers"],
  "nothing": [/^nothing$/, (html) => html, "/docs/api/transfers"],
};
for (const [name, [reason, change, path = "/docs/quick-start"]] of Object.entries(faults)) {
  await check(name, async () => {
    const seen = await opened(path, views[0], change);
    const found = await judge(seen).then(() => "nothing", (error) => error.message);
    if (!reason.test(found)) fail(`noticed ${found}`);
    await seen.page.context().close();
  });
}

for (const view of views) {
  await check(`what is found and the menu at ${view.width} in ${view.scheme}`, async () => {
    const seen = await opened("/docs/", view);
    const asked = seen.page.locator("#search");
    for (const words of ["idempotency key", "nothing of the kind"]) {
      await asked.fill(words);
      await seen.page.locator("#results li").first().waitFor();
      await judge(seen);
    }
    await asked.fill("");
    if (await seen.page.locator("#menu").isVisible()) {
      await seen.page.locator("#menu").click();
      await seen.page.locator("#navigation").waitFor();
      await judge(seen);
    }
    await seen.page.context().close();
  });
}

const { page } = await opened("/docs/", views[1]);
await check("the search finds a section and leads to it", async () => {
  await page.keyboard.press("/");
  await page.keyboard.type("idempotency key");
  await page.locator("#results a").first().waitFor();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/docs\/.+/);
});
await check("the language that was chosen once is shown on every page", async () => {
  await page.goto(`${address}/docs/quick-start`);
  await page.getByRole("tab", { name: "TypeScript" }).first().click();
  await page.goto(`${address}/docs/webhooks`);
  same(await page.getByRole("tab", { name: "TypeScript" }).first().getAttribute("aria-selected"), "true", "the tab");
  same(await page.locator('.choice figure[data-language="python"]').first().isVisible(), false, "another language");
});
await check("an address with a language hides what is said of the others", async () => {
  const shown = async (path) => {
    await page.goto(address + path);
    const text = await page.locator("main").innerText();
    return ["receive_webhooks.py", "pip install", "Perl", "npx tsx", "cargo", "Express"].filter((word) => text.includes(word)).join();
  };
  same(await shown("/docs/webhooks"), "receive_webhooks.py,pip install,Perl,npx tsx,cargo,Express", "what is shown without a language");
  same(await shown("/docs/webhooks?lang=python"), "receive_webhooks.py,pip install", "what is shown of Python");
  await page.getByRole("tab", { name: "TypeScript" }).first().click();
  same(await page.getByRole("heading", { name: "With Express" }).isVisible(), true, "the part for the language chosen next");
});
await check("the requests of the reference, sent one after the other, lead to a UTR", async () => {
  const sent = async (resource, operation, fill = {}) => {
    await page.goto(`${address}/docs/api/${resource}`);
    if (!await page.locator("#key").inputValue()) await page.locator("#key").fill(process.env.HUNDI_API_KEY);
    const form = page.locator(`form[data-operation="${operation}"]`);
    await page.locator("details.try", { has: form }).locator("summary").click();
    for (const [name, value] of Object.entries(fill)) await form.locator(`[name="${name}"]`).fill(value);
    await form.getByRole("button", { name: "Send" }).click();
    const output = form.locator("output");
    await until(`${operation} is answered`, async () => /"object"/.test(await output.innerText()));
    const text = await output.innerText();
    const answer = JSON.parse(text.slice(text.indexOf("{")));
    if (answer.object === "error") fail(`${operation}: ${text}`);
    await axe(page);
    return answer;
  };
  const beneficiary = await sent("beneficiaries", "create_beneficiary");
  await until("the beneficiary is active", async () => (await call("GET", `/v1/beneficiaries/${beneficiary.id}`)).status === "active");
  await sent("senders", "create_sender");
  await sent("quote_locks", "create_quote_lock");
  const transfer = await sent("transfers", "create_transfer");
  same(transfer.beneficiary_id, beneficiary.id, "the beneficiary of the transfer");
  await sent("test_helpers", "test_deposit_transfer");
  await until("the payout is settled", async () => (await call("GET", `/v1/transfers/${transfer.id}`)).status === "payout_settled");
  const settled = await sent("transfers", "get_transfer");
  if (!settled.payout.unique_transaction_reference) fail(`no UTR in ${JSON.stringify(settled)}`);
});
await browser.close();
if (failed.length) {
  console.error(failed.join("\n"));
  process.exit(1);
}
console.log(`${count} checks of the documentation's pages passed`);
