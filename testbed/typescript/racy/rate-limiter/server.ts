// Five questions per caller and minute.
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { z } from "zod";
import { answer } from "./answers.js";
import { limited } from "./limiter.js";

const server = new McpServer({ name: "rate-limiter", version: "1.0.0" });

server.registerTool(
  "ask",
  { description: "Answers a question.", inputSchema: { caller: z.string(), question: z.string() } },
  async ({ caller, question }) => {
    const text = await limited(caller, () => answer(question));
    return { content: [{ type: "text", text }] };
  },
);

await server.connect(new StdioServerTransport());
