use super::*;

fn one(text: &str) -> Statement {
    let mut statements = parse(text).unwrap_or_else(|| panic!("not read: {text}"));
    assert_eq!(statements.len(), 1, "{text}: {statements:?}");
    statements.remove(0)
}

fn condition(column: &str, operand: Operand, equality: bool) -> Condition {
    Condition {
        column: column.into(),
        operand,
        equality,
    }
}

fn assignment(column: &str, value: Value) -> Assignment {
    Assignment {
        column: column.into(),
        value,
    }
}

fn literal(text: &str) -> Operand {
    Operand::Literal(text.into())
}

#[test]
fn select() {
    let s = one("SELECT id, u.Balance FROM public.\"Users\" u WHERE u.id = $2 AND active = 1");
    assert_eq!(s.kind, Kind::Select);
    assert_eq!(s.tables, ["users"]);
    assert_eq!(s.columns, ["id", "balance"]);
    assert_eq!(
        s.conditions,
        [
            condition("id", Operand::Param(1), true),
            condition("active", literal("1"), true)
        ]
    );
    assert!(!s.aggregate && !s.locking);
    assert_eq!(one("select * from `t`").columns, ["*"]);
}

#[test]
fn aggregates() {
    assert!(one("SELECT COUNT(*) AS n FROM calls WHERE user_id = ?").aggregate);
    assert!(one("SELECT MAX(id) + 1 FROM t").aggregate);
    let exists = one("SELECT EXISTS(SELECT 1 FROM t WHERE a = ?)");
    assert!(exists.aggregate);
    assert_eq!(exists.tables, ["t"]);
    assert_eq!(exists.conditions.len(), 1);
    assert_eq!(exists.conditions[0].column, "a");
    assert!(!one("SELECT lower(a) FROM t").aggregate);
}

#[test]
fn parameters_in_every_notation() {
    let s = one("SELECT * FROM t WHERE a = ? AND b = ? AND c = ?");
    let operands: Vec<_> = s.conditions.into_iter().map(|c| c.operand).collect();
    assert_eq!(
        operands,
        [Operand::Param(0), Operand::Param(1), Operand::Param(2)]
    );
    let s = one("SELECT * FROM t WHERE a = ?2 AND b = :name AND c = @other AND d = $third");
    let operands: Vec<_> = s.conditions.into_iter().map(|c| c.operand).collect();
    assert_eq!(
        operands,
        [
            Operand::Param(1),
            Operand::Named("name".into()),
            Operand::Named("other".into()),
            Operand::Named("third".into())
        ]
    );
    let s = one("UPDATE t SET a = $1::int, b = ? WHERE id = $2");
    assert_eq!(
        s.assignments[0],
        assignment("a", Value::Operand(Operand::Param(0)))
    );
}

#[test]
fn text_in_strings_and_comments_is_no_parameter() {
    let s = one("SELECT * FROM t -- why? :x\nWHERE a = 'what?' AND /* ? */ b = ?");
    assert_eq!(s.conditions[1].operand, Operand::Param(0));
}

#[test]
fn json_operators_of_postgres_are_no_parameters() {
    let s = one("SELECT * FROM t WHERE data ? 'k' AND id = $1");
    assert!(
        s.conditions
            .contains(&condition("id", Operand::Param(0), true))
    );
}

#[test]
fn update() {
    let s = one(
        "UPDATE accounts SET balance = balance - ?, updated_at = now() WHERE id = ? AND balance >= ?",
    );
    assert_eq!(s.kind, Kind::Update);
    assert_eq!(s.tables, ["accounts"]);
    assert_eq!(
        s.assignments,
        [
            assignment("balance", Value::Relative),
            assignment("updated_at", Value::Operand(Operand::Now))
        ]
    );
    assert_eq!(
        s.conditions,
        [
            condition("id", Operand::Param(1), true),
            condition("balance", Operand::Param(2), false)
        ]
    );
}

