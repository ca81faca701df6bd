// Makes the pictures of pages in README.md, and writes what they show into pictured.txt. Arguments: the server's address, the
// console's, the folder of the pictures; with --check, compares what the pages show with pictured.txt instead.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { address, open } from "../../tests/browser/page.mjs";
import { furnish, launch, pictures, signIn, transfer } from "../../tests/console/drive.mjs";

const isCheck = process.argv.includes("--check");
const SIZE = { width: 1200, height: 750 };

// The text of a page up to a heading, a line for each block. What the picture shows depends on fonts, and this does not.
const shown = (page, until) => page.evaluate((until) => {
  const lines = [];
  const end = [...document.querySelectorAll("h2")].find((one) => one.innerText.trim() === until);
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let last;
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (end && node.compareDocumentPosition(end) & Node.DOCUMENT_POSITION_CONTAINS) break;
    if (!node.parentElement.checkVisibility({ visibilityProperty: true, opacityProperty: true }) || !node.data.trim()) continue;
    let block = node.parentElement;
    while (getComputedStyle(block).display.startsWith("inline")) block = block.parentElement;
    if (block === last) lines[lines.length - 1] += node.data;
    else lines.push(node.data);
    last = block;
  }
  if (until && !end) throw new Error(`no heading ${until}`);
  return lines;
}, until);
const alike = (line) => line
  .replace(/\s+/g, " ")
  .replace(/\bT[1-9A-HJ-NP-Za-km-z]{33}\b/g, "ADDRESS")
  .replace(/[a-z_]+_[0-9A-HJKMNP-TV-Z]{26}/g, "ID")
  .replace(/\b(Jan|Feb|Mar|Apr|May|June?|July?|Aug|Sept?|Oct|Nov|Dec)\b/g, "MONTH")
  .replace(/[0-9][0-9.,:]*/g, "#")
  .replace(/# (s|min|h)\b/g, "# ago")
  .trim();

const made = await furnish();
// The clock is ahead by now, and the transfers that were waiting have expired.
const waiting = await transfer("1234.50");
const browser = await launch();
const pages = {
  "payer-page.png": ["", async () => {
    const page = await open(browser, { ...SIZE, timezoneId: "Asia/Dubai", locale: "en-GB" });
    await page.goto(address + new URL(waiting.funding.instructions_url).pathname);
    return page;
  }],
  "console.png": ["Money in each compartment", () => signIn(browser, "asha", SIZE)],
  "guides.png": ["From a beneficiary to a UTR", async () => {
    const page = await open(browser, SIZE);
    await page.goto(`${address}/docs/quick-start`);
    return page;
  }],
};
const fingerprint = (name) => createHash("sha256").update(readFileSync(join(pictures, name))).digest("hex");

try {
  let text = "What the pictures in README.md show, by docs/images/screens.sh. Numbers, IDs and times are left out.\n";
  for (const [name, [until, visit]] of Object.entries(pages)) {
    const page = await visit();
    await page.setViewportSize(SIZE);
    await page.waitForLoadState("networkidle").catch(() => {});
    if (!isCheck) await page.screenshot({ path: join(pictures, name) });
    text += `\n${name} ${fingerprint(name)}\n${(await shown(page, until)).map((line) => `  ${alike(line)}\n`).join("")}`;
    await page.context().close();
  }
  const file = join(pictures, "pictured.txt");
  if (!isCheck) {
    writeFileSync(file, text);
  } else if (readFileSync(file, "utf8") !== text) {
    const [before, now] = [readFileSync(file, "utf8"), text].map((all) => all.split("\n"));
    console.error("The pages show other text than the pictures in README.md. Run docs/images/screens.sh, and look at them.");
    for (const line of before.filter((line) => !now.includes(line))) console.error(`- ${line}`);
    for (const line of now.filter((line) => !before.includes(line))) console.error(`+ ${line}`);
    process.exitCode = 1;
  }
} finally {
  await browser.close();
  made.receiver.close();
}
