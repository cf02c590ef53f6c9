// Draws the pictures of the report in docs/images: real pages of the testbed, in a real browser.
//
//   node pictures.mjs        with target/release/toctou, or what TOCTOU names
import { join } from "node:path";
import { openBrowser, openPage, report, root, scratch } from "./browser.mjs";

const images = join(root, "docs/images");
const folder = scratch();
const notes = report(join(folder, "notes.html"), "testbed/typescript/racy/notes-file");
const all = report(join(folder, "all.html"), "testbed/typescript/racy");
const browser = await openBrowser();

const shoot = async (name, url, options, act = async () => {}) => {
  const page = await openPage(browser, options);
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
await browser.close();
