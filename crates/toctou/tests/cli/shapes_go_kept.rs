//! Files that a Go server keeps a copy of: loaded when it starts or by every call, parsed by hand
//! or by a library, and written back.

use crate::common::Project;

const HEAD: &str = r#"package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

var _ = json.Marshal
var _ = filepath.Join
var _ = strings.Split
var _ = time.Now

type Project struct {
	Name    string
	Made    time.Time
	Tasks   []string
}

type Store struct {
	mu    sync.RWMutex
	path  string
	notes map[string]string
}
"#;

const MAIN: &str = r#"
func main() {
	store, err := open("notes.json")
	if err != nil {
		return
	}
	s := server.NewMCPServer("x", "1")
	s.AddTool(mcp.NewTool("add"), func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if err := store.add(req.GetString("name", ""), req.GetString("text", "")); err != nil {
			return nil, err
		}
		return mcp.NewToolResultText("ok"), nil
	})
	server.ServeStdio(s)
}
"#;

#[track_caller]
fn expect(rules: &[&str], body: &str) {
    let source = format!("{HEAD}{body}{MAIN}");
    let project = Project::new(&[("main.go", &source), ("go.mod", "module example.com/x\n")]);
    let run = project.run("scan . --no-config --output json");
    assert!(matches!(run.code, Some(0 | 1)), "{}", run.seen());
    assert_eq!(run.json()["summary"]["skipped"], 0, "{}", run.stdout);
    assert_eq!(run.rules(), rules, "{}", run.stdout);
}

/// A store whose notes are loaded when it is opened, and what is saved when one is added.
fn loaded(open: &str, load: &str, saved: &str) -> String {
    format!(
        r#"
func open(path string) (*Store, error) {{
	{open}
}}
{load}
func (s *Store) add(name, text string) error {{
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes[name] = text
	data, err := json.Marshal({saved})
	if err != nil {{
		return err
	}}
	return os.WriteFile(s.path, data, 0o600)
}}
"#
    )
}

const BY_METHOD: &str = "s := &Store{path: path, notes: map[string]string{}}\n\treturn s, s.load()";

/// The method that loads it, with what becomes of the text.
fn load(rest: &str) -> String {
    format!(
        "func (s *Store) load() error {{\n\tdata, err := os.ReadFile(s.path)\n\tif err != nil {{\n\t\treturn err\n\t}}\n\t{rest}\n}}\n"
    )
}

#[test]
fn a_field_is_filled_by_its_address() {
    let filled = load("return json.Unmarshal(data, &s.notes)");
    expect(
        &["file-read-modify-write"],
        &loaded(BY_METHOD, &filled, "s.notes"),
    );
    // What is written is not what was loaded.
    expect(&[], &loaded(BY_METHOD, &filled, "name"));
}

#[test]
fn a_field_is_set_after_the_object_is_made() {
    let set = "s := &Store{path: path}\n\tdata, err := os.ReadFile(path)\n\tif err != nil {\n\t\treturn nil, err\n\t}\n\ts.notes = parse(data)\n\treturn s, nil";
    let parse = "func parse(data []byte) map[string]string {\n\tnotes := map[string]string{}\n\tfor _, line := range strings.Split(string(data), \"\\n\") {\n\t\tnotes[line] = line\n\t}\n\treturn notes\n}\n";
    expect(&["file-read-modify-write"], &loaded(set, parse, "s.notes"));
    let other = set.replace("s.notes = parse(data)", "s.notes = parse(nil)");
    expect(&[], &loaded(&other, parse, "s.notes"));
}

/// A project that is parsed by hand, with the time at which it was: it is saved by its name.
fn parsed(saved: &str) -> String {
    parsed_at(r#"filepath.Join(s.path, name+".md")"#, saved)
}

fn parsed_at(file: &str, saved: &str) -> String {
    format!(
        r#"
func open(path string) (*Store, error) {{ return &Store{{path: path}}, nil }}
func (s *Store) file(name string) string {{ return {file} }}
func (s *Store) load(name string) (*Project, error) {{
	s.mu.RLock()
	defer s.mu.RUnlock()
	data, err := os.ReadFile(s.file(name))
	if err != nil {{
		return nil, err
	}}
	p := parse(string(data))
	p.Name = name
	return p, nil
}}
func parse(text string) *Project {{
	p := &Project{{Tasks: []string{{}}, Made: time.Now()}}
	for _, line := range strings.Split(text, "\n") {{
		p.Tasks = append(p.Tasks, line)
	}}
	return p
}}
func (s *Store) save(p *Project) error {{
	s.mu.Lock()
	defer s.mu.Unlock()
	return os.WriteFile(s.file({saved}), []byte(strings.Join(p.Tasks, "\n")), 0o600)
}}
func (s *Store) add(name, text string) error {{
	p, err := s.load(name)
	if err != nil {{
		return err
	}}
	p.Tasks = append(p.Tasks, text)
	return s.save(p)
}}
"#
    )
}

#[test]
fn a_name_beside_a_time_is_no_new_name() {
    expect(&["lock-scope-too-narrow"], &parsed("p.Name"));
    // The time itself is.
    expect(&[], &parsed("p.Made.String()"));
}

#[test]
fn a_folder_is_put_before_the_name() {
    let file = r#"s.path + "/" + name + ".md""#;
    expect(&["lock-scope-too-narrow"], &parsed_at(file, "p.Name"));
    // Of another folder nothing is known.
    expect(&[], &parsed_at(r#"name + "/" + s.path"#, "p.Name"));
}
