// The published memory server and the TypeScript SDK's clients, without and with the guard.
// Usage: node run.mjs TOCTOU [PYTHON]
// With PYTHON, an interpreter that has the Python SDK, its clients go through the guard too.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { spawn, spawnSync } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const HERE = dirname(fileURLToPath(import.meta.url));
const MEMORY = join(HERE, "node_modules/@modelcontextprotocol/server-memory/dist/index.js");
const CALLS = 50;

const [toctou, python] = process.argv.slice(2);
if (!toctou) throw new Error("usage: node run.mjs TOCTOU [PYTHON]");

let failed = 0;
function check(what, ok, seen) {
  console.log(`${ok ? "ok    " : "FAILED"} ${what}${seen === undefined ? "" : ` (${seen})`}`);
  if (!ok) failed += 1;
}

async function inFolder(work) {
  const folder = await mkdtemp(join(tmpdir(), "toctou-guard-"));
  try {
    return await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const environment = (folder) => ({ ...process.env, MEMORY_FILE_PATH: join(folder, "memory.json") });

/** Arguments of a guard whose locks are this test's own. */
const guard = (folder, ...more) => ["guard", "--backend", `host:${join(folder, "locks")}`, ...more];

async function stdio(folder, guarded, client = new Client({ name: "testbed", version: "1.0.0" })) {
  const server = [process.execPath, MEMORY];
  const [command, ...args] = guarded ? [toctou, ...guard(folder), "--", ...server] : server;
  await client.connect(new StdioClientTransport({ command, args, env: environment(folder), stderr: "ignore" }));
  return client;
}

function entities(client, who) {
  return Promise.all(
    Array.from({ length: CALLS }, (_, n) =>
      client.callTool({
        name: "create_entities",
        arguments: { entities: [{ name: `${who}-${n}`, entityType: "test", observations: [] }] },
      }),
    ),
  );
}

async function kept(folder) {
  const text = await readFile(join(folder, "memory.json"), "utf8");
  return text.split("\n").filter((line) => line.trim()).length;
}

async function parallel(guarded, processes) {
  return inFolder(async (folder) => {
    const clients = await Promise.all(Array.from({ length: processes }, () => stdio(folder, guarded)));
    const answers = (await Promise.all(clients.map((client, n) => entities(client, `client${n}`)))).flat();
    const refused = answers.filter((answer) => answer.isError).length;
    await Promise.all(clients.map((client) => client.close()));
    return { count: await kept(folder), refused };
  });
}

for (const processes of [1, 2]) {
  const all = CALLS * processes;
  const bare = await parallel(false, processes);
  check(`${processes} process(es) without the guard lose entries`, bare.count < all, `${bare.count} of ${all} left`);
  const guarded = await parallel(true, processes);
  check(`${processes} process(es) with the guard lose none`, guarded.count === all && guarded.refused === 0, `${guarded.count} of ${all} left`);
}

/** A whole session, the same on every transport. */
async function session(client, what) {
  const tools = (await client.listTools()).tools.map((tool) => tool.name);
  check(`${what}: tools are listed`, tools.includes("read_graph"), `${tools.length}`);
  const answers = await entities(client, "session");
  check(`${what}: ${CALLS} calls at once succeed`, answers.every((answer) => !answer.isError));
  const graph = await client.callTool({ name: "read_graph", arguments: {} });
  check(`${what}: nothing is lost`, JSON.parse(graph.content[0].text).entities.length === CALLS);
  let refused;
  try {
    const answer = await client.callTool({ name: "no_such_tool", arguments: {} });
    refused = answer.isError === true;
  } catch {
    refused = true;
  }
  check(`${what}: the server's own errors arrive`, refused);
}

await inFolder(async (folder) => {
  const client = await stdio(folder, true);
  await session(client, "TypeScript SDK on stdio");
  await client.close();
});

/** A guard that listens; resolves to its address. */
async function listening(folder, ...more) {
  const child = spawn(toctou, [...guard(folder, "--listen", "127.0.0.1:0", ...more), "--", process.execPath, MEMORY], {
    env: environment(folder),
    stdio: ["ignore", "inherit", "pipe"],
  });
  const address = await new Promise((resolve, reject) => {
    child.once("exit", (code) => reject(new Error(`the guard ended with ${code}`)));
    createInterface({ input: child.stderr }).on("line", (line) => {
      if (line.startsWith("{") && JSON.parse(line).event === "listening") resolve(JSON.parse(line).address);
    });
  });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  return { url: new URL(`http://${address}/mcp`), stop: () => (child.kill("SIGTERM"), ended) };
}

await inFolder(async (folder) => {
  const tokens = join(folder, "tokens");
  await writeFile(tokens, "tester 0123456789abcdef0123\n");
  const server = await listening(folder, "--token-file", tokens);
  const headers = { Authorization: "Bearer 0123456789abcdef0123" };
  const client = new Client({ name: "testbed", version: "1.0.0" });
  await client.connect(new StreamableHTTPClientTransport(server.url, { requestInit: { headers } }));
  await session(client, "TypeScript SDK on HTTP");
  const denied = await fetch(server.url, { method: "POST", body: "{}", headers: { "Content-Type": "application/json" } });
  check("HTTP without a token is refused", denied.status === 401, `${denied.status}`);
  const page = await fetch(server.url, { method: "POST", body: "{}", headers: { ...headers, Origin: "https://evil.example" } });
  check("HTTP from another page is refused", page.status === 403, `${page.status}`);
  await client.close();
  check("the guard ends with 0", (await server.stop()) === 0);
});

if (python) {
  for (const transport of ["stdio", "http"]) {
    await inFolder(async (folder) => {
      const server = transport === "http" ? await listening(folder) : undefined;
      const args = server ? ["http", server.url.href] : ["stdio", toctou, ...guard(folder), "--", process.execPath, MEMORY];
      const run = spawnSync(python, [join(HERE, "client.py"), ...args], { env: environment(folder), encoding: "utf8", timeout: 120_000 });
      check(`Python SDK on ${transport}`, run.status === 0, (run.stdout + run.stderr).trim().split("\n").at(-1));
      await server?.stop();
    });
  }
}

if (failed > 0) {
  console.error(`${failed} failed`);
  process.exit(1);
}
