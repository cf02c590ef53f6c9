//! SQL texts that are put together piece by piece, and lists of what their parameters stand for.

use toctou_models::sql::{self, Operand, Statement, Value};

use crate::effect::Deps;
use crate::interp::Interp;
use crate::sym::{CalleeSym, Sym, SymKind};

/// Stands in a statement for what is not known of it.
pub(crate) const HOLE: &str = "toctou_hole_";
/// A list that is longer is data.
pub(crate) const MAX_ITEMS: usize = 64;

/// All that can be in a list, in order. What is put in by one way only is there, too.
struct Items {
    list: Vec<Sym>,
    /// So many at the beginning, and at the end, stand where they stand here.
    head: usize,
    tail: usize,
}

impl Interp<'_, '_, '_> {
    /// Constant or templated text that is SQL, with what fills its holes.
    pub(crate) fn text_of(&self, sym: Sym) -> Option<(String, Vec<Sym>)> {
        let parts = match self.cx.syms.kind(sym) {
            SymKind::Concat(parts) => parts,
            SymKind::Str(name) => {
                let text = self.cx.names.text(*name);
                return sql::looks_like_sql(text).then(|| (text.to_owned(), Vec::new()));
            }
            _ => return None,
        };
        let mut text = String::new();
        let mut holes = Vec::new();
        for part in parts.iter() {
            if let Some(name) = self.cx.syms.as_str(*part) {
                text.push_str(self.cx.names.text(name));
            } else if let Some(joined) = self.joined(*part) {
                text.push_str(&joined);
            } else {
                text.push_str(&format!("{HOLE}{}", holes.len()));
                holes.push(*part);
            }
        }
        sql::looks_like_sql(&text).then_some((text, holes))
    }

    /// `Sprintf("%s.%d", name, n)` is `${name}.${n}`.
    pub(crate) fn formatted(&mut self, args: &[Sym]) -> Option<Sym> {
        let (format, values) = args.split_first()?;
        let pieces = match self.cx.syms.kind(*format) {
            SymKind::Concat(pieces) => pieces.to_vec(),
            _ => vec![*format],
        };
        let mut values = values.iter();
        let mut parts: Vec<Sym> = Vec::new();
        for piece in pieces {
            let Some(text) = self.cx.syms.as_str(piece) else {
                parts.push(piece);
                continue;
            };
            let text = self.cx.names.text(text).to_owned();
            for verb in verbs(&text)? {
                let part = match verb {
                    Verb::Text(text) => {
                        let name = self.cx.names.intern(&text);
                        self.cx.syms.make(SymKind::Str(name))
                    }
                    Verb::Value => *values.next()?,
                };
                parts.push(part);
            }
        }
        (values.len() == 0 && !parts.is_empty()).then(|| self.concat(parts))
    }

    /// `", ".join(fields)`, `fields.join(", ")`, of a list of constants: with all that can be in it.
    fn joined(&self, sym: Sym) -> Option<String> {
        let SymKind::Call(call) = self.cx.syms.kind(sym) else {
            return None;
        };
        let (CalleeSym::Method(method), Some(recv), [arg]) = (call.callee, call.recv, &*call.args)
        else {
            return None;
        };
        if self.cx.names.text(method) != "join" {
            return None;
        }
        let (separator, list) = match (self.cx.syms.as_str(recv), self.cx.syms.as_str(*arg)) {
            (Some(separator), None) => (separator, *arg),
            (None, Some(separator)) => (separator, recv),
            _ => return None,
        };
        let separator = self.cx.names.text(separator);
        let items = self.items(list);
        // Columns that may be set are columns; tests that may be made are none.
        if separator.trim() != "," && items.head < items.list.len() {
            return None;
        }
        let mut pieces = Vec::new();
        for item in items.list {
            pieces.push(self.cx.names.text(self.cx.syms.as_str(item)?));
        }
        Some(pieces.join(separator))
    }

    fn items(&self, list: Sym) -> Items {
        let opaque = Items {
            list: vec![list],
            head: 0,
            tail: 0,
        };
        let given: &[Sym] = match self.cx.syms.kind(list) {
            SymKind::Array(items) => items,
            SymKind::New(..) => &[],
            // `values + [id]`
            SymKind::Call(call) if call.callee == CalleeSym::Method(self.cx.words.op) => {
                let [left, right] = *call.args else {
                    return opaque;
                };
                return self.items(left).and(self.items(right));
            }
            _ => return opaque,
        };
        let mut all = given.to_vec();
        for added in self.stored.get(&list).into_iter().flatten() {
            match self.cx.syms.kind(*added) {
                SymKind::Array(several) => all.extend(several.iter()),
                _ => all.push(*added),
            }
        }
        if all.is_empty() || all.len() > MAX_ITEMS {
            return opaque;
        }
        Items {
            head: given.len(),
            tail: all.len(),
            list: all,
        }
    }

    pub(crate) fn operand(
        &mut self,
        o: &Operand,
        holes: &[Sym],
        params: Option<Sym>,
        count: usize,
    ) -> Option<Sym> {
        match o {
            Operand::Hole(n) => holes.get(*n).copied(),
            Operand::Param(n) => {
                let params = params?;
                let items = self.items(params);
                let sure = *n < items.head || items.list.len() == count;
                match self.cx.syms.kind(params) {
                    _ if sure => items.list.get(*n).copied(),
                    SymKind::Array(given) if given.len() == items.list.len() => None,
                    // One scalar, or a list that is not known item by item.
                    _ => Some(params),
                }
            }
            Operand::Last(n) => {
                let items = self.items(params?);
                (*n < items.tail).then(|| items.list[items.list.len() - 1 - n])
            }
            Operand::Named(name) => {
                let name = self.cx.names.intern(name);
                params.map(|p| match self.cx.syms.kind(p) {
                    SymKind::Array(items) if items.len() == 1 => {
                        let one = items[0];
                        self.cx.syms.field(one, name)
                    }
                    _ => self.cx.syms.field(p, name),
                })
            }
            Operand::Literal(text) => {
                let name = self.cx.names.intern(text);
                Some(self.cx.syms.make(SymKind::Str(name)))
            }
            Operand::Column(_) | Operand::Now | Operand::Other => None,
        }
    }

    /// `SET {columns} WHERE id = ?`: what the columns are set to is among the parameters,
    /// before those that can be counted from the end.
    pub(crate) fn unnamed_values(&self, s: &Statement, params: Option<Sym>) -> Deps {
        let mut out = Deps::default();
        let unnamed = |a: &sql::Assignment| {
            a.column.starts_with(HOLE) && matches!(a.value, Value::Operand(Operand::Hole(_)))
        };
        if !s.assignments.iter().any(unnamed) {
            return out;
        }
        let Some(params) = params else { return out };
        let items = self.items(params);
        let counted = s.conditions.iter().filter_map(|c| match c.operand {
            Operand::Last(n) if n < items.tail => Some(n + 1),
            _ => None,
        });
        let values = items.list.len() - counted.max().unwrap_or(0).min(items.list.len());
        for item in &items.list[..values] {
            out.extend(&self.deps_of(*item));
        }
        out
    }
}

