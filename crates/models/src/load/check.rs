//! What a model file must keep to beyond its types.
//!
//! A mistake in a model does not crash the analysis, it silences it. So
//! everything that can be seen to be wrong is refused, with a word on what to write.

use crate::place::is_identifier;
use crate::schema::{
    CallModel, Callback, Do, Effect, EntryModel, Library, Place, ResultModel, When,
};

#[derive(Debug)]
pub(super) struct Problem {
    /// Text in the file next to which to point.
    pub(super) near: String,
    pub(super) message: String,
}

type Checked = Result<(), Problem>;

fn problem(near: impl Into<String>, message: impl Into<String>) -> Problem {
    Problem {
        near: near.into(),
        message: message.into(),
    }
}

pub(super) fn library(library: &Library) -> Checked {
    if library.id.is_empty() {
        return Err(problem("id", "`id` is empty: give the library a name"));
    }
    if library.languages.is_empty() {
        return Err(problem(
            "languages",
            "`languages` is empty: write e.g. `languages = [\"typescript\"]`",
        ));
    }
    if library.modules.is_empty() {
        return Err(problem(
            "modules",
            "`modules` is empty: write the name it is imported by, or `\"<global>\"`",
        ));
    }
    for module in &library.modules {
        if module.is_empty() || module.contains(char::is_whitespace) {
            return Err(problem(module, format!("`{module}` is not a module name")));
        }
        if let Some(bare) = module.strip_prefix("node:") {
            return Err(problem(
                module,
                format!("write `{bare}`: `node:` is stripped from imports"),
            ));
        }
    }
    for (alias, ty) in &library.aliases {
        path(alias)?;
        type_text(ty)?;
    }
    for runs in &library.runs {
        if crate::dispatch::version_of(&runs.from).is_none() {
            return Err(problem(
                &runs.from,
                format!("`{}` is not a version such as `2` or `0.33`", runs.from),
            ));
        }
    }
    for model in &library.call {
        call(model, Names::Calls)?;
    }
    for model in &library.method {
        call(model, Names::Methods)?;
    }
    for chain in &library.chain {
        if chain.steps.is_empty() && chain.run_by.is_empty() {
            return Err(problem("steps", "a chain needs at least one step"));
        }
        for step in chain
            .steps
            .iter()
            .chain(&chain.without)
            .chain(&chain.run_by)
            .chain(&chain.filter_steps)
            .chain(&chain.set_steps)
            .chain(&chain.exclusive_steps)
            .chain(&chain.returning_steps)
            .chain(&chain.locking_steps)
        {
            if !is_identifier(step) {
                return Err(problem(
                    step,
                    format!("`{step}` is not a method's name: a step is one"),
                ));
            }
        }
        effects(&chain.effects)?;
    }
    for model in &library.entry {
        entry(model)?;
    }
    for model in &library.class_entry {
        if model.names != ["*"] {
            names(&model.names, Names::Calls)?;
        }
        if model.methods.is_empty() {
            return Err(problem(
                "methods",
                "`methods` is empty: name the methods that handle calls",
            ));
        }
    }
    Ok(())
}

