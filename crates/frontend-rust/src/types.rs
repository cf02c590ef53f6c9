//! Types, as far as they name something.
//!
//! No type checker: pointers, options, results and guards are peeled off, and
//! `Vec<Store>` is an array with element `Store`. What is left is the name as
//! the file sees it, with its last type argument as element: `Mutex<Store>`.

use syn::{GenericArgument, PathArguments, ReturnType, Type, TypeParamBound};
use toctou_core::ir::TypeRef;

use crate::lower::Lower;

/// `Vec<Vec<Vec<…>>>`: deeper elements help nobody.
const MAX_DEPTH: u32 = 16;

/// What holds exactly one value and adds nothing that is asked about.
const PEELED: &[&str] = &[
    "Arc",
    "Rc",
    "Box",
    "Option",
    "Result",
    "Cow",
    "Pin",
    "Weak",
    "Ref",
    "RefMut",
    "LazyLock",
    "LazyCell",
    "Lazy",
    "ManuallyDrop",
    "MutexGuard",
    "OwnedMutexGuard",
    "RwLockReadGuard",
    "RwLockWriteGuard",
    "OwnedRwLockReadGuard",
    "OwnedRwLockWriteGuard",
    "MappedMutexGuard",
    "Poll",
    "Future",
    "BoxFuture",
    "LocalBoxFuture",
    "PhantomData",
    "Reverse",
    "BufReader",
    "BufWriter",
    "LineWriter",
    "Lines",
];
/// What frameworks hand to handlers; each has the methods of what it holds. Paths and texts have
/// such names, too, so they count with something in them only.
const HANDED: &[&str] = &["Data", "State", "Extension"];
const ARRAYS: &[&str] = &[
    "Vec",
    "VecDeque",
    "LinkedList",
    "BinaryHeap",
    "SmallVec",
    "ArrayVec",
];
const MAPS: &[&str] = &[
    "HashMap",
    "BTreeMap",
    "IndexMap",
    "FxHashMap",
    "AHashMap",
    "Map",
];
const SETS: &[&str] = &["HashSet", "BTreeSet", "IndexSet", "FxHashSet", "AHashSet"];
const PLAIN: &[&str] = &[
    "str", "String", "bool", "char", "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16",
    "i32", "i64", "i128", "isize", "f32", "f64",
];

