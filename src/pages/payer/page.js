// Keeps the payer's page up to date: counts down, copies, and follows the state by the server's stream or by polling.
// All words come from the server.
"use strict";
(() => {
  // A page about a fault polls for the page that was asked for. A form's path answers no GET, so its page is polled.
  const waiting = document.querySelector("[data-reload-seconds]");
  if (waiting) {
    const path = location.pathname.replace(/\/(refund_address|simulate_payment)$/, "");
    setInterval(async () => {
      const answer = await fetch(path, { cache: "no-store", credentials: "omit" }).catch(() => null);
      if (answer && answer.status < 500) location.replace(path + location.search);
    }, Number(waiting.dataset.reloadSeconds) * 1000);
    return;
  }

  const page = document.getElementById("page");
  const one = (id) => document.getElementById(id);
  let now = Number(page.dataset.now);
  let nowTaken = performance.now();
  let expiresAt = Number(page.dataset.expiresAt);
  let pollSeconds = page.dataset.pollSeconds === "" ? null : Number(page.dataset.pollSeconds);
  const hurrySeconds = Number(page.dataset.hurrySeconds);
  const words = page.dataset;

  // Times of the server, shown in the reader's own time zone.
  const parts = { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", timeZoneName: "short" };
  const known = new Intl.DateTimeFormat(words.lang === "en" ? "en-GB" : `${words.lang}-u-nu-latn`, parts);
  // A browser may lack the names of a language's months. It then writes `M11`; figures are better.
  const isNameless = known.formatToParts(0).some((part) => part.type === "month" && /^M\d/.test(part.value));
  const format = isNameless ? new Intl.DateTimeFormat("en-GB", { ...parts, month: "2-digit" }) : known;
  const showTimes = (root) => {
    for (const time of root.querySelectorAll("time[data-at]")) {
      time.textContent = format.format(Number(time.dataset.at) * 1000);
    }
  };

  // The server writes times in its sentences in the same form in every language, and isolates them from text that runs
  // from right to left. A time in the reader's zone has words, so it takes the language's direction (Unicode's UAX 9).
  const directed = (text) => (document.dir === "rtl" ? `\u2067${text}\u2069` : text);
  const inOwnZone = (text) => text.replace(/\d{1,2} [A-Z][a-z]{2} \d{4}, \d\d:\d\d UTC/g, (utc) => {
    const at = Date.parse(utc.replace(",", ""));
    return Number.isNaN(at) ? utc : directed(format.format(at));
  });

  // The reader's clock may be wrong, so only its progress counts.
  const secondsLeft = () => Math.max(0, Math.floor(expiresAt - now - (performance.now() - nowTaken) / 1000));
  const two = (number) => String(number).padStart(2, "0");
  let isAnnounced = false;
  let isOver = false;
  const tick = () => {
    const pay = one("pay");
    if (!pay) return;
    const left = secondsLeft();
    const hours = Math.floor(left / 3600);
    one("left").textContent = `${hours ? `${hours}:` : ""}${two(Math.floor(left / 60) % 60)}:${two(left % 60)}`;
    one("hurry").hidden = left > hurrySeconds;
    if (left <= hurrySeconds && left > 0 && !isAnnounced) {
      isAnnounced = true;
      say(words.hurry);
    }
    if (left === 0 && !isOver) {
      // The server decides what to do now. Until it answers, nothing may be sent.
      isOver = true;
      removePay();
      setText(one("headline"), words.timeUp);
      setText(one("paragraphs"), words.doNotSend);
      poll();
    }
  };

  const say = (text) => { one("copied").textContent = text; };
  const setText = (element, text) => { if (element && element.textContent !== text) element.textContent = text; };

  // Removes a part that is no longer needed. If it had the focus, the headline gets it.
  const remove = (id) => {
    const part = one(id);
    if (!part) return;
    const hadFocus = part.contains(document.activeElement);
    part.remove();
    if (hadFocus) {
      const headline = one("headline");
      headline.tabIndex = -1;
      headline.focus();
    }
  };
  const removePay = () => {
    remove("pay");
    remove("help");
    one("state").classList.remove("is-waiting");
  };

  const element = (name, className, text) => {
    const made = document.createElement(name);
    if (className) made.className = className;
    made.textContent = text;
    return made;
  };
  const timeOf = (at) => {
    const made = element("time", "muted", format.format(at * 1000));
    made.dataset.at = at;
    made.dateTime = new Date(at * 1000).toISOString();
    return made;
  };
  const paragraph = (text) => element("p", "", inOwnZone(text));
  const stepItem = (step) => {
    const item = element("li", step.state, "");
    if (step.state === "current") item.setAttribute("aria-current", "step");
    item.append(element("span", "spoken", `${step.spoken} `), element("span", "label", step.label));
    if (step.detail !== null) item.append(element("span", "muted", step.detail));
    if (step.at !== null) item.append(timeOf(step.at));
    return item;
  };
  // The item of a payment that was seen, or of a refund that was sent. Refunds have no note.
  const paymentItem = (payment) => {
    const item = element("li", "", "");
    const amount = element("span", "label", payment.text);
    amount.dir = "ltr";
    item.append(amount);
    if (payment.note) item.append(element("span", "", payment.note));
    item.append(timeOf(payment.at));
    if (payment.explorer_url !== null) {
      const link = element("a", "small", words.explorer);
      link.href = payment.explorer_url;
      link.rel = "noreferrer noopener";
      link.target = "_blank";
      item.append(link);
    }
    return item;
  };

  // Rebuilds a list only if it changed, so that a reader's place in it is not lost and nothing is spoken twice.
  const shown = new Map();
  const fill = (id, items, make) => {
    const text = JSON.stringify(items);
    if (shown.get(id) === text) return false;
    const isFirst = !shown.has(id);
    shown.set(id, text);
    const made = items.map(make);
    const list = one(id);
    const same = isFirst && list.textContent.replace(/\s+/g, " ").trim() === made.map((item) => item.textContent).join("").replace(/\s+/g, " ").trim();
    if (same) return false;
    list.replaceChildren(...made);
    return true;
  };

  const show = (state) => {
    if ((state.is_payable && !one("pay")) || (state.takes_refund_address && !one("refund"))) {
      location.reload();
      return false;
    }
    now = state.now;
    nowTaken = performance.now();
    expiresAt = state.expires_at;
    pollSeconds = state.poll_seconds;
    if (!state.is_payable) removePay();
    if (!state.takes_refund_address) remove("refund");
    setText(one("headline"), state.headline);
    document.title = `${state.headline} – ${words.title}`;
    one("state").className = `card tone-${state.tone}${state.is_payable ? " is-waiting" : ""}`;
    let isChanged = fill("paragraphs", state.paragraphs, paragraph);
    isChanged = fill("notice-list", state.notices, paragraph) || isChanged;
    one("notices").hidden = state.notices.length === 0;
    isChanged = fill("steps", state.steps, stepItem) || isChanged;
    isChanged = fill("payments", state.payments, paymentItem) || isChanged;
    one("payments-part").hidden = state.payments.length === 0;
    isChanged = fill("refunds", state.refunds, paymentItem) || isChanged;
    one("refunds-part").hidden = state.refunds.length === 0;
    setText(one("amount"), state.amount_missing);
    setText(one("expected"), state.amount_expected);
    setText(one("received"), state.amount_received);
    setText(one("pending"), state.amount_pending);
    setText(one("missing"), state.amount_missing);
    one("missing-row").hidden = !state.is_payable;
    one("pending-row").hidden = Number(state.amount_pending) === 0;
    one("receipt").hidden = state.receipt === null;
    if (state.receipt !== null) {
      for (const name of ["sent", "paid", "rate", "reference"]) setText(one(`receipt-${name}`), state.receipt[name]);
      one("receipt-at").dataset.at = state.receipt.at;
      one("receipt-at").dateTime = new Date(state.receipt.at * 1000).toISOString();
      showTimes(one("receipt"));
    }
    tick();
    return isChanged;
  };

  const trouble = (text) => {
    setText(one("trouble"), text);
    one("trouble").hidden = text === "";
  };
  const gone = () => {
    pollSeconds = null;
    removePay();
    trouble(words.gone);
  };

  // The server's stream of states. If it fails a few times, the page polls instead.
  const STREAM_FAILURES_MAX = 3;
  let stream = null;
  let streamFailures = 0;
  const endStream = () => {
    stream?.close();
    stream = null;
  };
  const openStream = () => {
    if (stream || pollSeconds === null || document.hidden || streamFailures >= STREAM_FAILURES_MAX || !window.EventSource) return;
    clearTimeout(timer);
    stream = new EventSource(`${location.pathname}/stream?lang=${words.lang}`);
    stream.onmessage = (event) => {
      streamFailures = 0;
      trouble("");
      show(JSON.parse(event.data));
      if (pollSeconds === null) endStream();
    };
    stream.onerror = () => {
      endStream();
      streamFailures += 1;
      poll();
    };
  };

  // Polls every few seconds, less often while nothing changes, much less often while the server does not answer, and
  // not at all while the page is hidden.
  const DELAY_FAILED_SECONDS_MAX = 60;
  let delaySeconds = pollSeconds;
  let failures = 0;
  let timer = 0;
  let isAsking = false;
  const plan = () => {
    clearTimeout(timer);
    if (failures === 0) openStream();
    if (stream || pollSeconds === null || document.hidden) return;
    // A random share keeps many pages from polling at the same moment.
    timer = setTimeout(poll, delaySeconds * 1000 * (0.9 + 0.2 * Math.random()));
  };
  const poll = async () => {
    if (isAsking) return;
    isAsking = true;
    clearTimeout(timer);
    try {
      const answer = await fetch(`${location.pathname}/state?lang=${words.lang}`, { cache: "no-store", credentials: "omit", signal: AbortSignal.timeout(10000) });
      if (answer.status === 404) {
        gone();
        return;
      }
      if (!answer.ok) throw new Error(String(answer.status));
      const isChanged = show(await answer.json());
      failures = 0;
      trouble("");
      delaySeconds = isChanged || delaySeconds === null ? pollSeconds : Math.min(delaySeconds * 1.25, pollSeconds * 4);
    } catch {
      failures += 1;
      delaySeconds = Math.min((pollSeconds ?? 4) * 2 ** failures, DELAY_FAILED_SECONDS_MAX);
      if (failures > 1) trouble(words.offline);
    } finally {
      isAsking = false;
      plan();
    }
  };
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      clearTimeout(timer);
      endStream();
    } else if (pollSeconds !== null) {
      delaySeconds = pollSeconds;
      streamFailures = 0;
      poll();
    }
  });

  // Copying. Where the browser keeps the clipboard to itself, the text is selected for the reader to copy.
  const copy = async (button) => {
    const source = one(button.dataset.copy);
    const label = button.dataset.label ??= button.textContent;
    let said = words.copied;
    try {
      await navigator.clipboard.writeText(source.textContent);
    } catch {
      getSelection().selectAllChildren(source);
      said = document.execCommand("copy") ? words.copied : words.selected;
    }
    button.textContent = said;
    say("");
    say(`${said}: ${source.textContent}`);
    clearTimeout(Number(button.dataset.timer));
    button.dataset.timer = setTimeout(() => { button.textContent = label; }, 2500);
  };
  for (const button of document.querySelectorAll("button[data-copy]")) {
    button.hidden = false;
    button.addEventListener("click", () => copy(button));
  }

  one("print").hidden = false;
  one("print").addEventListener("click", () => window.print());

  showTimes(document);
  for (const sentence of document.querySelectorAll("#paragraphs p, #notice-list p")) setText(sentence, inOwnZone(sentence.textContent));
  tick();
  setInterval(tick, 500);
  plan();
})();