#[test]
fn values() {
    let s = one(
        "UPDATE t SET a = COALESCE(?, a), b = a + ?, c = 'x', d = datetime('now'), e = upper(?)",
    );
    assert_eq!(
        s.assignments,
        [
            assignment("a", Value::Operand(Operand::Param(0))),
            assignment(
                "b",
                Value::Expression(vec![Operand::Column("a".into()), Operand::Param(1)])
            ),
            assignment("c", Value::Operand(literal("x"))),
            assignment("d", Value::Operand(Operand::Now)),
            assignment("e", Value::Operand(Operand::Param(2))),
        ]
    );
}

#[test]
fn conditions() {
    let s = one("SELECT * FROM t WHERE (a = ? OR b = ?) AND (c = ?)");
    assert_eq!(
        s.conditions,
        [
            condition("a", Operand::Param(0), false),
            condition("b", Operand::Param(1), false),
            condition("c", Operand::Param(2), true)
        ]
    );
    let s = one(
        "UPDATE u SET messages_stored = messages_stored + ? WHERE id = ? AND messages_stored + ? <= ?",
    );
    assert!(
        s.conditions
            .contains(&condition("messages_stored", Operand::Param(3), false))
    );
    let s = one(
        "SELECT * FROM t WHERE used_at IS NULL AND NOT revoked AND kind IN ('a','b') AND id IN (?) AND ok",
    );
    assert_eq!(
        s.conditions,
        [
            condition("used_at", literal("null"), true),
            condition("revoked", literal("false"), true),
            condition("kind", Operand::Other, false),
            condition("id", Operand::Param(0), true),
            condition("ok", literal("true"), true),
        ]
    );
    let s = one(
        "SELECT * FROM t WHERE (a, b) = (?, ?) AND lower(email) = lower(?) AND expires_at > now() AND x BETWEEN ? AND ? AND y LIKE ?",
    );
    assert_eq!(
        s.conditions,
        [
            condition("a", Operand::Param(0), true),
            condition("b", Operand::Param(1), true),
            condition("email", Operand::Param(2), true),
            condition("expires_at", Operand::Now, false),
            condition("x", Operand::Param(3), false),
            condition("y", Operand::Param(5), false),
        ]
    );
    assert!(one("SELECT * FROM t WHERE 1 = 1").conditions.is_empty());
    assert_eq!(
        one("SELECT * FROM t WHERE id = ANY($1)").conditions,
        [condition("id", Operand::Param(0), false)]
    );
}

#[test]
fn insert() {
    let s = one("INSERT INTO t (a, b) VALUES (?, 'x'), (?, 'y') RETURNING id");
    assert_eq!(s.kind, Kind::Insert);
    assert_eq!(s.columns, ["a", "b"]);
    assert_eq!(
        s.assignments,
        [
            assignment("a", Value::Operand(Operand::Param(0))),
            assignment("b", Value::Operand(literal("x")))
        ]
    );
    assert!(s.returning);
    assert_eq!(s.conflict, Conflict::None);
}

#[test]
fn conflicts() {
    let cases = [
        ("INSERT OR REPLACE INTO t (a) VALUES (?)", Conflict::Replace),
        ("REPLACE INTO t (a) VALUES (?)", Conflict::Replace),
        ("INSERT OR IGNORE INTO t (a) VALUES (?)", Conflict::Ignore),
        ("INSERT IGNORE INTO t (a) VALUES (?)", Conflict::Ignore),
        (
            "INSERT INTO t (a) VALUES ($1) ON CONFLICT DO NOTHING",
            Conflict::Ignore,
        ),
        (
            "INSERT INTO t (a) VALUES ($1) ON CONFLICT (a) DO NOTHING RETURNING *",
            Conflict::Ignore,
        ),
        (
            "INSERT INTO t (a, n) VALUES (?, 1) ON CONFLICT(a) DO UPDATE SET n = n + 1",
            Conflict::Update,
        ),
        (
            "INSERT INTO t (a, n) VALUES (?, 1) ON DUPLICATE KEY UPDATE n = n + 1",
            Conflict::Update,
        ),
        (
            "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = s.n WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, s.n)",
            Conflict::Update,
        ),
    ];
    for (text, conflict) in cases {
        let s = one(text);
        assert_eq!((s.kind, s.conflict), (Kind::Insert, conflict), "{text}");
        assert_eq!(s.tables[0], "t", "{text}");
    }
    let s = one(
        "INSERT INTO t (a, n) VALUES (?, ?) ON CONFLICT(a) DO UPDATE SET n = excluded.n, m = m + excluded.n WHERE t.v < excluded.v",
    );
    assert_eq!(
        s.on_conflict,
        [
            assignment("n", Value::Operand(Operand::Param(1))),
            assignment("m", Value::Relative)
        ]
    );
    assert_eq!(s.conditions[0].column, "v");
    let s = one("INSERT INTO t (a, n) VALUES (?, ?) ON DUPLICATE KEY UPDATE n = VALUES(n)");
    assert_eq!(
        s.on_conflict,
        [assignment("n", Value::Operand(Operand::Param(1)))]
    );
}

