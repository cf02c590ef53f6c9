// What the runs share: folders, servers behind the guard, and a session that is the same on every transport.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

export const HERE = dirname(fileURLToPath(import.meta.url));
export const MEMORY = join(HERE, "node_modules/@modelcontextprotocol/server-memory/dist/index.js");
export const CALLS = 50;

export const [toctou, python] = process.argv.slice(2);
if (!toctou) throw new Error("usage: node run.mjs TOCTOU [PYTHON]");

let failures = 0;
export const failed = () => failures;
export function check(what, ok, seen) {
  console.log(`${ok ? "ok    " : "FAILED"} ${what}${seen === undefined ? "" : ` (${seen})`}`);
  if (!ok) failures += 1;
}

export async function inFolder(work) {
  const folder = await mkdtemp(join(tmpdir(), "toctou-guard-"));
  try {
    return await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

export const environment = (folder) => ({ ...process.env, MEMORY_FILE_PATH: join(folder, "memory.json") });

/** Arguments of a guard whose locks are this test's own. */
export const guard = (folder, ...more) => ["guard", "--backend", `host:${join(folder, "locks")}`, ...more];

export const newClient = (capabilities = {}) => new Client({ name: "testbed", version: "1.0.0" }, { capabilities });

export function entities(client, who) {
  return Promise.all(
    Array.from({ length: CALLS }, (_, n) =>
      client.callTool({
        name: "create_entities",
        arguments: { entities: [{ name: `${who}-${n}`, entityType: "test", observations: [] }] },
      }),
    ),
  );
}

/** A whole session, the same on every transport. */
export async function session(client, what) {
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

/** A program that runs until it is stopped; resolves when a line says where it can be reached. */
async function reachable(command, args, options, output, address) {
  const child = spawn(command, args, options);
  const ended = new Promise((resolve) => child.once("exit", resolve));
  const found = await new Promise((resolve, reject) => {
    child.once("exit", (code) => reject(new Error(`${command} ended with ${code}`)));
    createInterface({ input: child[output] }).on("line", (line) => {
      const found = address(line);
      if (found) resolve(found);
    });
  });
  return { address: found, stop: (signal = "SIGTERM") => (child.kill(signal), ended) };
}

/** A guard that listens, in front of the memory server or of what the arguments name. */
export async function listening(folder, more = [], server = ["--", process.execPath, MEMORY]) {
  const args = [...guard(folder, "--listen", "127.0.0.1:0", ...more), ...server];
  const options = { env: environment(folder), stdio: ["ignore", "inherit", "pipe"] };
  const listens = (line) => line.startsWith("{") && JSON.parse(line).event === "listening" && JSON.parse(line).address;
  const { address, stop } = await reachable(toctou, args, options, "stderr", listens);
  const at = (path) => new URL(`http://${address}${path}`);
  return { url: at("/mcp"), at, stop };
}

/** A server of the Python SDK that offers HTTP+SSE and nothing else. */
export async function oldServer(folder) {
  const args = ["-W", "ignore", join(HERE, "sse_server.py"), join(folder, "entities.json")];
  const options = { stdio: ["ignore", "pipe", "inherit"] };
  const { address, stop } = await reachable(python, args, options, "stdout", (line) => line);
  return { url: new URL(address), stop };
}
