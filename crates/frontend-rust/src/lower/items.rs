//! Items: functions, structs, enums, traits, `impl` blocks, constants, modules.
//!
//! First all names of a module are declared, then the bodies are lowered: the
//! order in which items stand means nothing.

use syn::{Attribute, Fields, ImplItem, Item as Tree, TraitItem};
use toctou_core::Name;
use toctou_core::ir::{
    Class, ClassId, ExportTarget, Extension, Field, FuncId, FuncKind, Op, TypeDef, TypeRef, VarKind,
};

use super::function::Signature;
use super::paths::join;
use super::{Item, Lower, MAX_DEPTH};

/// Where the type of an `impl` block is declared.
#[derive(Clone, Copy)]
enum ImplOf {
    Here(ClassId),
    /// In another file, by its name here.
    Elsewhere(Name),
}

impl Lower<'_> {
    pub(super) fn file(&mut self, tree: &syn::File) {
        if is_test(&tree.attrs) {
            return;
        }
        self.declare(&tree.items);
        self.bodies(&tree.items);
    }

    fn declare(&mut self, items: &[Tree]) {
        let within = self.names.intern(&self.within);
        self.inline.insert(within);
        for item in items {
            match item {
                Tree::Fn(f) if !is_test(&f.attrs) => {
                    self.declare_value(&f.sig.ident.to_string());
                }
                Tree::Const(c) => self.declare_value(&c.ident.to_string()),
                Tree::Static(s) => self.declare_value(&s.ident.to_string()),
                Tree::Struct(s) => self.declare_class(&s.ident, false),
                Tree::Enum(e) => self.declare_class(&e.ident, false),
                Tree::Union(u) => self.declare_class(&u.ident, false),
                Tree::Trait(t) => self.declare_class(&t.ident, true),
                Tree::Type(t) => {
                    let name = self.qualified(&t.ident.to_string());
                    let item = Item {
                        var: None,
                        ty: Some(name),
                        class: None,
                    };
                    self.add_item(&t.ident.to_string(), item);
                }
                Tree::Use(u) if !is_test(&u.attrs) => self.use_item(u, false),
                Tree::ExternCrate(c) => {
                    let path = c.ident.to_string();
                    let alias = match &c.rename {
                        Some((_, name)) => name.to_string(),
                        None => path.clone(),
                    };
                    self.declare_module(&path, &alias);
                }
                Tree::Mod(m) if !is_test(&m.attrs) => match &m.content {
                    None => {
                        let name = m.ident.to_string();
                        let path = join("self", &join(&self.within, &name));
                        self.declare_module(&path, &name);
                    }
                    Some((_, items)) => self.inside(&m.ident.to_string(), |this| {
                        this.declare(items);
                    }),
                },
                Tree::Macro(m) => self.declare_macro(m),
                _ => {}
            }
        }
    }

    pub(super) fn inside(&mut self, name: &str, work: impl FnOnce(&mut Self)) {
        if self.depth >= MAX_DEPTH {
            self.opaque += 1;
            return;
        }
        self.depth += 1;
        let inner = join(&self.within, name);
        let outer = std::mem::replace(&mut self.within, inner);
        work(self);
        self.within = outer;
        self.depth -= 1;
    }

    pub(super) fn qualified(&mut self, name: &str) -> Name {
        let text = join(&self.within, name);
        self.names.intern(&text)
    }

    fn add_item(&mut self, name: &str, item: Item) {
        let within = self.names.intern(&self.within);
        let short = self.names.intern(name);
        // In a block the name is the block's.
        if self.outer.is_empty() {
            self.items.insert((within, short), item);
        } else if let Some(scope) = self.f.scopes.last_mut() {
            scope.items.push((short, item));
        }
        if let Some(var) = item.var {
            let exported = self.qualified(name);
            self.exports.push((exported, ExportTarget::Local(var)));
        }
    }

    pub(super) fn declare_value(&mut self, name: &str) {
        let short = self.names.intern(name);
        let var = self.top_level(short, VarKind::Const);
        let item = Item {
            var: Some(var),
            ty: None,
            class: None,
        };
        self.add_item(name, item);
    }

    fn declare_module(&mut self, path: &str, alias: &str) {
        let var = self.import(path);
        let item = Item {
            var: Some(var),
            ty: None,
            class: None,
        };
        self.add_item(alias, item);
    }

    fn declare_class(&mut self, ident: &syn::Ident, is_interface: bool) {
        let text = ident.to_string();
        let name = self.qualified(&text);
        let class = self.new_class(name, is_interface, self.places.token(ident.span()));
        let short = self.names.intern(&text);
        let var = self.top_level(short, VarKind::Const);
        let item = Item {
            var: Some(var),
            ty: Some(name),
            class: Some(class),
        };
        self.add_type(name, TypeDef::Class(class));
        self.add_item(&text, item);
    }

    pub(super) fn new_class(
        &mut self,
        name: Name,
        is_interface: bool,
        span: toctou_core::Span,
    ) -> ClassId {
        self.classes.push(Class {
            name,
            is_interface,
            extends: None,
            implements: Vec::new(),
            constructor: None,
            methods: Vec::new(),
            fields: Vec::new(),
            word: false,
            table: None,
            unique: Vec::new(),
            exported: true,
            span,
        });
        ClassId(self.classes.len() as u32 - 1)
    }

    // --- bodies ---

    fn bodies(&mut self, items: &[Tree]) {
        for item in items {
            self.body(item);
        }
    }

    /// Items declared in a block: their names, and then their bodies.
    pub(super) fn block_items(&mut self, stmts: &[syn::Stmt]) {
        let has_items = stmts.iter().any(|s| matches!(s, syn::Stmt::Item(_)));
        if !has_items {
            return;
        }
        let items: Vec<Tree> = stmts
            .iter()
            .filter_map(|s| match s {
                syn::Stmt::Item(item) => Some(item.clone()),
                _ => None,
            })
            .collect();
        for item in &items {
            if let Tree::Use(u) = item {
                self.use_item(u, true);
            }
        }
        let rest: Vec<Tree> = items
            .into_iter()
            .filter(|i| !matches!(i, Tree::Use(_)))
            .collect();
        self.declare(&rest);
        self.bodies(&rest);
    }

    fn body(&mut self, item: &Tree) {
        match item {
            Tree::Fn(f) if !is_test(&f.attrs) => {
                let exported = !matches!(f.vis, syn::Visibility::Inherited);
                let id = self.function(Signature {
                    sig: &f.sig,
                    attrs: &f.attrs,
                    block: Some(&f.block),
                    class: None,
                    in_impl: false,
                    of_trait: None,
                    exported,
                });
                self.define_function(&f.sig.ident, id);
            }
            Tree::Const(c) => self.constant(&c.ident, &c.ty, &c.expr),
            Tree::Static(s) => self.constant(&s.ident, &s.ty, &s.expr),
            Tree::Struct(s) => {
                self.structure(&s.ident, &s.generics, &s.fields);
                let marks = self.decorators(&s.attrs);
                if let Some(class) = self.item_here(&s.ident.to_string()).and_then(|i| i.class) {
                    self.note_table(class, s);
                    if !marks.is_empty() {
                        self.class_marks.insert(class, marks);
                    }
                }
            }
            Tree::Union(u) => {
                let fields = Fields::Named(u.fields.clone());
                self.structure(&u.ident, &u.generics, &fields);
            }
            Tree::Enum(e) => self.structure(&e.ident, &e.generics, &Fields::Unit),
            Tree::Trait(t) => self.trait_item(t),
            Tree::Impl(i) if !is_test(&i.attrs) => self.impl_item(i),
            Tree::Type(t) => {
                let added = self.with_generics(&t.generics);
                let name = self.qualified(&t.ident.to_string());
                if let Some(ty) = self.type_ref(&t.ty) {
                    self.add_type(name, TypeDef::Alias(ty));
                }
                self.f.generics.truncate(added);
            }
            Tree::Mod(m) if !is_test(&m.attrs) => {
                if let Some((_, items)) = &m.content {
                    self.inside(&m.ident.to_string(), |this| this.bodies(items));
                }
            }
            Tree::Macro(m) => self.macro_item(m),
            _ => {}
        }
    }

    fn item_here(&mut self, name: &str) -> Option<Item> {
        self.item(name)
    }

    /// Is a type of this name declared in the file?
    pub(crate) fn is_class_here(&mut self, name: &str) -> bool {
        self.item(name).is_some_and(|item| item.class.is_some())
    }

    fn define_function(&mut self, ident: &syn::Ident, id: FuncId) {
        let at = self.places.token(ident.span());
        let value = self.op(at, |dst| Op::Func { dst, func: id });
        self.define(ident, value);
    }

    /// Gives an item its value.
    pub(super) fn define(&mut self, ident: &syn::Ident, value: toctou_core::ir::Var) {
        let at = self.places.token(ident.span());
        if let Some(Item { var: Some(var), .. }) = self.item_here(&ident.to_string()) {
            let cell = toctou_core::ir::Cell {
                owner: FuncId(0),
                var,
            };
            self.emit(at, Op::StoreVar { cell, value });
        }
    }

    pub(super) fn constant(&mut self, ident: &syn::Ident, ty: &syn::Type, expr: &syn::Expr) {
        let ty = self.type_ref(ty);
        if let Some(Item { var: Some(var), .. }) = self.item_here(&ident.to_string()) {
            self.set_top_level_type(var, ty);
        }
        self.push_scope();
        let value = self.expr(expr);
        let at = self.places.token(ident.span());
        self.pop_scope(at, &[]);
        self.define(ident, value);
    }

    fn structure(&mut self, ident: &syn::Ident, generics: &syn::Generics, fields: &Fields) {
        let Some(Item {
            class: Some(class), ..
        }) = self.item_here(&ident.to_string())
        else {
            return;
        };
        let at = self.places.token(ident.span());
        let value = self.op(at, |dst| Op::Class { dst, class });
        self.define(ident, value);
        let added = self.with_generics(generics);
        let mut list = Vec::new();
        for (index, field) in fields.iter().enumerate() {
            let (name, span) = match &field.ident {
                Some(ident) => (ident.to_string(), self.places.token(ident.span())),
                None => (index.to_string(), at),
            };
            list.push(Field {
                name: self.names.intern(&name),
                ty: self.type_ref(&field.ty),
                is_static: false,
                read_only: false,
                word: false,
                span,
            });
        }
        self.f.generics.truncate(added);
        if let Some(class) = self.classes.get_mut(class.0 as usize) {
            class.fields = list;
        }
    }

    fn trait_item(&mut self, t: &syn::ItemTrait) {
        let Some(Item {
            class: Some(class), ..
        }) = self.item_here(&t.ident.to_string())
        else {
            return;
        };
        let at = self.places.token(t.ident.span());
        let value = self.op(at, |dst| Op::Class { dst, class });
        self.define(&t.ident, value);
        let added = self.with_generics(&t.generics);
        // What has the trait has those that it asks for.
        for bound in &t.supertraits {
            if let syn::TypeParamBound::Trait(bound) = bound
                && let Some(name) = self.type_name(&bound.path)
                && let Some(class) = self.classes.get_mut(class.0 as usize)
            {
                class.implements.push(name);
            }
        }
        for item in &t.items {
            let TraitItem::Fn(f) = item else { continue };
            // Without a body it says nothing that the implementations do not say.
            let Some(block) = &f.default else { continue };
            let id = self.function(Signature {
                sig: &f.sig,
                attrs: &f.attrs,
                block: Some(block),
                class: Some(class),
                in_impl: true,
                of_trait: None,
                exported: true,
            });
            self.add_method(class, &f.sig.ident, id);
        }
        self.f.generics.truncate(added);
    }

    fn impl_item(&mut self, i: &syn::ItemImpl) {
        let added = self.with_generics(&i.generics);
        let class = self.impl_class(&i.self_ty);
        let trait_name = match &i.trait_ {
            Some((path, _)) => self.type_name(path),
            None => None,
        };
        if let Some(name) = trait_name
            && let Some(ImplOf::Here(class)) = class
            && let Some(class) = self.classes.get_mut(class.0 as usize)
            && !class.implements.contains(&name)
        {
            class.implements.push(name);
        }
        let old = match class {
            Some(ImplOf::Elsewhere(_)) => self.self_type.replace((*i.self_ty).clone()),
            _ => self.self_type.take(),
        };
        for item in &i.items {
            let ImplItem::Fn(f) = item else { continue };
            if is_test(&f.attrs) {
                continue;
            }
            let exported = i.trait_.is_some() || !matches!(f.vis, syn::Visibility::Inherited);
            let id = self.function(Signature {
                sig: &f.sig,
                attrs: &f.attrs,
                block: Some(&f.block),
                class: match class {
                    Some(ImplOf::Here(class)) => Some(class),
                    _ => None,
                },
                in_impl: true,
                of_trait: trait_name,
                exported,
            });
            match class {
                Some(ImplOf::Here(class)) => self.add_method(class, &f.sig.ident, id),
                Some(ImplOf::Elsewhere(class)) => {
                    let method = self.names.intern(&f.sig.ident.to_string());
                    self.extensions.push(Extension {
                        class,
                        method,
                        func: id,
                        target: None,
                    });
                }
                None => {}
            }
        }
        self.self_type = old;
        self.f.generics.truncate(added);
    }

    fn add_method(&mut self, class: ClassId, ident: &syn::Ident, id: FuncId) {
        let name = self.names.intern(&ident.to_string());
        if let Some(class) = self.classes.get_mut(class.0 as usize) {
            class.methods.push((name, id));
        }
    }

    /// The class that an `impl` block is about.
    fn impl_class(&mut self, ty: &syn::Type) -> Option<ImplOf> {
        if let syn::Type::Path(t) = ty
            && let Some(ident) = t.path.get_ident()
            && let Some(Item {
                class: Some(class), ..
            }) = self.item_here(&ident.to_string())
        {
            return Some(ImplOf::Here(class));
        }
        // `impl Store for Arc<Inner>`, `impl crate::Server`.
        let TypeRef { name, .. } = self.type_ref(ty)?;
        let found = self.types.iter().find(|(n, _)| *n == name);
        match found {
            Some((_, TypeDef::Class(class))) => Some(ImplOf::Here(*class)),
            Some((_, TypeDef::Import(_))) => Some(ImplOf::Elsewhere(name)),
            _ => None,
        }
    }

    pub(super) fn with_generics(&mut self, generics: &syn::Generics) -> usize {
        let before = self.f.generics.len();
        for param in &generics.params {
            if let syn::GenericParam::Type(param) = param {
                let bound = self.bounds(param.bounds.iter(), 0);
                self.f.generics.push((param.ident.to_string(), bound));
            }
        }
        for predicate in generics.where_clause.iter().flat_map(|w| &w.predicates) {
            if let syn::WherePredicate::Type(p) = predicate
                && let syn::Type::Path(t) = &p.bounded_ty
                && let Some(ident) = t.path.get_ident()
            {
                let bound = self.bounds(p.bounds.iter(), 0);
                let name = ident.to_string();
                if bound.is_some()
                    && let Some(slot) = self.f.generics.iter_mut().rev().find(|(n, _)| *n == name)
                {
                    slot.1 = bound;
                }
            }
        }
        before
    }
}