#[test]
fn guarded_inserts() {
    let s = one(
        "INSERT INTO bookings (room, day) SELECT ?, ? WHERE NOT EXISTS (SELECT 1 FROM bookings WHERE room = ? AND day = ?)",
    );
    assert_eq!(s.kind, Kind::Insert);
    assert!(s.has_subquery_guard);
    assert_eq!(s.tables, ["bookings"]);
    assert_eq!(
        s.assignments[1],
        assignment("day", Value::Operand(Operand::Param(1)))
    );
    let s =
        one("INSERT INTO hits (u) SELECT $1 WHERE (SELECT count(*) FROM hits WHERE u = $1) < $2");
    assert!(s.has_subquery_guard);
    assert!(one("UPDATE t SET a = 1 WHERE id = (SELECT id FROM t WHERE a = 0 LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING *").locking);
}

#[test]
fn delete() {
    let s = one("DELETE FROM tokens WHERE token = ? RETURNING user_id");
    assert_eq!(s.kind, Kind::Delete);
    assert_eq!(s.tables, ["tokens"]);
    assert!(s.returning);
    assert_eq!(s.conditions, [condition("token", Operand::Param(0), true)]);
    assert_eq!(one("TRUNCATE TABLE t").kind, Kind::Delete);
}

#[test]
fn row_locks() {
    assert!(one("SELECT * FROM jobs WHERE id = $1 FOR UPDATE").locking);
    assert!(one("SELECT * FROM jobs FOR UPDATE SKIP LOCKED LIMIT 1").locking);
    assert!(one("SELECT * FROM jobs LIMIT 1 FOR UPDATE SKIP LOCKED").locking);
    assert!(one("SELECT * FROM jobs WHERE id = ? FOR SHARE").locking);
    assert!(one("SELECT * FROM jobs WHERE id = ? FOR NO KEY UPDATE").locking);
}

#[test]
fn transactions() {
    let begin = |immediate, serializable| Kind::Begin {
        immediate,
        serializable,
    };
    let cases = [
        ("BEGIN", begin(false, false)),
        ("begin;", begin(false, false)),
        ("BEGIN TRANSACTION", begin(false, false)),
        ("START TRANSACTION", begin(false, false)),
        ("BEGIN IMMEDIATE", begin(true, false)),
        ("BEGIN EXCLUSIVE TRANSACTION", begin(true, false)),
        ("BEGIN DEFERRED", begin(false, false)),
        ("BEGIN ISOLATION LEVEL SERIALIZABLE", begin(false, true)),
        (
            "BEGIN TRANSACTION ISOLATION LEVEL SERIALIZABLE READ WRITE",
            begin(false, true),
        ),
        (
            "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
            begin(false, true),
        ),
        (
            "SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
            begin(false, false),
        ),
        ("COMMIT", Kind::Commit),
        ("COMMIT;", Kind::Commit),
        ("END", Kind::Commit),
        ("ROLLBACK", Kind::Rollback),
        ("ROLLBACK TO SAVEPOINT a", Kind::Other),
        ("SAVEPOINT a", Kind::Other),
        ("PRAGMA journal_mode = WAL", Kind::Other),
    ];
    for (text, kind) in cases {
        assert_eq!(one(text).kind, kind, "{text}");
    }
}

