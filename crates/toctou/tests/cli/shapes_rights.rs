//! What is a right that is checked, and what is an attempt that is repeated; and what only looks so.

use crate::common::python;
use crate::common::shapes::{dangerous, quiet_for, safe};

fn server(helpers: &str, tool: &str) -> String {
    format!(
        r#"import {{ McpServer }} from "@modelcontextprotocol/sdk/server/mcp.js";
import {{ setTimeout as sleep }} from "node:timers/promises";
import Database from "better-sqlite3";
const db = new Database("docs.db");
const server = new McpServer({{ name: "docs", version: "1.0.0" }});
{helpers}
server.registerTool("drop", {{}}, async ({{ id, user, tenant }}: any) => {{
{tool}
  return {{ content: [] }};
}});
"#
    )
}

const AUTH: &[&str] = &["auth-check-then-act"];
const TENANT: &str = r#"  const doc: any = db.prepare("SELECT * FROM docs WHERE id = ?").get(id);
  if (doc.tenant_id !== tenant) throw new Error("not yours");
  db.prepare("DELETE FROM docs WHERE id = ?").run(id);"#;

/// Whose it is from the beginning stays so, as long as nobody is seen to change it.
#[test]
fn safe_right_that_a_row_is_made_with() {
    safe(&[], &server("", TENANT));
}

#[test]
fn dangerous_right_that_is_changed() {
    let moves = r#"server.registerTool("move", {}, async ({ id, tenant }: any) => {
  db.prepare("UPDATE docs SET tenant_id = ? WHERE id = ?").run(tenant, id);
  return { content: [] };
});"#;
    dangerous("regular", AUTH, &[], &server(moves, TENANT));
}

const MAPPED: &str = r#"function getById(id: string) {
  const row: any = db.prepare("SELECT * FROM docs WHERE id = ?").get(id);
  return row ? { id: row.id, owner: row.owner, title: row.title, text: row.text } : null;
}"#;

/// A row that was taken apart and put together again has an owner; to ask whether there is one
/// is not to ask for that.
#[test]
fn safe_row_that_is_only_asked_to_be_there() {
    let tool = r#"  const doc = getById(id);
  if (!doc) throw new Error("no such document");
  db.prepare("DELETE FROM docs WHERE id = ?").run(id);"#;
    safe(&[], &server(MAPPED, tool));
    let asked = tool.replace("if (!doc)", "if (doc?.owner !== user)");
    dangerous("regular", AUTH, &[], &server(MAPPED, &asked));
}

const RETRY: &[&str] = &["retry-without-bound-or-jitter"];
const ATTEMPTS: &str = r#"  for (let n = 0; n < 5; n++) {
    const row: any = db.prepare("SELECT body, version FROM docs WHERE id = ?").get(id);
    const done = db
      .prepare("UPDATE docs SET body = ?, version = version + 1 WHERE id = ? AND version = ?")
      .run(row.body + user, id, row.version);
    if (done.changes === 1) break;
    await sleep(50);
  }"#;

/// Losers are in step if they wait the same time, and not if they do not wait at all.
#[test]
fn safe_attempts_that_are_bounded_and_do_not_wait() {
    dangerous("regular", RETRY, &[], &server("", ATTEMPTS));
    let at_once = ATTEMPTS.replace("    await sleep(50);\n", "");
    safe(&[], &server("", &at_once));
}

/// Who waits longer from turn to turn, and then gives up, meets the others a few times more.
#[test]
fn attempts_with_a_wait_that_grows() {
    for wait in ["sleep(50 * 2 ** n)", "sleep(50 * (n + 1))"] {
        let grows = server("", &ATTEMPTS.replace("sleep(50)", wait));
        quiet_for(&["regular"], &grows);
        dangerous("pedantic", RETRY, &[], &grows);
    }
    // It grows with something else, which is the same in each turn.
    let same = ATTEMPTS.replace("sleep(50)", "sleep(50 * tenant.length)");
    dangerous("regular", RETRY, &[], &server("", &same));
}

const CLAIM: &str = r#"function claim() {
  const job: any = db.prepare("SELECT id FROM jobs WHERE state = 'open' LIMIT 1").get();
  if (!job) return null;
  const done = db.prepare("UPDATE jobs SET state = 'taken' WHERE id = ? AND state = 'open'").run(job.id);
  return done.changes === 1 ? job : null;
}"#;

/// Who got something goes round for more, and who got nothing is done.
#[test]
fn safe_work_that_is_taken_piece_by_piece() {
    let tool = r#"  for (let n = 0; n < 50; n++) {
    const job = claim();
    if (!job) break;
    await sleep(1);
    db.prepare("DELETE FROM blobs WHERE job = ?").run(job.id);
  }"#;
    safe(&[], &server(CLAIM, tool));
    let until = tool.replace("if (!job) break;", "if (job) break;");
    dangerous(
        "regular",
        RETRY,
        &["db-check-then-write"],
        &server(CLAIM, &until),
    );
}

/// What is put into a row from itself is no question about it.
#[test]
fn safe_owner_that_is_kept_and_not_asked_about() {
    let source = |test: &str| {
        format!(
            r#"from mcp.server.fastmcp import FastMCP
from sqlalchemy import Column, String, create_engine
from sqlalchemy.orm import Session, declarative_base
mcp = FastMCP("x")
engine = create_engine("sqlite:///x.db")
Base = declarative_base()

class Doc(Base):
    __tablename__ = "docs"
    id = Column(String, primary_key=True)
    owner = Column(String)
    title = Column(String)

@mcp.tool()
async def rename(id: str, title: str, user: str):
    with Session(engine) as session:
        doc = session.get(Doc, id)
        if {test}:
            raise ValueError("no")
        doc.title = title
        doc.owner = user or doc.owner
        session.commit()
"#
        )
    };
    let rights = |test: &str| {
        let source = source(test);
        let found = python::scan(&[("server.py", source.as_str())], "regular");
        found.iter().filter(|r| AUTH.contains(&r.as_str())).count()
    };
    assert_eq!((rights("not doc"), rights("doc.owner != user")), (0, 1));
}
