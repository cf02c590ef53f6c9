//! Statements that Rust programs build of tables: diesel's and SeaORM's.

use crate::common::Project;

const SCHEMA: &str = "diesel::table! {\n/// People.\nusers (id) {\nid -> Integer,\nemail -> Text,\n\
    #[sql_name = \"type\"]\nkind -> Nullable<Text>,\nbalance -> BigInt,\n}\n}\n";

const ACCOUNT: &str = "use sea_orm::entity::prelude::*;\n#[derive(Clone, Debug, DeriveEntityModel)]\n\
    #[sea_orm(table_name = \"accounts\")]\npub struct Model {\n#[sea_orm(primary_key)]\npub id: i32,\n\
    pub owner: String,\n#[sea_orm(unique)]\npub email: String,\npub balance: i64,\n}\n\
    #[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]\npub enum Relation {}\n\
    impl ActiveModelBehavior for ActiveModel {}\n";

fn scan(files: &[(&str, &str)]) -> Vec<String> {
    let project = Project::new(files);
    let run = project.run("scan . --no-config --output json");
    assert!(matches!(run.code, Some(0 | 1)), "{}", run.seen());
    assert_eq!(run.json()["summary"]["skipped"], 0, "{}", run.stdout);
    run.rules()
}

/// A tool of a server that has its tables in a file of its own.
fn diesel(body: &str) -> Vec<String> {
    let source = format!(
        "use diesel::prelude::*;\nuse rmcp::{{tool, tool_router}};\nmod schema;\nuse crate::schema::users;\n\
         #[derive(Queryable, Selectable, Identifiable)]\n#[diesel(table_name = users)]\n\
         pub struct User {{ pub id: i32, pub email: String, pub balance: i64 }}\n\
         #[derive(Insertable)]\n#[diesel(table_name = crate::schema::users)]\n\
         pub struct NewUser {{ pub email: String, pub balance: i64 }}\n\
         pub struct Server {{ pool: Pool }}\n#[tool_router]\nimpl Server {{\n#[tool]\n\
         fn act(&self, id: i32, email: String, amount: i64) -> anyhow::Result<()> {{\n\
         let conn = &mut self.pool.get()?;\n{body}\nOk(())\n}}\n}}\n"
    );
    scan(&[("src/main.rs", &source), ("src/schema.rs", SCHEMA)])
}

fn sea(body: &str) -> Vec<String> {
    let source = format!(
        "use rmcp::{{tool, tool_router}};\nuse sea_orm::*;\nuse sea_orm::sea_query::Expr;\nmod account;\n\
         use account::Entity as Accounts;\n\
         pub struct Server {{ db: DatabaseConnection }}\n#[tool_router]\nimpl Server {{\n#[tool]\n\
         async fn act(&self, id: i32, email: String, owner: String, amount: i64) -> anyhow::Result<()> {{\n\
         let db = &self.db;\n{body}\nOk(())\n}}\n}}\n"
    );
    scan(&[("src/main.rs", &source), ("src/account.rs", ACCOUNT)])
}

const NONE: &[&str] = &[];
const LOST: &[&str] = &["db-lost-update"];
const CHECKED: &[&str] = &["db-check-then-write"];

#[test]
fn diesel_writes_back_what_was_read() {
    let read = "let user = users::table.find(id).first::<User>(conn)?;\n";
    for write in [
        "diesel::update(users::table.find(id)).set(users::balance.eq(user.balance - amount)).execute(conn)?;",
        "diesel::update(users::table.filter(users::id.eq(id))).set((users::balance.eq(user.balance - amount), users::email.eq(email))).execute(conn)?;",
        "let rest = user.balance - amount;\ndiesel::update(&user).set(users::balance.eq(rest)).get_result::<User>(conn)?;",
    ] {
        assert_eq!(diesel(&format!("{read}{write}")), LOST, "{write}");
    }
    // One column is asked for, and that is the one that is written.
    let column = "let balance: i64 = users::table.find(id).select(users::balance).first(conn)?;\n\
        diesel::update(users::table.find(id)).set(users::balance.eq(balance - amount)).execute(conn)?;";
    assert_eq!(diesel(column), LOST);
    // What was read is looked at, and the database computes.
    let computed = "println!(\"{}\", user.email);\n\
        diesel::update(users::table.find(id)).set(users::balance.eq(users::balance + amount)).execute(conn)?;";
    assert_eq!(diesel(&format!("{read}{computed}")), NONE);
    // By names that a star brings, and results that are asked before they are used.
    let starred = "use crate::schema::users::dsl::*;\n\
        let user: User = users.find(amount).select(User::as_select()).first(conn).optional()?.ok_or_else(|| anyhow::anyhow!(\"no\"))?;\n\
        diesel::update(users.find(amount)).set(balance.eq(user.balance + 1)).execute(conn)?;";
    assert_eq!(diesel(starred), LOST);
}

