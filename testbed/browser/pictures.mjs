// Draws the pictures of the pages in docs/images: real reports, in a real browser. Needs npm and PyPI for the last.
//
//   node pictures.mjs        with target/release/toctou, or what TOCTOU names
import { join } from "node:path";
import { openBrowser, openPage, report, root, scratch } from "./browser.mjs";
import { serveSite } from "./servers.mjs";

const images = join(root, "docs/images");
const folder = scratch();
const notes = report(join(folder, "notes.html"), "testbed/typescript/racy/notes-file");
const all = report(join(folder, "all.html"), "testbed/typescript/racy");
const browser = await openBrowser();

const shoot = async (name, url, options, act = async () => {}) => {
  const page = await openPage(browser, { allow: ["http://127.0.0.1"], ...options });
  await page.goto(url);
  await act(page);
  // What moves has come to rest.
  await page.waitForTimeout(900);
  await page.screenshot({ path: join(images, `${name}.png`) });
  await page.context().close();
  console.log(`docs/images/${name}.png`);
};
const atTheLoss = async (page) => {
  const timeline = page.locator(".timeline").first();
  await timeline.getByRole("button", { name: "Step back" }).click();
  await page.mouse.move(0, 0);
  await page.evaluate(() => document.activeElement.blur());
};
const showTimeline = async (page) => {
  await atTheLoss(page);
  await page.locator(".finding.open").first().evaluate((element) => element.scrollIntoView());
};

await shoot("report", notes, { width: 1200, height: 1300 }, atTheLoss);
await shoot("report-dark", notes, { width: 1200, height: 860, colorScheme: "dark" }, showTimeline);
await shoot("report-narrow", notes, { width: 400, height: 860, colorScheme: "light" }, showTimeline);
await shoot("report-score", all, { width: 1200, height: 520 });

// The page of `toctou serve`, with packages that are published.
const site = await serveSite(folder);
const sources = ["pypi:mcp-server-git==2025.1.14", "npm:@modelcontextprotocol/server-filesystem@2025.3.28", "npm:@modelcontextprotocol/server-memory@2025.4.25"];
for (const source of sources) {
  const page = await openPage(browser, { allow: [site.url] });
  await page.goto(site.url);
  await page.fill("#source", source);
  await page.getByRole("button", { name: "Scan" }).click();
  await page.waitForURL(/\/r\//, { timeout: 60_000 });
  await page.context().close();
}
await shoot("serve", site.url, { width: 1000, height: 760 });
site.close();
await browser.close();
