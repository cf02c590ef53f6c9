//! What a Prisma schema says may not be there twice. Migrations say it too, but not everybody
//! keeps them, and a table may have another name there.

/// Column sets that the models of a schema let nobody have twice, with their models.
pub fn unique_columns(schema: &str) -> Vec<(String, Vec<String>)> {
    let mut out = Vec::new();
    for (model, line) in lines(schema) {
        let name = line.split_whitespace().next().unwrap_or_default();
        let marked = |mark: &str| {
            let mut words = line.split_whitespace().skip(1);
            words.any(|w| w == mark || w.strip_prefix(mark).is_some_and(|w| w.starts_with('(')))
        };
        if let Some(columns) = together(line) {
            out.push((model.to_owned(), columns));
        } else if !name.starts_with('@') && (marked("@id") || marked("@unique")) {
            out.push((model.to_owned(), vec![name.to_owned()]));
        }
    }
    out
}

/// Models that a schema defines.
pub fn defined_tables(schema: &str) -> Vec<String> {
    schema
        .lines()
        .filter_map(model)
        .map(str::to_owned)
        .collect()
}

/// The lines of models, each with the name of its model.
fn lines(schema: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut inside = None;
    schema.lines().filter_map(move |line| {
        let line = line.split("//").next().unwrap_or_default().trim();
        match model(line) {
            Some(name) => inside = Some(name),
            None if line == "}" => inside = None,
            None => return inside.map(|model| (model, line)),
        }
        None
    })
}

/// `model UserSettings {`
fn model(line: &str) -> Option<&str> {
    let name = line
        .trim()
        .strip_prefix("model ")?
        .strip_suffix('{')?
        .trim();
    let plain = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    plain.then_some(name)
}

/// `@@unique([boardId, userId])`, `@@id(fields: [boardId, userId])`
fn together(line: &str) -> Option<Vec<String>> {
    let said = ["@@unique", "@@id"]
        .iter()
        .find_map(|mark| line.strip_prefix(mark))?;
    let (_, list) = said.split_once('[')?;
    let (list, _) = list.split_once(']')?;
    let column = |part: &str| part.split('(').next().unwrap_or_default().trim().to_owned();
    Some(list.split(',').map(column).collect())
}

#[cfg(test)]
mod tests {
    use super::{defined_tables, unique_columns};

    #[test]
    fn marks_of_columns_and_of_models() {
        let schema = r#"
datasource db { provider = "postgresql" }

model UserSettings {
  id     String @id @default(cuid())
  userId String @unique // one each
  theme  String @default("unique")
  user   User   @relation(fields: [userId], references: [id])
}

model Member {
  boardId String
  userId  String
  @@id([boardId, userId])
  @@unique(fields: [boardId(sort: Desc), userId], name: "both")
  @@index([userId])
}
"#;
        let of = |model: &str, columns: &[&str]| {
            (
                model.to_owned(),
                columns.iter().map(|c| (*c).to_owned()).collect::<Vec<_>>(),
            )
        };
        assert_eq!(
            unique_columns(schema),
            [
                of("UserSettings", &["id"]),
                of("UserSettings", &["userId"]),
                of("Member", &["boardId", "userId"]),
                of("Member", &["boardId", "userId"]),
            ]
        );
        assert_eq!(defined_tables(schema), ["UserSettings", "Member"]);
        assert!(unique_columns("CREATE TABLE t (id integer primary key)").is_empty());
    }
}
