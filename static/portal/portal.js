// Makes pages livelier; every page works without it. Markup asks for behaviour by data attributes, listed per part.
"use strict";

const one = (selector, root = document) => root.querySelector(selector);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];

// Says something to screen readers without moving the focus: the polite live region of base.html.
function announce(text) {
  const region = one("#announce");
  if (region) region.textContent = text;
}

// ---- copy: <button data-copy="#id-of-the-text"> ----------------------------------------------------------------
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const source = one(button.dataset.copy);
  const label = one("span", button);
  const before = label.textContent;
  try {
    await navigator.clipboard.writeText(source.textContent.trim());
    label.textContent = "Copied";
  } catch {
    // the clipboard needs https or localhost; selecting leaves Ctrl-C to the person
    getSelection().selectAllChildren(source);
    label.textContent = "Selected";
  }
  announce(label.textContent);
  setTimeout(() => { label.textContent = before; }, 2000);
});

// ---- a notice counts as read when its page is opened: <a data-read="its number"> --------------------------------
document.addEventListener("click", (event) => {
  const notice = event.target.closest("a[data-read]");
  if (!notice) return;
  const headers = JSON.parse(document.body.getAttribute("hx-headers"));
  const body = new URLSearchParams({ notice: notice.dataset.read });
  // it goes on while the next page loads
  fetch("/notices/read", { method: "POST", headers, body, keepalive: true, redirect: "manual" });
});

// ---- addresses of the API reference from when it was one page: the entry of the index leads on ------------------
if (location.hash) {
  const entry = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const moved = entry && one("a[data-moved]", entry);
  if (moved) location.replace(moved.href);
}

// ---- dialogs: <a href="#id" data-dialog> opens <dialog id>; [data-close] inside closes it ---------------------
document.addEventListener("click", (event) => {
  const opener = event.target.closest("[data-dialog]");
  if (opener) {
    event.preventDefault();
    // by its id, which may begin with a number: as a selector that is none
    document.getElementById(opener.hash.slice(1)).showModal();
  }
  const closer = event.target.closest("dialog [data-close]");
  if (closer) {
    event.preventDefault();
    closer.closest("dialog").close();
  }
});

// ---- confirm by name: <form data-confirm="name"> keeps its button off until the name is typed -----------------
function checkName(form) {
  const input = one("[data-confirm-input]", form);
  one("[type=submit]", form).disabled = input.value.trim() !== form.dataset.confirm;
}
document.addEventListener("input", (event) => {
  const form = event.target.closest("form[data-confirm]");
  if (form) checkName(form);
});

// ---- input outlives a lost connection and an ended session: <form data-keep>, <p data-not-computed hidden> -----------
// Before such a form is sent, the portal is asked whose session this is. Without an answer, or with another person's,
// nothing is sent: what was typed stays, a sentence says why, and a sign-in in another tab is taken over.
const NO_ANSWER = "The portal did not answer. What you entered is still here. Check your connection and try again.";
const NO_RESULT = "The portal could not answer this. What you entered is still here. Try again.";
const SIGNED_OUT = "Your session has ended. What you entered is still here: sign in in a new tab, come back and try again.";

function trouble(text, signIn = false) {
  const note = document.createElement("div");
  note.className = "note note-bad";
  note.setAttribute("role", "alert");
  note.dataset.trouble = "";
  const sentence = note.appendChild(document.createElement("p"));
  sentence.textContent = text;
  if (signIn) {
    const link = document.createElement("a");
    Object.assign(link, { href: "/login", target: "_blank", rel: "noopener", textContent: "Sign in" });
    sentence.append(" ", link);
  }
  one("#notices").replaceChildren(note);
  note.scrollIntoView({ block: "nearest" });
}

function isComputed(is) {
  all("[data-not-computed]").forEach((note) => { note.hidden = is; });
  if (is) all("#notices [data-trouble], #notices [data-refusal]").forEach((note) => note.remove());
}

async function session() {
  try {
    const answer = await fetch("/session", { cache: "no-store", signal: AbortSignal.timeout(10000) });
    return answer.ok ? await answer.json() : { problem: NO_RESULT };
  } catch {
    return { problem: NO_ANSWER };
  }
}

