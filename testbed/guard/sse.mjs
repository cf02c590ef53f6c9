// HTTP+SSE, the transport of 2024-11-05: the SDKs' old clients, and a server that offers nothing else.
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { CreateMessageRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { CALLS, check, entities, guard, inFolder, listening, newClient, oldServer, session, toctou } from "./common.mjs";

async function overSse(url, headers = {}, client = newClient()) {
  await client.connect(new SSEClientTransport(url, { requestInit: { headers } }));
  return client;
}

/** The SDK's old client in front of the guard. */
export const oldClients = () =>
  inFolder(async (folder) => {
    const tokens = join(folder, "tokens");
    await writeFile(tokens, "tester 0123456789abcdef0123\n");
    const server = await listening(folder, ["--token-file", tokens]);
    const client = await overSse(server.at("/sse"), { Authorization: "Bearer 0123456789abcdef0123" });
    await session(client, "TypeScript SDK on HTTP+SSE");
    const denied = await overSse(server.at("/sse")).then(
      () => "connected",
      (error) => `${error.code ?? error}`,
    );
    check("HTTP+SSE without a token is refused", denied === "401", denied);
    await client.close();
    check("the guard ends with 0", (await server.stop()) === 0);
  });

async function left(client) {
  const graph = await client.callTool({ name: "read_graph", arguments: {} });
  return JSON.parse(graph.content[0].text).entities.length;
}

/** Progress, and a question of the server in the middle of a call. */
async function asked(client, what) {
  client.setRequestHandler(CreateMessageRequestSchema, ({ params }) => ({
    model: "none",
    role: "assistant",
    content: { type: "text", text: `${params.messages[0].content.text}!` },
  }));
  const progress = [];
  const call = { name: "ask", arguments: { question: "who" } };
  const answer = await client.callTool(call, undefined, { onprogress: ({ progress: at }) => progress.push(at) });
  check(`${what}: the server asks, and progress arrives`, answer.content[0].text === "who!" && progress.join() === "1,2", progress.join());
}

/** A guard on standard input and output in front of a server. */
async function inFront(folder, client, ...server) {
  await client.connect(new StdioClientTransport({ command: toctou, args: guard(folder, ...server), stderr: "ignore" }));
  return client;
}

/** A server that offers HTTP+SSE only, behind the guard. */
export const oldServers = () =>
  inFolder(async (folder) => {
    const server = await oldServer(folder);
    const bare = await overSse(server.url);
    await entities(bare, "bare");
    const count = await left(bare);
    check("a server of HTTP+SSE without the guard loses entries", count < CALLS, `${count} of ${CALLS} left`);
    await bare.callTool({ name: "clear", arguments: {} });
    await bare.close();

    const servers = join(folder, "mcp.json");
    await writeFile(servers, JSON.stringify({ mcpServers: { old: { type: "sse", url: server.url.href } } }));
    for (const [what, ...args] of [
      ["by its type", "--servers", servers],
      ["found out", "--url", server.url.href],
    ]) {
      const client = await inFront(folder, newClient({ sampling: {} }), ...args);
      await session(client, `a server of HTTP+SSE, ${what}`);
      await asked(client, `a server of HTTP+SSE, ${what}`);
      await client.callTool({ name: "clear", arguments: {} });
      await client.close();
    }

    const both = await listening(folder, ["--servers", servers], []);
    const client = await overSse(both.at("/old/sse"), {}, newClient({ sampling: {} }));
    await session(client, "HTTP+SSE on both sides");
    await asked(client, "HTTP+SSE on both sides");

    const running = client.callTool({ name: "sleep", arguments: { seconds: 60 } });
    await new Promise((resolve) => setTimeout(resolve, 500));
    const began = Date.now();
    await server.stop("SIGKILL");
    const told = await running;
    const reason = told._meta?.["toctou/refusal"]?.reason;
    check("a server that is killed in a call: its caller is told at once", reason === "server-died" && Date.now() - began < 5000, reason);
    await client.close();
    check("the guard ends with 0", (await both.stop()) === 0);
  });
