// The published memory server and the SDKs' clients, without and with the guard.
// Usage: node run.mjs TOCTOU [PYTHON]
// With PYTHON, an interpreter that has the Python SDK, its clients and servers take part too.
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { spawnSync } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import * as common from "./common.mjs";
import { oldClients, oldServers } from "./sse.mjs";

const { CALLS, HERE, MEMORY, check, entities, environment, guard, inFolder, listening, newClient, python, session, toctou } = common;

async function stdio(folder, guarded, client = newClient()) {
  const server = [process.execPath, MEMORY];
  const [command, ...args] = guarded ? [toctou, ...guard(folder), "--", ...server] : server;
  await client.connect(new StdioClientTransport({ command, args, env: environment(folder), stderr: "ignore" }));
  return client;
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

await inFolder(async (folder) => {
  const client = await stdio(folder, true);
  await session(client, "TypeScript SDK on stdio");
  await client.close();
});

await inFolder(async (folder) => {
  const tokens = join(folder, "tokens");
  await writeFile(tokens, "tester 0123456789abcdef0123\n");
  const server = await listening(folder, ["--token-file", tokens]);
  const headers = { Authorization: "Bearer 0123456789abcdef0123" };
  const client = newClient();
  await client.connect(new StreamableHTTPClientTransport(server.url, { requestInit: { headers } }));
  await session(client, "TypeScript SDK on HTTP");
  const denied = await fetch(server.url, { method: "POST", body: "{}", headers: { "Content-Type": "application/json" } });
  check("HTTP without a token is refused", denied.status === 401, `${denied.status}`);
  const page = await fetch(server.url, { method: "POST", body: "{}", headers: { ...headers, Origin: "https://evil.example" } });
  check("HTTP from another page is refused", page.status === 403, `${page.status}`);
  await client.close();
  check("the guard ends with 0", (await server.stop()) === 0);
});

await oldClients();
if (python) {
  await oldServers();
  for (const transport of ["stdio", "http", "sse"]) {
    await inFolder(async (folder) => {
      const server = transport === "stdio" ? undefined : await listening(folder);
      const url = transport === "sse" ? server?.at("/sse") : server?.url;
      const args = url ? [transport, url.href] : ["stdio", toctou, ...guard(folder), "--", process.execPath, MEMORY];
      const run = spawnSync(python, [join(HERE, "client.py"), ...args], { env: environment(folder), encoding: "utf8", timeout: 120_000 });
      check(`Python SDK on ${transport}`, run.status === 0, (run.stdout + run.stderr).trim().split("\n").at(-1));
      await server?.stop();
    });
  }
}

if (common.failed() > 0) {
  console.error(`${common.failed()} failed`);
  process.exit(1);
}
