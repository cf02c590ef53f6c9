//! Which code belongs to the program, and which tool leads to it: bundles, dispatchers.

use crate::common::Project;

/// A server and its libraries in one file, as bundlers write it: the library's
/// code is not reported, and its classes are known for what they are.
const BUNDLE: &str = r#"
var __toESM = (mod, isNodeMode, target) => mod;
import { readFile, writeFile } from "node:fs/promises";
// node_modules/.pnpm/tiny-cache@1.0.0/node_modules/tiny-cache/index.js
var require_tiny_cache = __commonJS({
  "node_modules/tiny-cache/index.js"(exports) {
    var entries = null;
    exports.get = async () => {
      if (!entries) entries = await exports.open();
      return entries;
    };
  }
});
// node_modules/@modelcontextprotocol/sdk/dist/esm/server/mcp.js
var McpServer = class {
  registerTool(name, config, handler) {
    this.tools[name] = handler;
  }
};
// src/server.ts
var import_tiny_cache = __toESM(require_tiny_cache(), 1);
var server = new McpServer({ name: "notes", version: "1" });
server.registerTool("add_note", {}, async ({ text }) => {
  await import_tiny_cache.get();
  const notes = JSON.parse(await readFile("notes.json", "utf8"));
  notes.push(text);
  await writeFile("notes.json", JSON.stringify(notes));
});
"#;

#[test]
fn a_bundle_is_read_as_the_program_it_was() {
    // Rolldown marks the modules as regions.
    for bundle in [BUNDLE, &BUNDLE.replace("\n// ", "\n//#region ")] {
        let run =
            Project::new(&[("bundle.js", bundle)]).run("scan bundle.js --no-config --output json");
        let report = run.json();
        assert_eq!(run.rules(), ["file-read-modify-write"], "{}", run.stdout);
        let entries = &report["findings"][0]["entry_points"];
        assert_eq!(entries[0]["kind"], "tool");
        assert_eq!(entries[0]["name"], "add_note");
    }
}

/// Compilers copy a module's names into an object of the other module system, one by one.
#[test]
fn what_compilers_write_round_a_require_is_the_module() {
    for (helper, module) in [
        ("__toESM", "notes_fs.default"),
        ("__importStar", "notes_fs"),
        ("tslib_1.__importStar", "notes_fs"),
        ("_interopRequireDefault", "notes_fs.default"),
    ] {
        let built = format!(
            "var copy = (to, from) => {{ for (let key of Object.keys(from)) define(to, key, {{ get: () => from[key] }}); return to; }};\n\
             var __toESM = (module, target) => copy(define(target, \"default\", {{ value: module }}), module);\n\
             var mcp = require(\"@modelcontextprotocol/sdk/server/mcp.js\");\n\
             var notes_fs = {helper}(require(\"node:fs/promises\"));\n\
             new mcp.McpServer({{ name: \"notes\", version: \"1\" }}).registerTool(\"add\", {{}}, async ({{ text }}) => {{\n\
               const notes = JSON.parse(await {module}.readFile(\"notes.json\", \"utf8\"));\n\
               notes.push(text);\n\
               await {module}.writeFile(\"notes.json\", JSON.stringify(notes));\n\
             }});\n"
        );
        let run = Project::new(&[("s.js", &built)]).run("scan s.js --no-config --output json");
        assert_eq!(
            run.rules(),
            ["file-read-modify-write"],
            "{helper}: {}",
            run.stdout
        );
    }
}

#[test]
fn two_builds_of_one_source_are_one_finding() {
    let files = [
        ("dist/cjs/server.js", BUNDLE),
        ("dist/esm/server.js", &format!("// built\n{BUNDLE}")),
    ];
    let run = Project::new(&files).run("scan dist --no-config --output json");
    assert_eq!(run.rules(), ["file-read-modify-write"], "{}", run.stdout);
    let copies = &run.json()["findings"][0]["copies"];
    assert_eq!(copies[0]["file"], "esm/server.js", "{}", run.stdout);
}