// Takes over the token of the session; says what is wrong where it is not this person's any more.
async function sessionIsMine() {
  const found = await session();
  if (found.problem) trouble(found.problem);
  else if (String(found.user) !== document.body.dataset.user) trouble(SIGNED_OUT, true);
  else {
    all("[name=csrfmiddlewaretoken]").forEach((input) => { input.value = found.csrf; });
    document.body.setAttribute("hx-headers", JSON.stringify({ "X-CSRFToken": found.csrf }));
    return true;
  }
  return false;
}

document.addEventListener("submit", async (event) => {
  const { target: form, submitter } = event;
  if (!form.matches("[data-keep]") || form.dataset.checked) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  if (form.dataset.checking) return;
  form.dataset.checking = "yes";
  isAwaited(submitter);
  const isMine = await sessionIsMine();
  delete form.dataset.checking;
  isOver();
  if (!isMine) return;
  form.dataset.checked = "yes";
  form.requestSubmit(submitter);
  delete form.dataset.checked;
});

// Back from a sign-in in another tab.
addEventListener("focus", async () => {
  if (one("#notices [data-trouble], #notices [data-refusal=not_signed_in]") && (await sessionIsMine())) isComputed(true);
});

// ---- an answer to a click at once: a bar at the top, and the control is pale, until the page or the part is there -----
// What no page has answered after a while is not shown any more. A download leaves the page where it is.
let forgotten, isLeaving = false;
function isAwaited(control) {
  isLeaving ||= Boolean(control);
  document.documentElement.dataset.busy = "";
  control?.setAttribute("aria-busy", "true");
  clearTimeout(forgotten);
  forgotten = setTimeout(isOver, 10000);
}
function isOver() {
  isLeaving = false;
  delete document.documentElement.dataset.busy;
  all(":is(a, button, form)[aria-busy]").forEach((control) => control.removeAttribute("aria-busy"));
}
// On the window: after all others had their chance to prevent it.
addEventListener("submit", (event) => {
  const { target: form, submitter } = event;
  if (!event.defaultPrevented && (submitter?.formTarget || form.target) !== "_blank") isAwaited(submitter ?? form);
});
addEventListener("click", (event) => {
  const link = event.target.closest("a[href]");
  if (!link || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  const isHere = link.pathname === location.pathname && link.search === location.search && link.hash;
  const isFile = link.hasAttribute("download") || link.pathname.endsWith(".csv");
  if (link.origin === location.origin && !link.target && !isFile && !isHere) isAwaited(link);
});
addEventListener("pageshow", isOver);

// ---- forms are sent once: a second click while the first is on its way does nothing ----------------------------
document.addEventListener("submit", (event) => {
  const form = event.target;
  // a button may make a POST of a form that is otherwise sent by GET
  if ((event.submitter?.formMethod || form.method) !== "post" || form.hasAttribute("hx-post")) return;
  // the page stays when the answer goes to a tab of its own
  if ((event.submitter?.formTarget || form.target) === "_blank") return;
  if (form.dataset.sent) event.preventDefault();
  form.dataset.sent = "yes";
});
// coming back with the browser's back button shows the page as it was left: sendable again
addEventListener("pageshow", () => all("form[data-sent]").forEach((form) => { delete form.dataset.sent; }));

// ---- filters apply on change: <form data-autosubmit>; without script their button does it ----------------------
document.addEventListener("change", (event) => {
  const form = event.target.closest("form[data-autosubmit]");
  if (form) form.requestSubmit();
});

// ---- what an approver changed from what was asked is marked ----------------------------------------------------
document.addEventListener("input", (event) => {
  const input = event.target.closest(".line-edit input");
  if (input) input.classList.toggle("changed", input.value !== input.defaultValue);
});

// ---- menus are <details class="menu">: one open at a time, Escape and a click outside close --------------------
function closeMenus(except) {
  all("details.menu[open]").filter((menu) => menu !== except).forEach((menu) => { menu.open = false; });
}
document.addEventListener("click", (event) => closeMenus(event.target.closest("details.menu")));

// ---- keys of a list: [data-row] with a link [data-open] and perhaps a checkbox; a control with aria-keyshortcuts --
// j and k move the focus to the next and previous link, x selects, o opens (and Enter, on a checkbox too); a letter of
// aria-keyshortcuts moves the focus to its control, which is then pressed as any other.
function listKey(event) {
  const rows = all("[data-row]");
  if (!rows.length || one("dialog[open]")) return;
  const row = document.activeElement.closest("[data-row]");
  const step = { j: 1, k: -1 }[event.key];
  if (step) {
    const next = row ? rows.indexOf(row) + step : 0;
    one("[data-open]", rows[Math.max(0, Math.min(next, rows.length - 1))]).focus();
  } else if (event.key === "x" && row) {
    one("[type=checkbox]", row)?.click();
  } else if (row && (event.key === "o" || (event.key === "Enter" && event.target.matches("[type=checkbox]")))) {
    one("[data-open]", row).click();
  } else {
    const control = all("[aria-keyshortcuts]").find((found) => found.getAttribute("aria-keyshortcuts") === event.key);
    if (!control) return;
    control.focus();
  }
  event.preventDefault();
}

// ---- keys: "/" searches, "?" helps, Escape closes menus --------------------------------------------------------
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    const open = one("details.menu[open]");
    closeMenus();
    if (open) one("summary", open).focus();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input:not([type=checkbox]), textarea, select, [contenteditable]")) return;
  if (event.key === "/" && one("#search")) {
    event.preventDefault();
    one("#search").focus();
  } else if (event.key === "?" && one("#keys") && !one("dialog[open]")) {
    one("#keys").showModal();
  } else {
    listKey(event);
  }
});

