//! Windows on files that are open, and harmless as often as not. Beside each stands one that
//! differs in the point that matters.

use crate::shapes_doubts::{for_everybody, for_the_pedantic, tool};

const ADD: &str = r#"async function add(id: string, text: string) {
  const all = JSON.parse(await readFile("notes.json", "utf8"));
  all[id] = text;
  await writeFile("notes.json", JSON.stringify(all));
}
"#;

const REMOVE: &str = r#"async function remove(id: string) {
  const all = JSON.parse(await readFile("notes.json", "utf8"));
  delete all[id];
  await writeFile("notes.json", JSON.stringify(all));
}
watch("old", (event: any, name: any) => { void remove(name); });
"#;

#[test]
fn a_file_that_is_changed_in_work_that_nobody_waits_for() {
    let rule = "file-read-modify-write";
    let watched = "watch(\".\", (event: any, name: any) => { void add(name, event); });\n";
    for_the_pedantic(rule, &tool(&format!("{ADD}{watched}"), ""));
    // Others change it, too: then each has something to lose.
    for_everybody(rule, &tool(&format!("{ADD}{REMOVE}{watched}"), ""));
    for_everybody(rule, &tool(ADD, "  void add(id, text);"));
}

#[test]
fn a_file_that_is_made_where_it_is_not_and_handed_out() {
    let rule = "file-check-then-act";
    let make = |there: &str| {
        let load = format!(
            "async function load(id: string, text: string) {{\n  const old = await readFile(id, \"utf8\").catch(() => null);\n  if (old) {there}\n  await writeFile(\"log\", text);\n  await writeFile(id, text);\n  return text;\n}}\n"
        );
        tool(
            &load,
            "  const all = await load(id, text);\n  return { content: [{ type: \"text\", text: all }] };",
        )
    };
    for_the_pedantic(rule, &make("return old;"));
    for_everybody(rule, &make("throw new Error(\"there\");"));
}

#[test]
fn a_file_that_is_put_in_its_place_whole() {
    let rule = "file-check-then-act";
    let fetched = |there: &str| {
        let fetch = format!(
            "import {{ randomUUID }} from \"node:crypto\";\nasync function fetched(text: string) {{\n  if (await access(\"model.bin\").then(() => true, () => false)) {there}\n  const part = `model.${{randomUUID()}}`;\n  await writeFile(part, text);\n  await rename(part, \"model.bin\");\n}}\n"
        );
        tool(&fetch, "  await fetched(text);")
    };
    for_the_pedantic(rule, &fetched("return;"));
    for_everybody(rule, &fetched("throw new Error(\"there\");"));
}

#[test]
fn a_path_that_is_judged_and_used_in_one_go() {
    let rule = "path-check-then-open";
    let write = |look: &str, write: &str| {
        tool(
            "import { realpathSync } from \"node:fs\";\nimport { realpath, symlink } from \"node:fs/promises\";\nserver.registerTool(\"link\", {}, async ({ from, to }: any) => { await symlink(from, to); return { content: [] }; });\n",
            &format!(
                "  if (!({look}(id)).startsWith(\"/srv/\")) throw new Error(\"outside\");\n  {write}(id, text);"
            ),
        )
    };
    for_the_pedantic(rule, &write("realpathSync", "writeFileSync"));
    for_everybody(rule, &write("await realpath", "await writeFile"));
}

#[test]
fn a_file_of_which_only_the_day_it_was_made_is_kept() {
    let rule = "file-read-modify-write";
    let save = |kept: &str| {
        let body = format!(
            "  const old = JSON.parse(await readFile(id, \"utf8\"));\n  await writeFile(id, JSON.stringify({{ text, {kept} }}));"
        );
        tool("", &body)
    };
    for_the_pedantic(rule, &save("createdAt: old.createdAt"));
    for_everybody(rule, &save("createdAt: old.createdAt, tags: old.tags"));
}
