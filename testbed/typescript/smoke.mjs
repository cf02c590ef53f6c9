// Starts every server with the SDK's own client, calls its tools concurrently,
// and checks that the racy one goes wrong and that its repaired twin does not.
// Usage: node smoke.mjs [server …]
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const HERE = dirname(fileURLToPath(import.meta.url));
const CALLS = 20;
const CALL_TIMEOUT_MS = 20_000;
const HANG_MS = 1_000;
const TRIES = 6;

class Server {
  static async start(kind, name, data) {
    const transport = new StdioClientTransport({
      command: process.execPath,
      args: ["--import", "tsx", join(HERE, kind, name, "server.ts")],
      cwd: HERE, // where --import finds tsx
      env: { ...process.env, TESTBED_DATA: data },
      stderr: "inherit",
    });
    const client = new Client({ name: "smoke", version: "1.0.0" });
    await client.connect(transport);
    return new Server(client);
  }

  constructor(client) {
    this.client = client;
  }

  async tools() {
    return (await this.client.listTools()).tools.map((tool) => tool.name);
  }

  /** The text of the answer; throws if the tool failed. */
  async call(name, args = {}, timeout = CALL_TIMEOUT_MS) {
    const result = await this.client.callTool({ name, arguments: args }, undefined, { timeout });
    const text = result.content[0].text;
    if (result.isError) throw new Error(text);
    return text;
  }

  async json(name, args) {
    return JSON.parse(await this.call(name, args));
  }

  close() {
    return this.client.close();
  }
}

/** How many of the calls succeeded. */
async function succeeded(calls) {
  const results = await Promise.allSettled(calls);
  return results.filter((result) => result.status === "fulfilled").length;
}

const numbers = (count) => Array.from({ length: count }, (_, index) => index);

// Each check returns what went wrong, or undefined.
const scenarios = {
  "notes-file": [
    {
      what: "notes added at once are all kept",
      async check({ server }) {
        const added = await succeeded(numbers(CALLS).map((n) => server.call("add_note", { title: `n${n}`, text: "x" })));
        const kept = (await server.json("list_notes")).length;
        return kept < added ? `${added} acknowledged, ${kept} kept` : undefined;
      },
    },
    {
      what: "a file is exported once",
      async check({ server }) {
        const done = await succeeded(
          numbers(CALLS).map((n) => server.call("export_note", { name: "export", text: `text ${n}` })),
        );
        return done > 1 ? `${done} calls created the same file` : undefined;
      },
    },
  ],
  "bank-sqlite": [
    {
      what: "no more is paid out than there was",
      async check({ server }) {
        const paid = await succeeded(numbers(CALLS).map(() => server.call("withdraw", { account: "alice", amount: 10 })));
        const { balance } = await server.json("account", { account: "alice" });
        return balance < 0 ? `${paid} payments of 10 from a balance of 100, now ${balance}` : undefined;
      },
    },
    {
      what: "tags added at once are all kept",
      async check({ server }) {
        const added = await succeeded(numbers(CALLS).map((n) => server.call("add_tag", { account: "alice", tag: `t${n}` })));
        const kept = JSON.parse((await server.json("account", { account: "alice" })).tags).length;
        return kept < added ? `${added} acknowledged, ${kept} kept` : undefined;
      },
    },
    {
      what: "a coupon is redeemed once",
      async check({ server }) {
        const done = await succeeded(
          numbers(CALLS).map(() => server.call("redeem_coupon", { account: "alice", code: "WELCOME" })),
        );
        return done > 1 ? `redeemed ${done} times` : undefined;
      },
    },
  ],
  "session-memory": [
    {
      what: "a price set while the catalog loads is kept",
      async check({ server }) {
        await Promise.all([server.call("set_price", { sku: "tea", price: 99 }), server.call("price", { sku: "tea" })]);
        const price = await server.call("price", { sku: "tea" });
        return price !== "99" ? `the price was set to 99 and is ${price}` : undefined;
      },
    },
    {
      what: "items added at once are all in the cart",
      async check({ server }) {
        const added = await succeeded(numbers(CALLS).map(() => server.call("cart_add", { session: "s", sku: "coffee" })));
        const kept = (await server.json("cart_show", { session: "s" })).items.length;
        return kept < added ? `${added} acknowledged, ${kept} in the cart` : undefined;
      },
    },
  ],
  "rate-limiter": [
    {
      what: "at most five questions are answered",
      async check({ server }) {
        const answered = await succeeded(
          numbers(CALLS).map((n) => server.call("ask", { caller: "c", question: `q${n}` })),
        );
        return answered > 5 ? `${answered} answered, the limit is 5` : undefined;
      },
    },
  ],
  "lock-misuse": [
    {
      what: "settings made at once are all kept",
      async check({ server }) {
        const made = await succeeded(numbers(CALLS).map((n) => server.call("set_setting", { name: `k${n}`, value: "v" })));
        const kept = Object.keys((await server.json("show")).settings).length;
        return kept < made ? `${made} acknowledged, ${kept} kept` : undefined;
      },
    },
    {
      what: "two processes lose no entry of the journal",
      async check({ server, startAnother }) {
        const other = await startAnother();
        const calls = numbers(CALLS).flatMap((n) => [
          server.call("add_entry", { text: `a${n}` }),
          other.call("add_entry", { text: `b${n}` }),
        ]);
        const added = await succeeded(calls);
        const kept = (await server.json("show")).entries.length;
        return kept < added ? `${added} acknowledged, ${kept} kept` : undefined;
      },
    },
    {
      what: "a job that fails does not block the next",
      async check({ server }) {
        await succeeded([server.call("run_job", { job: "bad" })]);
        const next = await succeeded([server.call("run_job", { job: "good" }, HANG_MS)]);
        return next === 0 ? `no answer within ${HANG_MS} ms` : undefined;
      },
    },
    {
      what: "a job that fails does not fail the next",
      async check({ server }) {
        await succeeded([server.call("enqueue", { job: "bad" })]);
        const next = await succeeded([server.call("enqueue", { job: "good" })]);
        return next === 0 ? "the next job failed with the error of the first" : undefined;
      },
    },
  ],
  shutdown: [
    {
      what: "files are closed when a later one cannot be opened",
      async check({ server, data }) {
        const file = join(data, "here.txt");
        await writeFile(file, "x");
        const before = (await server.json("report")).openFiles;
        await succeeded(numbers(CALLS).map(() => server.call("file_sizes", { paths: [file, join(data, "missing")] })));
        const after = (await server.json("report")).openFiles;
        return after >= before + CALLS ? `${after - before} files left open` : undefined;
      },
      linuxOnly: true,
    },
    {
      what: "no job begins after draining is done",
      async check({ server }) {
        const jobs = numbers(5).map((n) => server.call("submit_job", { job: `j${n}` }));
        await sleep(50); // the jobs have passed their test and are being prepared
        await server.call("drain");
        await Promise.allSettled(jobs);
        const { lateJobs } = await server.json("report");
        return lateJobs > 0 ? `${lateJobs} jobs began after it` : undefined;
      },
    },
  ],
};

