// What the console does in the browser beyond htmx. Every page works without it.
"use strict";

// Times are shown in the viewer's zone; the server writes them in UTC.
function showTimes(root) {
  for (const element of root.querySelectorAll("time[datetime]")) {
    const time = new Date(element.dateTime);
    if (!Number.isNaN(time.getTime())) {
      element.textContent = time.toLocaleString(document.documentElement.lang, { dateStyle: "medium", timeStyle: "medium" });
    }
  }
}

document.addEventListener("DOMContentLoaded", () => showTimes(document));
document.addEventListener("htmx:afterSwap", (event) => showTimes(event.target));
