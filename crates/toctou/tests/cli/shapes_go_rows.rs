//! Rows in Go: what is scanned into a record, and statements whose text is put together.

use crate::shapes_go::{SIGNATURE, scan};

const ISSUE: &str = "type Issue struct { ID, Status string }\ntype Store struct { db *sql.DB }\n";

#[track_caller]
fn dangerous(declared: &str, body: &str) {
    let found = scan(&format!(
        "{ISSUE}{declared}\n{SIGNATURE} {{ {body}\nreturn nil, nil, nil }}"
    ));
    assert_eq!(found, ["db-check-then-write"], "{declared}\n{body}");
}

#[track_caller]
fn safe(declared: &str, body: &str) {
    let found = scan(&format!(
        "{ISSUE}{declared}\n{SIGNATURE} {{ {body}\nreturn nil, nil, nil }}"
    ));
    assert_eq!(found, Vec::<String>::new(), "{declared}\n{body}");
}

const READ: &str = "var i Issue
if err := s.db.QueryRowContext(ctx, \"SELECT id, status FROM issues WHERE parent = ? LIMIT 1\", in.Key).Scan(&i.ID, &i.Status); err != nil { return nil, nil, err }";

/// The fields of a record are the columns of the query, as variables are.
#[test]
fn a_column_in_a_field() {
    dangerous(
        "",
        &format!(
            "{READ}\nif i.Status == \"open\" {{ s.db.ExecContext(ctx, \"UPDATE issues SET status = 'taken' WHERE id = ?\", i.ID) }}"
        ),
    );
    safe(
        "",
        &format!(
            "{READ}\nif i.Status == \"open\" {{ s.db.ExecContext(ctx, \"UPDATE issues SET status = 'taken' WHERE id = ? AND status = 'open'\", i.ID) }}"
        ),
    );
    // Whether it was there is asked of the error, which says nothing about the columns.
    safe(
        "",
        &format!(
            "{READ}\ns.db.ExecContext(ctx, \"UPDATE issues SET seen = 1 WHERE id = ?\", i.ID)"
        ),
    );
}

#[test]
fn a_record_from_another_function() {
    let first = "func (s *Store) first(ctx context.Context) (*Issue, error) {
	var i Issue
	err := s.db.QueryRowContext(ctx, \"SELECT id, status FROM issues WHERE status = 'open' LIMIT 1\").Scan(&i.ID, &i.Status)
	if err != nil { return nil, err }
	return &i, nil
}";
    let take = |sql: &str| {
        format!(
            "i, err := s.first(ctx)\nif err != nil {{ return nil, nil, err }}\ns.db.ExecContext(ctx, \"{sql}\", i.ID)"
        )
    };
    dangerous(
        first,
        &take("UPDATE issues SET status = 'taken' WHERE id = ?"),
    );
    safe(
        first,
        &take("UPDATE issues SET status = 'taken' WHERE id = ? AND status = 'open'"),
    );
}

/// `Sprintf` makes a text, and `append` a list of parameters.
#[test]
fn a_statement_in_pieces() {
    let body = |condition: &str| {
        format!(
            "var status string
if err := s.db.QueryRowContext(ctx, fmt.Sprintf(\"SELECT status FROM %s WHERE id = ?\", issues), in.Key).Scan(&status); err != nil {{ return nil, nil, err }}
if status != \"open\" {{ return nil, nil, nil }}
args := []any{{\"taken\"}}
if in.Text != \"\" {{ args = append(args, in.Text) }}
args = append(args, in.Key)
query := fmt.Sprintf(\"UPDATE %s SET status = ?%s WHERE id = ?{condition}\", issues, more(in))
s.db.ExecContext(ctx, query, args...)"
        )
    };
    let declared = "const issues = \"issues\"\nfunc more(in In) string { if in.Text == \"\" { return \"\" }\nreturn \", text = ?\" }";
    dangerous(declared, &body(""));
    safe(declared, &body(" AND status = 'open'"));
}

/// Whoever takes the first of a list that passes a test has trusted the test.
#[test]
fn one_of_a_list_that_passed_a_test() {
    let children = "func (s *Store) children(ctx context.Context, id string) ([]*Issue, error) {
	rows, err := s.db.QueryContext(ctx, \"SELECT id, status FROM issues WHERE parent = ?\", id)
	if err != nil { return nil, err }
	defer rows.Close()
	var out []*Issue
	for rows.Next() {
		var i Issue
		if err := rows.Scan(&i.ID, &i.Status); err != nil { return nil, err }
		out = append(out, &i)
	}
	return out, nil
}";
    let take = |test: &str, sql: &str| {
        format!(
            "issues, err := s.children(ctx, in.Key)\nif err != nil {{ return nil, nil, err }}
var next *Issue
for _, i := range issues {{ if {test} {{ next = i\nbreak }} }}
if next == nil {{ return nil, nil, nil }}
s.db.ExecContext(ctx, \"{sql}\", next.ID)"
        )
    };
    let claim = "UPDATE issues SET status = 'taken' WHERE id = ?";
    dangerous(children, &take("i.Status == \"open\"", claim));
    safe(
        children,
        &take(
            "i.Status == \"open\"",
            "UPDATE issues SET status = 'taken' WHERE id = ? AND status = 'open'",
        ),
    );
    // What it was chosen by stays as it is.
    safe(children, &take("i.ID != in.Text", claim));
}
