// Notes in a JSON file, behind the official SDK's Streamable HTTP transport. Usage: PORT=… node http.mjs FILE [--repaired] [--json]
// Each note is read, changed and written back; the repaired one does so one call after the other, and
// with a lock file that other processes see, too.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { mkdir, readFile, rename, rmdir, writeFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { isInitializeRequest } from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';

const [file, ...flags] = process.argv.slice(2);
const repaired = flags.includes('--repaired');
const text = (value) => ({ content: [{ type: 'text', text: JSON.stringify(value) }] });

const load = async () => {
  try {
    return JSON.parse(await readFile(file, 'utf8'));
  } catch (error) {
    if (error.code === 'ENOENT') return {};
    throw error;
  }
};
const save = async (notes) => {
  const temporary = `${file}.${process.pid}.${randomUUID()}`;
  await writeFile(temporary, JSON.stringify(notes));
  await rename(temporary, file);
};

let tail = Promise.resolve();
async function locked(work) {
  for (;;) {
    try {
      await mkdir(`${file}.lock`);
      break;
    } catch (error) {
      if (error.code !== 'EEXIST') throw error;
      await sleep(5);
    }
  }
  try {
    return await work();
  } finally {
    await rmdir(`${file}.lock`);
  }
}
/** Changes the notes; alone, if this is the repaired one. */
function change(work) {
  const run = async () => {
    const notes = await load();
    work(notes);
    await save(notes);
  };
  if (!repaired) return run();
  const turn = tail.then(() => locked(run));
  tail = turn.catch(() => {});
  return turn;
}

function server() {
  const mcp = new McpServer({ name: 'notes', version: '1.0.0' });
  const note = { title: z.string(), content: z.string() };
  mcp.registerTool('add_note', { description: 'Adds a note', inputSchema: note }, async ({ title, content }) => {
    await change((notes) => (notes[title] = content));
    return text({ added: title });
  });
  mcp.registerTool('list_notes', { description: 'All notes', annotations: { readOnlyHint: true } }, async () => text(await load()));
  mcp.registerTool('clear', { description: 'Removes all notes' }, async () => {
    await change((notes) => Object.keys(notes).forEach((title) => delete notes[title]));
    return text({ cleared: true });
  });
  return mcp;
}

const sessions = new Map();
createServer(async (request, response) => {
  if (request.url !== '/mcp') return response.writeHead(404).end();
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const body = chunks.length ? JSON.parse(Buffer.concat(chunks)) : undefined;
  let transport = sessions.get(request.headers['mcp-session-id']);
  if (!transport) {
    if (!isInitializeRequest(body)) return response.writeHead(404).end();
    transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: () => randomUUID(),
      enableJsonResponse: flags.includes('--json'),
      onsessioninitialized: (id) => sessions.set(id, transport),
      onsessionclosed: (id) => sessions.delete(id),
    });
    await server().connect(transport);
  }
  await transport.handleRequest(request, response, body);
}).listen(Number(process.env.PORT), '127.0.0.1');
