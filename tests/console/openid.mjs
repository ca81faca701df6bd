// Signs in at a provider, and tries what must not let anybody in. Argument: a folder for the database and the log.
import { execFileSync, spawn } from "node:child_process";
import { closeSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { axe, fail, launch, same, until, WAIT_MILLISECONDS } from "../browser/page.mjs";
import { CLIENT, SECRET, start, subjectOf } from "./provider.mjs";

const folder = process.argv[2];
const database = `sqlite:${join(folder, "hundi.db")}`;
const hundi = "target/debug/hundi";
const PASSWORD = "correct horse battery staple";
const provider = await start();

const table = (more = "") => `[console.oidc]\nissuer = "${provider.issuer}"\nclient_id = "${CLIENT}"\nname = "Example"\n${more}`;
const write = (name, text) => {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
};
const config = write("hundi.toml", table('second_factor = "provider"\nlink_by_email = true\n'));
const environment = {
  ...process.env, HUNDI_CONSOLE_LISTEN: "127.0.0.1:0", HUNDI_CONSOLE_SECOND_FACTOR: "true",
  HUNDI_CONSOLE_OIDC_SECRET_FILE: write("secret", `${SECRET}\n`),
};
// Asynchronously, because the provider answers from this process.
const run = (...args) => runOn(database, ...args);
const runOn = (store, ...args) => new Promise((done) => {
  const child = spawn(hundi, [...args, "--database", store], { env: environment });
  let text = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (part) => { text += part; });
  child.on("close", (code) => done({ code, text }));
});
const must = async (...args) => {
  const { code, text } = await run(...args);
  return code === 0 ? text : fail(`${args.join(" ")}: ${text}`);
};

const log = openSync(join(folder, "log"), "w");
const output = openSync(join(folder, "out"), "w");
const server = spawn(hundi, ["serve", "--listen", "127.0.0.1:0", "--database", database, "--config", config], {
  env: environment, stdio: ["ignore", output, log],
});
let browser;
let count = 0;
const check = async (name, act) => {
  try {
    await act();
    count += 1;
  } catch (error) {
    throw new Error(`${name}: ${error.message}\nThe server's log ends with\n${logged().slice(-2_000)}`, { cause: error });
  }
};
const logged = () => readFileSync(join(folder, "log"), "utf8");

