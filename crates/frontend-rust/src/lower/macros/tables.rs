//! Tables: `table! { users (id) { name -> Text, } }` is a module with the table and its columns,
//! and a struct whose attribute says `table_name` is a row of one.
//!
//! A table is a class of its name; its columns are constants, the texts that they are called in
//! the database.

use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};
use syn::{Attribute, Meta};

use super::super::Lower;
use toctou_core::ir::{Cell, ClassId, ExportTarget, FuncId, Op, VarKind};

/// What `table! { … }` declares.
struct Table {
    name: Ident,
    keys: Vec<Ident>,
    columns: Vec<Ident>,
}

impl Lower<'_> {
    /// The names of the module that the macro stands for.
    pub(super) fn declare_table(&mut self, m: &syn::ItemMacro) {
        let Some(table) = table(m) else { return };
        let name = table.name.to_string();
        self.in_table(&name, |this| {
            this.declare_value("table");
            for column in &table.columns {
                this.declare_value(&column.to_string());
            }
            this.in_table("dsl", |this| {
                this.declare_value(&name);
                for column in &table.columns {
                    this.declare_value(&column.to_string());
                }
            });
        });
    }

    pub(super) fn table_item(&mut self, m: &syn::ItemMacro) {
        let Some(table) = table(m) else { return };
        let name = plain(&table.name);
        let interned = self.names.intern(&name);
        let at = self.places.token(table.name.span());
        let class = self.new_class(interned, false, at);
        let keys: Vec<_> = table
            .keys
            .iter()
            .map(|k| self.names.intern(&plain(k)))
            .collect();
        if let Some(class) = self.classes.get_mut(class.0 as usize) {
            class.table = Some(interned);
            // Of several, all together are what no two rows have.
            if let [key] = *keys {
                class.unique.push(key);
            }
        }
        let short = Ident::new("table", table.name.span());
        self.in_table(&table.name.to_string(), |this| {
            this.define_table(&short, class);
            this.define_columns(&table.columns);
            this.in_table("dsl", |this| {
                this.define_table(&table.name, class);
                this.define_columns(&table.columns);
            });
        });
        // Where the module's name stands for a value, it is the table's, which a star has brought.
        let exported = self.qualified(&table.name.to_string());
        let value = self.top_level(interned, VarKind::Const);
        let made = self.op(at, |dst| Op::Class { dst, class });
        let cell = Cell {
            owner: FuncId(0),
            var: value,
        };
        self.emit(at, Op::StoreVar { cell, value: made });
        self.exports.push((exported, ExportTarget::Local(value)));
    }

    fn in_table(&mut self, name: &str, work: impl FnOnce(&mut Self)) {
        self.inside(name, |this| {
            let within = this.names.intern(&this.within);
            this.inline.insert(within);
            work(this);
        });
    }

    fn define_table(&mut self, ident: &Ident, class: ClassId) {
        let at = self.places.token(ident.span());
        let value = self.op(at, |dst| Op::Class { dst, class });
        self.define(ident, value);
    }

    fn define_columns(&mut self, columns: &[Ident]) {
        for column in columns {
            let at = self.places.token(column.span());
            let value = self.string(at, &plain(column));
            self.define(column, value);
        }
    }

    /// A struct is a row of the table that its attributes name.
    pub(in crate::lower) fn note_table(&mut self, class: ClassId, item: &syn::ItemStruct) {
        let Some(table) = item.attrs.iter().find_map(table_name) else {
            return;
        };
        let table = self.names.intern(&table);
        let mut unique = Vec::new();
        for field in &item.fields {
            let once = |a: &Attribute| has_word(a, "unique") || has_word(a, "primary_key");
            if let Some(ident) = &field.ident
                && field.attrs.iter().any(once)
            {
                unique.push(self.names.intern(&plain(ident)));
            }
        }
        if let Some(class) = self.classes.get_mut(class.0 as usize) {
            class.table = Some(table);
            class.unique = unique;
        }
    }
}

/// `r#type` is the column `type`.
fn plain(ident: &Ident) -> String {
    let text = ident.to_string();
    text.strip_prefix("r#").map(str::to_owned).unwrap_or(text)
}

fn table(m: &syn::ItemMacro) -> Option<Table> {
    if m.mac.path.segments.last()?.ident != "table" {
        return None;
    }
    let mut name = None;
    let mut keys = Vec::new();
    let mut tokens = m.mac.tokens.clone().into_iter();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Ident(word) if word == "use" => {
                tokens.by_ref().find(|t| is_sign(t, ';'));
            }
            TokenTree::Ident(ident) => name = Some(ident),
            TokenTree::Group(group) if group.delimiter() == Delimiter::Parenthesis => {
                keys.extend(group.stream().into_iter().filter_map(|t| match t {
                    TokenTree::Ident(ident) => Some(ident),
                    _ => None,
                }));
            }
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                return Some(Table {
                    name: name?,
                    keys,
                    columns: columns(group.stream()),
                });
            }
            // Attributes, and the dot behind a schema.
            TokenTree::Group(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
    None
}

/// `name -> Text,`
fn columns(stream: TokenStream) -> Vec<Ident> {
    let mut out = Vec::new();
    let mut before: Option<Ident> = None;
    let mut tokens = stream.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let arrow = is_sign(&token, '-') && tokens.peek().is_some_and(|t| is_sign(t, '>'));
        match token {
            TokenTree::Ident(ident) => before = Some(ident),
            _ if arrow => out.extend(before.take()),
            _ => before = None,
        }
    }
    out
}

fn is_sign(token: &TokenTree, sign: char) -> bool {
    matches!(token, TokenTree::Punct(p) if p.as_char() == sign)
}

/// `#[diesel(table_name = users)]`, `#[sea_orm(table_name = "users")]`, `#[table_name = "users"]`
fn table_name(attr: &Attribute) -> Option<String> {
    let tokens = match &attr.meta {
        Meta::List(list) => list.tokens.clone(),
        Meta::NameValue(pair) if pair.path.is_ident("table_name") => {
            let syn::Expr::Lit(lit) = &pair.value else {
                return None;
            };
            let syn::Lit::Str(text) = &lit.lit else {
                return None;
            };
            return Some(text.value());
        }
        _ => return None,
    };
    let mut tokens = tokens
        .into_iter()
        .skip_while(|t| !matches!(t, TokenTree::Ident(i) if i == "table_name"))
        .skip(1);
    if !tokens.next().is_some_and(|t| is_sign(&t, '=')) {
        return None;
    }
    let mut name = None;
    for token in tokens {
        match token {
            TokenTree::Ident(ident) => name = Some(plain(&ident)),
            TokenTree::Literal(text) => {
                return syn::parse_str::<syn::LitStr>(&text.to_string())
                    .ok()
                    .map(|t| t.value());
            }
            TokenTree::Punct(p) if p.as_char() == ',' => break,
            _ => {}
        }
    }
    name
}

fn has_word(attr: &Attribute, word: &str) -> bool {
    let Meta::List(list) = &attr.meta else {
        return false;
    };
    let mut tokens = list.tokens.clone().into_iter();
    tokens.any(|t| matches!(t, TokenTree::Ident(i) if i == word))
}