#[test]
fn diesel_tests_and_then_writes() {
    let taken = "if users::table.filter(users::email.eq(&email)).first::<User>(conn).optional()?.is_some() { anyhow::bail!(\"taken\"); }\n";
    let new = "NewUser { email, balance: 0 }";
    let plain = format!("diesel::insert_into(users::table).values(&{new}).execute(conn)?;");
    assert_eq!(diesel(&format!("{taken}{plain}")), CHECKED);
    let at_most_once = format!(
        "diesel::insert_into(users::table).values(&{new}).on_conflict_do_nothing().execute(conn)?;"
    );
    assert_eq!(diesel(&format!("{taken}{at_most_once}")), NONE);
    let read = "let user = users::table.find(id).first::<User>(conn)?;\n\
        if user.balance < amount { anyhow::bail!(\"too little\"); }\n";
    let relative = "diesel::update(users::table.find(id)).set(users::balance.eq(users::balance - amount)).execute(conn)?;";
    assert_eq!(diesel(&format!("{read}{relative}")), CHECKED);
    let asked = "let n = diesel::update(users::table.filter(users::id.eq(id).and(users::balance.ge(amount))))\
        .set(users::balance.eq(users::balance - amount)).execute(conn)?;\nif n == 0 { anyhow::bail!(\"too little\"); }";
    assert_eq!(diesel(&format!("{read}{asked}")), NONE);
    // The primary key is unique.
    let known = "if diesel::select(diesel::dsl::exists(users::table.filter(users::id.eq(id)))).get_result::<bool>(conn)? { anyhow::bail!(\"taken\"); }\n";
    let keyed = "diesel::insert_into(users::table).values((users::id.eq(id), users::email.eq(email))).execute(conn)?;";
    assert_eq!(diesel(&format!("{known}{keyed}")), NONE);
    let other = known.replace("users::id.eq(id)", "users::email.eq(&email)");
    assert_eq!(diesel(&format!("{other}{keyed}")), CHECKED);
}

#[test]
fn diesel_in_a_transaction() {
    let body = |begin: &str, lock: &str| {
        format!(
            "conn.{begin}(|conn| {{\nlet user = users::table.find(id){lock}.first::<User>(conn)?;\n\
             diesel::update(users::table.find(id)).set(users::balance.eq(user.balance - amount)).execute(conn)?;\n\
             QueryResult::Ok(())\n}})?;"
        )
    };
    assert_eq!(diesel(&body("transaction", "")), LOST);
    assert_eq!(diesel(&body("transaction", ".for_update()")), NONE);
    assert_eq!(diesel(&body("immediate_transaction", "")), NONE);
    // Of two that both read before they write, SQLite refuses one.
    let sqlite = format!(
        "let conn: &mut diesel::SqliteConnection = conn;\n{}",
        body("transaction", "")
    );
    assert_eq!(diesel(&sqlite), NONE);
}

#[test]
fn sea_orm_writes_what_was_set() {
    let read = "let found = account::Entity::find_by_id(id).one(db).await?.ok_or_else(|| anyhow::anyhow!(\"no\"))?;\n";
    for write in [
        "let rest = found.balance - amount;\nlet mut active: account::ActiveModel = found.into();\n\
         active.balance = Set(rest);\nactive.update(db).await?;",
        "let rest = found.balance - amount;\nlet mut active = found.into_active_model();\n\
         active.balance = ActiveValue::Set(rest);\nactive.update(db).await?;",
        "account::ActiveModel { id: Set(id), balance: Set(found.balance - amount), ..Default::default() }.update(db).await?;",
        "let rest = found.balance - amount;\nAccounts::update_many().col_expr(account::Column::Balance, Expr::value(rest))\
         .filter(account::Column::Id.eq(id)).exec(db).await?;",
    ] {
        assert_eq!(sea(&format!("{read}{write}")), LOST, "{write}");
    }
    for write in [
        // The row is only looked up.
        "let mut active: account::ActiveModel = found.into();\nactive.owner = Set(owner);\nactive.update(db).await?;",
        "println!(\"{}\", found.owner);\nAccounts::update_many().col_expr(account::Column::Balance, \
         Expr::col(account::Column::Balance).add(amount)).filter(account::Column::Id.eq(id)).exec(db).await?;",
    ] {
        assert_eq!(sea(&format!("{read}{write}")), NONE, "{write}");
    }
}

