// Does in a browser what operators do, and looks for what a browser can tell. Arguments: the server's address, the
// console's, the folder of the tools.
import { axe, call, consoleAddress, deposit, fail, furnish, launch, pagesOf, same, signIn, transfer, until } from "./drive.mjs";

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
const decide = async (page, button, fields = {}, within = page) => {
  for (const [label, value] of Object.entries({ Why: "the browser's test", ...fields })) await within.getByLabel(label).first().fill(value);
  await within.getByRole("button", { name: button, exact: true }).first().click();
};

try {
  const page = await signIn(browser, "asha");

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
    await shown(page, "Decided.");
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
    await shown(page, "Decided.");
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
    await form.getByLabel("What").selectOption("payouts");
    await decide(page, "Pause", {}, form);
    await shown(page, "Paused.");
    await shown(page, "asha");
    const ready = await (await fetch(`${process.argv[2]}/readyz`)).text();
    if (!ready.includes("payouts are paused")) fail(ready);
    await decide(page, "Let go on");
    await shown(page, "Nothing is paused");
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
    await page.locator("#live .chip", { hasText: "Paid" }).first().waitFor({ timeout: 30_000 });
    same(await page.getByRole("searchbox").inputValue(), "half a wo", "the search box");
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

  await check("a viewer reads and decides nothing", async () => {
    const viewer = await signIn(browser, "vijay");
    await viewer.goto(`${consoleAddress}/console/senders/${made.suspect.id}`);
    await shown(viewer, "Your role reads only");
    same(await viewer.locator("form[action='/console/decide']").count(), 0, "forms to decide");
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

  const paths = Object.entries(pagesOf(made));
  for (const scheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme: scheme });
    for (const [name, path] of paths) {
      await check(`${name} in ${scheme}`, async () => {
        await page.setViewportSize({ width: scheme === "light" ? 360 : 1440, height: 900 });
        await page.goto(consoleAddress + path);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
        if (wide > 0) fail(`it is ${wide} pixels too wide`);
        await axe(page);
      });
    }
  }
  await check("axe notices a broken page", async () => {
    await page.evaluate(() => document.querySelectorAll("label").forEach((label) => label.remove()));
    await axe(page).then(() => fail("nothing was noticed"), (error) => { if (!error.message.includes("label")) throw error; });
  });
  const complaints = page.complaints.filter((text) => !text.includes("axe"));
  if (complaints.length) fail(`the browser complains: ${complaints.join("\n")}`);
} finally {
  await browser.close();
  made.receiver.close();
}
console.log(`${count} checks of the console passed`);
