//! The shapes of this field in Go, in their plainest form: a dangerous one is
//! reported under its name, a safe one is quiet.

mod common;

use common::Project;

const HEAD: &str = r#"package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"os"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

var _ = json.Marshal
var _ = os.Stat
var _ atomic.Int64
var _ sync.Mutex
var _ *sql.DB

type In struct{ Key, Text string }
"#;

/// `body` declares `handle` on a `*Store`, which is registered as a tool.
fn scan(body: &str) -> Vec<String> {
    let source = format!(
        "{HEAD}\n{body}\n
func main() {{
	server := mcp.NewServer(&mcp.Implementation{{Name: \"x\"}}, nil)
	store := &Store{{}}
	mcp.AddTool(server, &mcp.Tool{{Name: \"handle\"}}, store.handle)
}}
"
    );
    let project = Project::new(&[("main.go", &source), ("go.mod", "module example.com/x\n")]);
    let run = project.run("scan . --no-config --output json");
    assert!(matches!(run.code, Some(0 | 1)), "{}", run.seen());
    assert_eq!(run.json()["summary"]["skipped"], 0, "{}", run.stdout);
    assert_eq!(run.json()["summary"]["entry_points"], 1, "{}", run.stdout);
    run.rules()
}

const SIGNATURE: &str = "func (s *Store) handle(ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error)";

#[track_caller]
fn dangerous(rule: &str, fields: &str, body: &str) {
    let rules = scan(&format!(
        "type Store struct {{ {fields} }}\n{SIGNATURE} {{ {body}\nreturn nil, nil, nil }}"
    ));
    assert!(
        rules.iter().any(|r| r == rule),
        "{rule} is not in {rules:?}"
    );
}

#[track_caller]
fn safe(fields: &str, body: &str) {
    let rules = scan(&format!(
        "type Store struct {{ {fields} }}\n{SIGNATURE} {{ {body}\nreturn nil, nil, nil }}"
    ));
    assert_eq!(rules, Vec::<String>::new());
}

#[test]
fn dangerous_map_without_a_lock() {
    dangerous("data-race", "m map[string]string", "s.m[in.Key] = in.Text");
}

#[test]
fn safe_map_under_a_lock() {
    safe(
        "mu sync.Mutex; m map[string]string",
        "s.mu.Lock()\ndefer s.mu.Unlock()\ns.m[in.Key] = in.Text",
    );
}

#[test]
fn safe_map_of_this_call() {
    safe(
        "path string",
        "m := map[string]string{}\nm[in.Key] = in.Text",
    );
}

#[test]
fn dangerous_write_under_a_shared_lock() {
    dangerous(
        "data-race",
        "mu sync.RWMutex; m map[string]string",
        "s.mu.RLock()\ndefer s.mu.RUnlock()\ns.m[in.Key] = in.Text",
    );
}

#[test]
fn safe_read_under_a_shared_lock_and_write_under_an_exclusive_one() {
    safe(
        "mu sync.RWMutex; m map[string]string",
        "s.mu.RLock()\n_ = s.m[in.Key]\ns.mu.RUnlock()\ns.mu.Lock()\ns.m[in.Key] = in.Text\ns.mu.Unlock()",
    );
}

#[test]
fn safe_counter_that_is_atomic() {
    safe("n atomic.Int64", "s.n.Add(1)");
}

#[test]
fn safe_init_once() {
    safe(
        "once sync.Once; m map[string]string",
        "s.once.Do(func() { s.m = map[string]string{} })\n_ = s.m[in.Key]",
    );
}

#[test]
fn dangerous_file_read_changed_and_written_back() {
    dangerous(
        "file-read-modify-write",
        "path string",
        "data, err := os.ReadFile(s.path)\nif err != nil { return nil, nil, err }\nvar m map[string]string\nif err := json.Unmarshal(data, &m); err != nil { return nil, nil, err }\nm[in.Key] = in.Text\nout, _ := json.Marshal(m)\n_ = os.WriteFile(s.path, out, 0o600)",
    );
}

#[test]
fn dangerous_file_looked_for_then_written() {
    dangerous(
        "file-check-then-act",
        "path string",
        "if _, err := os.Stat(s.path); os.IsNotExist(err) { _ = os.WriteFile(s.path, []byte(in.Text), 0o600) }",
    );
}

#[test]
fn safe_file_created_exclusively() {
    safe(
        "path string",
        "f, err := os.OpenFile(s.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)\nif err != nil { return nil, nil, err }\ndefer f.Close()\n_, _ = f.WriteString(in.Text)",
    );
}

#[test]
fn dangerous_row_read_then_updated() {
    dangerous(
        "db-check-then-write",
        "db *sql.DB",
        "var status string\nif err := s.db.QueryRowContext(ctx, \"SELECT status FROM orders WHERE id = ?\", in.Key).Scan(&status); err != nil { return nil, nil, err }\nif status == \"open\" { _, _ = s.db.ExecContext(ctx, \"UPDATE orders SET status = 'paid' WHERE id = ?\", in.Key) }",
    );
}

#[test]
fn safe_row_updated_on_condition() {
    safe(
        "db *sql.DB",
        "res, err := s.db.ExecContext(ctx, \"UPDATE orders SET status = 'paid' WHERE id = ? AND status = 'open'\", in.Key)\nif err != nil { return nil, nil, err }\nn, _ := res.RowsAffected()\n_ = n",
    );
}