#[test]
fn locks() {
    let s = one("SELECT pg_advisory_xact_lock(hashtext($1))");
    assert_eq!(s.kind, Kind::Lock);
    assert_eq!(
        s.conditions,
        [condition("pg_advisory_xact_lock", Operand::Param(0), false)]
    );
    assert_eq!(
        one("SELECT pg_try_advisory_lock(42) AS ok").kind,
        Kind::Lock
    );
    assert_eq!(one("SELECT pg_advisory_unlock($1)").kind, Kind::Unlock);
    assert_eq!(one("SELECT GET_LOCK(?, 10)").kind, Kind::Lock);
    let s = one("LOCK TABLE accounts IN EXCLUSIVE MODE");
    assert_eq!(
        (s.kind, s.tables),
        (Kind::Lock, vec!["accounts".to_owned()])
    );
}

#[test]
fn constraints() {
    let s = one(
        "CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY AUTOINCREMENT, email TEXT NOT NULL UNIQUE, a TEXT, b TEXT, created_at DATETIME DEFAULT CURRENT_TIMESTAMP, UNIQUE(a, b))",
    );
    assert_eq!(s.kind, Kind::CreateTable);
    assert_eq!(s.tables, ["t"]);
    assert_eq!(s.unique, [vec!["id"], vec!["email"], vec!["a", "b"]]);
    let s = one("CREATE UNIQUE INDEX IF NOT EXISTS i ON t (a, lower(b))");
    assert_eq!(
        (s.kind, s.unique),
        (
            Kind::CreateIndex,
            vec![vec!["a".to_owned(), "b".to_owned()]]
        )
    );
    assert!(one("CREATE INDEX i ON t (a)").unique.is_empty());
    assert_eq!(
        one("CREATE UNIQUE INDEX i ON t (a) WHERE a IS NOT NULL").unique,
        [vec!["a"]]
    );
    assert!(
        one("CREATE UNIQUE INDEX i ON t (a) WHERE b IS NULL")
            .unique
            .is_empty()
    );
    assert_eq!(
        one("ALTER TABLE t ADD CONSTRAINT c UNIQUE (a)").unique,
        [vec!["a"]]
    );
}

#[test]
fn common_table_expressions() {
    let s = one(
        "WITH next AS (SELECT id FROM jobs WHERE state = 'new' LIMIT 1 FOR UPDATE SKIP LOCKED) UPDATE jobs SET state = 'busy' FROM next WHERE jobs.id = next.id RETURNING jobs.*",
    );
    assert_eq!(s.kind, Kind::Update);
    assert_eq!(s.tables, ["jobs"]);
    assert!(s.locking && s.returning);
    let s = one("WITH u AS (UPDATE t SET a = a + 1 WHERE id = $1 RETURNING *) SELECT * FROM u");
    assert_eq!((s.kind, s.tables), (Kind::Update, vec!["t".to_owned()]));
    let both = parse(
        "WITH gone AS (DELETE FROM a WHERE id = $1 RETURNING *) INSERT INTO b SELECT * FROM gone",
    )
    .expect("read");
    let kinds: Vec<_> = both.iter().map(|s| s.kind).collect();
    assert_eq!(kinds, [Kind::Delete, Kind::Insert]);
    let s = one("WITH recent AS (SELECT * FROM hits) SELECT count(*) FROM recent");
    assert_eq!(s.tables, ["hits"]);
}

#[test]
fn several_statements() {
    let all =
        parse("CREATE TABLE a (id INT); CREATE INDEX i ON a (id); PRAGMA x = 1; FROBNICATE y;")
            .expect("read");
    let kinds: Vec<_> = all.iter().map(|s| s.kind).collect();
    assert_eq!(
        kinds,
        [
            Kind::CreateTable,
            Kind::CreateIndex,
            Kind::Other,
            Kind::Other
        ]
    );
}

#[test]
fn a_triggers_body_does_not_run_now() {
    let all = parse("CREATE TRIGGER x AFTER INSERT ON t BEGIN UPDATE n SET c = CASE WHEN 1 THEN 2 ELSE 3 END; DELETE FROM m; END; DELETE FROM z").expect("read");
    let kinds: Vec<_> = all.iter().map(|s| s.kind).collect();
    assert_eq!(kinds, [Kind::Other, Kind::Delete]);
    assert_eq!(all[1].tables, ["z"]);
}

