//! Memory that calls of a Go server share: caches, copies, what is set up once.

use crate::common::Project;
use crate::shapes_go::{dangerous, safe};

/// A handler's body, and what stands behind it in the file.
fn with(body: &str, rest: &str) -> String {
    format!("three()\n{body}\n}}\n{rest}\nfunc three() (any, any, any) {{")
}

/// A cache that is filled by `fetch`, which keeps a file for its own reasons.
fn cache_beside(file: &str) -> String {
    with(
        "if v, ok := s.m.Load(in.Key); ok { return nil, v.(string), nil }\ntext, err := fetch(in.Key)\nif err != nil { return nil, nil, err }\ns.m.Store(in.Key, text)\nreturn nil, text, nil",
        &format!(
            "func fetch(key string) (string, error) {{\nif err := os.WriteFile({file}, []byte(key), 0o600); err != nil {{ return \"\", err }}\ndata, err := os.ReadFile(\"/usr/share/\" + key)\nreturn string(data), err\n}}"
        ),
    )
}

#[test]
fn safe_cache_beside_a_file_of_its_own() {
    safe("m sync.Map", &cache_beside("\"last.txt\""));
}

#[test]
fn safe_table_of_files_that_all_make_alike() {
    safe("m sync.Map", &cache_beside("\"files/\" + key"));
}

#[test]
fn safe_header_that_is_set_is_no_cache_of_the_same_method() {
    safe(
        "m sync.Map; cache *Cache",
        &with(
            "if in.Text != \"\" { return nil, nil, s.cache.Set(in.Key, in.Text) }\nif v, ok := s.m.Load(in.Key); ok { return nil, v.(string), nil }\nreq, err := http.NewRequest(\"GET\", in.Key, nil)\nif err != nil { return nil, nil, err }\nreq.Header.Set(\"Accept\", in.Key)\ns.m.Store(in.Key, req.URL.Path)\nreturn nil, req.URL.Path, nil",
            "type Cache struct{ dir string }\nfunc (c *Cache) Set(key, text string) error { return os.WriteFile(c.dir + key, []byte(text), 0o600) }",
        ),
    );
}

#[test]
fn dangerous_token_that_is_used_up_in_two_sections() {
    dangerous(
        "lock-scope-too-narrow",
        "mu sync.Mutex; token *In",
        &with(
            "s.mu.Lock()\nold := s.token\ns.mu.Unlock()\nif old == nil { return nil, nil, os.ErrNotExist }\nif err := valid(old.Text); err != nil { return nil, nil, err }\nfresh := &In{Key: ask(old.Key)}\ns.mu.Lock()\ns.token = fresh\ns.mu.Unlock()\nreturn nil, old.Text, nil",
            "func valid(text string) error { if text == \"\" { return os.ErrInvalid }; return nil }\nfunc ask(key string) string { data, _ := os.ReadFile(\"/tokens\"); return string(data) }",
        ),
    );
}

#[test]
fn safe_copy_of_what_a_type_was_asserted_of() {
    safe(
        "m sync.Map",
        "v, _ := s.m.LoadOrStore(in.Key, In{Key: in.Key})\nitem := v.(In)\nitem.Text = in.Text\nreturn nil, item, nil",
    );
}

#[test]
fn dangerous_pointer_of_what_a_type_was_asserted_of() {
    dangerous(
        "data-race",
        "m sync.Map",
        "v, _ := s.m.LoadOrStore(in.Key, &In{Key: in.Key})\nitem := v.(*In)\nitem.Text = in.Text\nreturn nil, nil, nil",
    );
}

/// An object of a table, and what is held for it.
fn own_lock(held: &str) -> String {
    with(
        &format!(
            "v, _ := s.m.LoadOrStore(in.Key, &Client{{}})\nif c, ok := v.(*Client); ok {{ {held}\nc.used = in.Text"
        ),
        "return nil, nil, nil\n}\ntype Client struct { mu sync.Mutex; used string }",
    )
}

