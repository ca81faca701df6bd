// Makes a picture of each page in both themes and three widths. Arguments: the server's address, the console's, the folder
// for the pictures; then names of pages, where not all are wanted, and --language=CODE for another language.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { adminPages, consoleAddress, crowd, decideSome, decidedPages, furnish, launch, makeKey, pagesOf, pictures, signIn, visit } from "./drive.mjs";

mkdirSync(pictures, { recursive: true });
const language = process.argv.slice(5).find((one) => one.startsWith("--language="))?.split("=")[1] ?? "en";
const wanted = process.argv.slice(5).filter((one) => !one.startsWith("--"));
const made = await furnish();
await crowd();
const browser = await launch();
let count = 0;
const take = async (page, name, scheme) => {
  for (const width of [360, 768, 1440]) {
    await page.setViewportSize({ width, height: 900 });
    const of = language === "en" ? name : `${name}-${language}`;
    await page.screenshot({ path: join(pictures, `${of}-${scheme}-${width}.png`), fullPage: true });
    count += 1;
  }
};
const signInAs = async (name, scheme) => {
  const page = await signIn(browser, name, { scheme });
  await page.goto(`${consoleAddress}/console/account`);
  await page.locator("#language").selectOption(language);
  await page.locator("form", { has: page.locator("#language") }).getByRole("button").click();
  await page.waitForFunction((code) => document.documentElement.lang === code, language);
  return page;
};
const isWanted = (name) => !wanted.length || wanted.includes(name);
try {
  for (const scheme of ["light", "dark"]) {
    if (isWanted("sign-in")) {
      const nobody = await visit(browser, { scheme });
      await take(nobody, "sign-in", scheme);
      await nobody.context().close();
    }
    const page = await signInAs("asha", scheme);
    for (const [name, path] of Object.entries(pagesOf(made))) {
      if (!isWanted(name)) continue;
      await page.goto(consoleAddress + path);
      await take(page, name, scheme);
    }
    await page.context().close();
    if (!Object.keys(adminPages).some(isWanted)) continue;
    const admin = await signInAs("nila", scheme);
    for (const [name, path] of Object.entries(adminPages).filter(([name]) => isWanted(name))) {
      await admin.goto(consoleAddress + path);
      if (name === "key-made") await makeKey(admin, "a shop");
      await take(admin, name, scheme);
    }
    await admin.context().close();
  }
  if (Object.keys(decidedPages).some(isWanted)) {
    const operator = await signIn(browser, "asha");
    await decideSome(operator);
    await operator.context().close();
    for (const scheme of ["light", "dark"]) {
      const approver = await signInAs("ravi", scheme);
      for (const [name, path] of Object.entries(decidedPages).filter(([name]) => isWanted(name))) {
        await approver.goto(consoleAddress + path);
        // The overview is made anew every few seconds.
        if (name === "overview-paused") await approver.getByText("Quotes paused").first().waitFor();
        await take(approver, name, scheme);
      }
      await approver.context().close();
    }
  }
} finally {
  await browser.close();
  made.receiver.close();
}
console.log(`${count} pictures in ${pictures}`);
