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

/// webpack loads what is not in the bundle by its name, and asks a function for a default export.
#[test]
fn a_bundle_of_webpack_is_read_as_the_program_it_was() {
    for (load, module) in [
        ("require(\"node:fs/promises\")", "files_default()"),
        (
            "__webpack_require__(\"node:fs/promises\")",
            "files_default()",
        ),
        ("__webpack_require__(\"node:fs/promises\")", "files"),
    ] {
        let built = format!(
            "(() => {{\n\
             var modules = {{ \"node:fs/promises\": function (module) {{ module.exports = require(\"node:fs/promises\"); }} }};\n\
             var cache = {{}};\n\
             function __webpack_require__(id) {{ return (cache[id] ??= load(modules[id])).exports; }}\n\
             __webpack_require__.n = (module) => {{ var getter = module && module.__esModule ? () => module.default : () => module; return getter; }};\n\
             (() => {{\n\
               const mcp = require(\"@modelcontextprotocol/sdk/server/mcp.js\");\n\
               var files = {load};\n\
               var files_default = /*#__PURE__*/ __webpack_require__.n(files);\n\
               new mcp.McpServer({{ name: \"notes\", version: \"1\" }}).registerTool(\"add\", {{}}, async ({{ text }}) => {{\n\
                 const notes = JSON.parse(await {module}.readFile(\"notes.json\", \"utf8\"));\n\
                 notes.push(text);\n\
                 await {module}.writeFile(\"notes.json\", JSON.stringify(notes));\n\
               }});\n\
             }})();\n\
             }})();\n"
        );
        let run = Project::new(&[("s.js", &built)]).run("scan s.js --no-config --output json");
        assert_eq!(
            run.rules(),
            ["file-read-modify-write"],
            "{load} {module}: {}",
            run.stdout
        );
    }
}

/// A function of the program's own is none of webpack's, whatever it is called.
#[test]
fn a_function_in_a_bundle_of_webpack_is_called() {
    let built = "function __webpack_require__(id) { return load(id); }\n\
         const files = require(\"node:fs/promises\");\n\
         const mcp = require(\"@modelcontextprotocol/sdk/server/mcp.js\");\n\
         async function add_default() {\n\
           const notes = JSON.parse(await files.readFile(\"notes.json\", \"utf8\"));\n\
           notes.push(1);\n\
           await files.writeFile(\"notes.json\", JSON.stringify(notes));\n\
         }\n\
         new mcp.McpServer({ name: \"notes\", version: \"1\" }).registerTool(\"add\", {}, async () => {\n\
           await add_default();\n\
         });\n";
    let run = Project::new(&[("s.js", built)]).run("scan s.js --no-config --output json");
    assert_eq!(run.rules(), ["file-read-modify-write"], "{}", run.stdout);
    let entries = &run.json()["findings"][0]["entry_points"];
    assert_eq!(entries[0]["name"], "add");
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
    let run = Project::new(&[("a.ts", &source)])
        .run("scan a.ts --no-config --persona pedantic --rule memory-check-then-act --output json");
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

const GO_LOOP: &str = r#"package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

type Request struct {
	Method string
	Params map[string]string
}

type Server struct{ path string }

func (s *Server) call(params map[string]string) error {
	data, err := os.ReadFile(s.path)
	if err != nil {
		return err
	}
	var notes []string
	if err := json.Unmarshal(data, &notes); err != nil {
		return err
	}
	notes = append(notes, params["text"])
	out, err := json.Marshal(notes)
	if err != nil {
		return err
	}
	return os.WriteFile(s.path, out, 0o600)
}

func (s *Server) handle(req Request) error {
	switch req.Method {
	case "tools/call":
		return s.call(req.Params)
	default:
		return nil
	}
}

func main() {
	server := &Server{path: "notes.json"}
	scanner := bufio.NewScanner(os.Stdin)
	for scanner.Scan() {
		var req Request
		if err := json.Unmarshal(scanner.Bytes(), &req); err != nil {
			continue
		}
		fmt.Println(server.handle(req))
	}
}
"#;

const RUST_LOOP: &str = r#"use serde::Deserialize;
use std::io::{self, BufRead};

#[derive(Deserialize)]
struct Request {
    method: String,
    params: serde_json::Value,
}

fn add(text: &str) -> anyhow::Result<()> {
    let mut notes: Vec<String> = serde_json::from_str(&std::fs::read_to_string("notes.json")?)?;
    notes.push(text.to_string());
    std::fs::write("notes.json", serde_json::to_string(&notes)?)?;
    Ok(())
}

fn handle(request: Request) -> anyhow::Result<()> {
    match request.method.as_str() {
        "tools/call" => add(request.params["text"].as_str().unwrap_or("")),
        _ => Ok(()),
    }
}

fn main() -> anyhow::Result<()> {
    let stdin = io::stdin();
    for line in stdin.lock().lines() {
        let request: Request = serde_json::from_str(&line?)?;
        handle(request)?;
    }
    Ok(())
}
"#;

const TOKIO_LOOP: &str = r#"use tokio::io::{AsyncBufReadExt, BufReader};

async fn add(text: &str) -> anyhow::Result<()> {
    let mut notes: Vec<String> = serde_json::from_str(&tokio::fs::read_to_string("notes.json").await?)?;
    notes.push(text.to_string());
    tokio::fs::write("notes.json", serde_json::to_string(&notes)?).await?;
    Ok(())
}

async fn handle(request: serde_json::Value) -> anyhow::Result<()> {
    match request["method"].as_str() {
        Some("tools/call") => add(request["params"]["text"].as_str().unwrap_or("")).await,
        _ => Ok(()),
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        let request: serde_json::Value = serde_json::from_str(&line)?;
        handle(request).await?;
    }
    Ok(())
}
"#;

/// A server without an SDK: one message after the other, so that only another process can come
/// between; and what does not know the protocol is no server.
#[test]
fn a_loop_over_standard_input_is_a_server() {
    for (file, source) in [
        ("main.go", GO_LOOP),
        ("src/main.rs", RUST_LOOP),
        ("src/main.rs", TOKIO_LOOP),
    ] {
        let scan = |source: &str| {
            let project = Project::new(&[(file, source)]);
            let run = project.run("scan . --no-config --output json");
            assert!(matches!(run.code, Some(0 | 1)), "{}", run.seen());
            run.json()["findings"].clone()
        };
        let found = scan(source);
        assert_eq!(
            found[0]["rule"], "file-read-modify-write",
            "{file}: {found}"
        );
        assert_eq!(found[0]["scopes"], serde_json::json!(["cross-process"]));
        assert_eq!(found[0]["entry_points"][0]["kind"], "tool", "{found}");
        let other = scan(&source.replace("tools/call", "add"));
        assert_ne!(other[0]["entry_points"][0]["kind"], "tool", "{other}");
    }
}
