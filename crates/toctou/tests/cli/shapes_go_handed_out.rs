//! Things of a Go server that leave the lock they were found under, and work that is begun or
//! ended beside it.

use crate::common::Project;

const HEAD: &str = r#"package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"sync"
	"sync/atomic"

	"github.com/google/uuid"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/singleflight"
)

var _ = json.Marshal
var _ = fmt.Sprint
var _ = http.MethodGet
var _ = os.Stat
var _ atomic.Int64
var _ singleflight.Group
var _ uuid.UUID

type In struct{ Key, Text string }
type Note struct{ Key, Text string }
"#;

const MAIN: &str = r#"
func main() {
	server := mcp.NewServer(&mcp.Implementation{Name: "x"}, nil)
	store := &Store{}
	mcp.AddTool(server, &mcp.Tool{Name: "handle"}, store.handle)
}
"#;

/// A server with a tool `handle`, whose body is given, and what stands beside it.
fn scan(fields: &str, beside: &str, body: &str) -> Vec<String> {
    scan_for("regular", fields, beside, body)
}

fn scan_for(persona: &str, fields: &str, beside: &str, body: &str) -> Vec<String> {
    let source = format!(
        "{HEAD}\ntype Store struct {{ {fields} }}\n{beside}\nfunc (s *Store) handle(ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {{\n{body}\nreturn nil, nil, nil\n}}\n{MAIN}"
    );
    let project = Project::new(&[("main.go", &source), ("go.mod", "module example.com/x\n")]);
    let run = project.run(&format!(
        "scan . --no-config --persona {persona} --output json"
    ));
    assert!(matches!(run.code, Some(0 | 1)), "{}", run.seen());
    assert_eq!(run.json()["summary"]["skipped"], 0, "{}", run.stdout);
    run.rules()
}

#[track_caller]
fn dangerous(rule: &str, fields: &str, beside: &str, body: &str) {
    let rules = scan(fields, beside, body);
    assert!(
        rules.iter().any(|r| r == rule),
        "{rule} is not in {rules:?}"
    );
}

/// A race by the letter, which nobody is harmed by.
#[track_caller]
fn withheld(fields: &str, beside: &str, body: &str) {
    safe(fields, beside, body);
    let rules = scan_for("pedantic", fields, beside, body);
    assert_eq!(rules, ["data-race"]);
}

#[track_caller]
fn safe(fields: &str, beside: &str, body: &str) {
    assert_eq!(scan(fields, beside, body), Vec::<String>::new());
}

const NOTES: &str = "mu sync.RWMutex; notes map[string]*Note";

/// A method that changes a note in its place, and one that gives notes out.
fn notes(list: &str) -> String {
    format!(
        "func (s *Store) update(key, text string) {{\ns.mu.Lock()\ndefer s.mu.Unlock()\nif n, ok := s.notes[key]; ok {{ n.Text = text }}\n}}\n{list}"
    )
}

fn list(of: &str, item: &str) -> String {
    notes(&format!(
        "type Hit struct {{ Note *Note; Copy Note; Score int }}\nfunc (s *Store) list() []{of} {{\ns.mu.RLock()\ndefer s.mu.RUnlock()\nvar out []{of}\nfor _, n := range s.notes {{\nif n.Key == \"\" {{ continue }}\n{item}\n}}\nreturn out\n}}\nfunc text(list []{of}) string {{\nout := \"\"\nfor _, n := range list {{ out += n.Text }}\nreturn out\n}}"
    ))
}

const READS: &str = "s.update(in.Key, in.Text)\nout := \"\"\nfor _, n := range s.list() { out += n.Text }\nreturn nil, out, nil";

#[test]
fn dangerous_list_of_what_others_change() {
    let list = list("*Note", "out = append(out, n)");
    dangerous("data-race", NOTES, &list, READS);
}

#[test]
fn dangerous_list_that_is_handed_on() {
    let list = list("*Note", "out = append(out, n)");
    let body = "s.update(in.Key, in.Text)\nreturn nil, text(s.list()), nil";
    dangerous("data-race", NOTES, &list, body);
}

#[test]
fn dangerous_list_that_is_written_out() {
    let list = list("*Note", "out = append(out, n)");
    let body = "s.update(in.Key, in.Text)\ndata, err := json.Marshal(s.list())\nreturn nil, string(data), err";
    dangerous("data-race", NOTES, &list, body);
}

#[test]
fn safe_list_of_copies() {
    let copies = list("*Note", "own := *n\nout = append(out, &own)");
    safe(NOTES, &copies, READS);
    safe(NOTES, &list("Note", "out = append(out, *n)"), READS);
    let made = list(
        "*Note",
        "out = append(out, &Note{Key: n.Key, Text: n.Text})",
    );
    safe(NOTES, &made, READS);
    let body = "s.update(in.Key, in.Text)\ndata, err := json.Marshal(s.list())\nreturn nil, string(data), err";
    safe(NOTES, &copies, body);
}

