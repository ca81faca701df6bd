// What the console does in the browser beyond htmx. Every page works without it.
"use strict";

// The server writes times of India. If the viewer's zone is another, this writes the time in that zone before them.
function showTimes(root) {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (zone === "Asia/Kolkata" || zone === "Asia/Calcutta") return;
  const language = document.documentElement.lang === "en" ? "en-GB" : document.documentElement.lang;
  const day = { day: "numeric", month: "short", year: "numeric" };
  const clock = { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" };
  for (const element of root.querySelectorAll("time[datetime]:not([data-shown])")) {
    const time = new Date(element.dateTime);
    if (Number.isNaN(time.getTime())) continue;
    element.dataset.shown = "yes";
    const indian = element.textContent;
    const own = `${time.toLocaleDateString(language, day)}, ${time.toLocaleTimeString(language, clock)}`;
    element.title = indian;
    const own_day = time.toLocaleDateString("en", day);
    const indian_day = time.toLocaleDateString("en", { ...day, timeZone: "Asia/Kolkata" });
    const short = { hour: "2-digit", minute: "2-digit", hourCycle: "h23", timeZone: "Asia/Kolkata" };
    const there = time.toLocaleTimeString("en", short);
    element.textContent = own_day === indian_day ? `${own} (${there}\u00a0IST)` : `${own} (${indian})`;
  }
}

document.addEventListener("DOMContentLoaded", () => showTimes(document));

// On a narrow screen the navigation does not fit: it is scrolled so that the line of this page is in the middle.
function showPlace() {
  const here = document.querySelector(".top nav [aria-current]");
  const list = here?.closest("ul");
  if (list) list.scrollLeft += here.getBoundingClientRect().left - list.getBoundingClientRect().left - (list.clientWidth - here.offsetWidth) / 2;
}
document.addEventListener("DOMContentLoaded", showPlace);
window.addEventListener("resize", showPlace);
document.addEventListener("htmx:afterSwap", (event) => showTimes(event.target));

// A part that htmx reads again changes only where the server's answer differs. Everything else stays the same element,
// with its tick, focus, selection and place on the screen. An element with a key is known by it, wherever it stands.
const keyOf = (node) => node.dataset?.key;
const isAlike = (one, other) => one.nodeName === other.nodeName && keyOf(one) === keyOf(other);

function takeOver(node, fresh) {
  if (node.isEqualNode(fresh)) return;
  if (node.nodeType !== Node.ELEMENT_NODE) {
    node.nodeValue = fresh.nodeValue;
    return;
  }
  const isHere = node.classList.contains("here");
  for (const { name } of [...node.attributes]) if (!fresh.hasAttribute(name)) node.removeAttribute(name);
  for (const { name, value } of fresh.attributes) if (node.getAttribute(name) !== value) node.setAttribute(name, value);
  if (isHere) node.classList.add("here");
  takeOverChildren(node, fresh);
}

function takeOverChildren(parent, fresh) {
  const keys = new Set([...fresh.childNodes].map(keyOf).filter(Boolean));
  for (const child of [...parent.childNodes]) if (keyOf(child) && !keys.has(keyOf(child))) child.remove();
  const keyed = Map.groupBy([...parent.childNodes].filter(keyOf), keyOf);
  let place = parent.firstChild;
  for (const wanted of [...fresh.childNodes]) {
    let child = keyOf(wanted) ? keyed.get(keyOf(wanted))?.shift() : place;
    if (!child || !isAlike(child, wanted)) child = wanted;
    if (child === place) place = place.nextSibling;
    else parent.insertBefore(child, place);
    if (child !== wanted) takeOver(child, wanted);
  }
  while (place) {
    const next = place.nextSibling;
    place.remove();
    place = next;
  }
}

htmx.defineExtension("morph", {
  isInlineSwap: (style) => style === "morph",
  handleSwap: (style, target, fragment) => {
    if (style !== "morph") return false;
    const focused = document.activeElement;
    const watched = focused?.closest("main *") ?? target.querySelector("tr.here");
    const top = watched?.getBoundingClientRect().top;
    showTimes(fragment);
    takeOverChildren(target, fragment);
    // A row that was moved has lost the focus, and gets it back.
    if (focused !== document.activeElement && focused?.isConnected) focused.focus({ preventScroll: true });
    // Rows above may have come or gone. What the viewer looks at stays where it is on the screen.
    if (watched?.isConnected) window.scrollBy(0, watched.getBoundingClientRect().top - top);
    return [];
  },
});

// While the server does not answer, the old content stays, and the page says that it is old.
function tellStale(event, isStale) {
  const note = event.target.matches("[hx-swap=morph]") && document.getElementById("stale");
  if (note) note.hidden = !isStale;
}
document.addEventListener("htmx:beforeSwap", (event) => {
  if (!event.target.matches("[hx-swap=morph]")) return;
  const isWhole = event.detail.xhr.status === 200;
  if (!isWhole) event.detail.shouldSwap = false;
  tellStale(event, !isWhole);
});
document.addEventListener("htmx:sendError", (event) => tellStale(event, true));

// Keys: j and k walk through the rows, Enter opens one, x ticks it, / searches, ? tells all this.
function rows() {
  return [...document.querySelectorAll("main tr[data-href], main tbody tr:has(input[type=checkbox])")];
}

function walk(step) {
  const all = rows();
  if (all.length === 0) return;
  const now = all.findIndex((row) => row.classList.contains("here"));
  const next = Math.min(Math.max(now + step, 0), all.length - 1);
  for (const row of all) row.classList.remove("here");
  all[next].classList.add("here");
  const link = all[next].querySelector("a, input");
  if (link) link.focus({ preventScroll: true });
  all[next].scrollIntoView({ block: "nearest" });
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const target = event.target;
  const types = target.matches("input:not([type=checkbox]), select, textarea") || target.closest("dialog[open]");
  if (types) {
    if (event.key === "Escape" && target.id === "find") target.blur();
    return;
  }
  const here = document.querySelector("tr.here");
  const tick = here && here.querySelector("input[type=checkbox]");
  switch (event.key) {
    case "j": walk(1); break;
    case "k": walk(-1); break;
    case "x": if (tick) tick.checked = !tick.checked; break;
    case "/": document.getElementById("find")?.focus(); break;
    case "?": document.getElementById("keys")?.showModal(); break;
    case "Enter":
      if (!here || !here.dataset.href || target.matches("button, a:not(tr.here *)")) return;
      window.location.assign(here.dataset.href);
      break;
    default: return;
  }
  event.preventDefault();
});