/// The type of a call's result, whichever key says it.
pub(super) fn result_type(model: &CallModel) -> Option<&str> {
    match &model.result {
        Some(ResultModel::Type { r#type }) => Some(r#type),
        _ => model.result_type.as_deref(),
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Names {
    Calls,
    Methods,
    Entries,
}

fn names(list: &[String], what: Names) -> Checked {
    if list.is_empty() {
        return Err(problem("names", "`names` is empty: name at least one call"));
    }
    for name in list {
        match what {
            Names::Methods => {
                if !is_identifier(name) {
                    return Err(problem(
                        name,
                        format!(
                            "`{name}`: a `method` is known by its bare name, such as `findOne`"
                        ),
                    ));
                }
            }
            Names::Entries if name.starts_with("*#") => {
                if !is_identifier(&name[2..]) {
                    return Err(problem(
                        name,
                        format!("`{name}`: after `*#` stands one method's name"),
                    ));
                }
            }
            _ => path(name)?,
        }
    }
    Ok(())
}

/// `a.b`, `T#m`, `T#a.m`, `T#*.m`, `T#()`, `macro!`
fn path(name: &str) -> Checked {
    // A macro is a function whose name ends in `!`.
    let name = name.strip_suffix('!').unwrap_or(name);
    let bad = || {
        problem(
            name,
            format!(
                "`{name}` is not a call's name: write `open`, `promises.open`, `Type#method`, `Type#field.method`, `Type#*.method` or `Type#()`"
            ),
        )
    };
    let dotted = |text: &str| text.split('.').all(is_identifier);
    match name.split_once('#') {
        None if dotted(name) => Ok(()),
        Some((ty, method)) if dotted(ty) => {
            let method = method.strip_prefix("*.").unwrap_or(method);
            if method == "()" || dotted(method) {
                Ok(())
            } else {
                Err(bad())
            }
        }
        _ => Err(bad()),
    }
}

fn type_text(text: &str) -> Checked {
    let name = text.rsplit_once(':').map_or(text, |(_, name)| name);
    if name.split('.').all(is_identifier) {
        Ok(())
    } else {
        Err(problem(
            text,
            format!("`{text}` is not a type: write `Pool`, `<global>:Map` or `pg:Client`"),
        ))
    }
}

fn place(place: &Place) -> Checked {
    match place.parse() {
        Ok(_) => Ok(()),
        Err(error) => Err(problem(&place.0, error.to_string())),
    }
}

fn whens(list: &[When]) -> Checked {
    for when in list {
        place(&when.place)?;
        let tests_value = !when.is.is_empty() || !when.contains.is_empty();
        let tests_value = tests_value || when.present.is_some() || when.fresh;
        let tests_value = tests_value || when.record || when.row;
        if !tests_value && when.imports.is_empty() && when.texts.is_empty() {
            return Err(problem(
                &when.place.0,
                format!(
                    "this `when` on `{}` tests nothing: add `is`, `contains`, `present`, `record`, `row`, `fresh`, `imports` or `texts`",
                    when.place.0
                ),
            ));
        }
    }
    Ok(())
}

fn call(model: &CallModel, what: Names) -> Checked {
    names(&model.names, what)?;
    effects(&model.effects)?;
    for Callback {
        place: at, args, ..
    } in &model.callbacks
    {
        place(at)?;
        args.iter().try_for_each(place)?;
    }
    whens(&model.when)?;
    if model.max_args.is_some_and(|max| max < model.min_args) {
        return Err(problem(
            &model.names[0],
            format!("`{}`: max-args is less than min-args", model.names[0]),
        ));
    }
    if let Some(ResultModel::Word(word)) = &model.result {
        let known = matches!(
            word.as_str(),
            "read"
                | "fresh"
                | "join"
                | "below"
                | "copy"
                | "returned"
                | "recv"
                | "either"
                | "element"
                | "array"
                | "none"
                | "made"
                | "format"
                | "added"
                | "values"
                | "pairs"
                | "entries"
                | "member"
                | "members"
                | "table"
                | "makes"
                | "published"
        ) || word
            .strip_prefix("arg")
            .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
        if !known {
            return Err(problem(
                word,
                format!(
                    "`{word}` is not a result: write `read`, `fresh`, `join`, `recv`, `element`, `array`, `none`, `arg0` or `{{ type = \"…\" }}`"
                ),
            ));
        }
    }
    model.fills.iter().try_for_each(place)?;
    result_type(model).map_or(Ok(()), type_text)
}

fn effects(list: &[Effect]) -> Checked {
    for effect in list {
        let places = [
            &effect.key,
            &effect.entry,
            &effect.value,
            &effect.filter,
            &effect.update,
            &effect.sql,
            &effect.params,
            &effect.callback,
            &effect.permits,
            &effect.locking,
        ];
        places.into_iter().flatten().try_for_each(place)?;
        effect.idempotency.iter().try_for_each(place)?;
        whens(&effect.when)?;
        match effect.r#do {
            Do::Sql if effect.sql.is_none() => {
                return Err(problem(
                    "sql",
                    "`do = \"sql\"` needs `sql`: the place of the text",
                ));
            }
            Do::Rename if effect.key.is_none() || effect.value.is_none() => {
                return Err(problem(
                    "rename",
                    "`do = \"rename\"` needs `key` (from) and `value` (to)",
                ));
            }
            Do::Read
            | Do::Check
            | Do::Resolve
            | Do::List
            | Do::Write
            | Do::Append
            | Do::Delete
            | Do::Ensure
                if effect.resource.is_none() =>
            {
                return Err(problem(
                    "do",
                    "an effect that reads or writes needs `resource`: file, row, memory, kv or external",
                ));
            }
            _ => {}
        }
    }
    Ok(())
}

fn entry(model: &EntryModel) -> Checked {
    names(&model.names, Names::Entries)?;
    place(&model.handler)?;
    model.name.iter().try_for_each(place)?;
    whens(&model.when)
}
