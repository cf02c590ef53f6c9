//! Threads of a Go server: what is done before one is started and after its end is known, which
//! object it is started with, and whom it meets.

use crate::common::Project;

const HEAD: &str = r#"package main

import (
	"context"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

var _ sync.Mutex
var _ = time.Now

type In struct{ Key, Text string }
"#;

const MAIN: &str = r#"
func main() {
	server := mcp.NewServer(&mcp.Implementation{Name: "x"}, nil)
	store := NewStore()
	mcp.AddTool(server, &mcp.Tool{Name: "handle"}, store.handle)
}
"#;

/// A server with a tool `handle`, whose body is given. What stands beside it makes the store.
fn scan(beside: &str, body: &str) -> Vec<String> {
    let source = format!(
        "{HEAD}{beside}\nfunc (s *Store) handle(ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {{\n{body}\nreturn nil, nil, nil\n}}\n{MAIN}"
    );
    rules(&source)
}

fn rules(source: &str) -> Vec<String> {
    let project = Project::new(&[("main.go", source), ("go.mod", "module example.com/x\n")]);
    let run = project.run("scan . --no-config --output json");
    assert!(matches!(run.code, Some(0 | 1)), "{}", run.seen());
    assert_eq!(run.json()["summary"]["skipped"], 0, "{}", run.stdout);
    run.rules()
}

#[track_caller]
fn races(beside: &str, body: &str) {
    assert_eq!(scan(beside, body), ["data-race"], "{beside}{body}");
}

#[track_caller]
fn quiet(beside: &str, body: &str) {
    assert_eq!(scan(beside, body), Vec::<String>::new(), "{beside}{body}");
}

/// A watcher that a tool starts, if none runs.
fn watcher(work: &str) -> String {
    format!(
        "type Store struct {{ mu sync.Mutex; running bool; every time.Duration; turns int }}
func NewStore() *Store {{ return &Store{{}} }}
func (s *Store) watch() {{
{work}
}}
"
    )
}

const START: &str = "s.mu.Lock()
	defer s.mu.Unlock()
	if s.running { return nil, nil, nil }
	s.running = true
	s.every = time.Second
	go s.watch()";

/// It was set before the thread began, which looks at it once.
#[test]
fn what_a_thread_looks_at_first_was_set_before_it_was_started() {
    quiet(
        &watcher("t := time.NewTicker(s.every); for range t.C { }"),
        START,
    );
    // The next one that is started sets it while an old one still runs.
    races(&watcher("for { time.Sleep(s.every) }"), START);
}

#[test]
fn a_thread_that_a_flag_lets_start_once_meets_no_other_of_its_kind() {
    let counts = watcher("for { s.turns++; time.Sleep(1) }");
    quiet(&counts, START);
    races(&counts, "go s.watch()");
    // Nobody keeps two from finding the flag unset.
    let unlocked = START
        .replace("s.mu.Lock()\n", "")
        .replace("defer s.mu.Unlock()\n", "");
    assert!(scan(&counts, &unlocked).contains(&"data-race".to_owned()));
}

/// Sessions, each with a thread.
fn sessions(find: &str) -> String {
    format!(
        "type Session struct {{ turns int }}
type Store struct {{ mu sync.Mutex; sessions map[string]*Session; one *Session }}
func NewStore() *Store {{ return &Store{{sessions: map[string]*Session{{}}, one: &Session{{}}}} }}
func (x *Session) work() {{ for {{ x.turns++; time.Sleep(1) }} }}
func (x *Session) start() {{ go x.work() }}
func (s *Store) open(key string) *Session {{
	{find}
	return x
}}
"
    )
}

#[test]
fn a_thread_that_has_an_object_of_its_own_meets_no_other_of_its_kind() {
    let made = "x := &Session{}; s.mu.Lock(); s.sessions[key] = x; s.mu.Unlock(); x.start()";
    quiet(&sessions(made), "s.open(in.Key)");
    races(&sessions("x := s.one; x.start()"), "s.open(in.Key)");
    // Somebody else finds it and changes it.
    let reset = "s.open(in.Key)
	s.mu.Lock()
	x := s.sessions[in.Text]
	s.mu.Unlock()
	x.turns = 0";
    races(&sessions(made), reset);
}

/// A thread that fills a list, and a tool that ends it.
fn filled(wait: &str) -> String {
    format!(
        "type Store struct {{ mu sync.Mutex; wg sync.WaitGroup; stop chan struct{{}}; list []string }}
func NewStore() *Store {{
	s := &Store{{stop: make(chan struct{{}})}}
	s.wg.Add(1)
	go s.fill()
	return s
}}
func (s *Store) fill() {{
	defer s.wg.Done()
	for {{
		select {{ case <-s.stop: return; default: }}
		s.list = append(s.list, \"x\")
	}}
}}
func (s *Store) end() {{ {wait}; s.list = nil }}
"
    )
}

#[test]
fn who_has_waited_for_a_thread_does_not_meet_it() {
    let body = "s.mu.Lock(); defer s.mu.Unlock(); s.end()";
    quiet(&filled("s.wg.Wait()"), body);
    races(&filled(""), body);
}

/// The server's own thread, which no client starts, meets those of clients.
#[test]
fn a_thread_of_the_server_meets_calls() {
    let sweep = |lock: &str| {
        format!(
            "type Store struct {{ mu sync.Mutex; seen map[string]time.Time }}
func NewStore() *Store {{ s := &Store{{seen: map[string]time.Time{{}}}}; go s.sweep(); return s }}
func (s *Store) sweep() {{
	for {{
		{lock}
		for k := range s.seen {{ delete(s.seen, k) }}
		s.mu.Unlock()
	}}
}}
"
        )
    };
    races(
        &sweep("").replace("s.mu.Unlock()", ""),
        "s.seen[in.Key] = time.Now()",
    );
    quiet(
        &sweep("s.mu.Lock()"),
        "s.mu.Lock(); s.seen[in.Key] = time.Now(); s.mu.Unlock()",
    );
}

#[test]
fn a_guard_against_nothing_in_a_field_that_is_always_filled() {
    let clock = |made: &str| {
        format!(
            "type Log struct {{ name string }}
type Store struct {{ now func() time.Time; log *Log; seen map[string]string }}
func newStore(log *Log) *Store {{
	if log == nil {{ log = &Log{{name: \"x\"}} }}
	return {made}
}}
func NewStore() *Store {{ return newStore(nil) }}
"
        )
    };
    let body = "if s.now == nil { s.now = time.Now }
	if s.log == nil { s.log = &Log{} }
	if s.seen == nil { s.seen = map[string]string{} }
	_ = s.now().String() + s.log.name + s.seen[in.Key]";
    let full = "&Store{now: time.Now, log: log, seen: map[string]string{}}";
    quiet(&clock(full), body);
    races(&clock("&Store{log: log, seen: map[string]string{}}"), body);
    // It is emptied again.
    let emptied = format!("{body}\n\ts.seen = nil");
    races(&clock(full), &emptied);
}

/// Handlers that are registered by a function of the program, which wraps them.
fn wrapped(put: &str) -> String {
    format!(
        "{HEAD}
type Store struct {{ mu sync.Mutex; seen map[string]string }}
type Handler func(ctx context.Context, in In) (string, error)
func (s *Store) put(ctx context.Context, in In) (string, error) {{ {put}; return \"\", nil }}
func register(server *mcp.Server, name string, handler Handler) {{
	mcp.AddTool(server, &mcp.Tool{{Name: name}}, func(ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {{
		text, err := handler(ctx, in)
		return nil, text, err
	}})
}}
func main() {{
	server := mcp.NewServer(&mcp.Implementation{{Name: \"x\"}}, nil)
	store := &Store{{seen: map[string]string{{}}}}
	register(server, \"put\", store.put)
}}
"
    )
}

#[test]
fn what_a_handler_wraps_is_run_by_clients() {
    assert_eq!(rules(&wrapped("s.seen[in.Key] = in.Text")), ["data-race"]);
    let locked = "s.mu.Lock(); defer s.mu.Unlock(); s.seen[in.Key] = in.Text";
    assert_eq!(rules(&wrapped(locked)), Vec::<String>::new());
}

/// Tools with a name and a method, in a list.
fn listed(run: &str) -> String {
    format!(
        "{HEAD}
type Tool interface {{ Name() string; Run(ctx context.Context, in In) (string, error) }}
type Put struct {{ mu sync.Mutex; seen map[string]string }}
func (p *Put) Name() string {{ return \"put\" }}
func (p *Put) Run(ctx context.Context, in In) (string, error) {{ {run}; return \"\", nil }}
func main() {{
	server := mcp.NewServer(&mcp.Implementation{{Name: \"x\"}}, nil)
	tools := []Tool{{&Put{{seen: map[string]string{{}}}}}}
	for _, t := range tools {{
		tool := t
		mcp.AddTool(server, &mcp.Tool{{Name: tool.Name()}}, func(ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {{
			text, err := tool.Run(ctx, in)
			return nil, text, err
		}})
	}}
}}
"
    )
}

#[test]
fn what_a_handler_of_a_list_runs_is_run_by_clients() {
    assert_eq!(rules(&listed("p.seen[in.Key] = in.Text")), ["data-race"]);
    let locked = "p.mu.Lock(); defer p.mu.Unlock(); p.seen[in.Key] = in.Text";
    assert_eq!(rules(&listed(locked)), Vec::<String>::new());
}

/// Something that is put under a lock, and ended by a helper that is given where it lies.
fn ended(helper: &str) -> String {
    format!(
        "type Job struct {{ pid int; cmd string }}
type Store struct {{ mu sync.Mutex; job *Job }}
func NewStore() *Store {{ return &Store{{}} }}
func (s *Store) begin(text string) {{ s.mu.Lock(); s.job = &Job{{cmd: text}}; s.mu.Unlock() }}
{helper}
"
    )
}

#[test]
fn to_hand_on_where_something_lies_is_not_to_look_at_it() {
    let body = "s.begin(in.Text)\n\ts.end(&s.job)";
    let locked = "func (s *Store) end(at **Job) { s.mu.Lock(); job := *at; *at = nil; s.mu.Unlock(); _ = job }";
    quiet(&ended(locked), body);
    // What lies there is looked at.
    let given = "func (s *Store) end(job *Job) { s.mu.Lock(); defer s.mu.Unlock(); _ = job }";
    races(&ended(given), "s.begin(in.Text)\n\ts.end(s.job)");
}