#[test]
fn sea_orm_tests_and_then_writes() {
    let read = "let found = Accounts::find_by_id(id).one(db).await?.ok_or_else(|| anyhow::anyhow!(\"no\"))?;\n\
        if found.balance < amount { anyhow::bail!(\"too little\"); }\n";
    let write = |more: &str| {
        format!(
            "let done = Accounts::update_many().col_expr(account::Column::Balance, Expr::col(account::Column::Balance).sub(amount))\
             .filter(account::Column::Id.eq(id)){more}.exec(db).await?;\n"
        )
    };
    assert_eq!(sea(&format!("{read}{}", write(""))), CHECKED);
    let asked = "if done.rows_affected == 0 { anyhow::bail!(\"too little\"); }";
    let held = write(".filter(account::Column::Balance.gte(amount))");
    assert_eq!(sea(&format!("{read}{held}{asked}")), NONE);
    let taken = |column: &str, value: &str| {
        format!(
            "let there = Accounts::find().filter(account::Column::{column}.eq(&{value})).one(db).await?;\n\
             if there.is_some() {{ anyhow::bail!(\"taken\"); }}\n\
             account::ActiveModel {{ owner: Set(owner), email: Set(email), balance: Set(0), ..Default::default() }}.insert(db).await?;"
        )
    };
    assert_eq!(sea(&taken("Owner", "owner")), CHECKED);
    // The struct says that no two rows have the same.
    assert_eq!(sea(&taken("Email", "email")), NONE);
}

#[test]
fn sea_orm_in_a_transaction() {
    let body = |lock: &str| {
        format!(
            "let txn = db.begin().await?;\n\
             let found = Accounts::find_by_id(id){lock}.one(&txn).await?.ok_or_else(|| anyhow::anyhow!(\"no\"))?;\n\
             let rest = found.balance - amount;\nlet mut active: account::ActiveModel = found.into();\n\
             active.balance = Set(rest);\nactive.update(&txn).await?;\ntxn.commit().await?;"
        )
    };
    assert_eq!(sea(&body("")), LOST);
    assert_eq!(sea(&body(".lock_exclusive()")), NONE);
    // Of two that both read before they write, SQLite refuses one.
    let sqlite = body("").replace(
        "let txn",
        "let _ = Database::connect(\"sqlite://notes.db\").await?;\nlet txn",
    );
    assert_eq!(sea(&sqlite), NONE);
    let closure = body(".lock_exclusive()")
        .replace(
            "let txn = db.begin().await?;",
            "db.transaction::<_, (), DbErr>(|txn| Box::pin(async move {",
        )
        .replace("txn.commit().await?;", "Ok(())\n})).await?;");
    assert_eq!(sea(&closure), NONE);
    assert_eq!(sea(&closure.replace(".lock_exclusive()", "")), LOST);
}

/// A comparison that the program has is another one than that of a column.
#[test]
fn comparisons_of_columns_and_of_the_program() {
    let body = "let there = Accounts::find().filter(account::Column::Email.eq(&email)).one(db).await?;\n\
        if there.is_some() { anyhow::bail!(\"taken\"); }\n\
        account::ActiveModel { owner: Set(owner), email: Set(email), balance: Set(0), ..Default::default() }.insert(db).await?;\n\
        Ok(())\n}\n}\npub struct Name(String);\nimpl PartialEq for Name { fn eq(&self, other: &Self) -> bool { self.0 == other.0 } }\n\
        impl Server {\nasync fn last(&self) -> anyhow::Result<()> {";
    assert_eq!(sea(body), NONE);
}

#[test]
fn a_token_that_is_removed_with_a_look() {
    let read = "let user = users::table.find(id).first::<User>(conn)?;\n\
        if user.balance != amount { anyhow::bail!(\"not yours\"); }\n";
    let tokens = |act: &str, persona: &str| {
        let source = format!("{read}{act}").replace("users::", "tokens::");
        let schema = SCHEMA.replace("users", "tokens");
        let server = format!(
            "use diesel::prelude::*;\nuse rmcp::{{tool, tool_router}};\nmod schema;\nuse crate::schema::tokens;\n\
             pub struct Server {{ pool: Pool }}\n#[tool_router]\nimpl Server {{\n#[tool]\n\
             fn act(&self, id: i32, amount: i64) -> anyhow::Result<()> {{\nlet conn = &mut self.pool.get()?;\n{source}\nOk(())\n}}\n}}\n"
        );
        let project = Project::new(&[("src/main.rs", &server), ("src/schema.rs", &schema)]);
        let run = project.run(&format!(
            "scan . --no-config --persona {persona} --output json"
        ));
        run.rules()
    };
    // There is none to give back for who comes second.
    let asked = "diesel::delete(tokens::table.find(id)).get_result::<User>(conn)?.email.clone();";
    assert_eq!(tokens(asked, "regular"), NONE);
    // What was done before may have been done twice.
    assert_eq!(tokens(asked, "pedantic"), ["single-use-check-then-consume"]);
}
