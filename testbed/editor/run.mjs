// A session of an editor with toctou lsp. Usage: node run.mjs TOCTOU
import { spawn } from "node:child_process";
import { mkdir, mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import protocol from "vscode-languageserver-protocol/node.js";
import { TextDocument } from "vscode-languageserver-textdocument";

const {
  createProtocolConnection, StreamMessageReader, StreamMessageWriter, CancellationTokenSource,
  InitializeRequest, InitializedNotification, ShutdownRequest, ExitNotification, HoverRequest, CodeActionRequest,
  DidOpenTextDocumentNotification, DidChangeTextDocumentNotification, DidSaveTextDocumentNotification,
  DidCloseTextDocumentNotification, DidChangeWorkspaceFoldersNotification, DidChangeWatchedFilesNotification,
  PublishDiagnosticsNotification, LogMessageNotification, RegistrationRequest, DiagnosticSeverity, LSPErrorCodes,
} = protocol;

const [toctou] = process.argv.slice(2);
if (!toctou) throw new Error("usage: node run.mjs TOCTOU");

let failed = 0;
function check(what, ok, seen) {
  console.log(`${ok ? "ok    " : "FAILED"} ${what}`);
  if (!ok) {
    failed += 1;
    if (seen !== undefined) console.log(JSON.stringify(seen, null, 1)?.slice(0, 2000));
  }
}

const STORE = `import { readFile, writeFile } from "node:fs/promises";
const FILE = "notes.json";
export async function load(): Promise<string[]> {
  return JSON.parse(await readFile(FILE, "utf8"));
}
export async function save(notes: string[]): Promise<void> {
  await writeFile(FILE, JSON.stringify(notes));
}
`;
const SERVER = `import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { z } from "zod";
import { load, save } from "./store.js";

const server = new McpServer({ name: "notes", version: "1.0.0" });

server.registerTool("add_note", { inputSchema: { text: z.string() } }, async ({ text }) => {
  const notes = await load();
  notes.push(text);
  /* 🦀🦀 */ await save(notes);
  return { content: [] };
});
`;
const QUIET = "export const answer = 42;\n";

/** An editor: documents that are open, and what was published for which file. */
class Editor {
  constructor(folder) {
    this.folder = folder;
    this.documents = new Map();
    this.published = new Map();
    this.waiting = [];
    this.logged = [];
    this.count = 0;
  }

  async start(folders = [this.folder]) {
    this.child = spawn(toctou, ["lsp"], { stdio: ["pipe", "pipe", "inherit"] });
    this.exit = new Promise((resolve) => this.child.on("exit", (code) => resolve(code)));
    this.connection = createProtocolConnection(
      new StreamMessageReader(this.child.stdout),
      new StreamMessageWriter(this.child.stdin),
    );
    this.connection.onNotification(PublishDiagnosticsNotification.type, (params) => {
      this.count += 1;
      this.published.set(params.uri, params);
      this.waiting = this.waiting.filter((wait) => !wait());
    });
    this.connection.onNotification(LogMessageNotification.type, (params) => this.logged.push(params.message));
    this.registered = [];
    this.connection.onRequest(RegistrationRequest.type, (params) => {
      this.registered.push(...params.registrations);
    });
    this.connection.listen();
    const answer = await this.connection.sendRequest(InitializeRequest.type, {
      processId: process.pid,
      rootUri: null,
      workspaceFolders: folders.map((folder) => ({ uri: pathToFileURL(folder).href, name: folder })),
      capabilities: { workspace: { didChangeWatchedFiles: { dynamicRegistration: true } } },
    });
    await this.connection.sendNotification(InitializedNotification.type, {});
    return answer;
  }

  uri(path) {
    return pathToFileURL(join(this.folder, path)).href;
  }

  /** Resolves when what is published for a file is as wanted. */
  when(uri, wanted, seconds = 20) {
    return new Promise((resolve, reject) => {
      const done = () => {
        const params = this.published.get(uri);
        if (!params || !wanted(params.diagnostics, params)) return false;
        clearTimeout(timer);
        resolve(params.diagnostics);
        return true;
      };
      const timer = setTimeout(() => {
        reject(new Error(`${uri}: not published within ${seconds} s; last: ${JSON.stringify(this.published.get(uri))}`));
      }, seconds * 1000);
      if (!done()) this.waiting.push(done);
    });
  }

  forget() {
    this.published.clear();
  }

  async open(path, text) {
    const uri = this.uri(path);
    const document = TextDocument.create(uri, "typescript", 1, text ?? (await readFile(join(this.folder, path), "utf8")));
    this.documents.set(uri, document);
    await this.connection.sendNotification(DidOpenTextDocumentNotification.type, {
      textDocument: { uri, languageId: "typescript", version: 1, text: document.getText() },
    });
    return uri;
  }

  /** Incremental changes, as an editor sends them. */
  async edit(uri, ...changes) {
    const document = this.documents.get(uri);
    const version = document.version + 1;
    TextDocument.update(document, changes, version);
    await this.connection.sendNotification(DidChangeTextDocumentNotification.type, {
      textDocument: { uri, version },
      contentChanges: changes,
    });
  }

  /** Replaces the first occurrence of a text. */
  replace(uri, before, after) {
    const document = this.documents.get(uri);
    const at = document.getText().indexOf(before);
    if (at < 0) throw new Error(`no ${before} in ${uri}`);
    const range = { start: document.positionAt(at), end: document.positionAt(at + before.length) };
    return this.edit(uri, { range, text: after });
  }

  async stop() {
    await this.connection.sendRequest(ShutdownRequest.type);
    await this.connection.sendNotification(ExitNotification.type);
    return this.exit;
  }
}

async function inFolder(files, work) {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "toctou editor ü-")));
  try {
    for (const [path, text] of Object.entries(files)) {
      await mkdir(dirname(join(folder, path)), { recursive: true });
      await writeFile(join(folder, path), text);
    }
    return await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const some = (diagnostics) => diagnostics.length > 0;
const none = (diagnostics) => diagnostics.length === 0;
const PROJECT = { "src/server.ts": SERVER, "src/store.ts": STORE, "src/quiet.ts": QUIET };

await inFolder(PROJECT, async (folder) => {
  const editor = new Editor(folder);
  const { capabilities, serverInfo } = await editor.start();
  check("initialize: says what it can do", capabilities.hoverProvider === true && capabilities.textDocumentSync.change === 2 && serverInfo.name === "toctou", capabilities);

  const uri = editor.uri("src/server.ts");
  const [first, ...more] = await editor.when(uri, some);
  check("a folder is scanned before a file is opened", more.length === 0 && first.code === "file-read-modify-write", first);
  check("the finding is an error of toctou, with its page", first.severity === DiagnosticSeverity.Error && first.source === "toctou" && first.codeDescription.href.endsWith("file-read-modify-write.md"), first);
  const document = TextDocument.create(uri, "typescript", 1, SERVER);
  check("its range is the write, in UTF-16", document.getText(first.range).startsWith("save("), document.getText(first.range));
  const steps = first.relatedInformation;
  const storeUri = editor.uri("src/store.ts");
  check("related: both calls, in order, in the file where they read and write",
    steps.some((s) => /call A: /.test(s.message)) && steps.some((s) => /call B: /.test(s.message)) && steps.some((s) => s.location.uri === storeUri) && steps[0].message.startsWith("1. "), steps);
  check("files are watched, if the editor can", editor.registered.some((r) => r.method === "workspace/didChangeWatchedFiles"), editor.registered);

  // Typing: the text of the editor counts, not the file.
  await editor.open("src/server.ts");
  await editor.replace(uri, "await save(notes);", "");
  await editor.when(uri, (d, p) => none(d) && p.version === 2);
  check("a change that is not saved counts", (await readFile(join(folder, "src/server.ts"), "utf8")).includes("await save"));
  await editor.replace(uri, "/* 🦀🦀 */ ", "/* 🦀🦀 */ await save(notes);");
  await editor.when(uri, (d, p) => some(d) && p.version === 3);
  check("typed back, it is found again", true);

  // In another file: a lock in the store closes the window in the server.
  const store = await editor.open("src/store.ts");
  await editor.replace(store, "await writeFile(FILE, JSON.stringify(notes));", "void notes;");
  await editor.when(uri, none);
  check("a change in one file closes a window in another", true);
  await editor.connection.sendNotification(DidCloseTextDocumentNotification.type, { textDocument: { uri: store } });
  await editor.when(uri, some);
  check("closed without saving, the file on disk counts again", true);

  // Fast typing: many changes, few scans.
  editor.count = 0;
  for (let n = 0; n < 100; n += 1) await editor.replace(uri, "notes.push(text);", `notes.push(text); // ${n}\n`).then(() => editor.replace(uri, `notes.push(text); // ${n}\n`, "notes.push(text);"));
  const last = editor.documents.get(uri).version;
  await editor.when(uri, (d, p) => some(d) && p.version === last);
  check(`200 changes are a few scans (${editor.count} published)`, editor.count < 30, editor.count);

  // The page of the rule.
  const position = first.range.start;
  const hover = await editor.connection.sendRequest(HoverRequest.type, { textDocument: { uri }, position });
  check("hover: the rule's page", hover.contents.kind === "markdown" && hover.contents.value.startsWith("# file-read-modify-write\n"), hover);
  const nothing = await editor.connection.sendRequest(HoverRequest.type, { textDocument: { uri }, position: { line: 0, character: 0 } });
  check("hover: nothing elsewhere", nothing === null, nothing);

  // To ignore it needs a reason.
  const [shown] = editor.published.get(uri).diagnostics;
  const ask = (range, only) => editor.connection.sendRequest(CodeActionRequest.type, { textDocument: { uri }, range, context: { diagnostics: [shown], only } });
  const actions = await ask(shown.range);
  const ignore = actions.find((a) => a.title.startsWith("Ignore file-read-modify-write"));
  check("code action: ignore with a reason", ignore?.kind === "quickfix" && ignore.diagnostics.length === 1, actions);
  check("code action: none of another kind, none elsewhere", (await ask(shown.range, ["refactor"])).length === 0 && (await ask({ start: { line: 0, character: 0 }, end: { line: 0, character: 1 } })).length === 0);
  const [insertion] = ignore.edit.changes[uri];
  await editor.edit(uri, { range: insertion.range, text: insertion.newText });
  const asks = await editor.when(uri, (d) => d.some((x) => x.message.includes("gives no reason")));
  check("an ignore without a reason is an error, and the finding stays", asks.length === 2, asks);
  await editor.replace(uri, "ignore[file-read-modify-write] ", "ignore[file-read-modify-write] one writer, started once");
  await editor.when(uri, none);
  check("with a reason it is ignored", true);
  const line = editor.documents.get(uri).getText().split("\n").findIndex((l) => l.includes("toctou: ignore"));
  const named = await editor.connection.sendRequest(HoverRequest.type, { textDocument: { uri }, position: { line, character: 12 } });
  check("hover: on the comment, too", named.contents.value.startsWith("# file-read-modify-write\n"), named);

  // Questions that are taken back.
  const source = new CancellationTokenSource();
  const asked = editor.connection.sendRequest(HoverRequest.type, { textDocument: { uri }, position }, source.token);
  source.cancel();
  const outcome = await asked.then(() => "answered", (error) => error.code);
  check("a question that is taken back is answered or refused", outcome === "answered" || outcome === LSPErrorCodes.RequestCancelled, outcome);

  // Changed on disk by somebody else.
  await editor.connection.sendNotification(DidCloseTextDocumentNotification.type, { textDocument: { uri } });
  await editor.when(uri, some);
  await writeFile(join(folder, "src/store.ts"), STORE.replace("await writeFile(FILE, JSON.stringify(notes));", ""));
  await editor.connection.sendNotification(DidChangeWatchedFilesNotification.type, { changes: [{ uri: storeUri, type: 2 }] });
  await editor.when(uri, none);
  check("a file that others change is scanned again", true);

  // The config is wrong, and then right.
  await writeFile(join(folder, "src/store.ts"), STORE);
  await writeFile(join(folder, "toctou.toml"), 'exlude = ["src/**"]\n');
  const config = editor.uri("toctou.toml");
  await editor.connection.sendNotification(DidChangeWatchedFilesNotification.type, { changes: [{ uri: config, type: 1 }] });
  const wrong = await editor.when(config, some);
  check("a wrong config is shown where it is wrong", wrong[0].message.includes("exclude") && wrong[0].range.start.line === 0, wrong);
  await writeFile(join(folder, "toctou.toml"), '[rules]\nfile-read-modify-write = "low"\n');
  await editor.connection.sendNotification(DidChangeWatchedFilesNotification.type, { changes: [{ uri: config, type: 2 }] });
  await editor.when(config, none);
  const [low] = await editor.when(uri, some);
  check("and is followed when it is right", low.severity === DiagnosticSeverity.Information, low);

  check("shutdown and exit: 0", (await editor.stop()) === 0);
});

// A change that closes the window, as a quick fix.
const REPORTS = `import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { access, writeFile } from "node:fs/promises";
import { z } from "zod";

const server = new McpServer({ name: "reports", version: "1.0.0" });

server.registerTool("create", { inputSchema: { path: z.string(), text: z.string() } }, async ({ path, text }) => {
  const there = await access(path).then(() => true, () => false);
  if (there) throw new Error("🦀 exists");
  /* 🦀 */ await writeFile(path, text);
  return { content: [] };
});
`;
await inFolder({ "server.ts": REPORTS }, async (folder) => {
  const editor = new Editor(folder);
  await editor.start();
  const uri = await editor.open("server.ts");
  const [finding] = await editor.when(uri, some);
  const actions = await editor.connection.sendRequest(CodeActionRequest.type, { textDocument: { uri }, range: finding.range, context: { diagnostics: [finding] } });
  const [fix, ignore] = actions;
  check("quick fix: the change first, the comment second", actions.length === 2 && fix.isPreferred && ignore.title.startsWith("Ignore"), actions);
  await editor.edit(uri, ...fix.edit.changes[uri].map(({ range, newText }) => ({ range, text: newText })));
  check("quick fix: is made where it belongs", editor.documents.get(uri).getText().includes('/* 🦀 */ await writeFile(path, text, { flag: "wx" });'), editor.documents.get(uri).getText());
  await editor.when(uri, none);
  check("quick fix: closes the finding", true);
  await editor.stop();
});

// Several folders; one that comes and goes.
await inFolder({ "a/server.ts": SERVER, "a/store.ts": STORE, "b/server.ts": SERVER, "b/store.ts": STORE, "alone/server.ts": SERVER, "alone/store.ts": STORE }, async (folder) => {
  const editor = new Editor(folder);
  await editor.start([join(folder, "a")]);
  await editor.when(editor.uri("a/server.ts"), some);
  check("only the folders of the workspace are scanned", !editor.published.has(editor.uri("b/server.ts")));
  const b = { uri: editor.uri("b"), name: "b" };
  await editor.connection.sendNotification(DidChangeWorkspaceFoldersNotification.type, { event: { added: [b], removed: [] } });
  await editor.when(editor.uri("b/server.ts"), some);
  await editor.connection.sendNotification(DidChangeWorkspaceFoldersNotification.type, { event: { added: [], removed: [b] } });
  await editor.when(editor.uri("b/server.ts"), none);
  check("a folder comes, and its findings go with it", editor.published.get(editor.uri("a/server.ts")).diagnostics.length === 1);
  await editor.open("alone/server.ts");
  await editor.when(editor.uri("alone/server.ts"), some);
  check("a file without a workspace is scanned with its neighbours", true);
  check("shutdown and exit: 0", (await editor.stop()) === 0);
});

// Nonsense.
await inFolder(PROJECT, async (folder) => {
  const editor = new Editor(folder);
  await editor.start();
  const uri = editor.uri("src/server.ts");
  await editor.when(uri, some);
  const texts = ["\0\0\0", "(".repeat(200_000), `x = "${"a".repeat(1_000_000)}"`, "`${".repeat(5_000), "\ud800 lone", "\u202e// toctou: ignore[", "// toctou: ignore[*] all\n", ""];
  const quiet = await editor.open("src/quiet.ts");
  for (const text of texts) {
    await editor.edit(quiet, { text });
    await editor.connection.sendRequest(HoverRequest.type, { textDocument: { uri: quiet }, position: { line: 0, character: 5 } });
  }
  await editor.edit(quiet, { range: { start: { line: 99, character: 99 }, end: { line: 0, character: 0 } }, text: "\u{1f980}" });
  for (const [method, params] of [
    ["textDocument/didOpen", {}], ["textDocument/didChange", { textDocument: 7 }], ["textDocument/didOpen", null],
    ["textDocument/didClose", { textDocument: { uri: "file:///%ff" } }], ["workspace/didChangeWorkspaceFolders", []],
    ["textDocument/didOpen", { textDocument: { uri: "untitled:1", languageId: "x", version: 1, text: SERVER } }],
    ["no/such/thing", {}], ["$/cancelRequest", { id: {} }],
  ]) await editor.connection.sendNotification(method, params);
  for (const [method, params] of [["textDocument/hover", {}], ["textDocument/codeAction", { range: 1 }], ["no/such/request", {}]]) {
    const code = await editor.connection.sendRequest(method, params).then(() => 0, (error) => error.code);
    check(`${method} with ${JSON.stringify(params)} is refused`, code === -32601 || code === -32602, code);
  }
  editor.forget();
  await editor.edit(quiet, { text: QUIET });
  await editor.when(uri, some);
  check("after all that it still finds races", true);
  // Gone without a word.
  editor.connection.dispose();
  editor.child.stdin.end();
  check("an editor that dies takes the server with it", (await Promise.race([editor.exit, new Promise((r) => setTimeout(r, 5000, "still there"))])) === 2);
});

// A large workspace.
const large = {};
for (let n = 0; n < 500; n += 1) {
  large[`p${n}/server.ts`] = SERVER;
  large[`p${n}/store.ts`] = STORE;
}
await inFolder(large, async (folder) => {
  const editor = new Editor(folder);
  const begin = Date.now();
  await editor.start();
  const uri = await editor.open("p7/server.ts");
  let slowest = 0;
  const all = editor.when(editor.uri("p499/server.ts"), some, 60);
  let ended = false;
  all.then(() => { ended = true; });
  while (!ended) {
    const asked = Date.now();
    await editor.connection.sendRequest(HoverRequest.type, { textDocument: { uri }, position: { line: 0, character: 0 } });
    slowest = Math.max(slowest, Date.now() - asked);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  await all;
  check(`1,000 files: scanned in ${Date.now() - begin} ms, questions answered meanwhile within ${slowest} ms`, slowest < 1000);
  await editor.replace(uri, "await save(notes);", "");
  await editor.stop();
  const ending = Date.now();
  check("shutdown does not wait for a scan", (await editor.exit) === 0 && Date.now() - ending < 3000);
});

process.exit(failed ? 1 : 0);
