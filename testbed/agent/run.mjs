// Sessions of an agent with toctou mcp. Usage: node run.mjs TOCTOU
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { spawn, spawnSync } from "node:child_process";
import { cp, mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const HERE = dirname(fileURLToPath(import.meta.url));
const ROOT = resolve(HERE, "../..");
const [toctou] = process.argv.slice(2);
if (!toctou) throw new Error("usage: node run.mjs TOCTOU");

let failed = 0;
function check(what, ok, seen) {
  console.log(`${ok ? "ok    " : "FAILED"} ${what}`);
  if (!ok) {
    failed += 1;
    if (seen !== undefined) console.log(JSON.stringify(seen, null, 1)?.slice(0, 2000));
  }
}

async function connect(...roots) {
  const client = new Client({ name: "testbed", version: "1.0.0" });
  await client.connect(new StdioClientTransport({ command: toctou, args: ["mcp", ...roots], stderr: "inherit" }));
  return client;
}
const text = (result) => result.content.map((part) => part.text).join("\n");

/** Lines in, lines out, without a library in between. */
async function raw(args, input) {
  const child = spawn(toctou, ["mcp", ...args], { stdio: ["pipe", "pipe", "inherit"] });
  let out = "";
  child.stdout.on("data", (chunk) => { out += chunk; });
  const ended = new Promise((done) => child.on("close", done));
  child.stdin.end(input);
  const code = await ended;
  return { code, answers: out.split("\n").filter(Boolean).map((line) => JSON.parse(line)) };
}
const request = (id, method, params) => `${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`;

const folder = await realpath(await mkdtemp(join(tmpdir(), "toctou-agent-")));
try {
  const workspace = join(folder, "workspace");
  await cp(join(ROOT, "testbed/typescript/racy/notes-file"), join(workspace, "notes"), { recursive: true });
  await cp(join(ROOT, "testbed/typescript/repaired/notes-file"), join(workspace, "repaired"), { recursive: true });
  await mkdir(join(folder, "secret"));
  await cp(join(ROOT, "testbed/typescript/racy/notes-file"), join(folder, "secret/notes"), { recursive: true });
  await symlink(join(folder, "secret"), join(workspace, "link"));
  await writeFile(join(folder, "toctou.toml"), "this is not toml, and not the workspace's");

  const client = await connect(workspace);
  check("initialize: name and instructions", client.getServerVersion().name === "toctou" && client.getInstructions().includes("scan"));
  const { tools } = await client.listTools();
  check("tools: scan, explain, prove_status", tools.map((t) => t.name).join() === "scan,explain,prove_status", tools);
  check("tools: all read only, closed world, with schemas", tools.every((t) => t.annotations.readOnlyHint && !t.annotations.destructiveHint && !t.annotations.openWorldHint && t.inputSchema && t.outputSchema), tools);

  const call = (name, args = {}, client_ = client) => client_.callTool({ name, arguments: args });
  const scan = await call("scan", { path: "notes" });
  const found = scan.structuredContent;
  check("scan: finds the races, in both forms", found.total === 3 && found.findings.length === 3 && text(scan).includes("file-read-modify-write"), scan);
  check("scan: says who, how and what to do", found.findings.every((f) => f.entry_points.length && f.steps.length >= 4 && f.fix && f.line > 0), found.findings);
  check("scan: quiet on the repaired one", (await call("scan", { path: "repaired" })).structuredContent.total === 0);
  const page = (await call("scan", { path: "notes", limit: 1, offset: 1 })).structuredContent;
  check("scan: a page of the findings", page.findings.length === 1 && page.left_out === 1 && page.total === 3, page);
  const one = (await call("scan", { path: "notes", rules: ["file-check-then-act"] })).structuredContent;
  check("scan: one rule only", one.total === 1 && one.findings[0].rule === "file-check-then-act", one);

  for (const path of ["..", "../secret", "link", "link/notes", join(folder, "secret"), "/etc", "notes/../../secret/notes", "nowhere", "a\u0000b"]) {
    const result = await call("scan", { path });
    check(`scan: ${JSON.stringify(path.replace(folder, ""))} is refused`, result.isError && /^there is no .* that may be read here$/.test(text(result)), result);
  }
  for (const args of [{ persona: "nobody" }, { path: 7 }, { limit: -1 }, { rules: "x" }, { rules: ["no-such-rule"] }, { paht: "notes" }]) {
    const result = await call("scan", args);
    check(`scan: ${JSON.stringify(args)} is refused, with words`, result.isError && text(result).length > 10, result);
  }
  await mkdir(join(workspace, "evil"));
  await cp(join(workspace, "notes"), join(workspace, "evil/notes"), { recursive: true });
  await writeFile(join(workspace, "evil/toctou.toml"), 'models = ["/etc/passwd"]\n');
  const evil = await call("scan", { path: "evil" });
  check("scan: a config that names files outside is refused", evil.isError && !text(evil).includes("root:"), evil);
  await rm(join(workspace, "evil"), { recursive: true });

  const explain = await call("explain", { rule: "file-read-modify-write" });
  check("explain: the page", explain.structuredContent.page.startsWith("# file-read-modify-write") && text(explain) === explain.structuredContent.page);
  const typo = await call("explain", { rule: "file-read-modify" });
  check("explain: a suggestion", typo.isError && text(typo).includes("file-read-modify-write"), typo);

  const none = await call("prove_status");
  check("prove_status: nothing named, says how to make it", none.structuredContent.outcome === "none" && text(none).includes("toctou prove"), none);
  await writeFile(join(workspace, "prove.json"), JSON.stringify({
    schema: "toctou.prove/1", outcome: "proved", summary: "1 race proved", proofs: [{}],
    findings: [{ fingerprint: found.findings[0].fingerprint, rule: found.findings[0].rule, tools: [], status: "proved", schedules: 3 }],
  }));
  const proved = await call("prove_status", { path: "prove.json" });
  check("prove_status: reads a report", proved.structuredContent.outcome === "proved" && proved.structuredContent.findings[0].status === "proved", proved);
  await writeFile(join(workspace, "other.json"), "{}");
  check("prove_status: no other file", (await call("prove_status", { path: "other.json" })).isError && (await call("prove_status", { path: "link/notes/server.ts" })).isError);

  // Many at a time: every answer is that of a call that is alone.
  const alone = JSON.stringify(found);
  const many = await Promise.all(Array.from({ length: 40 }, (_, n) => (n % 4 ? call("scan", { path: "notes" }) : call("scan", { path: "repaired" }))));
  check("40 calls at a time: the same answers", many.every((r, n) => (n % 4 ? JSON.stringify(r.structuredContent) === alone : r.structuredContent.total === 0)));
  const flood = await Promise.allSettled(Array.from({ length: 300 }, () => call("scan", { path: "notes" })));
  const refused = flood.filter((r) => r.status === "rejected");
  check(`300 at a time: ${300 - refused.length} answered, the rest refused as too many`, refused.length > 0 && refused.every((r) => /too many/.test(r.reason.message)), refused[0]?.reason?.message);

  // Taken back.
  const abort = new AbortController();
  const pending = client.callTool({ name: "scan", arguments: {} }, undefined, { signal: abort.signal }).then(() => "answered", () => "taken back");
  abort.abort();
  check("a call that is taken back is not answered", (await pending) === "taken back");
  check("and the server goes on", (await call("scan", { path: "notes" })).structuredContent.total === 3);
  await client.close();

  // Size: many findings, bounded answers.
  const large = join(folder, "large");
  for (let n = 0; n < 150; n += 1) await cp(join(workspace, "notes"), join(large, `p${n}`), { recursive: true });
  const big = await connect(large);
  const result = await call("scan", { limit: 100 }, big);
  const size = JSON.stringify(result).length;
  check(`450 findings: an answer of ${size} bytes, the rest is left for later`, size < 150_000 && result.structuredContent.left_out > 300 && result.structuredContent.total === 450, result.structuredContent.total);
  await big.close();

  // Without a library: nonsense, and the revision without `initialize`.
  const nonsense = ["{", "[]", "[{}]", "null", `{"jsonrpc":"2.0","id":1,"method":"x","method":"y"}`, `${"[".repeat(1000)}`, `"${"a".repeat(2_000_000)}"`, "\u0000", `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"rm","arguments":{}}}`, `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"scan","arguments":[]}}`, `{"jsonrpc":"2.0","id":4,"method":"no/such"}`].join("\n");
  const odd = await raw([workspace], `${nonsense}\n${request(9, "ping")}`);
  check("nonsense is answered with errors, and the next request works", odd.code === 0 && odd.answers.slice(0, -1).every((a) => a.error) && odd.answers.at(-1).result && odd.answers.length === 12, odd);
  const meta = { _meta: { "io.modelcontextprotocol/protocolVersion": "2026-07-28" } };
  const stateless = await raw([workspace], request("a", "server/discover", meta) + request("b", "tools/call", { ...meta, name: "scan", arguments: { path: "notes" } }));
  const byId = Object.fromEntries(stateless.answers.map((a) => [a.id, a.result]));
  check("2026-07-28: discovered and called without initialize", byId.a.supportedVersions.includes("2026-07-28") && byId.b.resultType === "complete" && byId.b.structuredContent.total === 3, stateless);
  check("a folder that is not there: exit code 2", spawnSync(toctou, ["mcp", join(folder, "nowhere")]).status === 2);

  // Its own medicine.
  const own = spawnSync(toctou, ["scan", "--no-progress", "--output", "json", join(ROOT, "crates/toctou/src")], { encoding: "utf8", maxBuffer: 1 << 26 });
  const mine = JSON.parse(own.stdout);
  const here = mine.findings.filter((f) => /commands\/(mcp|lsp)/.test(f.location.file));
  check(`toctou finds no race in its own servers (${mine.summary.files} files)`, here.length === 0 && mine.summary.files > 20, here);
} finally {
  await rm(folder, { recursive: true, force: true });
}
process.exit(failed ? 1 : 0);
