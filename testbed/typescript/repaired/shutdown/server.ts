// A worker that can be drained, and a workspace that opens several files.
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { readdirSync } from "node:fs";
import { z } from "zod";
import { Worker } from "./worker.js";
import { sizes } from "./workspace.js";

const worker = new Worker();
const server = new McpServer({ name: "shutdown", version: "1.0.0" });

server.registerTool(
  "submit_job",
  { description: "Runs a job, unless the worker was drained.", inputSchema: { job: z.string() } },
  async ({ job }) => ({ content: [{ type: "text", text: await worker.submit(job) }] }),
);

server.registerTool("drain", { description: "Takes no more jobs and waits for those that run." }, async () => {
  await worker.drain();
  return { content: [{ type: "text", text: "drained" }] };
});

server.registerTool(
  "file_sizes",
  { description: "Opens some files and tells their sizes.", inputSchema: { paths: z.array(z.string()) } },
  async ({ paths }) => ({ content: [{ type: "text", text: JSON.stringify(await sizes(paths)) }] }),
);

server.registerTool(
  "report",
  { description: "Open files (Linux), and jobs that began after draining was done.", annotations: { readOnlyHint: true } },
  async () => {
    const openFiles = process.platform === "linux" ? readdirSync("/proc/self/fd").length : 0;
    return { content: [{ type: "text", text: JSON.stringify({ openFiles, lateJobs: worker.lateJobs }) }] };
  },
);

await server.connect(new StdioServerTransport());
