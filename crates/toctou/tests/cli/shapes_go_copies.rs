//! Go: which object is it? Copies that still lead to what everybody has, and copies that do not.

use crate::common::Project;

/// The data races of a program, by line's text.
fn races(source: &str) -> Vec<String> {
    let project = Project::new(&[("main.go", source), ("go.mod", "module example.com/x\n")]);
    let run = project.run("scan . --no-config --output json");
    assert!(matches!(run.code, Some(0 | 1)), "{}", run.seen());
    assert_eq!(run.json()["summary"]["skipped"], 0, "{}", run.stdout);
    let lines: Vec<&str> = source.lines().collect();
    let report = run.json();
    let findings = report["findings"].as_array().cloned().unwrap_or_default();
    findings
        .iter()
        .filter(|f| f["rule"] == "data-race")
        .map(|f| {
            lines[f["location"]["line"].as_u64().unwrap() as usize - 1]
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