impl Lower<'_> {
    pub(crate) fn type_ref(&mut self, ty: &Type) -> Option<TypeRef> {
        self.convert(ty, 0)
    }

    pub(crate) fn returned_type(&mut self, ty: &ReturnType) -> Option<TypeRef> {
        match ty {
            ReturnType::Default => None,
            ReturnType::Type(_, ty) => self.type_ref(ty),
        }
    }

    fn convert(&mut self, ty: &Type, depth: u32) -> Option<TypeRef> {
        if depth > MAX_DEPTH {
            return None;
        }
        match ty {
            Type::Reference(t) => self.convert(&t.elem, depth + 1),
            Type::Paren(t) => self.convert(&t.elem, depth + 1),
            Type::Group(t) => self.convert(&t.elem, depth + 1),
            Type::Ptr(t) => self.convert(&t.elem, depth + 1),
            Type::Slice(t) => self.array_of(&t.elem, depth),
            Type::Array(t) => self.array_of(&t.elem, depth),
            Type::ImplTrait(t) => self.bounds(t.bounds.iter(), depth),
            Type::TraitObject(t) => self.bounds(t.bounds.iter(), depth),
            Type::Path(t) if t.qself.is_none() => self.named(&t.path, depth),
            _ => None,
        }
    }

    fn array_of(&mut self, element: &Type, depth: u32) -> Option<TypeRef> {
        let element = self.convert(element, depth + 1).map(Box::new);
        Some(TypeRef {
            name: self.names.intern("Array"),
            element,
        })
    }

    /// The first trait that says something: `dyn Store + Send` is `Store`.
    pub(crate) fn bounds<'b>(
        &mut self,
        mut bounds: impl Iterator<Item = &'b TypeParamBound>,
        depth: u32,
    ) -> Option<TypeRef> {
        bounds.find_map(|bound| {
            let TypeParamBound::Trait(bound) = bound else {
                return None;
            };
            let last = bound.path.segments.last()?;
            match last.ident.to_string().as_str() {
                "Send" | "Sync" | "Sized" | "Unpin" | "Clone" | "Copy" | "Debug" | "Fn"
                | "FnMut" | "FnOnce" => None,
                _ => self.named(&bound.path, depth + 1),
            }
        })
    }

    fn named(&mut self, path: &syn::Path, depth: u32) -> Option<TypeRef> {
        let last = path.segments.last()?;
        let text = last.ident.to_string();
        let args: Vec<&Type> = match &last.arguments {
            PathArguments::AngleBracketed(list) => list
                .args
                .iter()
                .filter_map(|arg| match arg {
                    GenericArgument::Type(ty) => Some(ty),
                    GenericArgument::AssocType(a) if a.ident == "Output" || a.ident == "Item" => {
                        Some(&a.ty)
                    }
                    _ => None,
                })
                .collect(),
            _ => Vec::new(),
        };
        if PEELED.contains(&text.as_str()) {
            return self.convert(args.first()?, depth + 1);
        }
        if let ([held], true) = (args.as_slice(), HANDED.contains(&text.as_str()))
            && !self.is_class_here(&text)
        {
            return self.convert(held, depth + 1);
        }
        if path.segments.len() == 1 {
            if PLAIN.contains(&text.as_str()) {
                return None;
            }
            if let Some(bound) = self.generic(&text) {
                return bound;
            }
        }
        let canonical = if ARRAYS.contains(&text.as_str()) {
            Some("Array")
        } else if MAPS.contains(&text.as_str()) {
            Some("Map")
        } else if SETS.contains(&text.as_str()) {
            Some("Set")
        } else {
            None
        };
        // The last argument is what is held: `Map<K, V>`, `Mutex<T>`.
        let element = args
            .last()
            .and_then(|ty| self.convert(ty, depth + 1))
            .map(Box::new);
        if let Some(canonical) = canonical {
            return Some(TypeRef {
                name: self.names.intern(canonical),
                element,
            });
        }
        let name = self.type_name(path)?;
        Some(TypeRef { name, element })
    }

    /// Some: a type parameter is meant, and the trait that it stands for.
    fn generic(&self, name: &str) -> Option<Option<TypeRef>> {
        std::iter::once(&self.f)
            .chain(self.outer.iter().rev())
            .find_map(|f| f.generics.iter().find(|(n, _)| n == name))
            .map(|(_, bound)| bound.clone())
    }

    /// The type that an initialiser states: `Mutex::new(HashMap::new())`, `Store { … }`.
    pub(crate) fn type_of_value(&mut self, e: &syn::Expr) -> Option<TypeRef> {
        self.stated(e, 0)
    }

    fn stated(&mut self, e: &syn::Expr, depth: u32) -> Option<TypeRef> {
        if depth > MAX_DEPTH {
            return None;
        }
        match e {
            syn::Expr::Paren(x) => self.stated(&x.expr, depth + 1),
            syn::Expr::Reference(x) => self.stated(&x.expr, depth + 1),
            syn::Expr::Struct(x) => self.named(&x.path, depth),
            syn::Expr::Cast(x) => self.convert(&x.ty, depth),
            syn::Expr::Call(x) => {
                let syn::Expr::Path(p) = &*x.func else {
                    return None;
                };
                let segments = &p.path.segments;
                let (last, count) = (segments.last()?, segments.len());
                if matches!(last.ident.to_string().as_str(), "Some" | "Ok") && count == 1 {
                    return self.stated(x.args.first()?, depth + 1);
                }
                if count < 2 || last.ident != "new" && last.ident != "default" {
                    return None;
                }
                let ty = segments.iter().nth(count - 2)?;
                let text = ty.ident.to_string();
                if PEELED.contains(&text.as_str()) {
                    return self.stated(x.args.first()?, depth + 1);
                }
                let canonical = if MAPS.contains(&text.as_str()) {
                    Some("Map")
                } else if SETS.contains(&text.as_str()) {
                    Some("Set")
                } else if ARRAYS.contains(&text.as_str()) {
                    Some("Array")
                } else {
                    None
                };
                if let Some(canonical) = canonical {
                    return Some(TypeRef {
                        name: self.names.intern(canonical),
                        element: None,
                    });
                }
                let element = x
                    .args
                    .first()
                    .and_then(|arg| self.stated(arg, depth + 1))
                    .map(Box::new);
                let mut path = p.path.clone();
                path.segments.pop();
                path.segments.pop_punct();
                let name = self.type_name(&path)?;
                Some(TypeRef { name, element })
            }
            _ => None,
        }
    }
}

/// Does a function of this type give back an `Option`?
pub(crate) fn is_option(ty: &ReturnType) -> bool {
    let ReturnType::Type(_, ty) = ty else {
        return false;
    };
    let Type::Path(t) = &**ty else { return false };
    t.path.segments.last().is_some_and(|s| s.ident == "Option")
}
