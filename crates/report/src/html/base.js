// Elements are made from parts and text is only ever text: nothing here reads markup.
const fill = (element, attributes, children) => {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(4).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
};
const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const drawing = (tag, attributes, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

const ICONS = {
  play: "M5 3.5v9l7.5-4.5z",
  pause: "M4.5 3.5h2.6v9H4.5zM8.9 3.5h2.6v9H8.9z",
  back: "M10.8 3.2 6 8l4.8 4.8 1-1L8 8l3.8-3.8zM4 3.5h1.5v9H4z",
  next: "M5.2 3.2 10 8l-4.8 4.8-1-1L8 8 4.2 4.2zM10.5 3.5H12v9h-1.5z",
  turn: "m5.7 3 5 5-5 5-1.1-1.1L8.5 8 4.6 4.1z",
  link: "M6.7 9.3a2.5 2.5 0 0 0 3.6 0l2-2a2.6 2.6 0 0 0-3.6-3.6l-1 1 .9.9 1-1a1.3 1.3 0 0 1 1.8 1.8l-2 2a1.3 1.3 0 0 1-1.8 0zm2.6-2.6a2.5 2.5 0 0 0-3.6 0l-2 2a2.6 2.6 0 0 0 3.6 3.6l1-1-.9-.9-1 1a1.3 1.3 0 0 1-1.8-1.8l2-2a1.3 1.3 0 0 1 1.8 0z",
  copy: "M6 2.5h6.5V10H11v3.5H3.5V6H6zm1.3 1.3V6H11v2.7h.2V3.8zM4.8 7.3v4.9h4.9V7.3z",
  theme: "M8 2.5a5.5 5.5 0 1 0 0 11zM8 1.2a6.8 6.8 0 1 1 0 13.6A6.8 6.8 0 0 1 8 1.2z",
};
const icon = (name) => drawing("svg", { viewBox: "0 0 16 16", width: 16, height: 16, "aria-hidden": "true" },
  drawing("path", { d: ICONS[name], fill: "currentColor", "fill-rule": "evenodd" }));

// A sentence in which backticks stand around code.
const prose = (text) => {
  const parts = text.split("`");
  if (parts.length % 2 === 0) return [text];
  return parts.map((part, index) => (index % 2 ? h("code", null, part) : part)).filter((part) => part !== "");
};
const plural = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
const join = (words) => (words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`);

const SEVERITIES = ["critical", "high", "medium", "low", "info"];
const SCOPES = { "in-process": "same process", "cross-process": "other processes" };

const copyText = async (text) => {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Not every page may use the clipboard; a selection can still be copied.
    const area = h("textarea", { class: "away", "aria-hidden": "true" }, text);
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
};
const copyButton = (label, text, name = "copy") => {
  const words = h("span", null, label);
  const button = h("button", { type: "button", class: "quiet" }, icon(name), words);
  let timer;
  button.addEventListener("click", async () => {
    const done = await copyText(typeof text === "function" ? text() : text);
    words.textContent = done ? "Copied" : "Could not copy";
    clearTimeout(timer);
    timer = setTimeout(() => { words.textContent = label; }, 1600);
  });
  // Who listens is told as well.
  words.setAttribute("aria-live", "polite");
  return button;
};