impl Items {
    fn and(mut self, more: Self) -> Self {
        if self.head == self.list.len() {
            self.head += more.head;
        }
        self.tail = if more.tail == more.list.len() {
            more.tail + self.tail
        } else {
            more.tail
        };
        self.list.extend(more.list);
        self
    }
}

/// How many `?` a statement has.
pub(crate) fn parameters(s: &Statement) -> usize {
    let number = |o: &Operand| match o {
        Operand::Param(n) => n + 1,
        _ => 0,
    };
    let assigned = s
        .assignments
        .iter()
        .chain(&s.on_conflict)
        .map(|a| match &a.value {
            Value::Operand(o) => number(o),
            Value::Expression(all) => all.iter().map(number).max().unwrap_or(0),
            Value::Relative => 0,
        });
    let tested = s.conditions.iter().map(|c| number(&c.operand));
    assigned.chain(tested).max().unwrap_or(0)
}

/// A piece of a format.
enum Verb {
    Text(String),
    Value,
}

/// `%s`, `%05d`, `%.2f`: each stands for the next value. Who counts them otherwise (`%[2]s`,
/// `%*d`) is not read.
fn verbs(format: &str) -> Option<Vec<Verb>> {
    let mut out = Vec::new();
    let mut text = String::new();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            text.push(c);
            continue;
        }
        let flag = |c: &char| matches!(c, '+' | '-' | '#' | ' ' | '.') || c.is_ascii_digit();
        match chars.find(|c| !flag(c))? {
            '%' => text.push('%'),
            verb if verb.is_ascii_alphabetic() => {
                if !text.is_empty() {
                    out.push(Verb::Text(std::mem::take(&mut text)));
                }
                out.push(Verb::Value);
            }
            _ => return None,
        }
    }
    if !text.is_empty() {
        out.push(Verb::Text(text));
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::{Verb, verbs};

    fn shown(format: &str) -> Option<String> {
        let shown = |v: &Verb| match v {
            Verb::Text(text) => text.clone(),
            Verb::Value => "{}".to_owned(),
        };
        verbs(format).map(|all| all.iter().map(shown).collect())
    }

    #[test]
    fn formats_are_texts_with_values() {
        assert_eq!(shown("a").as_deref(), Some("a"));
        assert_eq!(shown("%s.v%d").as_deref(), Some("{}.v{}"));
        assert_eq!(shown("%-5s|%05d|%.2f|%+v").as_deref(), Some("{}|{}|{}|{}"));
        assert_eq!(shown("LIKE '%%%s%%'").as_deref(), Some("LIKE '%{}%'"));
        assert_eq!(shown("100%"), None);
        assert_eq!(shown("%[2]s"), None);
        assert_eq!(shown("%*d"), None);
    }
}
