// The documentation's site in a browser: readable, reachable, accessible.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { axe, openBrowser, openPage, root } from "./browser.mjs";

const site = resolve(process.env.SITE || join(root, "target/site"));
const address = (path) => pathToFileURL(join(site, path)).href;
let browser;
before(async () => {
  assert.ok(existsSync(join(site, "index.html")), `there is no site in ${site}: cargo run -p toctou-site -- target/site`);
  browser = await openBrowser();
});
after(() => browser.close());

test("from the start to a rule and back, by its links", async () => {
  const page = await openPage(browser);
  await page.goto(address("index.html"));
  const pages = page.getByRole("navigation", { name: "Pages" });
  await pages.getByRole("link", { name: "Rules", exact: true }).click();
  await page.getByRole("main").getByRole("link", { name: "file-read-modify-write" }).first().click();
  assert.equal(await page.getByRole("heading", { level: 1 }).innerText(), "file-read-modify-write");
  assert.equal(await pages.locator("[aria-current=page]").innerText(), "file-read-modify-write");
  await page.getByRole("link", { name: "toctou", exact: true }).click();
  assert.equal(page.url(), address("index.html"));
  const broken = await page.locator("img").evaluateAll((images) => images.filter((image) => image.complete && !image.naturalWidth).map((image) => image.src));
  assert.deepEqual(broken, []);
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

test("accessible, by axe, and nothing sticks out", async () => {
  for (const [path, colorScheme, width] of [["index.html", "light", 1280], ["docs/report.html", "dark", 400],
    ["docs/rules/index.html", "light", 400], ["docs/guard.html", "dark", 1280], ["docs/reference/cli.html", "light", 400]]) {
    const page = await openPage(browser, { colorScheme, width });
    await page.goto(address(path));
    assert.deepEqual(await axe(page), [], path);
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0, path);
    assert.deepEqual(page.faults, []);
    await page.context().close();
  }
});
