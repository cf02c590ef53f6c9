// The HTML report in a browser: what a reader does with it, what an attacker tries, how long it takes.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { axe, openBrowser, openPage, report, scratch } from "./browser.mjs";

const folder = scratch();
let browser;
before(async () => { browser = await openBrowser(); });
after(() => browser.close());

const testbed = report(join(folder, "testbed.html"), "testbed/typescript/racy");
const open = async (url, options) => {
  const page = await openPage(browser, options);
  await page.goto(url);
  return page;
};
const close = async (page) => {
  assert.deepEqual(page.faults, []);
  await page.context().close();
};
const finding = (page, tool) => page.locator(".group", { has: page.locator("h2 .name", { hasText: new RegExp(`^${tool}$`) }) }).locator(".finding").first();
const opened = async (page, tool) => {
  const card = finding(page, tool);
  if ((await card.locator(".head").getAttribute("aria-expanded")) === "false") await card.locator(".head").click();
  return card;
};

test("says the grade, and how it comes about", async () => {
  const page = await open(testbed);
  assert.equal(await page.locator(".grade b").innerText().then((text) => text.trim().at(-1)), "F");
  const points = await page.locator(".sum li").evaluateAll((items) => items.map((item) => item.querySelector(".points").textContent));
  const lost = points.slice(1, -1).flatMap((text) => text.split(" ")).map((text) => Number(text.replace("−", "-")));
  assert.ok(lost.length > 5 && lost.every((number) => number < 0));
  assert.equal(Number(points.at(-1)), Math.max(0, 100 + lost.reduce((sum, number) => sum + number, 0)));
  await close(page);
});

test("a timeline can be stepped, played and dragged", async () => {
  const page = await open(testbed);
  const card = await opened(page, "add_note");
  const timeline = card.locator(".timeline");
  const say = timeline.locator(".say");
  const shown = () => timeline.locator(".step:not(.later)").count();
  const all = await timeline.locator(".step").count();
  assert.equal(await shown(), all, "at first the whole story");

  await timeline.focus();
  await page.keyboard.press("Home");
  assert.equal(await shown(), 1);
  assert.match(await say.innerText(), /^Call A reads and sees v0/);
  assert.equal(await card.locator(".ln.now-0").count(), 1, "the line of the step is marked in the source");
  await page.keyboard.press("ArrowRight");
  assert.match(await say.innerText(), /^Call B reads and sees v0/);
  await timeline.getByRole("button", { name: "Step forward" }).click();
  assert.match(await say.innerText(), /^Call B writes v0 \+ B/);
  assert.equal(await timeline.locator(".value.gone:visible").count(), 0, "nothing is lost yet");
  await page.keyboard.press("ArrowRight");
  assert.match(await say.innerText(), /trusts what it read at step 1.*v0 \+ B of call B is lost/);
  assert.equal(await timeline.locator(".value.gone:visible").innerText(), "v0 + B lost");
  assert.equal(await timeline.locator(".step.undone").count(), 1);
  await page.keyboard.press("ArrowLeft");
  assert.equal(await timeline.locator(".step.undone").count(), 0);

  await timeline.locator("input[type=range]").fill("2");
  assert.equal(await shown(), 2);
  await timeline.focus();
  await page.keyboard.press(" ");
  await timeline.getByRole("button", { name: "Pause" }).waitFor();
  await page.waitForFunction((element) => element.querySelectorAll(".step:not(.later)").length >= 4, await timeline.elementHandle());
  await timeline.getByRole("button", { name: "Pause" }).click();
  await timeline.getByRole("button", { name: "Play" }).waitFor();
  await close(page);
});