#[test]
fn holes() {
    let s =
        one("SELECT * FROM toctou_hole_0 WHERE id = toctou_hole_1 AND name LIKE '%toctou_hole_2%'");
    assert_eq!(s.tables, ["toctou_hole_0"]);
    assert_eq!(s.conditions[0].operand, Operand::Hole(1));
    assert_eq!(s.conditions[1].operand, Operand::Hole(2));
    let s = one("UPDATE t SET toctou_hole_0 WHERE id = ?");
    assert_eq!(
        s.assignments,
        [assignment(
            "toctou_hole_0",
            Value::Operand(Operand::Hole(0))
        )]
    );
    let s = one("UPDATE t SET a = ?, toctou_hole_0 WHERE id = ?");
    assert_eq!(s.assignments.len(), 2);
    let s = one("SELECT * FROM t WHERE toctou_hole_0");
    assert_eq!(
        s.conditions,
        [condition("toctou_hole_0", Operand::Hole(0), false)]
    );
    let s = one(
        "SELECT * FROM t WHERE a = ? AND toctou_hole_0 ORDER BY b toctou_hole_1 LIMIT toctou_hole_2",
    );
    assert_eq!(s.conditions.len(), 2);
    assert_eq!(one("SELECT * FROM t toctou_hole_0").tables, ["t"]);
    assert_eq!(
        one("SELECT * FROM t WHERE a = ? toctou_hole_0")
            .conditions
            .len(),
        1
    );
    assert_eq!(
        one("SELECT * FROM t WHERE id IN (toctou_hole_0)").conditions[0].operand,
        Operand::Hole(0)
    );
    assert_eq!(
        one("SELECT * FROM t WHERE id IN toctou_hole_0").conditions[0].operand,
        Operand::Hole(0)
    );
    assert_eq!(one("INSERT INTO t toctou_hole_0").kind, Kind::Insert);
    assert_eq!(
        one("INSERT INTO t (a, b) VALUES toctou_hole_0").kind,
        Kind::Insert
    );
    assert_eq!(
        one("INSERT INTO t (toctou_hole_0) VALUES (toctou_hole_1)").columns,
        ["toctou_hole_0"]
    );
    assert_eq!(
        one("INSERT INTO toctou_hole_0 (a) VALUES (?)").tables,
        ["toctou_hole_0"]
    );
    assert_eq!(
        one("SELECT toctou_hole_0 FROM toctou_hole_1_users").tables,
        ["toctou_hole_1_users"]
    );
    assert_eq!(
        one("DELETE FROM \"toctou_hole_0\" WHERE a = toctou_hole_1").tables,
        ["toctou_hole_0"]
    );
}

#[test]
fn parameters_of_python() {
    let s = one("UPDATE t SET a = %s, b=%(b)s WHERE id = %s");
    assert_eq!(
        s.assignments,
        [
            assignment("a", Value::Operand(Operand::Param(0))),
            assignment("b", Value::Operand(Operand::Named("b".to_owned()))),
        ]
    );
    assert_eq!(s.conditions[0], condition("id", Operand::Param(1), true));
    assert_eq!(one("SELECT a FROM t WHERE a%s = 1 LIMIT 1").tables, ["t"]);
    assert_eq!(one("INSERT INTO t (a) VALUES (%s)").columns, ["a"]);
}

#[test]
fn holes_as_columns() {
    let s = one(
        "UPDATE toctou_hole_0 SET toctou_hole_1 = toctou_hole_1 + 1 WHERE toctou_hole_2 = toctou_hole_3",
    );
    assert_eq!(
        s.assignments,
        [assignment("toctou_hole_1", Value::Relative)]
    );
    assert_eq!(
        s.conditions,
        [condition("toctou_hole_2", Operand::Hole(3), true)]
    );
    let s = one("UPDATE t SET toctou_hole_0 = ? WHERE id = ?");
    assert_eq!(s.conditions, [condition("id", Operand::Param(1), true)]);
}