/// `#[cfg(test)]`, `#[test]`, `#[tokio::test]`: not part of the product.
pub(super) fn is_test(attrs: &[Attribute]) -> bool {
    attrs.iter().any(|attr| {
        let path = attr.path();
        let Some(last) = path.segments.last() else {
            return false;
        };
        if last.ident == "test" || last.ident == "bench" || last.ident == "rstest" {
            return true;
        }
        if last.ident != "cfg" {
            return false;
        }
        match &attr.meta {
            syn::Meta::List(list) => {
                let mut words = list.tokens.clone().into_iter();
                match words.next() {
                    Some(proc_macro2::TokenTree::Ident(first)) if first == "test" => true,
                    // `all(test, …)`; `not(test)` is the product.
                    Some(proc_macro2::TokenTree::Ident(first))
                        if first == "all" || first == "any" =>
                    {
                        matches!(words.next(), Some(proc_macro2::TokenTree::Group(g))
                            if g.stream().into_iter().any(|t| t.to_string() == "test"))
                    }
                    _ => false,
                }
            }
            _ => false,
        }
    })
}

/// Attributes by dotted path, `#[tool(…)]` and `#[rmcp::tool]`.
pub(super) fn attribute_path(attr: &Attribute) -> Option<String> {
    let path = super::paths::segments(attr.path());
    let text = path.join("::");
    let ignored = matches!(
        text.as_str(),
        "doc"
            | "allow"
            | "cfg"
            | "cfg_attr"
            | "derive"
            | "inline"
            | "must_use"
            | "warn"
            | "deny"
            | "expect"
            | "serde"
            | "deprecated"
            | "track_caller"
            | "cold"
    );
    (!ignored && !text.is_empty()).then_some(text)
}

pub(super) const fn kind_of(has_receiver: bool, in_class: bool) -> FuncKind {
    match (in_class, has_receiver) {
        (true, true) => FuncKind::Method,
        (true, false) => FuncKind::StaticMethod,
        _ => FuncKind::Function,
    }
}