// ---- times: <time datetime data-when="relative|clock|minute|date|countdown">, see the tag `when` ----------------------
// The server writes a text that is right in UTC and at the moment of rendering; here it gets the person's zone and ages.
const steps = [[60, "second", 1], [3600, "minute", 60], [86400, "hour", 3600], [Infinity, "day", 86400]];
const inWords = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const absolute = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "long" });
const clock = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });
const minute = new Intl.DateTimeFormat("en-GB", { timeStyle: "short" });
const dayParts = { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" };
const dayAndMinute = new Intl.DateTimeFormat("en-GB", dayParts);
const yearAndMinute = new Intl.DateTimeFormat("en-GB", { ...dayParts, year: "numeric" });
const day = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium" });

function relative(seconds) {
  const [, unit, size] = steps.find(([limit]) => Math.abs(seconds) < limit);
  if (unit === "second" && Math.abs(seconds) < 10) return seconds > 0 ? "in a moment" : "just now";
  return inWords.format(Math.trunc(seconds / size), unit);
}

function countdown(seconds) {
  if (seconds <= 0) return "now";
  const parts = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]]
    .map(([size, unit], index, list) => [Math.floor((seconds % (list[index - 1]?.[0] ?? Infinity)) / size), unit]);
  return "in " + parts.filter(([count]) => count > 0).slice(0, 2).map(([count, unit]) => `${count} ${unit}`).join(" ");
}

function minuteFormat(at, now) {
  if (at.toDateString() === now.toDateString()) return minute;
  return at.getFullYear() === now.getFullYear() ? dayAndMinute : yearAndMinute;
}

function showTimes(root = document) {
  for (const time of all("time[data-when]", root)) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.valueOf())) continue;
    const seconds = (at - Date.now()) / 1000;
    const text = {
      relative: () => relative(seconds),
      countdown: () => countdown(seconds),
      clock: () => clock.format(at),
      minute: () => minuteFormat(at, new Date()).format(at),
      date: () => day.format(at),
    }[time.dataset.when]();
    time.title = absolute.format(at);
    if (time.textContent !== text) time.textContent = text;
  }
}

