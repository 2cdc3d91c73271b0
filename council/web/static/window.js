// Counts down in every <time data-until>. Without it the page says until when.
"use strict";
setInterval(() => {
  for (const time of document.querySelectorAll("time[data-until]")) {
    const left = Math.max(0, Math.round((Date.parse(time.dataset.until) - Date.now()) / 1000));
    const text = left < 120 ? `${left} s` : `${Math.floor(left / 60)} min ${String(left % 60).padStart(2, "0")} s`;
    if (time.textContent !== text) time.textContent = text;
  }
}, 1000);
