// What the console does in the browser beyond htmx. Every page works without it.
"use strict";

// The server writes times in India; here they get the viewer's zone before them, where it is another.
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
document.addEventListener("htmx:afterSwap", (event) => showTimes(event.target));

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