// ---- live pages ------------------------------------------------------------------------------------------------
// One stream per page, closed while the page is hidden. htmx's extension asks htmx.createEventSource for its source;
// this one comes and goes with the visibility of the page and keeps the extension's listeners.
class VisibleSource extends EventTarget {
  constructor(url, afterMs = 0) {
    super();
    this.url = url;
    this.names = new Set(["open", "error"]);
    this.begun = new Set();
    this.onVisibility = () => (document.hidden ? this.pause() : this.resume());
    document.addEventListener("visibilitychange", this.onVisibility);
    if (afterMs) this.timer = setTimeout(() => this.resume(), afterMs);
    else this.resume();
  }

  get readyState() {
    return this.inner ? this.inner.readyState : EventSource.CONNECTING;
  }

  addEventListener(name, listener, options) {
    super.addEventListener(name, listener, options);
    if (this.names.has(name)) return;
    this.names.add(name);
    if (this.inner) this.forward(name);
  }

  forward(name) {
    this.inner.addEventListener(name, (event) => {
      if (name === "open") this.onopen?.(event);
      if (name === "error") this.onerror?.(event);
      if (this.isSameAsLoaded(name, event.data)) return;
      this.dispatchEvent(new MessageEvent(name, { data: event.data, lastEventId: event.lastEventId }));
    });
  }

  // A stream begins with the state as it is. Where the page was loaded with the same, nothing is fetched again.
  isSameAsLoaded(name, html) {
    if (name === "open" || name === "error" || this.begun.has(name)) return false;
    this.begun.add(name);
    const part = one(`[sse-swap="${CSS.escape(name)}"]`);
    return Boolean(part) && withoutAges(given.get(part) ?? "") === withoutAges(comparable(parsed(html).body.innerHTML));
  }

  resume() {
    if (this.inner || document.hidden) return;
    this.inner = new EventSource(this.url);
    this.names.forEach((name) => this.forward(name));
  }

  pause() {
    this.inner?.close();
    this.inner = null;
  }

  close() {
    clearTimeout(this.timer);
    document.removeEventListener("visibilitychange", this.onVisibility);
    this.pause();
  }
}

// What somebody types, has opened or is at in a part that is fetched again stays: <... data-keep-typed>, by the ids
// inside; a link that has none is known by its address and text.
const isTyped = (input) => input.value !== input.defaultValue || input.checked !== input.defaultChecked;

function typedIn(part) {
  return {
    opened: all("details[id][open]", part).map((found) => found.id),
    dialog: one("dialog[id][open]", part)?.id,
    focus: part.contains(document.activeElement) ? document.activeElement : null,
    inputs: all("input[id]:not([type=hidden])", part).filter(isTyped).map(({ id, value, checked }) => ({ id, value, checked })),
  };
}

function isLike(was, found) {
  return was.id || found.id ? was.id === found.id : was.href === found.href && was.textContent === found.textContent;
}

function typeAgain(part, typed) {
  const same = (id) => id && one(`#${CSS.escape(id)}`, part);
  typed.opened.map(same).forEach((found) => { if (found) found.open = true; });
  typed.inputs.forEach(({ id, value, checked }) => { if (same(id)) Object.assign(same(id), { value, checked }); });
  all("form[data-confirm]", part).forEach(checkName);
  if (same(typed.dialog)) same(typed.dialog).showModal();
  if (typed.focus) all("[id], a[href]", part).find((found) => isLike(found, typed.focus))?.focus();
}

// What a part was last given by the server, whatever was done to it since: what is given again is not put in again. A
// button that is replaced between the press and the release of a mouse is not clicked, and a focus would be lost.
const given = new WeakMap();
const LIVE_PARTS = "[sse-swap], [data-keep-typed], #unread";

// Each answer has a token of its own for its forms.
// A stream leaves out the end of the last line.
const comparable = (html) => html.replace(/(name="csrfmiddlewaretoken" value=")[^"]*/g, "$1").trim();

// The words for a moment age, and a stream has others than a page; the moment itself is in the tag. Only a page says when
// it was made.
const withoutAges = (text) => text.replace(/<span class="when-still">.*?<\/span>/gs, "").replace(/(<time\b[^>]*>)[^<]*/g, "$1");