/// A note is found in the one place or the other.
#[test]
fn a_thing_of_one_of_two_places() {
    let find = |here: &str, there: &str| {
        notes(&format!(
            "func (s *Store) find(key string) (*Note, bool) {{\ns.mu.RLock()\ndefer s.mu.RUnlock()\nif n, ok := s.notes[key]; ok {{ {here} }}\nfor _, n := range s.old {{\nif n.Key == key {{ {there} }}\n}}\nreturn nil, false\n}}"
        ))
    };
    let fields = format!("{NOTES}; old []*Note");
    let body = "s.update(in.Key, in.Text)\nn, ok := s.find(in.Key)\nif !ok { return nil, nil, os.ErrNotExist }\nreturn nil, n.Text, nil";
    let given = "return n, true";
    dangerous("data-race", &fields, &find(given, given), body);
    let copied = "own := *n\nreturn &own, true";
    safe(&fields, &find(copied, copied), body);
}

/// It may have a lock of its own, and a struct is a copy.
#[test]
fn a_thing_of_one_of_two_places_with_its_lock() {
    let part = "type Part struct { mu sync.Mutex; text string }\nfunc (s *Store) part(key string) *Part {\ns.mu.RLock()\ndefer s.mu.RUnlock()\nif p, ok := s.parts[key]; ok { return p }\nif len(s.old) > 0 { return s.old[0] }\nreturn nil\n}";
    let fields = "mu sync.RWMutex; parts map[string]*Part; old []*Part";
    let set =
        "p := s.part(in.Key)\nif p == nil { return nil, nil, os.ErrNotExist }\np.text = in.Text";
    dangerous("data-race", fields, part, set);
    let locked = set.replace(
        "p.text = in.Text",
        "p.mu.Lock()\ndefer p.mu.Unlock()\np.text = in.Text",
    );
    safe(fields, part, &locked);
    let find = "func (s *Store) note(key string) (Note, error) {\ns.mu.RLock()\ndefer s.mu.RUnlock()\nif n, ok := s.known[key]; ok { return n, nil }\nif len(s.old) > 0 { return s.old[0], nil }\nreturn Note{}, os.ErrNotExist\n}\nfunc finish(n *Note, text string) { n.Text = text }";
    let fields = "mu sync.RWMutex; known map[string]Note; old []Note";
    let body = "n, err := s.note(in.Key)\nif err != nil { return nil, nil, err }\nfinish(&n, in.Text)\nreturn nil, n.Text, nil";
    safe(fields, find, body);
}

#[test]
fn a_table_that_is_written_out() {
    let set = "func (s *Store) set(key, text string) {\ns.mu.Lock()\ndefer s.mu.Unlock()\ns.texts[key] = text\n}\nfunc (s *Store) save() error {\ndata, err := json.Marshal(s.texts)\nif err != nil { return err }\nreturn os.WriteFile(\"/run/texts\", data, 0o600)\n}";
    let fields = "mu sync.RWMutex; texts map[string]string";
    let body = "s.set(in.Key, in.Text)\nreturn nil, nil, s.save()";
    dangerous("data-race", fields, set, body);
    let locked = set.replace(
        "data, err := json.Marshal(s.texts)",
        "s.mu.RLock()\ndefer s.mu.RUnlock()\ndata, err := json.Marshal(s.texts)",
    );
    safe(fields, &locked, body);
}

#[test]
fn safe_struct_that_is_given_back_by_value() {
    let find = notes(
        "func (s *Store) find(key string) (Note, bool) {\ns.mu.RLock()\ndefer s.mu.RUnlock()\nn, ok := s.notes[key]\nif !ok { return Note{}, false }\nreturn *n, true\n}",
    );
    let body = "s.update(in.Key, in.Text)\nn, ok := s.find(in.Key)\nif !ok { return nil, nil, os.ErrNotExist }\nreturn nil, n.Text, nil";
    safe(NOTES, &find, body);
}

const HITS: &str =
    "s.update(in.Key, in.Text)\nout := \"\"\nfor _, h := range s.list() { h.Score++\nout += ";

/// The list is of hits, so `text` is not for it.
fn hits(item: &str) -> String {
    list("*Hit", item).replace("out += n.Text", "out += fmt.Sprint(n.Score)")
}

#[test]
fn dangerous_pointer_within_what_is_listed() {
    let body = format!("{HITS}h.Note.Text }}\nreturn nil, out, nil");
    let hits = hits("out = append(out, &Hit{Note: n})");
    dangerous("data-race", NOTES, &hits, &body);
}

#[test]
fn safe_copy_within_what_is_listed() {
    let body = format!("{HITS}h.Copy.Text }}\nreturn nil, out, nil");
    safe(NOTES, &hits("out = append(out, &Hit{Copy: *n})"), &body);
}

