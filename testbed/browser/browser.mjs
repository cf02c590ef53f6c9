// A real browser for the tests of this folder: Chromium from Debian's packages, driven by playwright-core.
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { delimiter, dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const here = dirname(fileURLToPath(import.meta.url));
export const root = resolve(here, "../..");
/** The program under test: `TOCTOU`, else the release build. */
export const toctou = resolve(process.env.TOCTOU || join(root, "target/release/toctou"));

const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"];

function executable() {
  if (process.env.CHROMIUM) return process.env.CHROMIUM;
  for (const folder of (process.env.PATH || "").split(delimiter)) {
    for (const name of ["chromium", "chromium-browser", "google-chrome"]) {
      const path = join(folder, name);
      if (existsSync(path)) return path;
    }
  }
  throw new Error("Chromium was not found: apt-get install chromium, or set CHROMIUM to its path");
}

/** A browser with a profile of its own, which goes with it. */
export async function openBrowser() {
  return chromium.launch({ executablePath: executable(), headless: true, args: FLAGS });
}

/** A page that fails the test on any error in it, and on any request that leaves the machine. */
export async function openPage(browser, { width = 1280, height = 900, allow = [], ...options } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, reducedMotion: "no-preference", ...options });
  const page = await context.newPage();
  const faults = [];
  page.on("pageerror", (error) => faults.push(`error: ${error.message}`));
  page.on("console", (message) => {
    if (message.type() === "error") faults.push(`console: ${message.text()}`);
  });
  page.on("dialog", (dialog) => {
    faults.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on("request", (request) => {
    const url = request.url();
    if (!/^(file|data|blob|about):/.test(url) && !allow.some((start) => url.startsWith(start))) faults.push(`request: ${url}`);
  });
  page.faults = faults;
  return page;
}

/** Violations of accessibility that axe sees, one line each. */
export async function axe(page) {
  const path = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
  // Our own pages let no other script in; a test may look all the same.
  const session = await page.context().newCDPSession(page);
  await session.send("Runtime.evaluate", { expression: readFileSync(path, "utf8") });
  const { result, exceptionDetails } = await session.send("Runtime.evaluate", {
    expression: `axe.run(document, { preload: false, runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] })
      .then((r) => JSON.stringify(r.violations.map((v) => v.id + ": " + v.nodes.map((n) => n.target.join(" ") + " " + n.failureSummary).slice(0, 4).join(" | "))))`,
    awaitPromise: true,
    returnByValue: true,
  });
  if (exceptionDetails) throw new Error(exceptionDetails.exception?.description || exceptionDetails.text);
  return JSON.parse(result.value);
}

/** A folder that is gone when the test file ends. */
export function scratch() {
  const folder = mkdtempSync(join(tmpdir(), "toctou-browser-"));
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Scans, writes the page, and gives its address. */
export function report(file, ...args) {
  const { status, stderr, error } = spawnSync(toctou, ["scan", "--no-config", "--no-progress", "--output", `html=${file}`, ...args], { cwd: root, encoding: "utf8" });
  if (error) throw error;
  if (status !== 0 && status !== 1) throw new Error(`toctou scan: exit code ${status}\n${stderr}`);
  return pathToFileURL(file).href;
}