test("filters narrow the list, and stand in the address", async () => {
  const page = await open(testbed);
  const visible = () => page.locator(".finding:visible").count();
  const total = await visible();
  await page.getByRole("checkbox", { name: /^critical/ }).check();
  const critical = await visible();
  assert.ok(critical > 0 && critical < total);
  assert.match(page.url(), /#severity=critical$/);
  await page.reload();
  assert.equal(await visible(), critical, "the address keeps the filter");
  assert.ok(await page.getByRole("checkbox", { name: /^critical/ }).isChecked());
  await page.getByRole("button", { name: "Show all" }).click();
  assert.equal(await visible(), total);

  await page.getByRole("searchbox").fill("export_note");
  await page.waitForFunction(() => location.hash === "#q=export_note");
  assert.equal(await visible(), 1);
  await page.getByRole("searchbox").fill("no such thing");
  await page.locator(".empty:visible").waitFor();
  await page.getByRole("button", { name: "Show all" }).click();
  await page.getByLabel("Tool or other entry point").selectOption("tool withdraw");
  assert.equal(await visible(), 1);
  assert.match(await page.locator("#count").innerText(), new RegExp(`^1 of ${total} findings`));
  await page.getByLabel("Tool or other entry point").selectOption("");
  await page.getByRole("checkbox", { name: /^other processes/ }).check();
  const across = await visible();
  assert.ok(across > 0 && across < total);
  await page.getByRole("checkbox", { name: /^file-check-then-act/ }).check();
  assert.equal(await visible(), 1, "filters of two kinds are both met");
  await close(page);
});

test("a link leads to its finding", async () => {
  const page = await open(testbed, { permissions: ["clipboard-read", "clipboard-write"] });
  const card = await opened(page, "export_note");
  await card.getByRole("button", { name: "Copy a link to this finding" }).click();
  await card.getByText("Copied", { exact: true }).waitFor();
  const link = await page.evaluate(() => navigator.clipboard.readText());
  const id = await card.getAttribute("id");
  assert.ok(link.endsWith(`#finding=${id.replace("finding-", "")}`));
  await close(page);
  const other = await open(link);
  const target = other.locator(`#${id}`);
  assert.equal(await target.locator(".head").getAttribute("aria-expanded"), "true");
  assert.ok(await target.locator(".head").evaluate((head) => head === document.activeElement && head.getBoundingClientRect().top < innerHeight));
  await close(other);
});

test("snippets are copied as they stand", async () => {
  const page = await open(testbed, { permissions: ["clipboard-read", "clipboard-write"] });
  const card = await opened(page, "add_note");
  for (const snippet of await card.locator(".snippet").all()) {
    await snippet.getByRole("button").click();
    await snippet.getByText("Copied").waitFor();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), await snippet.locator("pre").innerText());
  }
  assert.ok((await card.locator(".snippet pre").allInnerTexts()).some((text) => text.includes('match = ["add_note"')));
  await close(page);
});

test("dark and light: as the system has it, or as chosen", async () => {
  const page = await open(testbed, { colorScheme: "dark" });
  const theme = () => page.evaluate(() => document.documentElement.dataset.theme);
  const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  assert.equal(await theme(), "dark");
  const dark = await paper();
  await page.getByRole("button", { name: "Switch to the light theme" }).click();
  assert.equal(await theme(), "light");
  assert.notEqual(await paper(), dark);
  await page.reload();
  assert.equal(await theme(), "light", "the choice is remembered");
  await close(page);
});

for (const colorScheme of ["light", "dark"]) {
  test(`accessible, by axe, ${colorScheme}, wide and narrow`, async () => {
    for (const width of [1280, 400]) {
      const page = await open(testbed, { colorScheme, width });
      await page.getByRole("button", { name: "Open all" }).click();
      const timeline = page.locator(".timeline").nth(1);
      await timeline.focus();
      await page.keyboard.press("Home");
      // What is far away is not drawn, and axe cannot judge it.
      await page.evaluate(() => { for (const group of document.querySelectorAll(".group")) group.style.contentVisibility = "visible"; });
      await page.waitForTimeout(700);
      assert.deepEqual(await axe(page), []);
      const wider = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(wider <= 0, `nothing sticks out at ${width}: ${wider}`);
      await close(page);
    }
  });
}

test("still where the reader wants no motion", async () => {
  const page = await open(testbed, { reducedMotion: "reduce" });
  const card = await opened(page, "add_note");
  await card.locator(".timeline").focus();
  await page.keyboard.press("Home");
  const moves = await card.locator(".timeline").evaluate((element) => element.getAnimations({ subtree: true }).length);
  assert.equal(moves, 0);
  await close(page);
});

test("on paper everything is open, and there is nothing to press", async () => {
  const page = await open(testbed);
  await page.emulateMedia({ media: "print" });
  await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
  const cards = await page.locator(".finding").count();
  assert.equal(await page.locator(".finding .body:visible").count(), cards);
  assert.equal(await page.locator(".step.later").count(), 0);
  assert.equal(await page.locator(".controls:visible, .filters:visible, .bar button:visible, .snippet button:visible").count(), 0);
  await page.evaluate(() => dispatchEvent(new Event("afterprint")));
  assert.equal(await page.locator(".finding.open").count(), 1, "and as it was, afterwards");
  // The browser itself says when it prints.
  const pdf = await page.pdf({ format: "A4" });
  const pages = pdf.toString("latin1").match(/\/Type\s*\/Page\b/g).length;
  assert.ok(pages > cards / 2, `${pages} pages`);
  await close(page);
});