#[test]
fn a_comment_with_a_path_makes_no_bundle() {
    let source = BUNDLE
        .replace("// node_modules/.pnpm", "// see .pnpm")
        .replace("// src/server.ts", "");
    let class = source.find("var McpServer").expect("a class");
    let server = source.find("var server").expect("a server");
    let own = source[..class].to_owned()
        + "import { McpServer } from \"@modelcontextprotocol/sdk/server/mcp.js\";\n"
        + &source[server..].replace("await import_tiny_cache.get();", "");
    assert_eq!(own.matches("// node_modules/@").count(), 1);
    let run = Project::new(&[("own.js", &own)]).run("scan own.js --no-config --output json");
    assert_eq!(run.rules(), ["file-read-modify-write"], "{}", run.stdout);
}

#[test]
fn a_test_of_the_name_before_the_switch_names_no_tool() {
    let source = r#"
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { CallToolRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { readFile, writeFile } from "node:fs/promises";

const server = new Server({ name: "notes", version: "1" });
server.setRequestHandler(CallToolRequestSchema, async (request) => {
  const args = request.params.arguments;
  if (request.params.name !== "status" && request.params.name !== "list" && typeof args !== "object") {
    throw new Error("no arguments");
  }
  switch (request.params.name) {
    case "status":
      return { ok: true };
    case "add":
    case "append": {
      const notes = JSON.parse(await readFile("notes.json", "utf8"));
      notes.push(args.text);
      await writeFile("notes.json", JSON.stringify(notes));
    }
  }
});
"#;
    let run = Project::new(&[("a.ts", source)]).run("scan a.ts --no-config --output json");
    assert_eq!(run.rules(), ["file-read-modify-write"], "{}", run.stdout);
    let entries = &run.json()["findings"][0]["entry_points"];
    assert_eq!(entries[0]["name"], "append", "{}", run.stdout);
}

/// A client that is made on demand, with two more things that are made from it.
const CLIENT: &str = r#"
import { writeFile } from "node:fs/promises";
let client = null;
let mail = null;
async function connect() {
  if (!client || !mail) {
    const made = await login();
    await writeFile("token.json", made.token);
    client = made;
    mail = made.mail();
  }
  return client;
}
"#;

#[test]
fn what_is_set_behind_one_wait_is_one_finding() {
    let source = format!(
        "import {{ McpServer }} from \"@modelcontextprotocol/sdk/server/mcp.js\";\n{CLIENT}\
         const server = new McpServer({{ name: \"mail\", version: \"1\" }});\n\
         server.registerTool(\"send\", {{}}, async () => connect());\n"
    );
    let run = Project::new(&[("a.ts", &source)]).run("scan a.ts --no-config --output json");
    assert_eq!(run.rules(), ["memory-check-then-act"], "{}", run.stdout);
    let message = run.json()["findings"][0]["message"].to_string();
    assert!(
        message.contains("`client`") && message.contains("`mail` with it"),
        "{message}"
    );
}

#[test]
fn a_timer_that_would_have_to_overtake_itself_is_for_the_pedantic() {
    let source = format!("{CLIENT}setInterval(() => connect(), 60000);\n");
    let project = Project::new(&[("a.ts", &source)]);
    let scan = |persona: &str| {
        project
            .run(&format!(
                "scan a.ts --no-config --persona {persona} --output json"
            ))
            .rules()
    };
    assert_eq!(scan("regular"), Vec::<String>::new());
    assert_eq!(scan("pedantic"), ["memory-check-then-act"]);
}

#[test]
fn an_export_of_a_server_that_nothing_calls_is_for_the_pedantic() {
    let server = "import { McpServer } from \"@modelcontextprotocol/sdk/server/mcp.js\";\n\
                  const server = new McpServer({ name: \"a\", version: \"1\" });\n\
                  server.registerTool(\"ping\", {}, async () => ({ ok: true }));\n";
    let other = "import { readFile, writeFile } from \"node:fs/promises\";\n\
                 export async function add(text) {\n\
                 const all = JSON.parse(await readFile(\"all.json\", \"utf8\"));\n\
                 all.push(text);\nawait writeFile(\"all.json\", JSON.stringify(all));\n}\n";
    let files = [
        ("package.json", "{}"),
        ("server.ts", server),
        ("other.ts", other),
    ];
    let project = Project::new(&files);
    let scan = |persona: &str| {
        let command = format!("scan . --no-config --persona {persona} --output json");
        project.run(&command).rules()
    };
    assert_eq!(scan("regular"), Vec::<String>::new());
    assert_eq!(scan("pedantic"), ["file-read-modify-write"]);
}