try {
  const address = await until("the console listens", () =>
    /^console at (http.*)\/console$/m.exec(readFileSync(join(folder, "out"), "utf8"))?.[1]);
  provider.set({ redirect: `${address}/console/sign_in/oidc/done` });
  for (const name of ["asha", "meera@example.com", "ravi"]) {
    execFileSync(hundi, ["operators", "create", name, "--role", "operator", "--password-stdin", "--actor", "asha", "--reason", "the checks", "--database", database], { input: PASSWORD });
  }
  browser = await launch();
  const visit = async () => {
    const context = await browser.newContext({ locale: "en-GB" });
    // The provider's pages name fonts of elsewhere.
    await context.route((url) => url.hostname !== "127.0.0.1", (route) => route.abort());
    context.setDefaultTimeout(WAIT_MILLISECONDS);
    const page = await context.newPage();
    page.answers = [];
    page.on("response", (one) => page.answers.push({ url: one.url(), status: one.status() }));
    return page;
  };
  // From the console's page to the provider, and as far as a login there.
  const depart = async (page, path = "/console") => {
    await page.goto(address + path);
    await page.getByRole("link", { name: "Sign in with Example" }).click();
    await page.waitForURL((url) => url.origin === provider.issuer);
  };
  const arrive = async (page, login) => {
    await page.locator("input[name=login]").fill(subjectOf(login));
    await page.locator("input[name=password]").fill("what the provider wants");
    await page.locator("button[type=submit]").click();
    await page.getByRole("button", { name: "Continue" }).click();
    await page.waitForURL((url) => url.origin === address);
  };
  const attempt = async (login, path) => {
    const page = await visit();
    await depart(page, path);
    await arrive(page, login);
    return page;
  };
  // Somebody whom the provider knows, and sends back at once.
  const known = async (login) => {
    const page = await attempt(login);
    await inside(page);
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.waitForURL(/sign_in/);
    return page;
  };
  const again = async (page) => {
    page.answers.length = 0;
    await page.goto(`${address}/console/sign_in/oidc`);
    return page;
  };
  const refused = async (page, text, status) => {
    await turnedAway(page, text, status);
    await page.context().close();
  };
  const turnedAway = async (page, text, status) => {
    const told = await page.getByRole("alert").innerText();
    if (!told.includes(text)) fail(`no ${text} in ${told}`);
    const back = page.answers.findLast((one) => one.url.startsWith(`${address}/console/sign_in`));
    same(back.status, status, "the answer");
    const cookies = await page.context().cookies(address);
    if (cookies.some((one) => one.name.endsWith("hundi_session"))) fail("a session began");
    await page.goto(`${address}/console`);
    await page.waitForURL(/\/console\/sign_in/);
  };
  const inside = async (page, path = "/console") => {
    same(new URL(page.url()).pathname, path, "where one is");
    same(await page.getByRole("button", { name: "Sign out" }).count(), 1, "buttons to sign out");
  };
  const REFUSED = "was not accepted";

  await check("the sign-in page offers both ways", async () => {
    const page = await visit();
    await page.goto(`${address}/console/sign_in`);
    for (const scheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme: scheme });
      await axe(page);
    }
    await page.context().close();
  });

  await check("who is not linked is told so, and no operator is made", async () => {
    const before = await must("operators", "list", "--json");
    const page = await attempt("asha");
    await refused(page, `issuer ${provider.issuer}, subject ${subjectOf("asha")}.`, 403);
    same(await must("operators", "list", "--json"), before, "the operators");
  });

  await check("an operator who is linked signs in, and comes to the page that was asked for", async () => {
    await must("operators", "link", "asha", "--issuer", provider.issuer, "--subject", subjectOf("asha"), "--actor", "asha", "--reason", "the checks");
    const page = await attempt("asha", "/console/audit?action=sign_in");
    await inside(page, "/console/audit");
    await page.getByRole("row").filter({ hasText: provider.issuer }).first().waitFor();
    // No second factor of the console is set up: the provider's counts, as the settings say.
    await page.goto(`${address}/console/queues/holds`);
    await inside(page, "/console/queues/holds");
    // Cookies do not know ports: the provider's are there too.
    const cookies = (await page.context().cookies(address)).map((one) => one.name).filter((name) => name.startsWith("hundi"));
    same(cookies.join(), "hundi_session", "what is left in the browser");
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.waitForURL(/sign_in/);
    await page.context().close();
    for (const action of ["operator_linked", "sign_in_refused"]) {
      if (!(await must("audit", "export")).includes(`"${action}"`)) fail(`no ${action} in the audit log`);
    }
  });

  await check("an answer of the provider counts once, and in the browser that began", async () => {
    const page = await visit();
    let back = "";
    let kept = [];
    page.on("request", async (one) => {
      if (one.url().includes("/oidc/done?")) back = one.url();
    });
    await depart(page);
    kept = await page.context().cookies(address);
    await arrive(page, "asha");
    await inside(page);
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.waitForURL(/sign_in/);
    // Again in the same browser, which has no cookie of the sign-in any more.
    await page.goto(back);
    await refused(page, "Begin again", 403);
    // With the cookie as it was: the provider does not exchange a code twice.
    const thief = await visit();
    await thief.context().addCookies(kept);
    await thief.goto(back);
    await refused(thief, REFUSED, 403);
    // With the cookie of another sign-in, which the state and the nonce do not follow from.
    const other = await visit();
    await depart(other);
    await other.goto(back);
    await refused(other, "Begin again", 403);
    const bare = await visit();
    await bare.goto(back);
    await refused(bare, "Begin again", 403);
  });

  await check("a changed state, issuer or code lets nobody in", async () => {
    const changes = [
      [(url) => url.searchParams.set("state", `x${url.searchParams.get("state")}`), "Begin again"],
      [(url) => url.searchParams.delete("state"), "Begin again"],
      [(url) => url.searchParams.set("iss", "https://another.example"), REFUSED],
      [(url) => url.searchParams.delete("iss"), REFUSED],
      [(url) => url.searchParams.set("code", "guessed"), REFUSED],
      [(url) => url.searchParams.delete("code"), REFUSED],
    ];
    const page = await known("asha");
    for (const [change, told] of changes) {
      provider.state.detour = change;
      await turnedAway(await again(page), told, 403);
    }
    provider.state.detour = null;
    await inside(await again(page));
    await page.context().close();
  });

  const foreign = await provider.makeKey("RS256", "RS256-first");
  const HOUR = 3600;
  const wrong = {
    "another nonce": [provider.signAnew(({ claims }) => { claims.nonce = "of another sign-in"; }), "another sign-in"],
    "no nonce": [provider.signAnew(({ claims }) => { delete claims.nonce; }), "another sign-in"],
    "another audience": [provider.signAnew(({ claims }) => { claims.aud = "another client"; }), "another client"],
    "several audiences": [provider.signAnew(({ claims }) => { claims.aud = [CLIENT, "another client"]; }), "another client"],
    "another authorised party": [provider.signAnew(({ claims }) => { claims.azp = "another client"; }), "another client"],
    "another issuer": [provider.signAnew(({ claims }) => { claims.iss = "https://another.example"; }), "another issuer"],
    "an expired token": [provider.signAnew(({ claims }) => { claims.exp -= HOUR; }), "expired"],
    "an old token": [provider.signAnew(({ claims }) => { claims.iat -= HOUR; }), "just now"],
    "a token of tomorrow": [provider.signAnew(({ claims }) => { claims.iat += HOUR; }), "just now"],
    "a foreign key": [provider.signAnew((made) => { made.key = foreign; }), "signature is wrong"],
    "no signature": [provider.unsigned, "unknown algorithm"],
  };
  const asha = await known("asha");
  for (const [what, [tamper, told]] of Object.entries(wrong)) {
    await check(`${what} lets nobody in`, async () => {
      const before = logged().length;
      provider.state.tamper = tamper;
      await turnedAway(await again(asha), REFUSED, 403);
      provider.state.tamper = null;
      if (!logged().slice(before).includes(told)) fail(`the log does not say why: ${logged().slice(before)}`);
    });
  }

  await check("what was signed anew without a change is accepted", async () => {
    provider.state.tamper = provider.signAnew(() => {});
    await inside(await again(asha));
    provider.state.tamper = null;
    await asha.context().close();
  });

  await check("who cancels at the provider is told", async () => {
    const page = await visit();
    await depart(page);
    await page.getByRole("link", { name: "Cancel" }).click();
    await page.waitForURL((url) => url.origin === address);
    await refused(page, REFUSED, 403);
  });

  for (const alg of ["ES256", "EdDSA"]) {
    await check(`a token signed with ${alg} is accepted`, async () => {
      provider.set({ alg });
      await inside(await attempt("asha"));
    });
  }

  await check("a verified address links once, and no other", async () => {
    await refused(await attempt("unverified-ravi"), "No operator is linked", 403);
    await inside(await attempt("meera"));
    await inside(await attempt("meera"));
    // Another person to whom the provider gave the same address.
    await refused(await attempt("second-meera"), "No operator is linked", 403);
    const listed = JSON.parse(await must("operators", "list", "--json"));
    const linked = listed.filter((one) => one.linked).map((one) => one.name);
    same(linked.join(), "asha,meera@example.com", "who is linked");
  });

  await check("who is disabled or no longer linked does not get in", async () => {
    const page = await attempt("meera");
    await inside(page);
    await must("operators", "disable", "meera@example.com", "--actor", "asha", "--reason", "the checks");
    await page.goto(`${address}/console`);
    await page.waitForURL(/sign_in/);
    await refused(await attempt("meera"), "No operator is linked", 403);
    const other = await attempt("asha");
    await must("operators", "unlink", "asha", "--actor", "asha", "--reason", "the checks");
    await other.goto(`${address}/console`);
    await other.waitForURL(/sign_in/);
    await refused(await attempt("asha"), "No operator is linked", 403);
    await must("operators", "link", "asha", "--issuer", provider.issuer, "--subject", subjectOf("asha"), "--actor", "asha", "--reason", "the checks");
  });

  await check("a new key of the provider is found, and unknown ones are not asked for again and again", async () => {
    const before = provider.count("/jwks");
    provider.set({ alg: "RS256", keys: await provider.makeKeys("second") });
    await inside(await attempt("asha"));
    same(provider.count("/jwks"), before + 1, "how often the keys were asked for");
    const began = Date.now();
    const stranger = await provider.makeKey("RS256", "nobody's");
    provider.state.tamper = provider.signAnew((made) => {
      made.header.kid = "nobody's";
      made.key = stranger;
    });
    const page = await attempt("asha");
    await turnedAway(page, REFUSED, 403);
    for (const _ of [1, 2]) await turnedAway(await again(page), REFUSED, 403);
    await page.context().close();
    provider.state.tamper = null;
    const more = provider.count("/jwks") - before - 1;
    const allowed = Math.ceil((Date.now() - began) / 30_000);
    if (more > allowed) fail(`the keys were asked for ${more} times more`);
  });

  await check("a key that the provider took back counts no more", async () => {
    // The keys of before: they are shown no longer, and a token of one is refused.
    const old = await provider.makeKey("RS256", "RS256-first");
    provider.state.tamper = provider.signAnew((made) => {
      made.header.kid = "RS256-first";
      made.key = old;
    });
    await refused(await attempt("asha"), REFUSED, 403);
    provider.state.tamper = null;
  });

  await check("while the provider is down, the password still opens", async () => {
    const page = await visit();
    await depart(page);
    await provider.stop();
    // What is known of the provider leads there; on the way back it does not answer.
    const back = new URL(page.url());
    same(back.origin, provider.issuer, "where one is");
    const { code, text } = await run("doctor", "--config", config);
    if (code === 0 || !/^console.oidc +fails/m.test(text)) fail(text);
    await page.goto(`${address}/console/sign_in`);
    await page.getByLabel("Name").fill("ravi");
    await page.getByLabel("Password").fill(PASSWORD);
    await page.getByRole("button", { name: "Sign in", exact: true }).click();
    await page.waitForURL(/second_factor/);
    await page.context().close();
    await provider.goOn();
  });

  await check("a provider that answers otherwise than it should is not believed", async () => {
    const description = (changes) => JSON.stringify({
      issuer: provider.issuer, authorization_endpoint: `${provider.issuer}/auth`, token_endpoint: `${provider.issuer}/token`,
      jwks_uri: `${provider.issuer}/jwks`, ...changes,
    });
    const answering = (describe, keys = '{"keys":[]}') => (request, reply) => {
      const body = request.url === "/jwks" ? keys : describe;
      reply.writeHead(200, { "content-type": "application/json" }).end(body);
    };
    const cases = {
      "differs from console.oidc.issuer": answering(description({ issuer: "https://another.example" })),
      "its token_endpoint is no https": answering(description({ token_endpoint: "http://another.example/token" })),
      "its jwks_uri is no https": answering(description({ jwks_uri: "http://another.example/jwks" })),
      "its authorization_endpoint is no https": answering(description({ authorization_endpoint: "javascript:x" })),
      "PKCE": answering(description({ code_challenge_methods_supported: ["plain"] })),
      "its description: the answer is longer than 65536 bytes": answering(description({ more: "x".repeat(70_000) })),
      "its keys: the answer is longer than 262144 bytes": answering(description({}), `{"keys":[],"more":"${"x".repeat(270_000)}"}`),
      "its description: the answer cannot be read": answering("<html>"),
      "it publishes no key": answering(description({})),
      "its description: it answered 302": (_, reply) => reply.writeHead(302, { location: `${provider.issuer}/elsewhere` }).end(),
      "its description: no answer within 5000 ms": () => {},
    };
    for (const [told, instead] of Object.entries(cases)) {
      provider.state.instead = instead;
      const { code, text } = await run("doctor", "--config", config);
      if (code === 0 || !/^console.oidc +fails/m.test(text) || !text.includes(told)) fail(`${told}: ${text}`);
    }
    provider.state.instead = null;
    const { text } = await run("doctor", "--config", config);
    if (!/^console.oidc +ok .*with a client secret/m.test(text)) fail(text);
  });

  await check("where a second factor is required, somebody has to ask for it", async () => {
    const silent = write("silent.toml", table());
    const { code, text } = await run("doctor", "--config", silent);
    if (code === 0 || !/^console.oidc +stops .*second_factor = "provider"/m.test(text)) fail(text);
    const other = `sqlite:${join(folder, "other.db")}`;
    const served = await runOn(other, "serve", "--listen", "127.0.0.1:0", "--config", silent);
    if (served.code === 0 || !served.text.includes('second_factor = "provider"')) fail(served.text);
  });

  await check("too many refused answers lock the address", async () => {
    provider.state.tamper = provider.unsigned;
    const page = await visit();
    const text = page.getByRole("alert");
    await depart(page);
    await arrive(page, "asha");
    // The provider knows the person now, and sends the browser back at once.
    await until("the address is locked", async () => {
      await page.goto(`${address}/console/sign_in/oidc`);
      return (await text.innerText()).includes("Too many attempts");
    }, 120_000);
    provider.state.tamper = null;
    await refused(await attempt("asha"), "Too many attempts", 429);
  });

  for (const secret of [SECRET, "what the provider wants", "a subject's token"]) {
    if (logged().includes(secret)) fail("the log has a secret");
  }
  await must("check");
} finally {
  await browser?.close();
  server.kill();
  await new Promise((done) => (server.exitCode === null ? server.on("exit", done) : done()));
  await provider.stop();
  closeSync(log);
  closeSync(output);
}
console.log(`${count} checks of the sign-in at a provider passed`);
