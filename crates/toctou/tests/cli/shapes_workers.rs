//! Shapes of servers that run as Cloudflare Workers: where requests come in, and what the
//! environment is.

use crate::common::Project;

#[track_caller]
fn found(source: &str) -> Vec<(String, String)> {
    let project = Project::new(&[("worker.ts", source)]);
    let run = project.run("scan worker.ts --no-config --output json");
    assert!(matches!(run.code, Some(0 | 1)), "{}", run.seen());
    assert_eq!(run.json()["summary"]["skipped"], 0, "{}", run.stdout);
    let findings = run.json()["findings"].clone();
    let of = |f: &serde_json::Value| {
        let text = |v: &serde_json::Value| v.as_str().unwrap_or_default().to_owned();
        (text(&f["rule"]), text(&f["entry_points"][0]["kind"]))
    };
    findings.as_array().into_iter().flatten().map(of).collect()
}

#[track_caller]
fn expect(rule: &str, kind: &str, source: &str) {
    let one = (rule.to_owned(), kind.to_owned());
    assert_eq!(found(source), [one], "{source}");
}

const COUNT: &str = "async function count(kv: KVNamespace) {
  const n = Number(await kv.get(\"n\"));
  await kv.put(\"n\", String(n + 1));
}
interface Env { KV: KVNamespace }
";

const TOOL: &str = "import { McpServer } from \"@modelcontextprotocol/sdk/server/mcp.js\";
export function make() {
  const server = new McpServer({ name: \"x\", version: \"1\" });
  server.registerTool(\"none\", {}, async () => ({ content: [] }));
  return server;
}
";

#[test]
fn the_environment_of_an_agent_is_its_type_argument() {
    let source = "import { McpAgent } from \"agents/mcp\";
import { McpServer } from \"@modelcontextprotocol/sdk/server/mcp.js\";
interface Env { KV: KVNamespace }
export class Notes extends McpAgent<Env> {
  server = new McpServer({ name: \"notes\", version: \"1.0.0\" });
  async init() {
    this.server.registerTool(\"add\", {}, async (note: any) => {
      const list = JSON.parse((await this.env.KV.get(\"list\")) ?? \"[]\");
      list.push(note);
      await this.env.KV.put(\"list\", JSON.stringify(list));
      return { content: [] };
    });
  }
}
";
    expect("db-lost-update", "tool", source);
    // The same, with the type written out.
    let inline = source
        .replace("interface Env { KV: KVNamespace }\n", "")
        .replace("<Env>", "<{ KV: KVNamespace }>");
    expect("db-lost-update", "tool", &inline);
    // What is put does not come from what was read.
    let blind = source.replace("JSON.stringify(list)", "JSON.stringify([note])");
    assert_eq!(found(&blind), []);
}

#[test]
fn an_environment_can_be_written_out_where_it_is_given() {
    let source = "import { McpServer } from \"@modelcontextprotocol/sdk/server/mcp.js\";
export function make(env: { FILES: R2Bucket }) {
  const server = new McpServer({ name: \"files\", version: \"1.0.0\" });
  server.registerTool(\"add\", {}, async (note: any) => {
    const old = await env.FILES.get(\"list\");
    const list = old ? JSON.parse(await old.text()) : [];
    list.push(note);
    await env.FILES.put(\"list\", JSON.stringify(list));
    return { content: [] };
  });
  return server;
}
";
    expect("db-lost-update", "tool", source);
}

#[test]
fn requests_come_in_by_what_a_worker_exports() {
    let ways = [
        ("route", "export default { fetch: (request: Request, env: Env) => count(env.KV) };"),
        ("route", "export default { async fetch(request: Request, env: Env) { await count(env.KV); } };"),
        ("timer", "export default { async scheduled(event: any, env: Env) { await count(env.KV); } };"),
        (
            "event",
            "import { WorkflowEntrypoint } from \"cloudflare:workers\";
export class Nightly extends WorkflowEntrypoint<Env> {
  async run(event: any, step: any) { await step.do(\"count\", async () => { await count(this.env.KV); }); }
}",
        ),
        (
            "route",
            "import OAuthProvider from \"@cloudflare/workers-oauth-provider\";
async function handle(request: Request, env: Env) { await count(env.KV); return new Response(\"\"); }
export default new OAuthProvider({ apiRoute: \"/mcp\", defaultHandler: { fetch: handle } });",
        ),
    ];
    for (kind, way) in ways {
        expect("db-lost-update", kind, &format!("{TOOL}{COUNT}{way}\n"));
    }
    // Nobody is seen to call it: for those who look closely.
    let unused = "export const helpers = { count };\n";
    assert_eq!(found(&format!("{TOOL}{COUNT}{unused}")), []);
}