#[test]
fn parameters_behind_a_list_are_counted_from_the_end() {
    for text in [
        "UPDATE t SET toctou_hole_0 WHERE id = ?",
        "DELETE FROM t WHERE a IN (toctou_hole_0) AND id = ?",
    ] {
        let conditions = one(text).conditions;
        let id = conditions.iter().find(|c| c.column == "id").expect("id");
        assert_eq!(*id, condition("id", Operand::Last(0), true), "{text}");
    }
    let s = one("UPDATE t SET a = ?, toctou_hole_0 WHERE id = ? AND name = ?");
    let operands: Vec<&Operand> = s.conditions.iter().map(|c| &c.operand).collect();
    assert_eq!(operands, [&Operand::Last(1), &Operand::Last(0)]);
    // Nor from the end, where another list follows.
    let s = one("UPDATE t SET toctou_hole_0 WHERE id = ? AND a IN (toctou_hole_1)");
    assert_eq!(s.conditions[0].operand, Operand::Other);
    let s = one("DELETE FROM toctou_hole_0 WHERE id = ?");
    assert_eq!(s.conditions, [condition("id", Operand::Param(0), true)]);
}

#[test]
fn not_sql() {
    for text in [
        "",
        "hello",
        "update your settings",
        "select",
        ";;;",
        "\u{0}",
        "drop it",
        "SELEC * FROM t",
    ] {
        assert_eq!(parse(text), None, "{text:?}");
    }
}

#[test]
fn the_pretest() {
    for text in [
        "SELECT * FROM t",
        "  \n select a from t where b = ?",
        "-- why\nSELECT a FROM t",
        "(SELECT 1 FROM t)",
        "INSERT OR IGNORE INTO t VALUES (1)",
        "UPDATE t SET a = 1",
        "update toctou_hole_0 set toctou_hole_1 where id = ?",
        "DELETE FROM t",
        "WITH a AS (SELECT 1) SELECT * FROM a",
        "BEGIN",
        "BEGIN IMMEDIATE",
        "begin immediate",
        "COMMIT",
        "commit;",
        "ROLLBACK",
        "START TRANSACTION",
        "CREATE TABLE t (a INT)",
        "create table if not exists t (a int)",
        "CREATE UNIQUE INDEX i ON t (a)",
        "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
        "SELECT pg_advisory_lock($1)",
        "REPLACE INTO t VALUES (1)",
        "PRAGMA foreign_keys = ON",
        "LOCK TABLE t",
    ] {
        assert!(looks_like_sql(text), "{text:?}");
    }
    for text in [
        "",
        "update your settings",
        "Update your settings",
        "Update the set of rules = new",
        "Delete from cart",
        "delete from the list",
        "select an item from the list",
        "Select one from below",
        "Create table of contents",
        "create table of contents",
        "insert your name into the form",
        "begin",
        "commit",
        "end",
        "Commit changes to the repository",
        "commit -m wip",
        "with a friend",
        "get",
        "/users/:id",
        "set the transaction",
        "rollback",
    ] {
        assert!(!looks_like_sql(text), "{text:?}");
    }
}

/// Everything the analysis may hand over, in a thread with a small stack.
fn quick(text: String) -> Option<Vec<Statement>> {
    let start = std::time::Instant::now();
    let result = std::thread::Builder::new()
        .stack_size(1 << 20)
        .spawn(move || parse(&text))
        .expect("thread")
        .join()
        .expect("no panic");
    assert!(start.elapsed().as_secs() < 5, "took {:?}", start.elapsed());
    result
}

