"use strict";
// The page works without this; with it, the theme is the report's, progress streams, and files can be dropped.
let chosen = null;
try { chosen = localStorage.getItem("toctou-theme"); } catch { /* a page that may not remember still works */ }
if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;

const progress = document.querySelector("[data-scan]");
if (progress) {
  const text = document.getElementById("progress");
  const id = progress.dataset.scan;
  const events = new EventSource(`/api/scans/${id}/events`);
  let last = "";
  events.addEventListener("progress", (event) => {
    const scan = JSON.parse(event.data);
    const now = scan.state === "queued" ? "waiting for a free worker" : scan.progress;
    if (now !== last) text.textContent = last = now;
  });
  events.addEventListener("over", (event) => {
    events.close();
    const scan = JSON.parse(event.data);
    text.textContent = scan.state === "done" ? "done" : "failed";
    // Not into the history: "back" leads to where the scan was asked for.
    if (scan.state === "done") location.replace(scan.report);
    else location.reload();
  });
}

const drop = document.getElementById("drop");
if (drop) {
  const input = drop.querySelector("input");
  const send = () => {
    if (input.files.length === 1) input.form.requestSubmit();
  };
  input.addEventListener("change", send);
  for (const name of ["dragenter", "dragover"]) {
    addEventListener(name, (event) => {
      if (!event.dataTransfer || !event.dataTransfer.types.includes("Files")) return;
      event.preventDefault();
      drop.classList.add("over");
    });
  }
  addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) drop.classList.remove("over");
  });
  addEventListener("drop", (event) => {
    if (!event.dataTransfer || event.dataTransfer.files.length !== 1) return;
    event.preventDefault();
    drop.classList.remove("over");
    input.files = event.dataTransfer.files;
    send();
  });
}
