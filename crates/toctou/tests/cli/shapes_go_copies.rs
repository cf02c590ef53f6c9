//! Go: which object is it? Copies that still lead to what everybody has, and copies that do not.

use crate::common::Project;

/// The data races of a program, by line's text.
fn races(source: &str) -> Vec<String> {
    let project = Project::new(&[("main.go", source), ("go.mod", "module example.com/x\n")]);
    let run = project.run("scan . --no-config --persona pedantic --output json");
    assert!(matches!(run.code, Some(0 | 1)), "{}", run.seen());
    assert_eq!(run.json()["summary"]["skipped"], 0, "{}", run.stdout);
    let lines: Vec<&str> = source.lines().collect();
    let report = run.json();
    let findings = report["findings"].as_array().cloned().unwrap_or_default();
    findings
        .iter()
        .filter(|f| f["rule"] == "data-race")
        .map(|f| {
            lines[f["location"]["line"].as_u64().expect("a line") as usize - 1]
                .trim()
                .to_owned()
        })
        .collect()
}

/// A server that makes an inventory for each request, out of tools that were made at the start.
fn per_request(annotate: &str, items: &str) -> String {
    format!(
        r#"package main

import (
	"context"
	"maps"
	"net/http"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

var _ = maps.Clone[map[string]any]
var mu sync.Mutex

type Item struct {{
	Tool mcp.Tool
	Make func() mcp.ToolHandler
}}

type Inventory struct{{ items []Item }}

type Builder struct{{ items []Item }}

func NewBuilder() *Builder {{ return &Builder{{}} }}

func (b *Builder) SetItems(items []Item) *Builder {{
	b.items = items
	return b
}}

func (b *Builder) Build() (*Inventory, error) {{ return &Inventory{{items: b.items}}, nil }}

func (v *Inventory) Available() []Item {{
	var out []Item
	for i := range v.items {{
		item := &v.items[i]
		if item.Tool.Name != "" {{
			out = append(out, *item)
		}}
	}}
	return out
}}

func (v *Inventory) Register(s *mcp.Server) {{
	for _, item := range v.Available() {{
		item.Register(s)
	}}
}}

func (t *Item) Register(s *mcp.Server) {{
	tool := t.Tool
	annotate(&tool)
	s.AddTool(&tool, t.Make())
}}

func annotate(tool *mcp.Tool) {{
	schema, ok := tool.InputSchema.(*jsonschema.Schema)
	if !ok || schema == nil {{
		return
	}}
	{annotate}
}}

func all() []Item {{
	return []Item{{newItem(mcp.Tool{{
		Name: "list",
		InputSchema: &jsonschema.Schema{{
			Type:       "object",
			Properties: map[string]*jsonschema.Schema{{"owner": {{Type: "string"}}}},
		}},
	}}, list)}}
}}

func newItem(tool mcp.Tool, h mcp.ToolHandler) Item {{
	return Item{{Tool: tool, Make: func() mcp.ToolHandler {{ return h }}}}
}}

func list(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {{
	return &mcp.CallToolResult{{}}, nil
}}

type Factory func(r *http.Request) (*Inventory, error)

type Handler struct{{ factory Factory }}

func factory() Factory {{
	{items}
}}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {{
	inv, err := h.factory(r)
	if err != nil {{
		return
	}}
	server := mcp.NewServer(&mcp.Implementation{{Name: "x"}}, nil)
	inv.Register(server)
	mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server {{ return server }}, nil).ServeHTTP(w, r)
}}

func main() {{
	http.ListenAndServe(":8080", &Handler{{factory: factory()}})
}}
"#
    )
}

const IN_PLACE: &str = "ps := schema.Properties[\"owner\"]\nif ps == nil { return }\nif ps.Extra == nil { ps.Extra = map[string]any{} }\nps.Extra[\"x-header\"] = \"owner\"";
const ONCE: &str = "items := all()\nreturn func(r *http.Request) (*Inventory, error) { return NewBuilder().SetItems(items).Build() }";

#[test]
fn a_table_behind_a_shallow_copy_of_what_was_made_at_the_start() {
    let found = races(&per_request(IN_PLACE, ONCE));
    assert_eq!(found, ["ps.Extra[\"x-header\"] = \"owner\""]);
}

#[test]
fn a_table_that_each_request_has_made_for_it() {
    let each = "return func(r *http.Request) (*Inventory, error) { return NewBuilder().SetItems(all()).Build() }";
    assert_eq!(races(&per_request(IN_PLACE, each)), [""; 0]);
}

#[test]
fn a_table_behind_a_shallow_copy_under_a_lock() {
    let locked = format!("mu.Lock()\ndefer mu.Unlock()\n{IN_PLACE}");
    assert_eq!(races(&per_request(&locked, ONCE)), [""; 0]);
}

#[test]
fn a_table_that_was_copied_before_it_is_changed() {
    let copied = "own := *schema\nown.Properties = maps.Clone(schema.Properties)\nps := *own.Properties[\"owner\"]\nextra := make(map[string]any)\nmaps.Copy(extra, ps.Extra)\nextra[\"x-header\"] = \"owner\"\nps.Extra = extra\nown.Properties[\"owner\"] = &ps\ntool.InputSchema = &own";
    assert_eq!(races(&per_request(copied, ONCE)), [""; 0]);
}

/// A store with routes `/read` and `/write`, whose bodies are given.
fn store(fields: &str, beside: &str, read: &str, write: &str) -> String {
    format!(
        r#"package main

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

var _ atomic.Int64
var _ = time.Now

type Usage struct {{
	Calls   int
	Buckets []int
}}

func (u *Usage) clone() *Usage {{
	c := *u
	c.Buckets = make([]int, len(u.Buckets))
	copy(c.Buckets, u.Buckets)
	return &c
}}

type Store struct {{
	mu sync.RWMutex
	{fields}
}}

{beside}

func main() {{
	s := &Store{{}}
	http.HandleFunc("/read", func(w http.ResponseWriter, r *http.Request) {{
		{read}
	}})
	http.HandleFunc("/write", func(w http.ResponseWriter, r *http.Request) {{
		{write}
	}})
	http.ListenAndServe(":8080", nil)
}}
"#
    )
}

/// What was counted, and what readers are given to look at: `given`.
fn published(given: &str, look: &str) -> String {
    store(
        "working *Counts\nsnap atomic.Pointer[Counts]",
        &format!(
            "type Counts struct {{ Tools map[string]*Usage; At time.Time; Version int }}
func (c *Counts) clone() *Counts {{
	out := &Counts{{Tools: make(map[string]*Usage, len(c.Tools)), At: c.At, Version: c.Version}}
	for k, u := range c.Tools {{ out.Tools[k] = u.clone() }}
	return out
}}
func (s *Store) apply(key string) {{
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.working.Tools[key]
	if u == nil {{
		u = &Usage{{}}
		s.working.Tools[key] = u
	}}
	u.Calls++
	s.snap.Store({given})
}}
func (s *Store) current() *Counts {{ return s.snap.Load() }}
func (c *Counts) total() int {{
	n := 0
	for _, u := range c.Tools {{ n += u.Calls }}
	return n
}}
func (c *Counts) reset() {{ c.Tools = map[string]*Usage{{}} }}"
        ),
        look,
        "s.apply(r.URL.Path)",
    )
}

#[test]
fn what_is_exchanged_as_a_whole_is_looked_at_without_a_lock() {
    let total = "fmt.Fprint(w, s.current().total())";
    assert_eq!(races(&published("s.working.clone()", total)), [""; 0]);
    // The same, but for what is put there.
    for given in ["s.working", "&Counts{Tools: s.working.Tools}"] {
        assert!(!races(&published(given, total)).is_empty(), "{given}");
    }
    // And who writes to it writes to everybody's.
    let reset = races(&published("s.working.clone()", "s.current().reset()"));
    assert_eq!(
        reset,
        ["func (c *Counts) reset() { c.Tools = map[string]*Usage{} }"]
    );
}

#[test]
fn a_struct_that_is_given_back_is_a_copy() {
    let current = |ty: &str, address: &str| {
        store(
            "last Usage",
            &format!(
                "func (s *Store) current() {ty} {{
	s.mu.RLock()
	defer s.mu.RUnlock()
	return {address}s.last
}}
func (s *Store) set(n int) {{
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last.Calls = n
}}"
            ),
            "fmt.Fprint(w, s.current().Calls)",
            "s.set(len(r.URL.Path))",
        )
    };
    assert_eq!(races(&current("Usage", "")), [""; 0]);
    assert_eq!(
        races(&current("*Usage", "&")),
        ["fmt.Fprint(w, s.current().Calls)"]
    );
}

