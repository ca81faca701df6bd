// The documentation without this script can be read whole; with it one can search, choose a language, copy code and
// send requests.
"use strict";

const stored = (storage, name) => { try { return storage.getItem(name); } catch { return null; } };
const store = (storage, name, value) => { try { storage.setItem(name, value); } catch { /* private window */ } };
const element = (name, text, attributes = {}) => {
  const made = document.createElement(name);
  if (text) made.textContent = text;
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  return made;
};

// Code in several languages: one choice for all pages. An address with `?lang=python` chooses too, and also hides the
// text about other languages. Without `lang` that text is shown, so that a reader sees which languages there are.
const LANGUAGES = { bash: "curl", python: "Python", typescript: "TypeScript", rust: "Rust" };
const asked = new URLSearchParams(location.search).get("lang");
const choices = [...document.querySelectorAll(".choice")];
const rowName = (row) => row.cells[0]?.textContent.replace("Shell", LANGUAGES.bash);
function hideOthers(language) {
  for (const part of document.querySelectorAll("[data-for]")) part.hidden = !part.dataset.for.split(" ").includes(language);
  for (const body of document.querySelectorAll("tbody")) {
    const rows = [...body.rows].filter((row) => Object.values(LANGUAGES).includes(rowName(row)));
    const own = rows.find((row) => rowName(row) === LANGUAGES[language]) ?? rows[0];
    for (const row of rows) row.hidden = row !== own;
  }
}
function choose(language) {
  if (asked && language) hideOthers(language);
  for (const choice of choices) {
    const blocks = [...choice.querySelectorAll("figure.code")];
    const shown = blocks.find((block) => block.dataset.language === language) ?? blocks[0];
    for (const block of blocks) block.parentElement.hidden = block !== shown;
    for (const tab of choice.querySelectorAll("[role=tab]")) {
      const isChosen = tab.dataset.language === shown.dataset.language;
      tab.setAttribute("aria-selected", String(isChosen));
      tab.tabIndex = isChosen ? 0 : -1;
    }
  }
}
choices.forEach((choice, number) => {
  const list = element("div", "", { role: "tablist", "aria-label": "Language" });
  choice.querySelectorAll("figure.code").forEach((block) => {
    const language = block.dataset.language;
    const id = `code-${number}-${language}`;
    const panel = element("div", "", { id, role: "tabpanel", "aria-label": LANGUAGES[language] ?? language });
    block.replaceWith(panel);
    panel.append(block);
    const tab = element("button", LANGUAGES[language] ?? language, { role: "tab", type: "button", "aria-controls": id });
    tab.dataset.language = language;
    tab.addEventListener("click", () => { store(localStorage, "language", language); choose(language); });
    list.append(tab);
  });
  list.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const tabs = [...list.children];
    const next = tabs[(tabs.indexOf(document.activeElement) + step + tabs.length) % tabs.length];
    next.click();
    next.focus();
  });
  choice.prepend(list);
});
if (Object.hasOwn(LANGUAGES, asked)) store(localStorage, "language", asked);
choose(stored(localStorage, "language"));

for (const block of document.querySelectorAll("figure.code")) {
  const button = element("button", "Copy", { type: "button", class: "copy" });
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(block.querySelector("code").textContent);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
  if (navigator.clipboard) block.append(button);
}

// Search: every word has to be found, in the heading or in the text.
const input = document.getElementById("search");
const results = document.getElementById("results");
let sections = null;
async function search() {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  results.replaceChildren();
  results.hidden = words.length === 0;
  if (words.length === 0) return;
  sections ??= await (await fetch("/docs/search.json")).json();
  const found = [];
  for (const section of sections) {
    const heading = `${section.page} ${section.heading}`.toLowerCase();
    const text = section.text.toLowerCase();
    if (!words.every((word) => heading.includes(word) || text.includes(word))) continue;
    found.push([words.filter((word) => heading.includes(word)).length, section]);
  }
  found.sort((one, other) => other[0] - one[0]);
  for (const [, section] of found.slice(0, 12)) {
    const link = element("a", section.heading === section.page ? section.page : `${section.page}: ${section.heading}`, { href: section.path });
    link.append(element("small", section.text.slice(0, 120)));
    const item = element("li");
    item.append(link);
    results.append(item);
  }
  if (found.length === 0) results.append(element("li", "Nothing found"));
}
input.addEventListener("input", search);
input.addEventListener("focus", search);
document.addEventListener("keydown", (event) => {
  const isTyping = /^(INPUT|TEXTAREA)$/.test(document.activeElement?.tagName ?? "");
  if (event.key === "/" && !isTyping) { event.preventDefault(); input.focus(); }
  if (event.key === "Escape") { results.hidden = true; input.blur(); }
  if (!["ArrowDown", "ArrowUp"].includes(event.key) || results.hidden) return;
  const links = [...results.querySelectorAll("a")];
  const at = links.indexOf(document.activeElement);
  if (at < 0 && document.activeElement !== input) return;
  event.preventDefault();
  (links[at + (event.key === "ArrowDown" ? 1 : -1)] ?? input).focus();
});
document.addEventListener("click", (event) => { if (!event.target.closest(".search")) results.hidden = true; });