function isNews(part, html) {
  const text = comparable(html);
  const isOther = given.get(part) !== text;
  given.set(part, text);
  return isOther;
}

function parsed(html) {
  return new DOMParser().parseFromString(html, "text/html");
}

// ---- parts that are the same for everybody hide what is for one person: <button data-opener="key" hidden> -------
function showOwn(root = document) {
  all("[data-opener]", root).forEach((button) => { button.hidden = button.dataset.opener !== document.body.dataset.user; });
}

// What "Live" says: theme and words depend on <body data-stream>.
function streamIs(state) {
  if (document.body.dataset.stream === state) return;
  document.body.dataset.stream = state;
  if (state !== "paused") return;
  all("[data-paused-at]").forEach((place) => { place.textContent = `; last updated ${clock.format(new Date())}`; });
  announce("Live updates paused, retrying.");
}

if (window.htmx) {
  let isRefused = false;
  htmx.createEventSource = (url) => {
    // A browser gives up a stream that was refused, and htmx asks for another one: at another time on each page, since
    // a portal that is full, or starts again, refuses all of them at once.
    const source = new VisibleSource(url, isRefused ? Math.random() * 10000 : 0);
    isRefused = false;
    source.addEventListener("error", () => { isRefused = source.readyState === EventSource.CLOSED; });
    // The bell stands outside of what htmx connects; it follows the stream that the page has anyway.
    source.addEventListener("state_notices", ({ data }) => {
      const bell = one("#unread");
      if (!bell || !isNews(bell, parsed(data).body.innerHTML)) return;
      bell.innerHTML = data;
      if (bell.textContent.trim()) announce(`Notices: ${bell.textContent.trim()}.`);
    });
    // Nor do the announcements, which depend on the person: the page fetches them again if it shows others.
    source.addEventListener("state_announcements", ({ data }) => {
      const seen = one("#announcements [name=announced]");
      if (seen && seen.value !== data) htmx.trigger("#announcements", "announced");
    });
    return source;
  };
  document.addEventListener("htmx:sseOpen", () => streamIs("live"));
  document.addEventListener("htmx:sseError", () => streamIs("paused"));
  document.addEventListener("htmx:sseMessage", (event) => { showTimes(event.target); showOwn(event.target); });
  document.addEventListener("htmx:afterSwap", (event) => {
    showTimes(event.target);
    all(".term-log", event.target).forEach((log) => { log.scrollTop = log.scrollHeight; });
    const said = one("[data-announce]", event.target);
    if (said) announce(said.textContent.trim());
  });
  // What a person asked for; what a page asks by itself needs no answer.
  const asked = new Set();
  document.addEventListener("htmx:beforeSend", ({ detail }) => {
    if (!detail.requestConfig.triggeringEvent?.isTrusted) return;
    asked.add(detail.xhr);
    isAwaited();
  });
  document.addEventListener("htmx:afterRequest", ({ detail }) => { if (asked.delete(detail.xhr) && !asked.size && !isLeaving) isOver(); });
  const typed = new WeakMap();
  document.addEventListener("htmx:beforeSwap", (event) => {
    const { target, detail } = event;
    if (!target.matches("[data-keep-typed]")) return;
    const found = detail.xhr.status < 400 && one(`#${target.id}`, parsed(detail.xhr.responseText));
    if (found && !isNews(target, found.innerHTML)) detail.shouldSwap = false;
    else typed.set(target, typedIn(target));
  });
  document.addEventListener("htmx:sseBeforeMessage", (event) => {
    if (event.target.matches("[sse-swap]") && !isNews(event.target, parsed(event.detail.data).body.innerHTML)) event.preventDefault();
  });
  document.addEventListener("htmx:afterSwap", ({ target }) => {
    if (typed.has(target)) typeAgain(target, typed.get(target));
    typed.delete(target);
  });
  // What is typed into a new part before htmx has made it work, some 20 ms later: it is said again.
  const early = new Set();
  document.addEventListener("htmx:afterSwap", () => early.clear());
  document.addEventListener("input", ({ target }) => early.add(target));
  document.addEventListener("htmx:afterSettle", ({ target }) => {
    const missed = [...early].filter((field) => target.contains(field));
    early.clear();
    missed.forEach((field) => field.dispatchEvent(new Event("input", { bubbles: true })));
  });
  // A hidden page asks nothing; it is up to date a moment after it is seen again.
  document.addEventListener("htmx:beforeRequest", (event) => {
    if (document.hidden && event.detail.elt.getAttribute("hx-trigger")?.startsWith("every ")) event.preventDefault();
  });
  // A page with a stream hears of announcements from it.
  document.addEventListener("htmx:beforeRequest", (event) => {
    const { elt, requestConfig } = event.detail;
    const isPoll = requestConfig.triggeringEvent?.type !== "announced";
    if (elt.id === "announcements" && isPoll && document.body.dataset.stream === "live") event.preventDefault();
  });
  // A refusal is a sentence, not a replacement for what was clicked: it goes to the notices at the top of the page.
  document.addEventListener("htmx:beforeSwap", (event) => {
    const { xhr } = event.detail;
    const { elt } = event.detail;
    if (xhr.status >= 400 && xhr.responseText.includes("data-refusal")) {
      event.detail.target = one("#notices");
      event.detail.swapOverride = "innerHTML";
      event.detail.selectOverride = "unset";
    }
    if (elt.closest("form")) isComputed(xhr.status < 400);
    // The token of a session that was begun in another tab is taken over, and the part asks again; once, not for ever.
    if (xhr.responseText.includes('data-refusal="form_too_old"') && Date.now() - (elt.dataset.retriedAt ?? 0) > 5000) {
      elt.dataset.retriedAt = Date.now();
      const again = event.detail.requestConfig.triggeringEvent?.type;
      sessionIsMine().then((isMine) => { if (isMine && again) htmx.trigger(elt, again); });
    }
  });
  // What is typed is kept where a form asked; other parts are asked about again when something changes.
  const noAnswer = (text) => ({ detail }) => {
    if (!detail.elt.closest("form")) { announce(text); return; }
    isComputed(false);
    trouble(text);
  };
  document.addEventListener("htmx:sendError", noAnswer(NO_ANSWER));
  document.addEventListener("htmx:timeout", noAnswer(NO_ANSWER));
  document.addEventListener("htmx:responseError", (event) => { if (event.detail.xhr.status >= 500) noAnswer(NO_RESULT)(event); });
}