#[test]
fn a_table_that_is_copied_holds_the_same_things() {
    let clients = "type Client struct { mu sync.RWMutex; config *Note }\nfunc (c *Client) set(n *Note) { c.mu.Lock(); defer c.mu.Unlock(); c.config = n }\nfunc (c *Client) get() *Note { c.mu.RLock(); defer c.mu.RUnlock(); return c.config }";
    let body = |read: &str| {
        format!(
            "s.mu.RLock()\nall := make(map[string]*Client, len(s.clients))\nfor key, c := range s.clients {{ all[key] = c }}\ns.mu.RUnlock()\nout := \"\"\nfor _, c := range all {{\nc.set(&Note{{Text: in.Text}})\nout += {read}.Text\n}}\nreturn nil, out, nil"
        )
    };
    let fields = "mu sync.RWMutex; clients map[string]*Client";
    dangerous("data-race", fields, clients, &body("c.config"));
    safe(fields, clients, &body("c.get()"));
}

#[test]
fn how_many_a_table_holds_is_a_part_of_it() {
    let fields = "mu sync.Mutex; names map[string]string; list []string";
    let late = "s.mu.Lock()\ns.names[in.Key] = in.Text\ns.mu.Unlock()\nreturn nil, LATE, nil";
    withheld(fields, "", &late.replace("LATE", "len(s.names)"));
    dangerous(
        "data-race",
        fields,
        "",
        &late.replace("LATE", "s.names[in.Text]"),
    );
    safe(
        fields,
        "",
        "s.mu.Lock()\ns.names[in.Key] = in.Text\nn := len(s.names)\ns.mu.Unlock()\nreturn nil, n, nil",
    );
}

#[test]
fn one_call_for_each_key_is_no_lock_of_the_table() {
    let fields = "mu sync.Mutex; names map[string]string; calls singleflight.Group";
    let body = |n: &str| {
        format!(
            "v, err, _ := s.calls.Do(in.Key, func() (any, error) {{\ns.mu.Lock()\ns.names[in.Key] = in.Text\n{n}\nfmt.Println(n)\nreturn in.Text, nil\n}})\nreturn nil, v, err"
        )
    };
    let late = "s.mu.Unlock()\nn := s.names[in.Key]";
    dangerous("data-race", fields, "", &body(late));
    safe(fields, "", &body("n := s.names[in.Key]\ns.mu.Unlock()"));
}

#[test]
fn a_handler_that_somebody_else_registers() {
    let routes = |read: &str| {
        format!(
            "var mu sync.Mutex\nvar pending = map[string]string{{}}\ntype Web struct{{}}\nvar web = &Web{{}}\nfunc (w *Web) Put() http.Handler {{\nreturn http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {{\nmu.Lock()\npending[r.FormValue(\"k\")] = \"x\"\nmu.Unlock()\n}})\n}}\nfunc (w *Web) Show() http.Handler {{\nreturn http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {{\n{read}\nfmt.Fprint(rw, v)\n}})\n}}"
        )
    };
    let bare = routes("v := pending[r.FormValue(\"k\")]");
    dangerous("data-race", "n int", &bare, "");
    let held = routes("mu.Lock()\nv := pending[r.FormValue(\"k\")]\nmu.Unlock()");
    safe("n int", &held, "");
}

#[test]
fn an_atomic_step_and_a_plain_one() {
    let fields = "mu sync.RWMutex; n int64";
    let plain = |step: &str| {
        format!(
            "atomic.AddInt64(&s.n, 1)\ns.mu.RLock()\n{step}\ns.mu.RUnlock()\nreturn nil, nil, nil"
        )
    };
    dangerous("data-race", fields, "", &plain("s.n++"));
    withheld(fields, "", &plain("fmt.Println(s.n)"));
    safe(
        fields,
        "",
        "atomic.AddInt64(&s.n, 1)\nreturn nil, atomic.LoadInt64(&s.n), nil",
    );
}

/// Set under the lock by `set`, and `used` without it.
fn words(ty: &str, set: &str, used: &str) -> (String, String) {
    let body = format!("s.mu.Lock()\n{set}\ns.mu.Unlock()\n{used}\nreturn nil, nil, nil");
    (format!("mu sync.Mutex; n {ty}; m *Note"), body)
}

