// Notes in one JSON file. Handler -> NoteService -> NoteStore -> file system.
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { z } from "zod";
import { NoteService } from "./service.js";
import { NoteStore } from "./store.js";

const service = new NoteService(new NoteStore(process.env.TESTBED_DATA ?? "."));
const server = new McpServer({ name: "notes-file", version: "1.0.0" });

server.registerTool(
  "add_note",
  { description: "Adds a note.", inputSchema: { title: z.string(), text: z.string() } },
  async ({ title, text }) => {
    await service.add(title, text);
    return { content: [{ type: "text", text: `added ${title}` }] };
  },
);

server.registerTool(
  "delete_note",
  { description: "Deletes a note.", inputSchema: { title: z.string() } },
  async ({ title }) => {
    await service.remove(title);
    return { content: [{ type: "text", text: `deleted ${title}` }] };
  },
);

server.registerTool(
  "export_note",
  {
    description: "Writes text to a new file; refuses if the file exists.",
    inputSchema: { name: z.string(), text: z.string() },
  },
  async ({ name, text }) => {
    await service.exportNote(name, text);
    return { content: [{ type: "text", text: `exported ${name}` }] };
  },
);

server.registerTool(
  "list_notes",
  { description: "Lists the titles.", annotations: { readOnlyHint: true } },
  async () => {
    const titles = await service.titles();
    return { content: [{ type: "text", text: JSON.stringify(titles) }] };
  },
);

await server.connect(new StdioServerTransport());