// What was chosen or typed before the scripts ran, or is there again after the back button: parts that follow it ask.
function askAboutTyped() {
  const isChosen = ({ options, selectedIndex }) => selectedIndex > 0 && !options[selectedIndex].defaultSelected;
  const form = "main form:not([data-autosubmit])";
  const typed = all(`${form} input:not([type=hidden])`).filter((input) => isTyped(input) && (input.type !== "radio" || input.checked));
  [...typed, ...all(`${form} select`).filter(isChosen)].forEach((field) => {
    for (const type of ["input", "change"]) field.dispatchEvent(new Event(type, { bubbles: true }));
  });
}

document.addEventListener("DOMContentLoaded", () => {
  all(LIVE_PARTS).forEach((part) => isNews(part, part.innerHTML));
  showOwn();
  all("form[data-confirm]").forEach(checkName);
  askAboutTyped();
  showTimes();
  setInterval(() => { if (!document.hidden) showTimes(); }, 1000);
});

// ---- charts over time, drawn by uPlot from the tables behind them; it is loaded with the first chart ---------------
//   <figure data-time-chart data-unit data-step [data-most]><div class="plot"></div> … <tr data-x="Unix seconds"><td data-y>
// data-step: seconds between two rows; a missing row, or a cell without data-y, is a gap. A column whose heading has
// data-leave-out is in the table alone. Without script the tables are all there is.
(() => {
  const TONES = ["--accent", "--wait-mark", "--good-mark", "--muted"];
  // So that lines are told apart without their colours.
  const DASHES = [undefined, [4, 3], [8, 3], [1, 3]];
  const DAY = 86400;
  // Distances of marks on the axis of time, in seconds.
  const MARKS = [3600, 3 * 3600, 6 * 3600, 12 * 3600, DAY, 2 * DAY, 5 * DAY, 10 * DAY];
  const drawn = new Map();
  const tone = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function mark(x) {
    const at = new Date(x * 1000);
    if (at.getHours() || at.getMinutes()) return at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
    return at.toLocaleDateString("en-GB", { day: "numeric", month: "short" });
  }

  function read(figure) {
    const headings = [...figure.querySelectorAll("thead th")];
    const kept = headings.map((_, index) => index).slice(1).filter((index) => !headings[index].hasAttribute("data-leave-out"));
    const step = Number(figure.dataset.step);
    const data = [[], ...kept.map(() => [])];
    for (const row of figure.querySelectorAll("tbody tr")) {
      const x = Number(row.dataset.x);
      const before = data[0].at(-1);
      // a day with a change of the clock is an hour longer
      if (before !== undefined && x - before > step * 1.5) {
        data[0].push(before + step);
        data.slice(1).forEach((column) => column.push(null));
      }
      data[0].push(x);
      kept.forEach((index, place) => {
        const y = row.cells[index].dataset.y;
        data[place + 1].push(y === undefined ? null : Number(y));
      });
    }
    return { data, names: kept.map((index) => headings[index].textContent) };
  }

  function draw(figure) {
    drawn.get(figure)?.destroy();
    const plot = figure.querySelector(".plot");
    const { data, names } = read(figure);
    const unit = figure.dataset.unit;
    const most = figure.dataset.most === undefined ? null : Number(figure.dataset.most);
    const axis = { stroke: tone("--muted"), grid: { stroke: tone("--line"), width: 1 }, ticks: { stroke: tone("--line"), width: 1 } };
    const options = {
      width: plot.clientWidth,
      height: 160,
      cursor: { drag: { x: false, y: false } },
      scales: { y: { range: (_, __, top) => [0, most ?? Math.max(top * 1.1, 1)] } },
      axes: [
        { ...axis, size: 32, incrs: MARKS.filter((one) => one >= Number(figure.dataset.step)), values: (_, ticks) => ticks.map(mark) },
        { ...axis, size: 64, space: 26, values: (_, ticks) => ticks.map((value) => `${value} ${unit}`) },
      ],
      series: [
        // Without a pointer over the chart no value is shown.
        { value: (_, x) => (x == null ? "" : new Date(x * 1000).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" })) },
        ...names.map((name, place) => ({
          label: name,
          stroke: tone(TONES[place % TONES.length]),
          width: place ? 1.25 : 2,
          dash: DASHES[place % DASHES.length],
          points: { show: data[0].length < 3 },
          value: (_, y, __, place) => (place == null ? "" : y == null ? "not measured" : `${y.toFixed(1)} ${unit}`),
        })),
      ],
    };
    drawn.set(figure, new uPlot(options, data, plot));
    sizes.observe(plot);
  }

  const sizes = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      const chart = drawn.get(target.closest("figure"));
      if (chart && target.clientWidth && chart.width !== target.clientWidth) chart.setSize({ width: target.clientWidth, height: 160 });
    }
  });

  let loading;
  function load() {
    loading ??= new Promise((done, failed) => {
      const script = Object.assign(document.createElement("script"), { src: one("meta[name=uplot]").content, onload: done, onerror: failed });
      document.head.append(script);
    });
    return loading;
  }

  async function drawNew() {
    for (const figure of drawn.keys()) if (!figure.isConnected) drawn.delete(figure);
    if (!one("[data-time-chart]") || !one("meta[name=uplot]")) return;
    await load();
    for (const figure of all("[data-time-chart]")) if (!drawn.has(figure)) draw(figure);
  }

  document.addEventListener("DOMContentLoaded", drawNew);
  document.addEventListener("htmx:afterSwap", drawNew);
  new MutationObserver(() => [...drawn.keys()].forEach(draw)).observe(document.documentElement, { attributeFilter: ["data-bs-theme"] });
})();