#[test]
fn a_number_is_read_while_it_is_set() {
    let show = "fmt.Println(s.n)";
    let level = "type Level int\ntype Weights struct { a, b float64 }";
    for (ty, value) in [
        ("int", "len(in.Key)"),
        ("bool", "in.Key == \"\""),
        ("float64", "0.5"),
        ("Level", "Level(len(in.Key))"),
        ("Weights", "Weights{a: 1, b: 2}"),
    ] {
        let (fields, body) = words(ty, &format!("s.n = {value}"), show);
        withheld(&fields, level, &body);
    }
    // Of these a reader can see a half.
    for (ty, value) in [("string", "in.Key"), ("any", "in"), ("In", "in")] {
        let (fields, body) = words(ty, &format!("s.n = {value}"), show);
        dangerous("data-race", &fields, "", &body);
    }
    // One that is made from the last is lost.
    let (fields, body) = words("int", "s.n++", "s.n += 2");
    dangerous("data-race", &fields, "", &body);
}

#[test]
fn whether_there_is_one_is_asked_while_it_is_set() {
    let set = "s.m = &Note{Text: in.Text}";
    let (fields, body) = words("int", set, "if s.m != nil { fmt.Println(in.Key) }");
    withheld(&fields, "", &body);
    let (fields, body) = words("int", set, "if s.m != nil { fmt.Println(s.m.Text) }");
    dangerous("data-race", &fields, "", &body);
}

#[test]
fn a_channel_of_this_call_is_no_lock() {
    let send = "go func() { done <- os.Remove(in.Key) }()\nif err := <-done; err != nil { return nil, nil, err }\ndone <- nil\nif in.Text == \"\" { return nil, nil, os.ErrInvalid }\n<-done\nreturn nil, nil, nil";
    let fields = "n string; done chan error";
    safe(fields, "", &format!("done := make(chan error, 1)\n{send}"));
}

/// Work that is counted in, and a `Close` that waits for it.
const CLOSE: &str = "func (s *Store) Close() {\ns.mu.Lock()\ns.closed = true\ns.mu.Unlock()\ns.wg.Wait()\n}\nfunc (s *Store) save() {\ns.wg.Add(1)\ngo func() { defer s.wg.Done() }()\n}";

#[test]
fn work_is_counted_in_with_the_test() {
    let fields = "mu sync.Mutex; wg sync.WaitGroup; closed bool";
    let test = "s.mu.Lock()\nif s.closed { s.mu.Unlock(); return nil, nil, os.ErrClosed }";
    let late = format!("{test}\ns.mu.Unlock()\ns.save()");
    dangerous("close-races-call", fields, CLOSE, &late);
    let late = format!("{test}\ns.mu.Unlock()\ns.wg.Add(1)\ngo func() {{ defer s.wg.Done() }}()");
    dangerous("close-races-call", fields, CLOSE, &late);
    let at_once = format!("{test}\ns.save()\ns.mu.Unlock()");
    safe(fields, CLOSE, &at_once);
    let at_once =
        format!("{test}\ns.wg.Add(1)\ns.mu.Unlock()\ngo func() {{ defer s.wg.Done() }}()");
    safe(fields, CLOSE, &at_once);
}

/// A session ends with its call, or when all are shut down.
fn sessions(close: &str) -> (String, String) {
    let beside = format!(
        "type Session struct {{ done chan struct{{}}; once sync.Once }}\nfunc (s *Store) Shutdown() {{\ns.sessions.Range(func(key, value any) bool {{\nif x, ok := value.(*Session); ok {{ {close} }}\nreturn true\n}})\n}}"
    );
    let body = format!(
        "x := &Session{{done: make(chan struct{{}})}}\ns.sessions.Store(in.Key, x)\ndefer s.sessions.Delete(in.Key)\nselect {{\ncase <-ctx.Done():\n{close}\ncase <-x.done:\n}}"
    );
    (beside, body)
}

#[test]
fn a_channel_is_closed_once() {
    let fields = "sessions sync.Map";
    let (beside, body) = sessions("close(x.done)");
    dangerous("close-races-call", fields, &beside, &body);
    // That nobody else has its name does not keep others from finding it in the table.
    let named = body.replace("in.Key", "id");
    let named = format!("id := uuid.New().String()\n{named}");
    dangerous("close-races-call", fields, &beside, &named);
    let (beside, body) = sessions("x.once.Do(func() { close(x.done) })");
    safe(fields, &beside, &body);
}

#[test]
fn a_map_that_a_copy_was_given_is_its_own() {
    let fields = "mu sync.RWMutex; last *Config";
    let config = "type Config struct { Name string; Tags map[string]string }\nfunc (c *Config) clone() *Config {\nown := *c\nOWN\nfor k, v := range c.Tags { own.Tags[k] = v }\nreturn &own\n}\nfunc (c Config) with(name string) Config {\nout := c\nout.Name = name\nreturn out\n}";
    let body = "c := s.last.clone()\nd := s.last.with(in.Key)\nreturn nil, fmt.Sprint(len(s.last.Tags), c.Name, d.Name), nil";
    let made = config.replace("OWN", "own.Tags = make(map[string]string)");
    safe(fields, &made, body);
    dangerous("data-race", fields, &config.replace("OWN", ""), body);
}