test("a proof shows the real run", async () => {
  const scan = join(folder, "scan.json");
  report(join(folder, "plain.html"), "testbed/typescript/racy/notes-file", "--output", `json=${scan}`);
  const known = JSON.parse(readFileSync(scan, "utf8")).findings;
  const step = (actor, action, text) => ({ actor, action, file: "", line: 0, function: "", text });
  const proofs = join(folder, "proofs.json");
  writeFileSync(proofs, JSON.stringify({
    schema: "toctou.prove/1",
    findings: known.map(({ fingerprint, rule }, index) => ({ fingerprint, rule, tools: [], schedules: 4,
      ...(index === 0 ? { status: "proved", proof: "p" } : { status: "not-reproduced", reason: "no violation at 4 pause points" }) })),
    proofs: [{ id: "p", scope: "cross-process", strategy: "hold", recipe: { headline: "an acknowledged note is lost" }, held: "before rename",
      replays: { reproduced: 5, of: 5 }, differences: [{ place: "notes.json", serial: "[\"a\",\"b\"]", found: "[\"a\"]" }],
      timeline: [step("A", "open", 'add_note({"title":"a"})'), step("A", "yield", "held before rename(tmp, notes.json)"),
        step("B", "open", 'add_note({"title":"b"})'), step("B", "write", "rename(tmp, notes.json)"), step("B", "close", "answers: added b"),
        step("A", "write", "rename(tmp, notes.json)"), step("A", "close", "answers: added a"), step("", "outcome", "b is lost")] }],
  }));
  const page = await open(report(join(folder, "proved.html"), "testbed/typescript/racy/notes-file", "--proofs", proofs));
  await page.getByRole("checkbox", { name: /^proved/ }).check();
  assert.equal(await page.locator(".finding:visible").count(), 1);
  const card = page.locator(".finding:visible");
  if ((await card.locator(".head").getAttribute("aria-expanded")) === "false") await card.locator(".head").click();
  assert.match(await card.locator(".head .chip").innerText(), /^proved$/);
  assert.match(await card.innerText(), /proved, 5 of 5.*an acknowledged note is lost.*Two processes, by hold/s);
  assert.deepEqual(await card.locator(".differences tbody tr").allInnerTexts(), ['notes.json\t["a","b"]\t["a"]']);
  const run = card.locator(".timeline").nth(1);
  await run.focus();
  await page.keyboard.press("Home");
  assert.equal(await run.locator(".say").innerText(), 'Call A is called: add_note({"title":"a"}).');
  assert.deepEqual(await axe(page), []);
  await close(page);
});

test("scanned code does not run", async () => {
  const evil = join(folder, "evil");
  mkdirSync(evil);
  const name = '</script><script>window.pwned=1</script><img src=x onerror="window.pwned=2">';
  const file = "<img src=x onerror=window.pwned=3>\u202e'\"`.ts";
  writeFileSync(join(evil, file), `import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { readFile, writeFile } from "node:fs/promises";
const server = new McpServer({ name: "evil", version: "1" });
const path = "</script><script>window.pwned=4</script>\u2028<!--<script>.json";
server.tool(${JSON.stringify(name)}, {}, async () => {
  const text = await readFile(path, "utf8"); // <svg onload=window.pwned=5> \u202e\u2066 javascript:window.pwned=6
  await writeFile(path, text + "</style><script>window.pwned=7</script>{{data}}");
  return { content: [] };
});
`);
  const url = report(join(folder, "evil.html"), evil);
  const page = await open(`${url}#q=%3Cimg%20src%3Dx%20onerror%3Dwindow.pwned%3D8%3E&tool=%3Cscript%3E&finding=%22%3E%3Cscript%3E`);
  await page.goto(url);
  const card = page.locator(".finding").first();
  assert.equal(await card.locator(".body").count(), 1);
  assert.ok((await page.locator(".group h2 .name").innerText()).includes("</script><script>window.pwned=1"), "it is shown as what it is");
  assert.ok((await card.innerText()).includes("\\u{202e}"), "what cannot be seen is spelled out");
  assert.equal(await page.locator("#main img, #main script, #main iframe, #foot script").count(), 0);
  await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
  assert.equal(await page.evaluate(() => window.pwned), undefined);
  assert.deepEqual(page.faults, []);

  // And if something did get in, the policy would stop it.
  await page.evaluate(() => {
    const script = document.createElement("script");
    script.textContent = "window.pwned = 9";
    document.body.append(script);
    document.getElementById("foot").innerHTML = '<img src="data:," onerror="window.pwned = 10"><style>main { display: none }</style>';
    location.href = "javascript:window.pwned=11";
    const frame = document.createElement("iframe");
    frame.srcdoc = "<script>parent.pwned = 12</" + "script>";
    document.body.append(frame);
  });
  await page.waitForTimeout(300);
  assert.equal(await page.evaluate(() => window.pwned), undefined);
  assert.ok(await page.locator("main").isVisible());
  assert.ok(page.faults.some((fault) => fault.includes("Content Security Policy")));
  await page.context().close();
});