#[test]
fn a_struct_that_a_variable_is_set_to_is_a_copy() {
    let show = |copy: &str| {
        store(
            "last *Usage",
            &format!(
                "func (s *Store) shown() *Usage {{
	{copy}
	if s.last != nil {{ shown = STARs.last }}
	shown.Calls = 0
	return AMPshown
}}"
            ),
            "fmt.Fprint(w, s.shown())",
            "s.shown()",
        )
    };
    let value = show("var shown Usage")
        .replace("STAR", "*")
        .replace("AMP", "&");
    assert_eq!(races(&value), [""; 0]);
    let pointer = show("var shown *Usage")
        .replace("STAR", "")
        .replace("AMP", "");
    assert_eq!(races(&pointer), ["shown.Calls = 0"]);
}

#[test]
fn a_lock_that_is_given_back_and_taken_again_is_held() {
    let connect = |again: &str| {
        store(
            "connecting bool\nslow bool",
            &format!(
                "func (s *Store) connect(path string) {{
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.connecting {{ return }}
	s.connecting = true
	defer func() {{
		s.connecting = false
	}}()
	if path == \"\" {{
		s.mu.Unlock()
		http.Get(path)
		{again}
	}}
}}"
            ),
            "s.connect(r.URL.Path)",
            "s.connect(r.URL.Path)",
        )
    };
    assert_eq!(races(&connect("s.mu.Lock()")), [""; 0]);
    assert_eq!(races(&connect("")), ["s.connecting = false"]);
}

