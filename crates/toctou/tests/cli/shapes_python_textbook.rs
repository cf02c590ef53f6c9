//! Textbook races of Python servers in the ways they are ordinarily written, each with a near twin.

use crate::common::python::expect;

/// A class that is made anew by each call, with the file's name for one of its fields.
fn made_anew(saves: &str) -> String {
    format!(
        "from dataclasses import dataclass, field
PATH = Path(\"notes.json\")
COPY = Path(\"copy.json\")
@dataclass
class Store:
    path: Path
    notes: list = field(default_factory=list)
    @classmethod
    def load(cls, path):
        if not path.exists():
            return cls(path)
        return cls(path, json.loads(path.read_text()))
    def save(self):
        self.path.write_text(json.dumps(self.notes))
@mcp.tool()
def add(text: str) -> str:
    store = Store.load(PATH)
    store.notes.append(text)
    {saves}
    return \"ok\"
"
    )
}

#[test]
fn an_object_that_is_made_here_writes_to_the_file_it_was_made_with() {
    expect(&["file-read-modify-write"], &made_anew("store.save()"));
    expect(&[], &made_anew("Store(COPY, store.notes).save()"));
}

/// The fields of an object are no places of those who filled them.
#[test]
fn what_an_object_is_made_with_is_not_written_by_making_it() {
    expect(
        &[],
        "from dataclasses import dataclass
KINDS = {}
@dataclass
class Request:
    kind: str
@mcp.tool()
async def learn(name: str, kind: str) -> str:
    KINDS[name] = kind
    return kind
@mcp.tool()
async def ask(name: str) -> str:
    kind = KINDS.get(name)
    await asyncio.sleep(1)
    return Request(kind=kind).kind
",
    );
}

fn opened_by_path(write: &str) -> String {
    format!(
        "class Config:
    def __init__(self, path):
        self.path = Path(path)
        self.copy = Path(\"copy.json\")
    def put(self, key, value):
        with self.path.open() as f:
            data = json.load(f)
        data[key] = value
        with self.{write}.open(\"w\") as f:
            json.dump(data, f)
config = Config(\"config.json\")
@mcp.tool()
def put(key: str, value: str) -> str:
    config.put(key, value)
    return \"ok\"
"
    )
}

#[test]
fn a_field_that_is_a_path_is_opened() {
    expect(&["file-read-modify-write"], &opened_by_path("path"));
    expect(&[], &opened_by_path("copy"));
}

fn by_temporary_file(makes: &str, data: &str) -> String {
    format!(
        "import os, tempfile
class Store:
    def __init__(self, path):
        self.path = Path(path)
    def load(self):
        return json.loads(self.path.read_text())
    def save(self, data):
        {makes}
            json.dump(data, f)
        os.replace(tmp, self.path)
store = Store(\"s.json\")
@mcp.tool()
def put(key: str, value: str) -> str:
    data = store.load()
    data[key] = value
    store.save({data})
    return \"ok\"
"
    )
}

#[test]
fn what_is_written_to_a_temporary_file_is_in_the_file_it_becomes() {
    let descriptor = "fd, tmp = tempfile.mkstemp(dir=self.path.parent)
        with os.fdopen(fd, \"w\") as f:";
    let named = "with tempfile.NamedTemporaryFile(\"w\", delete=False) as f:
            tmp = f.name";
    for makes in [descriptor, named] {
        let source = by_temporary_file(makes, "data");
        expect(&["file-read-modify-write"], &source);
        expect(&[], &by_temporary_file(makes, "{key: value}"));
    }
}

fn stock(update: &str) -> String {
    format!(
        "import psycopg2
@mcp.tool()
def reserve(sku: str, qty: int) -> str:
    conn = psycopg2.connect(\"dbname=shop\")
    cur = conn.cursor()
    cur.execute(\"SELECT stock FROM products WHERE sku = %s\", (sku,))
    row = cur.fetchone()
    {update}
    conn.commit()
    return \"ok\"
"
    )
}

#[test]
fn parameters_are_written_as_python_does() {
    let written = "cur.execute(\"UPDATE products SET stock = %s WHERE sku = %s\", (row[\"stock\"] - qty, sku))";
    let named = "cur.execute(\"UPDATE products SET stock = %(n)s WHERE sku = %(sku)s\", {\"n\": row[\"stock\"] - qty, \"sku\": sku})";
    let computed = "cur.execute(\"UPDATE products SET stock = stock - %s WHERE sku = %s AND stock >= %s\", (qty, sku, qty))";
    expect(&["db-lost-update"], &stock(written));
    expect(&["db-lost-update"], &stock(named));
    expect(&[], &stock(computed));
}

fn coupon(test: &str) -> String {
    format!(
        "from contextlib import closing
@mcp.tool()
def redeem(code: str, user: str) -> str:
    with closing(sqlite3.connect(\"shop.db\")) as con:
        cur = con.cursor()
        cur.execute(\"SELECT used FROM coupons WHERE code = ?\", (code,))
        row = cur.fetchone()
        if {test}:
            return \"no\"
        cur.execute(\"UPDATE coupons SET used = 1, used_by = ? WHERE code = ?\", (user, code))
        con.commit()
    return \"redeemed\"
"
    )
}

/// Whether there is a row says nothing about its first column.
#[test]
fn a_number_of_a_row_is_a_column() {
    expect(&["single-use-check-then-consume"], &coupon("row[0]"));
    expect(&[], &coupon("row is None"));
}

fn expenses(mode: &str) -> String {
    format!(
        "import csv
@mcp.tool()
def forget(id: str) -> str:
    with open(\"expenses.csv\") as f:
        rows = list(csv.DictReader(f))
    kept = [r for r in rows if r[\"id\"] != id]
    with open(\"expenses.csv\", \"{mode}\") as f:
        w = csv.DictWriter(f, fieldnames=[\"id\", \"amount\"])
        w.writerows(kept)
    return \"ok\"
"
    )
}

#[test]
fn rows_are_written_to_what_the_writer_was_made_with() {
    expect(&["file-read-modify-write"], &expenses("w"));
    expect(&[], &expenses("a"));
}

fn points(payload: &str) -> String {
    format!(
        "from qdrant_client import AsyncQdrantClient, models
client = AsyncQdrantClient(url=\"http://q\")
@mcp.tool()
async def tag(id: str, tag: str) -> str:
    found = await client.retrieve(collection_name=\"mem\", ids=[id], with_payload=True)
    old = found[0].payload
    point = models.PointStruct(id=id, vector=[0.0], payload={payload})
    await client.upsert(collection_name=\"mem\", points=[point])
    return \"ok\"
"
    )
}

#[test]
fn a_point_is_read_changed_and_put_back() {
    let merged = points("{**old, \"tags\": [*old[\"tags\"], tag]}");
    expect(&["db-lost-update"], &merged);
    expect(&[], &points("{\"tags\": [tag]}"));
}

/// A post with data in front of it, which `read` reads from a file and `write` puts back.
fn post(read: &str, text: &str, write: &str) -> String {
    format!(
        "import frontmatter
@mcp.tool()
def add(name: str, text: str) -> str:
    path = f\"notes/{{name}}.md\"
{read}
    body = {text}
{write}
    return \"ok\"
"
    )
}

#[test]
fn a_post_is_read_from_a_file_and_put_back() {
    let opened = "    with open(path) as f:
        post = frontmatter.load(f)";
    let by_path = "    post = frontmatter.load(path)";
    let text = "    with open(path, \"w\") as f:
        f.write(frontmatter.dumps(frontmatter.Post(body, tags=[])))";
    let dumped = "    frontmatter.dump(frontmatter.Post(body), path)";
    for read in [opened, by_path] {
        for write in [text, dumped] {
            let both = post(read, "post.content + text", write);
            expect(&["file-read-modify-write"], &both);
            expect(&[], &post(read, "text", write));
        }
    }
}