test("a thousand findings open within a second and scroll smoothly", async () => {
  const many = join(folder, "many");
  mkdirSync(many);
  for (let file = 0; file < 100; file++) {
    const tools = Array.from({ length: 10 }, (_, tool) => `
server.tool("tool_${file}_${tool}", {}, async () => {
  const text = await readFile("data-${file}-${tool}.json", "utf8");
  const notes = JSON.parse(text);
  notes.push({ at: Date.now() });
  await writeFile("data-${file}-${tool}.json", JSON.stringify(notes));
  return { content: [] };
});`);
    // In a folder of its own: copies in one folder are one finding.
    mkdirSync(join(many, `server-${file}`));
    writeFileSync(join(many, `server-${file}`, "index.ts"), `import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { readFile, writeFile } from "node:fs/promises";
const server = new McpServer({ name: "many", version: "1" });${tools.join("")}\n`);
  }
  const url = report(join(folder, "many.html"), many);
  // Until one round is fast enough, or eight were not: other work on the machine is not the page's fault. For the same
  // reason a frame is judged by the CPU time of the page's thread; how far apart frames were is printed.
  const times = [];
  const scrolls = [];
  const fast = () => times.some(([usable]) => usable < 1000) && scrolls.some(([, , work]) => work < 25);
  let page;
  for (let round = 0; round < 8 && !(round > 1 && fast()); round++) {
    if (page) await close(page);
    page = await openPage(browser);
    await page.goto(url, { waitUntil: "commit" });
    // From the start of the navigation to a page that can be read and used, and to the last finding on it.
    times.push(await page.evaluate(() => new Promise((done) => {
      let used = 0;
      const look = () => {
        if (!used && document.querySelector(".finding.open .timeline")) used = performance.now();
        const there = document.querySelectorAll(".finding").length;
        if (there === 1000 || performance.now() > 30_000) done([used, performance.now(), there]);
        else requestAnimationFrame(look);
      };
      requestAnimationFrame(look);
    })));
    assert.equal(times.at(-1).pop(), 1000);
    const session = await page.context().newCDPSession(page);
    await session.send("Performance.enable", { timeDomain: "threadTicks" });
    const cpu = async () => (await session.send("Performance.getMetrics")).metrics.find(({ name }) => name === "TaskDuration").value * 1000;
    const before = await cpu();
    const frames = await page.evaluate(() => new Promise((done) => {
      const gaps = [];
      let before = performance.now();
      const tick = (now) => {
        gaps.push(now - before);
        before = now;
        scrollBy(0, 180);
        if (gaps.length < 120) requestAnimationFrame(tick);
        else done(gaps.slice(1).sort((a, b) => a - b));
      };
      requestAnimationFrame(tick);
    }));
    scrolls.push([frames[Math.floor(frames.length / 2)], frames[Math.floor(frames.length * 0.95)], ((await cpu()) - before) / (frames.length + 1)]);
  }
  const filter = await page.evaluate(async () => {
    const start = performance.now();
    const input = document.getElementById("q");
    input.value = "data-42-";
    input.dispatchEvent(new Event("input"));
    while (document.getElementById("count").textContent.startsWith("1,000")) await new Promise((done) => setTimeout(done, 5));
    return performance.now() - start;
  });
  assert.equal(await page.locator(".finding:visible").count(), 10);
  const show = (pairs) => pairs.map((pair) => pair.map((time) => Math.round(time)).join("/")).join(", ");
  console.log(`1000 findings, ms: usable/complete ${show(times)}; a frame while scrolling, median/95 %/CPU ${show(scrolls)}; filter ${Math.round(filter)}`);
  assert.ok(fast(), "can be used within a second, and scrolls smoothly");
  await close(page);
});
