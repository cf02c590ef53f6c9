//! The shapes of this field in Go, in their plainest form: a dangerous one is
//! reported under its name, a safe one is quiet.

use crate::common::Project;

const HEAD: &str = r#"package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/xuri/excelize/v2"
)

var _ = excelize.OpenFile
var _ = json.Marshal
var _ = fmt.Sprintf
var _ = http.MethodGet
var _ = exec.LookPath
var _ = time.Now
var _ = os.Stat
var _ atomic.Int64
var _ sync.Mutex
var _ *sql.DB

type In struct{ Key, Text string }
"#;

/// `body` declares `handle` on a `*Store`, which is registered as a tool.
pub(crate) fn scan(body: &str) -> Vec<String> {
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

pub(crate) const SIGNATURE: &str = "func (s *Store) handle(ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error)";

#[track_caller]
pub(crate) fn dangerous(rule: &str, fields: &str, body: &str) {
    let rules = scan(&format!(
        "type Store struct {{ {fields} }}\n{SIGNATURE} {{ {body}\nreturn nil, nil, nil }}"
    ));
    assert!(
        rules.iter().any(|r| r == rule),
        "{rule} is not in {rules:?}"
    );
}

#[track_caller]
pub(crate) fn safe(fields: &str, body: &str) {
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

/// Findings in a project of these files.
fn rules_of(files: &[(&str, &str)]) -> Vec<String> {
    let run = Project::new(files).run("scan . --no-config --output json");
    assert!(matches!(run.code, Some(0 | 1)), "{}", run.seen());
    assert_eq!(run.json()["summary"]["skipped"], 0, "{}", run.stdout);
    run.rules()
}

const OLD_SDK: &str = r#"package main

import (
	"context"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

type Counter struct{ seen map[string]int }

func (c *Counter) count(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	c.seen[req.Params.Name]++
	return nil, nil
}

func main() {
	s := server.NewMCPServer("x", "1")
	c := &Counter{seen: map[string]int{}}
	s.AddTool(mcp.NewTool("count"), c.count)
	SERVE
}
"#;

fn go_mod(version: &str) -> String {
    format!("module example.com/x\n\nrequire github.com/mark3labs/mcp-go {version}\n")
}

#[test]
fn calls_that_are_served_in_turn_do_not_meet() {
    let stdio = OLD_SDK.replace("SERVE", "server.ServeStdio(s)");
    let http = OLD_SDK.replace("SERVE", "server.NewSSEServer(s).Start(\":1\")");
    let scan = |source: &str, version: &str| {
        rules_of(&[("main.go", source), ("go.mod", &go_mod(version))])
    };
    assert_eq!(scan(&stdio, "v0.32.0"), Vec::<String>::new());
    assert_eq!(scan(&stdio, "v0.33.0"), ["data-race"]);
    assert_eq!(scan(&http, "v0.32.0"), ["data-race"]);
}

#[test]
fn safe_insert_that_a_schema_file_refuses() {
    let source = format!(
        "{HEAD}
type Store struct {{ db *sql.DB }}
{SIGNATURE} {{
	var id int
	err := s.db.QueryRow(\"SELECT id FROM tags WHERE name = ?\", in.Key).Scan(&id)
	if err == sql.ErrNoRows {{ _, err = s.db.Exec(\"INSERT INTO tags (name) VALUES (?)\", in.Key) }}
	return nil, nil, err
}}
func main() {{
	server := mcp.NewServer(&mcp.Implementation{{Name: \"x\"}}, nil)
	store := &Store{{}}
	mcp.AddTool(server, &mcp.Tool{{Name: \"handle\"}}, store.handle)
}}
"
    );
    let schema = "CREATE TABLE tags (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);\n";
    let other = "CREATE TABLE tags (id INTEGER PRIMARY KEY, name TEXT NOT NULL);\n";
    let scan = |schema| rules_of(&[("main.go", source.as_str()), ("db/schema.sql", schema)]);
    assert_eq!(scan(schema), Vec::<String>::new());
    assert_eq!(scan(other), ["db-check-then-write"]);
    // In the code, one of several that a loop runs.
    let migrated = |schema: &str| {
        let migrate = format!(
            "{source}
func migrate(db *sql.DB) error {{
	steps := []string{{`{schema}`, `CREATE INDEX by_name ON tags (name)`}}
	for _, step := range steps {{
		if _, err := db.Exec(step); err != nil {{ return err }}
	}}
	return nil
}}
"
        );
        rules_of(&[("main.go", migrate.as_str())])
    };
    assert_eq!(migrated(schema), Vec::<String>::new());
    assert_eq!(migrated(other), ["db-check-then-write"]);
}

#[test]
fn dangerous_file_built_up_in_a_loop() {
    dangerous(
        "file-read-modify-write",
        "path string",
        "data, err := os.ReadFile(s.path)\nif err != nil { return nil, nil, err }\nvar m map[string]string\nif err := json.Unmarshal(data, &m); err != nil { return nil, nil, err }\ntext := \"\"\nfor k, v := range m { text += k + v }\n_ = os.WriteFile(s.path, []byte(text), 0o600)",
    );
    dangerous(
        "file-read-modify-write",
        "path string",
        "data, err := os.ReadFile(s.path)\nif err != nil { return nil, nil, err }\nvar m []string\nif err := json.Unmarshal(data, &m); err != nil { return nil, nil, err }\nvar kept []string\nfor _, v := range m { if v != in.Key { kept = append(kept, v) } }\nout, _ := json.Marshal(kept)\n_ = os.WriteFile(s.path, out, 0o600)",
    );
}

#[test]
fn dangerous_file_written_by_way_of_a_temporary_one() {
    dangerous(
        "file-read-modify-write",
        "path string",
        "data, err := os.ReadFile(s.path)\nif err != nil { return nil, nil, err }\nm := map[string]string{}\nif err := json.Unmarshal(data, &m); err != nil { return nil, nil, err }\nm[in.Key] = in.Text\ntemp, err := os.CreateTemp(\".\", \"x\")\nif err != nil { return nil, nil, err }\nif err := json.NewEncoder(temp).Encode(m); err != nil { return nil, nil, err }\n_ = os.Rename(temp.Name(), s.path)",
    );
}

#[test]
fn safe_file_that_is_asked_only_what_kind_it_is() {
    safe(
        "path string",
        "if info, err := os.Stat(in.Key); err == nil && info.IsDir() { return nil, nil, nil }\n_ = os.WriteFile(in.Key, []byte(in.Text), 0o600)",
    );
}

#[test]
fn safe_cache_that_is_filled_twice() {
    safe(
        "mu sync.RWMutex; m map[string]string",
        "s.mu.RLock()\ntext, ok := s.m[in.Key]\ns.mu.RUnlock()\nif ok { return nil, text, nil }\ndata, err := os.ReadFile(in.Key)\nif err != nil { return nil, nil, err }\ntext = string(data)\ns.mu.Lock()\ns.m[in.Key] = text\ns.mu.Unlock()\nreturn nil, text, nil",
    );
}

#[test]
fn dangerous_claim_of_a_name_in_two_sections() {
    dangerous(
        "lock-scope-too-narrow",
        "mu sync.RWMutex; m map[string]string",
        "s.mu.RLock()\n_, ok := s.m[in.Key]\ns.mu.RUnlock()\nif ok { return nil, nil, os.ErrExist }\ns.mu.Lock()\ns.m[in.Key] = in.Text\ns.mu.Unlock()",
    );
}

#[test]
fn safe_field_of_a_copied_struct() {
    safe(
        "mu sync.RWMutex; m map[string]In",
        "s.mu.RLock()\nitem := s.m[in.Key]\ns.mu.RUnlock()\nitem.Text = in.Text\nreturn nil, item, nil",
    );
}

#[test]
fn safe_row_deleted_by_its_key() {
    safe(
        "db *sql.DB",
        "var text string\nif err := s.db.QueryRow(\"SELECT text FROM notes WHERE id = ?\", in.Key).Scan(&text); err != nil { return nil, nil, err }\n_, err := s.db.Exec(\"DELETE FROM notes WHERE id = ?\", in.Key)\nreturn nil, text, err",
    );
}

#[test]
fn dangerous_list_without_a_lock() {
    let source = HEAD.replace("\"context\"", "\"container/list\"\n\t\"context\"");
    let rules = rules_of(&[(
        "main.go",
        &format!(
            "{source}
type Store struct {{ l *list.List }}
{SIGNATURE} {{ s.l.PushBack(in.Text)\nreturn nil, nil, nil }}
func main() {{
	server := mcp.NewServer(&mcp.Implementation{{Name: \"x\"}}, nil)
	store := &Store{{}}
	mcp.AddTool(server, &mcp.Tool{{Name: \"handle\"}}, store.handle)
}}
"
        ),
    )]);
    assert_eq!(rules, ["data-race"]);
}

#[test]
fn dangerous_handlers_of_http() {
    let source = r#"package main

import "net/http"

var seen = map[string]int{}

type Hits struct{ n map[string]int }

func (h *Hits) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.n[r.URL.Path]++ }

func count(w http.ResponseWriter, r *http.Request) { seen[r.URL.Path]++ }

func main() {
	mux := http.NewServeMux()
	mux.Handle("/count", http.HandlerFunc(count))
	mux.Handle("/hits", &Hits{n: map[string]int{}})
	http.ListenAndServe(":1", mux)
}
"#;
    assert_eq!(rules_of(&[("main.go", source)]), ["data-race", "data-race"]);
}

#[test]
fn safe_helper_that_is_called_under_the_lock() {
    safe(
        "mu sync.Mutex; waiting map[string]chan string",
        "s.mu.Lock()\ndefer s.mu.Unlock()\nif in.Key == \"\" { s.endAll() } else { s.waiting[in.Key] <- in.Text }\nreturn nil, nil, nil\n}\nfunc (s *Store) endAll() (any, any, any) {\nfor _, c := range s.waiting { close(c) }\ns.waiting = nil",
    );
}

#[test]
fn dangerous_failure_that_keeps_the_lock() {
    dangerous(
        "lock-not-released-on-error",
        "mu sync.Mutex; m map[string]string",
        "s.mu.Lock()\nif s.m[in.Key] != \"\" { return nil, nil, os.ErrExist }\ns.m[in.Key] = in.Text\ns.mu.Unlock()",
    );
}

#[test]
fn safe_failure_after_the_lock() {
    safe(
        "mu sync.Mutex; m map[string]string",
        "s.mu.Lock()\nif s.m[in.Key] != \"\" {\ns.mu.Unlock()\nreturn nil, nil, os.ErrExist\n}\ns.m[in.Key] = in.Text\ns.mu.Unlock()",
    );
}

#[test]
fn safe_copy_that_is_given_out() {
    safe(
        "mu sync.Mutex; m map[string]*In",
        "s.three()\nitem := s.get(in.Key)\nif item != nil { return nil, item.Text, nil }\ns.mu.Lock()\ndefer s.mu.Unlock()\nif old := s.m[in.Key]; old != nil { old.Text = in.Text }\nreturn nil, nil, nil\n}\nfunc (s *Store) get(key string) *In {\ns.mu.Lock()\ndefer s.mu.Unlock()\nitem, ok := s.m[key]\nif !ok { return nil }\ncopied := *item\nreturn &copied\n}\nfunc (s *Store) three() (any, any, any) {",
    );
}

/// A revision that is read and raised, with these imports and this body of `raise`.
fn raising(imports: &str, body: &str) -> Vec<String> {
    let source = format!(
        "package main\n\nimport (\n\t\"context\"\n\t\"database/sql\"\n{imports}\n\t\"github.com/modelcontextprotocol/go-sdk/mcp\"\n)\n
type In struct{{ Key string }}
type Store struct{{ db *sql.DB }}

func (s *Store) raise(ctx context.Context, key string) error {{
{body}
	if _, err := tx.ExecContext(ctx, \"UPDATE pages SET revision = ? WHERE key = ?\", revision+1, key); err != nil {{
		return err
	}}
	return tx.Commit()
}}

{SIGNATURE} {{ return nil, nil, s.raise(ctx, in.Key) }}

func main() {{
	server := mcp.NewServer(&mcp.Implementation{{Name: \"x\"}}, nil)
	db, _ := sql.Open(\"db\", \"pages\")
	store := &Store{{db: db}}
	mcp.AddTool(server, &mcp.Tool{{Name: \"raise\"}}, store.handle)
}}
"
    );
    let project = Project::new(&[("main.go", &source), ("go.mod", "module example.com/x\n")]);
    let run = project.run("scan . --no-config --output json");
    assert!(matches!(run.code, Some(0 | 1)), "{}", run.seen());
    run.rules()
}

const BEGIN: &str = "	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
";
const SELECT: &str = "	var revision int
	if err := tx.QueryRowContext(ctx, \"SELECT revision FROM pages WHERE key = ?\", key).Scan(&revision); err != nil {
		return err
	}
";

/// SQLite refuses one of two transactions that read first; others let both write.
#[test]
fn transactions_of_the_database_that_is_imported() {
    let inside = format!("{BEGIN}{SELECT}");
    let sqlite = "\t_ \"modernc.org/sqlite\"";
    let postgres = "\t_ \"github.com/lib/pq\"";
    assert_eq!(raising(sqlite, &inside), Vec::<String>::new());
    assert_eq!(raising(postgres, &inside), ["db-lost-update"]);
    assert_eq!(raising("", &inside), ["db-lost-update"]);
    let both = format!("{sqlite}\n{postgres}");
    assert_eq!(raising(&both, &inside), ["db-lost-update"]);
    // It has types of its own, unless its driver is asked for.
    let beside = format!("{sqlite}\n\t_ \"github.com/jackc/pgx/v5/pgxpool\"");
    assert_eq!(raising(&beside, &inside), Vec::<String>::new());
    let driver = format!("{sqlite}\n\t_ \"github.com/jackc/pgx/v5/stdlib\"");
    assert_eq!(raising(&driver, &inside), ["db-lost-update"]);
    // Read before it began.
    let before = format!("{}{BEGIN}", SELECT.replace("tx.", "s.db."));
    assert_eq!(raising(sqlite, &before), ["db-lost-update"]);
}

/// The descriptor stands for the file.
#[test]
fn files_that_the_system_locks() {
    let body = |how: &str| {
        format!(
            "door, err := os.OpenFile(\"door.lock\", os.O_CREATE|os.O_RDWR, 0o600)\nif err != nil {{ return nil, nil, err }}\n\
             defer door.Close()\nif err := syscall.Flock(int(door.Fd()), {how}); err != nil {{ return nil, nil, err }}\n\
             defer syscall.Flock(int(door.Fd()), syscall.LOCK_UN)\n\
             old, err := os.ReadFile(\"notes\")\nif err != nil {{ return nil, nil, err }}\n\
             os.WriteFile(\"notes\", append(old, in.Text...), 0o600)\nreturn nil, nil, nil"
        )
    };
    let scan = |how: &str| {
        let head = "type Store struct {}\n";
        let source = format!(
            "package main\n\nimport (\n\t\"context\"\n\t\"os\"\n\t\"syscall\"\n\n\t\"github.com/modelcontextprotocol/go-sdk/mcp\"\n)\n\n\
             type In struct{{ Text string }}\n{head}{SIGNATURE} {{ {} }}\n\
             func main() {{\n\tserver := mcp.NewServer(&mcp.Implementation{{Name: \"x\"}}, nil)\n\tstore := &Store{{}}\n\
             \tmcp.AddTool(server, &mcp.Tool{{Name: \"handle\"}}, store.handle)\n}}\n",
            body(how)
        );
        let project = Project::new(&[("main.go", &source), ("go.mod", "module example.com/x\n")]);
        project.run("scan . --no-config --output json").rules()
    };
    assert_eq!(scan("syscall.LOCK_EX"), Vec::<String>::new());
    assert_eq!(scan("syscall.LOCK_SH"), ["file-read-modify-write"]);
}

/// A tool that is registered with another SDK: the imports, what its handler is, how it is registered.
fn registered(import: &str, signature: &str, register: &str) -> Vec<(String, String)> {
    let source = format!(
        "package main\n\nimport (\n\t\"context\"\n\t\"os\"\n{import}\n)\n
var _ = context.Background

type Args struct {{ Text string }}

func add{signature} {{
	data, _ := os.ReadFile(\"notes.txt\")
	os.WriteFile(\"notes.txt\", append(data, 'x'), 0o644)
	return nil, nil
}}

func main() {{
	{register}
}}
"
    );
    let project = Project::new(&[("main.go", &source), ("go.mod", "module example.com/x\n")]);
    let run = project.run("scan . --no-config --output json");
    assert!(matches!(run.code, Some(0 | 1)), "{}", run.seen());
    let report = run.json();
    let found = report["findings"].as_array().cloned().unwrap_or_default();
    let by = |f: &serde_json::Value| {
        let text = |v: &serde_json::Value| v.as_str().unwrap_or_default().to_owned();
        (text(&f["rule"]), text(&f["entry_points"][0]["kind"]))
    };
    found.iter().map(by).collect()
}

#[test]
fn tools_of_other_sdks() {
    let tool = [("file-read-modify-write".to_owned(), "tool".to_owned())];
    let metoro = registered(
        "\tmcp \"github.com/metoro-io/mcp-golang\"",
        "(args Args) (*mcp.ToolResponse, error)",
        "server := mcp.NewServer(nil)\n\tserver.RegisterTool(\"add\", \"adds\", add)\n\tserver.Serve()",
    );
    assert_eq!(metoro, tool);
    let thinkinai = registered(
        "\t\"github.com/ThinkInAIXYZ/go-mcp/protocol\"\n\t\"github.com/ThinkInAIXYZ/go-mcp/server\"",
        "(ctx context.Context, req *protocol.CallToolRequest) (*protocol.CallToolResult, error)",
        "s, _ := server.NewServer(nil)\n\ttool, _ := protocol.NewTool(\"add\", \"adds\", Args{})\n\ts.RegisterTool(tool, add)",
    );
    assert_eq!(thinkinai, tool);
    let trpc = registered(
        "\tmcp \"trpc.group/trpc-go/trpc-mcp-go\"",
        "(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error)",
        "s := mcp.NewServer(\"x\", \"1\")\n\ts.RegisterTool(mcp.NewTool(\"add\"), add)",
    );
    assert_eq!(trpc, tool);
    let cortex = registered(
        "\t\"github.com/FreePeak/cortex/pkg/server\"\n\t\"github.com/FreePeak/cortex/pkg/tools\"",
        "(ctx context.Context, req server.ToolCallRequest) (any, error)",
        "s := server.NewMCPServer(\"x\", \"1\", nil)\n\ts.AddTool(context.Background(), tools.NewTool(\"add\"), add)",
    );
    assert_eq!(cortex, tool);
    let foxy = registered(
        "\t\"github.com/strowk/foxy-contexts/pkg/fxctx\"\n\t\"github.com/strowk/foxy-contexts/pkg/mcp\"",
        "(ctx context.Context, args map[string]any) (*mcp.CallToolResult, error)",
        "fxctx.NewTool(&mcp.Tool{Name: \"add\"}, add)",
    );
    assert_eq!(foxy, tool);
}
