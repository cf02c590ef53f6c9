// Four tools, four locks.
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { z } from "zod";
import { runJob } from "./jobs.js";
import { addEntry, entries } from "./journal.js";
import { enqueue } from "./queue.js";
import { setSetting, settings } from "./settings.js";

const server = new McpServer({ name: "lock-misuse", version: "1.0.0" });

server.registerTool(
  "set_setting",
  { description: "Sets one setting.", inputSchema: { name: z.string(), value: z.string() } },
  async ({ name, value }) => {
    await setSetting(name, value);
    return { content: [{ type: "text", text: `set ${name}` }] };
  },
);

server.registerTool(
  "add_entry",
  { description: "Adds an entry to the journal.", inputSchema: { text: z.string() } },
  async ({ text }) => {
    await addEntry(text);
    return { content: [{ type: "text", text: "added" }] };
  },
);

server.registerTool(
  "run_job",
  { description: "Runs one job at a time.", inputSchema: { job: z.string() } },
  async ({ job }) => ({ content: [{ type: "text", text: await runJob(job) }] }),
);

server.registerTool(
  "enqueue",
  { description: "Runs jobs in the order of their arrival.", inputSchema: { job: z.string() } },
  async ({ job }) => ({ content: [{ type: "text", text: await enqueue(job) }] }),
);

server.registerTool(
  "show",
  { description: "Shows settings and journal.", annotations: { readOnlyHint: true } },
  async () => {
    const state = { settings: settings(), entries: await entries() };
    return { content: [{ type: "text", text: JSON.stringify(state) }] };
  },
);

await server.connect(new StdioServerTransport());