/// A list, a table and an entry that are taken out of the store; `given_back` may undo it.
fn flush(take: &str) -> Vec<String> {
    races(&store(
        "pending []*Usage\ntable map[string]*Usage",
        &format!(
            "func (s *Store) add(key string) {{
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = append(s.pending, &Usage{{}})
	s.table[key] = &Usage{{}}
	s.table[key].Calls = 1
}}
func (s *Store) flush(key string) {{
	{take}
}}
func save(u *Usage) {{ fmt.Println(u.Calls) }}"
        ),
        "s.flush(r.URL.Path)",
        "s.add(r.URL.Path)",
    ))
}

#[test]
fn what_is_taken_out_is_the_takers_alone() {
    let list = |empty: &str| {
        flush(&format!(
            "s.mu.Lock()\nbatch := s.pending\n{empty}\ns.mu.Unlock()\nfor _, u := range batch {{\nu.Calls++\nsave(u)\n}}"
        ))
    };
    assert_eq!(list("s.pending = nil"), [""; 0]);
    assert_eq!(list(""), ["u.Calls++"]);
    let table = |empty: &str| {
        flush(&format!(
            "s.mu.Lock()\ntable := s.table\n{empty}\ns.mu.Unlock()\nfor _, u := range table {{\nsave(u)\n}}"
        ))
    };
    assert_eq!(table("s.table = make(map[string]*Usage)"), [""; 0]);
    assert!(!table("").is_empty());
    let entry = |empty: &str| {
        flush(&format!(
            "s.mu.Lock()\nu, ok := s.table[key]\n{empty}\ns.mu.Unlock()\nif !ok {{ return }}\nu.Calls = 0"
        ))
    };
    assert_eq!(entry("if ok { delete(s.table, key) }"), [""; 0]);
    assert_eq!(entry("delete(s.table, key)"), [""; 0]);
    assert_eq!(
        entry("if key == \"\" { delete(s.table, key) }"),
        ["u.Calls = 0"]
    );
    // It was there for others between the two.
    assert_eq!(
        entry("s.mu.Unlock()\ns.mu.Lock()\ndelete(s.table, key)"),
        ["u.Calls = 0"]
    );
}

#[test]
fn a_table_that_each_way_has_given_a_copy_anew() {
    let client = |otherwise: &str| {
        store(
            "global *Env",
            &format!(
                "type Env struct {{ Vars map[string]string }}
func (s *Store) client(path string) *Env {{
	own := *s.global
	if own.Vars == nil {{
		own.Vars = make(map[string]string)
	}} else {{
		{otherwise}
	}}
	own.Vars[path] = path
	return &own
}}"
            ),
            "fmt.Fprint(w, s.client(r.URL.Path))",
            "s.client(r.URL.Path)",
        )
    };
    let copied = "vars := make(map[string]string)\nfor k, v := range own.Vars { vars[k] = v }\nown.Vars = vars";
    assert_eq!(races(&client(copied)), [""; 0]);
    let same = "own.Vars = s.global.Vars";
    assert_eq!(races(&client(same)), ["own.Vars[path] = path"]);
}