/** Runs `use` with a fresh server on a folder of its own. */
async function withServer(kind, name, use) {
  const data = await mkdtemp(join(tmpdir(), "toctou-testbed-"));
  const started = [];
  const startAnother = async () => {
    const server = await Server.start(kind, name, data);
    started.push(server);
    return server;
  };
  try {
    return await use({ server: await startAnother(), data, startAnother });
  } finally {
    await Promise.allSettled(started.map((server) => server.close()));
    await rm(data, { recursive: true, force: true });
  }
}

async function runServer(kind, name) {
  return await withServer(kind, name, async (running) => {
    let failures = 0;
    const tools = await running.server.tools();
    console.log(`${kind}/${name}: ${tools.join(", ")}`);
    for (const scenario of scenarios[name]) {
      if (scenario.linuxOnly && process.platform !== "linux") continue;
      let wrong = await scenario.check(running);
      // A race need not happen at the first try, on a machine with other work: it gets a few.
      for (let tries = 1; kind === "racy" && wrong === undefined && tries < TRIES; tries += 1) {
        wrong = await withServer(kind, name, (fresh) => scenario.check(fresh));
      }
      const asExpected = (wrong !== undefined) === (kind === "racy");
      if (!asExpected) failures += 1;
      console.log(`  ${asExpected ? "ok  " : "FAIL"} ${scenario.what}: ${wrong ?? "holds"}`);
    }
    return failures;
  });
}

const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !(name in scenarios));
if (unknown.length > 0) {
  console.error(`no such server: ${unknown.join(", ")}; there are: ${Object.keys(scenarios).join(", ")}`);
  process.exit(2);
}

let failures = 0;
for (const kind of ["racy", "repaired"]) {
  const folders = (await readdir(join(HERE, kind))).sort();
  const untested = folders.filter((name) => !(name in scenarios));
  if (untested.length > 0) throw new Error(`${kind} servers without a scenario: ${untested.join(", ")}`);
  for (const name of folders) {
    if (wanted.length > 0 && !wanted.includes(name)) continue;
    failures += await runServer(kind, name);
  }
}
if (failures > 0) {
  console.error(`${failures} checks did not go as expected`);
  process.exit(1);
}
console.log("every racy server loses something, no repaired one does");