#[test]
fn safe_object_with_its_own_lock() {
    safe("m sync.Map", &own_lock("c.mu.Lock()\ndefer c.mu.Unlock()"));
}

#[test]
fn dangerous_object_whose_lock_is_not_taken() {
    dangerous("data-race", "m sync.Map", &own_lock(""));
}

/// What is set up once, under a lock and with a flag, by `ensure`; `first` calls it.
fn set_up(first: &str) -> String {
    with(
        &format!("{first}\nreturn nil, s.users.Key, nil"),
        "func (s *Store) ensure() error {\ns.mu.Lock()\ndefer s.mu.Unlock()\nif s.ready { return nil }\ndata, err := os.ReadFile(\"/etc/passwd\")\nif err != nil { return err }\ns.users = &In{Key: string(data)}\ns.ready = true\nreturn nil\n}",
    )
}

#[test]
fn safe_field_that_is_set_up_before_it_is_used() {
    safe(
        "mu sync.Mutex; ready bool; users *In",
        &set_up("if err := s.ensure(); err != nil { return nil, nil, err }"),
    );
}

#[test]
fn dangerous_field_that_another_call_may_be_setting_up() {
    dangerous(
        "data-race",
        "mu sync.Mutex; ready bool; users *In",
        &set_up("if in.Key != \"\" { _ = s.ensure() }"),
    );
}

#[test]
fn dangerous_flag_that_is_looked_at_before_the_lock() {
    dangerous(
        "data-race",
        "mu sync.Mutex; ready bool; users *In",
        &set_up("if !s.ready { _ = s.ensure() }"),
    );
}

/// A struct within a struct, taken from a pointer.
fn inner_copy(field: &str, value: &str) -> String {
    with(
        &format!("out := Answer{{R: {value}}}\nout.R.Text = \"\"\nreturn nil, out.R.Key, nil"),
        &format!("type Answer struct {{ R {field} }}"),
    )
}

#[test]
fn safe_copy_within_another_struct() {
    safe("last *In", &inner_copy("In", "*s.last"));
}

#[test]
fn dangerous_pointer_within_another_struct() {
    dangerous("data-race", "last *In", &inner_copy("*In", "s.last"));
}

/// A workbook is opened, changed and saved.
fn workbook(save: &str) -> String {
    format!(
        "f, err := excelize.OpenFile(in.Key)\nif err != nil {{ return nil, nil, err }}\ndefer f.Close()\nif err := f.SetCellValue(\"Sheet1\", \"A1\", in.Text); err != nil {{ return nil, nil, err }}\nreturn nil, nil, {save}"
    )
}

#[test]
fn dangerous_workbook_saved_where_it_was_opened() {
    dangerous("file-read-modify-write", "n int", &workbook("f.Save()"));
    dangerous(
        "file-read-modify-write",
        "n int",
        &workbook("f.SaveAs(in.Key)"),
    );
}

#[test]
fn safe_workbook_that_is_another_one() {
    safe("n int", &workbook("f.SaveAs(\"copy of \" + in.Key)"));
}

