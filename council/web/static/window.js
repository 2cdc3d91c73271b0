// Counts down in every <time data-until>; without it the page says until when. Lets hidden pages rest.
// Tells when the server is away, and keeps what is typed.
"use strict";
setInterval(() => {
  for (const time of document.querySelectorAll("time[data-until]")) {
    const left = Math.max(0, Math.round((Date.parse(time.dataset.until) - Date.now()) / 1000));
    const text = left < 120 ? `${left} s` : `${Math.floor(left / 60)} min ${String(left % 60).padStart(2, "0")} s`;
    if (time.textContent !== text) time.textContent = text;
  }
}, 1000);
// A page that was opened in the background gives its stream back, as hidden pages do, until somebody looks at it. A browser keeps six
// connections to one server: a seventh page would wait for ever.
document.addEventListener("htmx:sse:after:message", () => {
  if (document.hidden) document.dispatchEvent(new Event("visibilitychange"));
});
// While the server does not answer, the page says so. A form is sent once the server answers: otherwise the browser's own page would
// take the place of what was typed.
const offline = document.getElementById("offline");
const say = (words) => { if (offline.textContent !== words) offline.textContent = words; };
document.addEventListener("htmx:sse:error", (event) => {  // a page that is refused says why itself
  if ((event.detail.status ?? 500) >= 500) say("Not connected; trying again.");
});
document.addEventListener("htmx:sse:after:connection", () => say(""));
const unsent = () => say("Not connected, so nothing was sent. Your text is kept: send it again once the council runs.");
document.addEventListener("htmx:error", (event) => { if (event.target.matches?.("form")) unsent(); });
const asking = new Map();  // forms whose server is asked, or has answered
document.addEventListener("submit", async (event) => {
  const form = event.target, button = event.submitter;
  if (form.getAttribute("method") !== "post" || form.hasAttribute("hx-post")) return;
  if (asking.get(form) === "answered") { asking.delete(form); return; }
  event.preventDefault();
  if (asking.has(form)) return;
  asking.set(form, "asked");
  try {
    await fetch("/static/icon.svg", { cache: "no-store", signal: AbortSignal.timeout(10000) });
    asking.set(form, "answered");
    form.requestSubmit(button && button.form === form ? button : null);
  } catch {
    unsent();
  }
  asking.delete(form);
});
