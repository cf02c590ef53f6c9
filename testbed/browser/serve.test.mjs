// `toctou serve` in a browser: paste an address, watch, read the report, come back by the badge.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { axe, openBrowser, openPage, root, scratch } from "./browser.mjs";
import { serveGit, serveSite } from "./servers.mjs";

const folder = scratch();
let browser, git, site, base;

const run = (...args) => execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@example.invalid", ...args], { cwd: join(folder, "served/testbed") });

before(async () => {
  cpSync(join(root, "testbed/typescript/racy"), join(folder, "served/testbed/racy"), { recursive: true, filter: (path) => !path.includes("node_modules") });
  run("init", "--quiet");
  run("add", "-A");
  run("commit", "--quiet", "-m", "testbed");
  git = await serveGit(join(folder, "served"), { slow: 400 });
  site = await serveSite(folder, "--allow-private");
  base = site.url;
  browser = await openBrowser();
});
after(async () => {
  await browser.close();
  site.close();
  git.close();
});

const open = async (path, options) => {
  const page = await openPage(browser, { allow: [base], ...options });
  await page.goto(base + path);
  return page;
};
const close = async (page) => {
  assert.deepEqual(page.faults, []);
  await page.context().close();
};

test("from an address to the report, and back by the badge", async () => {
  const page = await open("/");
  assert.deepEqual(await axe(page), []);
  await page.getByLabel("Repository or package").fill(`${git.url}/testbed`);
  await page.getByRole("button", { name: "Scan" }).click();

  await page.waitForURL(/\/scans\/[0-9a-f]{32}$/);
  const status = page.getByRole("status");
  await status.filter({ hasText: "cloning" }).waitFor();
  assert.deepEqual(await axe(page), []);

  await page.waitForURL(/\/r\/[0-9a-f]{32}$/);
  const report = page.url();
  await page.locator(".finding").first().waitFor();
  assert.match(await page.title(), /testbed.*grade F/);
  assert.deepEqual(await axe(page), []);

  // A timeline, step by step.
  const card = page.locator(".finding").first();
  if ((await card.locator(".head").getAttribute("aria-expanded")) === "false") await card.locator(".head").click();
  const timeline = card.locator(".timeline");
  await timeline.focus();
  await page.keyboard.press("Home");
  assert.equal(await timeline.locator(".step:not(.later)").count(), 1);
  await page.keyboard.press("ArrowRight");
  assert.equal(await timeline.locator(".step:not(.later)").count(), 2);

  // A filter, and the theme.
  const all = await page.locator(".finding:visible").count();
  await page.locator(".filters input[type=search]").fill("note");
  await page.waitForFunction((all) => [...document.querySelectorAll(".finding")].filter((f) => f.checkVisibility()).length < all, all);
  const theme = () => page.evaluate(() => document.documentElement.dataset.theme);
  const before = await theme();
  await page.getByRole("button", { name: /theme|dark|light/i }).first().click();
  assert.notEqual(await theme(), before);
  const chosen = await theme();

  // "Back" is where the scan was asked for; the list has it now, with a badge that leads to the report.
  await page.goto(base + "/");
  assert.equal(await theme(), chosen, "the pages have one theme");
  const badge = page.locator(".reports .badge").first();
  assert.match(await badge.locator("img").getAttribute("alt"), /^grade F, 0 of 100/);
  assert.ok(await badge.locator("img").evaluate((image) => image.complete && image.naturalWidth > 50), "the badge is a picture");
  await badge.click();
  await page.waitForURL(report);

  // What goes into a README leads there too.
  await page.goto(report.replace("/r/", "/scans/"));
  assert.deepEqual(await axe(page), []);
  const [, picture, target] = (await page.locator("#badge").inputValue()).match(/^\[!\[toctou\]\((.*)\)\]\((.*)\)$/);
  assert.equal(target, report);
  const drawn = await page.goto(picture);
  assert.equal(drawn.headers()["content-type"], "image/svg+xml");
  await close(page);
});

test("a zip that is dropped is scanned", async () => {
  execFileSync("git", ["archive", "--format=zip", "-o", join(folder, "testbed.zip"), "HEAD"], { cwd: join(folder, "served/testbed") });
  const page = await open("/");
  await page.getByLabel(/drop a zip/i).setInputFiles(join(folder, "testbed.zip"));
  await page.waitForURL(/\/r\/[0-9a-f]{32}$/);
  assert.match(await page.title(), /testbed\.zip.*grade F/);
  await page.goto(base + "/");
  assert.equal(await page.getByText("testbed.zip").count(), 0, "an upload is not listed");
  await close(page);
});

test("works without scripts, narrow and dark", async () => {
  const page = await open("/", { javaScriptEnabled: false, width: 360, colorScheme: "dark" });
  await page.getByLabel("Repository or package").fill(`${git.url}/testbed@nowhere`);
  await page.getByRole("button", { name: "Scan" }).click();
  // The page asks again by itself until it is over.
  await page.getByText("This could not be scanned").waitFor();
  assert.match(await page.locator(".failed pre").innerText(), /couldn't find remote ref nowhere/);
  assert.ok(await page.locator("body").evaluate((body) => body.scrollWidth <= innerWidth), "nothing sticks out");
  await close(page);
});

test("a mistake is told on a page", async () => {
  const page = await open("/");
  await page.getByLabel("Repository or package").fill("<script>alert(1)</script>");
  await page.getByRole("button", { name: "Scan" }).click();
  await page.getByRole("alert").filter({ hasText: "<script>alert(1)</script>" }).waitFor();
  assert.deepEqual(await axe(page), []);
  // The browser notes the status as an error; there is no other.
  assert.deepEqual(page.faults.filter((fault) => !fault.includes("400 (Bad Request)")), []);
  await page.context().close();
});

test("a server that attacks the page", async () => {
  const code = [
    'import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";',
    'import { readFile, writeFile } from "node:fs/promises";',
    "const server = new McpServer({ name: 'x', version: '1' });",
    "server.registerTool('<img src=x onerror=alert(1)></script><script>alert(2)</script>', {}, async () => {",
    "  const all = JSON.parse(await readFile('</script><script>alert(3)</script>', 'utf8'));",
    "  all.push('<svg onload=alert(4)>');",
    "  await writeFile('</script><script>alert(3)</script>', JSON.stringify(all));",
    "  return { content: [] };",
    "});",
  ].join("\n");
  writeFileSync(join(folder, "served/testbed/<img src=x onerror=alert(5)>.ts"), code);
  run("add", "-A");
  run("commit", "--quiet", "-m", "evil");
  const page = await open("/");
  await page.getByLabel("Repository or package").fill(`${git.url}/testbed`);
  await page.getByRole("button", { name: "Scan" }).click();
  await page.waitForURL(/\/r\/[0-9a-f]{32}$/);
  const evil = page.locator(".finding", { hasText: "onerror=alert(5)" }).first();
  await evil.waitFor();
  if ((await evil.locator(".head").getAttribute("aria-expanded")) === "false") await evil.locator(".head").click();
  await evil.locator(".timeline").waitFor();
  assert.equal(await page.locator("img[src=x], svg[onload]").count(), 0);
  await close(page);
});
