// Counts down in every <time data-until>; without it the page says until when. Lets hidden pages rest.
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