// Scrolls the navigation to the line of this page.
const current = document.querySelector("nav [aria-current]");
if (current) current.closest("nav").scrollTop = current.offsetTop - window.innerHeight / 2;

const menu = document.getElementById("menu");
menu.addEventListener("click", () => {
  const isOpen = document.getElementById("navigation").classList.toggle("is-open");
  menu.setAttribute("aria-expanded", String(isOpen));
});

// Try it: IDs from answers are filled into later requests, so that the steps can be sent one after the other.
const key = document.getElementById("key");
if (key) {
  key.value = stored(sessionStorage, "key") ?? "";
  key.addEventListener("input", () => store(sessionStorage, "key", key.value));
}
const known = JSON.parse(stored(sessionStorage, "known") ?? "{}");
function learn(answer) {
  const walk = (value) => {
    if (Array.isArray(value)) value.forEach(walk);
    else if (value && typeof value === "object") {
      if (typeof value.id === "string" && typeof value.object === "string") known[`${value.object}_id`] = value.id;
      if (typeof value.payout_id === "string") known.payout_id = value.payout_id;
      Object.values(value).forEach(walk);
    }
  };
  walk(answer);
  store(sessionStorage, "known", JSON.stringify(known));
}
// The ID in a path is of the resource before it: /v1/transfers/{id}, /v1/test_helpers/payouts/{id}/settle.
const kindOf = (path) => {
  const parts = path.split("/");
  const name = parts[parts.indexOf("{id}") - 1] ?? "";
  return name.endsWith("ies") ? `${name.slice(0, -3)}y` : name.replace(/s$/, "");
};
for (const form of document.querySelectorAll(".try form")) {
  const fill = () => {
    const id = form.elements.id;
    if (id && !id.value) id.value = known[`${kindOf(form.dataset.path)}_id`] ?? "";
    const body = form.elements.body;
    if (!body) return;
    for (const [name, value] of Object.entries(known)) {
      body.value = body.value.replace(new RegExp(`("${name}": )"[a-z_]+_[0-9A-Z]{26}"`), `$1"${value}"`);
    }
  };
  form.closest("details").addEventListener("toggle", fill);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    fill();
    let path = form.dataset.path;
    const query = new URLSearchParams();
    for (const field of form.querySelectorAll("[data-in]")) {
      if (field.dataset.in === "path") path = path.replace(`{${field.name}}`, encodeURIComponent(field.value));
      else if (field.value) query.append(field.name, field.value);
    }
    const headers = { Authorization: `Bearer ${key.value.trim()}` };
    const request = { method: form.dataset.verb, headers };
    if (request.method === "POST") {
      headers["Idempotency-Key"] = [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
      headers["Content-Type"] = "application/json";
      request.body = form.elements.body?.value ?? "{}";
    }
    const output = form.querySelector("output");
    output.replaceChildren(element("p", "Sending …"));
    try {
      const answer = await fetch(path + (query.size ? `?${query}` : ""), request);
      const text = await answer.text();
      let shown = text;
      try { const parsed = JSON.parse(text); learn(parsed); shown = JSON.stringify(parsed, null, 2); } catch { /* not JSON */ }
      output.replaceChildren(element("p", `${answer.status} · Request-Id ${answer.headers.get("request-id") ?? ""}`), element("pre", shown, { tabindex: "0" }));
    } catch (error) {
      output.replaceChildren(element("p", `The request was not answered: ${error.message}`));
    }
  });
}
