//! Ways to register a tool that are not a call of the SDK: decorators, files, objects.

use crate::common::Project;
use crate::common::shapes::dangerous;

/// The entry points that lead to the finding, each with its kind.
fn entries(source: &str) -> Vec<String> {
    let project = Project::new(&[("tool.ts", source)]);
    let run = project.run("scan . --no-config --output json");
    let findings = run.json()["findings"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let reached = findings.iter().flat_map(|f| {
        let entries = f["entry_points"].as_array().cloned().unwrap_or_default();
        entries.into_iter().map(|e| {
            let text = |field: &str| e[field].as_str().unwrap_or_default().to_owned();
            format!("{} {}", text("kind"), text("name"))
        })
    });
    reached.collect()
}

const BUMP: &str = r#"import fs from "node:fs/promises";
async function bump(by: number) {
  const state = JSON.parse(await fs.readFile("state.json", "utf8"));
  state.count += by;
  await fs.writeFile("state.json", JSON.stringify(state));
}
"#;

#[test]
fn methods_with_a_decorator_are_tools() {
    let source = |module: &str| {
        format!(
            r#"{BUMP}import {{ Tool }} from "{module}";
export class Counter {{
  @Tool({{ name: "count", description: "" }})
  async count(args: {{ by: number }}) {{
    await bump(args.by);
  }}
}}
"#
        )
    };
    assert_eq!(entries(&source("@rekog/mcp-nest")), ["tool count"]);
    // A decorator of somebody else says nothing.
    assert_eq!(entries(&source("./own.js")), ["export Counter.count"]);
}

#[test]
fn routes_with_a_decorator_are_routes() {
    let source = format!(
        r#"{BUMP}import {{ Controller, Post }} from "@nestjs/common";
@Controller("count")
export class Counter {{
  @Post()
  async count(args: {{ by: number }}) {{
    await bump(args.by);
  }}
}}
"#
    );
    assert_eq!(entries(&source), ["route count"]);
}

#[test]
fn the_default_export_of_a_file_is_a_tool_where_files_are_tools() {
    let source = |import: &str| {
        format!(
            r#"{BUMP}{import}
export const metadata: ToolMetadata = {{ name: "count", description: "" }};
export default async function count(args: {{ by: number }}) {{
  await bump(args.by);
}}
"#
        )
    };
    let file = source("import { type ToolMetadata } from \"xmcp\";");
    assert_eq!(entries(&file), ["tool count"]);
    let other = source("import { type ToolMetadata } from \"./types.js\";");
    assert_eq!(entries(&other), ["export count"]);
}

#[test]
fn what_a_file_of_routes_exports_by_a_method_is_a_route() {
    let source = |module: &str| {
        format!(
            r#"{BUMP}import {{ NextRequest }} from "{module}";
export async function POST(request: NextRequest) {{
  await bump(1);
}}
"#
        )
    };
    assert_eq!(entries(&source("next/server")), ["route POST"]);
    assert_eq!(entries(&source("./request.js")), ["export POST"]);
}

#[test]
fn an_event_handler_that_needs_no_import_is_a_route() {
    let source = |define: &str| {
        format!(
            r#"{BUMP}export default {define}(async () => {{
  await bump(1);
}});
"#
        )
    };
    let kind = |found: Vec<String>| found.iter().any(|e| e.starts_with("route"));
    assert!(kind(entries(&source("defineEventHandler"))));
    assert!(!kind(entries(&source("defineSomething"))));
}

#[test]
fn an_object_with_a_handler_behind_the_name_is_a_tool() {
    let source = |field: &str| {
        format!(
            r#"{BUMP}import {{ McpServer }} from "mcp-lite";
const server = new McpServer({{ name: "counter", version: "1.0.0" }});
server.tool("count", {{ description: "", {field}: async (args: {{ by: number }}) => bump(args.by) }});
"#
        )
    };
    assert_eq!(entries(&source("handler")), ["tool count"]);
    assert_ne!(entries(&source("render")), ["tool count"]);
}

/// All that a helper is given goes into its statement, not only what comes first.
const HELPERS: &str = r#"import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import Database from "better-sqlite3";
const db = new Database("tasks.db");
function one(sql: string, ...values: unknown[]): any {
  return db.prepare(sql).get(...values);
}
function run(sql: string, ...values: unknown[]) {
  return db.prepare(sql).run(...values);
}
const server = new McpServer({ name: "tasks", version: "1.0.0" });
server.registerTool("raise", {}, async ({ id, other }: { id: string; other: string }) => {
  const task = one("SELECT priority FROM tasks WHERE id = ?", id);
  run("UPDATE tasks SET priority = ? WHERE id = ?", task.priority + 1, id);
  return { content: [] };
});
"#;

#[test]
fn dangerous_statement_of_a_helper_that_takes_any_number_of_values() {
    dangerous("regular", &["db-lost-update"], &[], HELPERS);
}

/// The second value says which row it is.
#[test]
fn safe_statement_about_another_row() {
    let other = HELPERS.replace("priority + 1, id);", "priority + 1, other);");
    crate::common::shapes::safe(&[], &other);
}