#[test]
fn deep_and_long_texts_end_quickly() {
    let deep = |open: &str, close: &str, n: usize| {
        format!(
            "SELECT * FROM t WHERE {}1{} = 1",
            open.repeat(n),
            close.repeat(n)
        )
    };
    assert_eq!(quick(deep("(", ")", 10_000)), None);
    assert_eq!(quick(deep("NOT ", "", 10_000)), None);
    assert_eq!(quick(deep("-", "", 10_000)), None);
    assert_eq!(quick(format!("SELECT * FROM {}", "(".repeat(10_000))), None);
    assert_eq!(quick(format!("SELECT 1{}", " + 1".repeat(10_000))), None);
    assert_eq!(quick("SELECT 1 FROM t UNION ".repeat(2_000)), None);
    assert_eq!(quick("SELECT ".repeat(5_000)), None);
    assert_eq!(quick("x".repeat(100_000)), None);
    let row = "(?, ?, ?),".repeat(1_000);
    assert!(quick(format!("INSERT INTO t (a, b, c) VALUES {row}(?, ?, ?)")).is_some());
    let chain = "a = ? AND ".repeat(250);
    assert!(quick(format!("SELECT * FROM t WHERE {chain} b = ?")).is_some());
    // At the bounds themselves, in the shapes that make parsers go back.
    for depth in [20, 24] {
        quick(deep("(", ")", depth));
        quick(deep("f((", "))", depth / 2));
        quick(format!(
            "SELECT * FROM {}t{}",
            "(".repeat(depth),
            ")".repeat(depth)
        ));
        quick(format!("SELECT * FROM {}t", "(".repeat(depth)));
        quick(format!(
            "SELECT * FROM {}SELECT 1{}",
            "(".repeat(depth),
            ")".repeat(depth)
        ));
        quick(format!(
            "{}SELECT 1{}",
            "(".repeat(depth),
            ")".repeat(depth)
        ));
        quick(format!("SELECT {}1", "CASE WHEN ".repeat(depth)));
        quick(format!(
            "SELECT * FROM t WHERE {}",
            "EXISTS (SELECT ".repeat(depth)
        ));
        quick(format!(
            "SELECT * FROM t WHERE a IN {}",
            "(SELECT a FROM (".repeat(depth / 2)
        ));
        quick(format!("SELECT {}", "CAST(".repeat(depth)));
        quick(format!("SELECT {}", "INTERVAL ".repeat(depth)));
    }
}

/// Random statements from SQL's own words, and random bytes: never a panic.
#[test]
fn garbage_never_panics() {
    const WORDS: [&str; 60] = [
        "SELECT",
        "FROM",
        "WHERE",
        "INSERT",
        "INTO",
        "VALUES",
        "UPDATE",
        "SET",
        "DELETE",
        "WITH",
        "AS",
        "(",
        ")",
        ",",
        "=",
        "?",
        "$1",
        ":a",
        "toctou_hole_0",
        "toctou_hole_9999999",
        "t",
        "a.b",
        "'x'",
        "'",
        "\"q\"",
        "`",
        "BEGIN",
        "COMMIT",
        ";",
        "AND",
        "OR",
        "NOT",
        "IN",
        "EXISTS",
        "ON",
        "CONFLICT",
        "DO",
        "NOTHING",
        "RETURNING",
        "*",
        "+",
        "::",
        "CASE",
        "WHEN",
        "END",
        "NULL",
        "IS",
        "CREATE",
        "TABLE",
        "UNIQUE",
        "INDEX",
        "TRIGGER",
        "$$",
        "--",
        "/*",
        "é",
        "\u{1F600}",
        "FOR UPDATE",
        "UNION",
        "1e9",
    ];
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for _ in 0..6_000 {
        let length = (next() % 24) as usize;
        let mut text = String::new();
        for _ in 0..length {
            text.push_str(WORDS[(next() % WORDS.len() as u64) as usize]);
            if next() % 5 != 0 {
                text.push(' ');
            }
        }
        looks_like_sql(&text);
        parse(&text);
        let bytes: Vec<u8> = (0..length).map(|_| next() as u8).collect();
        let text = format!("SELECT {}", String::from_utf8_lossy(&bytes));
        looks_like_sql(&text);
        parse(&text);
    }
}

#[test]
fn schema_files_say_what_is_unique() {
    let schema = "-- tables; it's a list\n/* more; of it */ CREATE TABLE people (id INTEGER PRIMARY KEY, mail TEXT UNIQUE, name TEXT);\n\
        INSERT INTO people VALUES (1, 'a;b', 'c');\n\
        CREATE UNIQUE INDEX by_name ON people (name);\nnot sql at all, unique;";
    let unique = super::unique_columns(schema);
    let is = |column: &str| ("people".to_owned(), vec![column.to_owned()]);
    assert_eq!(unique, [is("id"), is("mail"), is("name")]);
}
