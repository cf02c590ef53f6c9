//! The real binary, in a folder of its own and with nothing in its environment
//! but what a test puts there.

#![allow(unreachable_pub)]

pub mod python;
pub mod shapes;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A server whose one tool loses updates.
pub const RACY: &str = r#"import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { readFile, writeFile } from "node:fs/promises";
import { z } from "zod";

const server = new McpServer({ name: "notes", version: "1.0.0" });
const FILE = "notes.json";

async function load(): Promise<string[]> {
  return JSON.parse(await readFile(FILE, "utf8"));
}

async function save(notes: string[]): Promise<void> {
  await writeFile(FILE, JSON.stringify(notes));
}

server.registerTool("add_note", { inputSchema: { text: z.string() } }, async ({ text }) => {
  const notes = await load();
  notes.push(text);
  await save(notes);
  return { content: [{ type: "text", text: `${notes.length} notes` }] };
});
"#;

pub const QUIET: &str = "export function add(a: number, b: number): number {\n  return a + b;\n}\n";

pub struct Project(tempfile::TempDir);

impl Project {
    pub fn new(files: &[(&str, &str)]) -> Self {
        let project = Self(tempfile::tempdir().expect("a folder"));
        for (path, text) in files {
            project.write(path, text);
        }
        project
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn at(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    pub fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.at(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }

    pub fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.at(path)).expect("a file")
    }

    pub fn run(&self, args: &str) -> Run {
        let args: Vec<&str> = args.split_whitespace().collect();
        run_in(self.path(), &args, &[])
    }

    pub fn run_with(&self, args: &str, env: &[(&str, &str)]) -> Run {
        let args: Vec<&str> = args.split_whitespace().collect();
        run_in(self.path(), &args, env)
    }
}

pub struct Run {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    folder: String,
}

pub fn run_in(folder: &Path, args: &[&str], env: &[(&str, &str)]) -> Run {
    let output = Command::new(env!("CARGO_BIN_EXE_toctou"))
        .args(args)
        .current_dir(folder)
        .env_clear()
        .env("LANG", "C.UTF-8")
        .env("COLUMNS", "90")
        .envs(env.iter().copied())
        .stdin(Stdio::null())
        .output()
        .expect("toctou runs");
    Run {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).expect("text"),
        stderr: String::from_utf8(output.stderr).expect("text"),
        folder: folder
            .canonicalize()
            .expect("a folder")
            .display()
            .to_string(),
    }
}

impl Run {
    /// What the user sees, without what depends on the machine (the temporary
    /// folder) or on the analysis (how many functions and entry points it counts).
    pub fn seen(&self) -> String {
        let clean = |text: &str| {
            let lines: Vec<&str> = text
                .lines()
                .map(|line| match line.split_once(": ") {
                    Some((head, counts))
                        if head.starts_with("Scanned") && counts.contains("function") =>
                    {
                        head
                    }
                    _ => line.trim_end(),
                })
                .filter(|line| !line.starts_with("hint: no tool"))
                .collect();
            lines.join("\n").replace(&self.folder, "[FOLDER]")
        };
        format!(
            "exit {}\n--- stdout\n{}\n--- stderr\n{}",
            self.code
                .map_or("by signal".to_owned(), |code| code.to_string()),
            clean(&self.stdout),
            clean(&self.stderr),
        )
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).expect("json on stdout")
    }

    pub fn rules(&self) -> Vec<String> {
        let json = self.json();
        let findings = json["findings"].as_array().expect("findings");
        findings
            .iter()
            .map(|f| f["rule"].as_str().expect("rule").to_owned())
            .collect()
    }
}