#[test]
fn a_wrapped_handler_belongs_to_its_own_tool() {
    let source = r#"package main

import (
	"context"
	"log"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type In struct{ Key string }

type Handler[T any] func(context.Context, *mcp.CallToolRequest, T) (*mcp.CallToolResult, any, error)

func safely[T any](name string, handler Handler[T]) Handler[T] {
	return func(ctx context.Context, req *mcp.CallToolRequest, in T) (result *mcp.CallToolResult, out any, err error) {
		defer func() { log.Println(name, recover()) }()
		return handler(ctx, req, in)
	}
}

func timed[T any](handler Handler[T]) Handler[T] {
	return func(ctx context.Context, req *mcp.CallToolRequest, in T) (*mcp.CallToolResult, any, error) {
		return handler(ctx, req, in)
	}
}

func main() {
	server := mcp.NewServer(&mcp.Implementation{Name: "x"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "save"}, safely("save", func(ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
		data, err := os.ReadFile("notes.txt")
		if err != nil {
			return nil, nil, err
		}
		return nil, nil, os.WriteFile("notes.txt", append(data, in.Key...), 0o600)
	}))
	mcp.AddTool(server, &mcp.Tool{Name: "deep"}, safely("deep", timed(func(ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
		data, err := os.ReadFile("deep.txt")
		if err != nil {
			return nil, nil, err
		}
		return nil, nil, os.WriteFile("deep.txt", append(data, in.Key...), 0o600)
	})))
	mcp.AddTool(server, &mcp.Tool{Name: "look"}, safely("look", func(ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
		return nil, in.Key, nil
	}))
}
"#;
    let project = Project::new(&[("main.go", source), ("go.mod", "module example.com/x\n")]);
    let run = project.run("scan . --no-config --output json");
    let found: Vec<(String, Vec<String>)> = run.json()["findings"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|f| {
            let tools = f["entry_points"].as_array().into_iter().flatten();
            let tools = tools.map(|e| e["name"].as_str().unwrap_or_default().to_owned());
            let key = f["resource"]["key"].as_str().unwrap_or_default();
            (key.to_owned(), tools.collect())
        })
        .collect();
    let of = |file: &str, tool: &str| (file.to_owned(), vec![tool.to_owned()]);
    assert_eq!(found, [of("notes.txt", "save"), of("deep.txt", "deep")]);
}

/// More tools than an interface is followed for, put together by `append`.
#[test]
fn tools_in_a_list_that_was_appended_to() {
    let kinds: String = (0..20)
        .map(|i| {
            format!(
                "type T{i} struct{{}}\n\
                 func (*T{i}) Tool() mcp.Tool {{ return mcp.NewTool(\"t{i}\") }}\n\
                 func (*T{i}) Handler(s *Shelf) server.ToolHandlerFunc {{\n\
                 return func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {{ return nil, nil }}\n}}\n"
            )
        })
        .collect();
    let made: String = (0..20).map(|i| format!("&T{i}{{}}, ")).collect();
    let source = format!(
        "package main\n\
         import (\n\"context\"\n\"os\"\n\"github.com/mark3labs/mcp-go/mcp\"\n\"github.com/mark3labs/mcp-go/server\"\n)\n\
         type Shelf struct {{ path string }}\n\
         type Tool interface {{\nTool() mcp.Tool\nHandler(s *Shelf) server.ToolHandlerFunc\n}}\n\
         {kinds}\n\
         type Put struct{{}}\n\
         func (*Put) Tool() mcp.Tool {{ return mcp.NewTool(\"put\") }}\n\
         func (*Put) Handler(s *Shelf) server.ToolHandlerFunc {{\n\
         return func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {{\n\
         old, err := os.ReadFile(s.path)\nif err != nil {{ return nil, err }}\n\
         return nil, os.WriteFile(s.path, append(old, 'x'), 0o600)\n}}\n}}\n\
         func wanted(all []Tool, not map[string]bool) ([]Tool, int) {{\n\
         kept := make([]Tool, 0, len(all))\n\
         for _, tool := range all {{\nif not[tool.Tool().Name] {{ continue }}\nkept = append(kept, tool)\n}}\n\
         return kept, len(kept)\n}}\n\
         func main() {{\n\
         srv := server.NewMCPServer(\"x\", \"1\")\n\
         kept, _ := wanted([]Tool{{{made}&Put{{}}}}, nil)\n\
         for _, tool := range kept {{ srv.AddTool(tool.Tool(), tool.Handler(&Shelf{{path: \"shelf.txt\"}})) }}\n\
         server.ServeStdio(srv)\n}}\n"
    );
    let run = Project::new(&[("main.go", &source)]).run("scan main.go --no-config --output json");
    let json = run.json();
    assert_eq!(run.rules(), ["file-read-modify-write"], "{}", run.seen());
    assert_eq!(
        json["findings"][0]["entry_points"][0]["kind"], "tool",
        "{}",
        run.stdout
    );
}
