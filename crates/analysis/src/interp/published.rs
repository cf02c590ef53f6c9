//! What is exchanged for another one as a whole, and what is put there.
//!
//! `s.snap.Store(s.working.clone())`, and who wants to look takes `s.snap.Load()`: nobody writes
//! to what they look at. That holds as long as each thing that is put there is new, and leads to
//! nothing that others have.

use super::Interp;
use super::access::Owner;
use crate::calls::CallView;
use crate::library::EffectRule;
use crate::linkage::TypeTarget;
use crate::sym::{Sym, SymKind};
use toctou_core::Name;
use toctou_models::Do;

/// Fields of a new thing that are looked at.
const MAX_PARTS: usize = 64;

impl Interp<'_, '_, '_> {
    /// The field whose exchanged thing a place is in.
    pub(crate) fn published_by(&self, mut sym: Sym) -> Option<Name> {
        while let SymKind::Field(base, _) | SymKind::Index(base, _) | SymKind::Element(base) =
            *self.cx.syms.kind(sym)
        {
            if let SymKind::Field(place, name) = *self.cx.syms.kind(sym)
                && name == self.cx.words.published
                && let SymKind::Field(_, pointer) = *self.cx.syms.kind(place)
            {
                return Some(pointer);
            }
            sym = base;
        }
        None
    }

    /// A library puts a value into a field.
    pub(crate) fn note_published(&mut self, effect: &EffectRule, view: &CallView<'_>) {
        if effect.effect.r#do != Do::Write || !self.is_racy() {
            return;
        }
        let place = effect.key.as_ref().and_then(|p| self.place(p, view));
        let value = effect.value.as_ref().and_then(|p| self.place(p, view));
        if let (Some(place), Some(value)) = (place, value)
            && let SymKind::Field(_, pointer) = *self.cx.syms.kind(place)
        {
            let fresh = self.is_new_throughout(value);
            let known = self.cx.published.entry(pointer).or_insert(fresh);
            *known &= fresh;
        }
    }

    /// Is it nobody else's, and all that it leads to?
    fn is_new_throughout(&mut self, value: Sym) -> bool {
        let origin = self.origin(value);
        if self.owner_of(origin) != Owner::Own
            || self.owners_inside(value) != (Owner::Own, Owner::Own)
        {
            return false;
        }
        let parts: Vec<Sym> = match self.cx.syms.kind(value) {
            SymKind::Object(parts) => parts.iter().map(|p| p.1).take(MAX_PARTS).collect(),
            _ => Vec::new(),
        };
        parts.into_iter().all(|part| {
            let origin = self.origin(part);
            self.owner_of(origin) == Owner::Own || self.is_plain_value(origin)
        })
    }

    /// Does a value refer to nothing that anybody changes? A field of a built-in type has no type
    /// that is known here: a number, a text, or a list whose entries somebody would have to set.
    fn is_plain_value(&mut self, sym: Sym) -> bool {
        let SymKind::Field(base, name) = *self.cx.syms.kind(sym) else {
            return false;
        };
        let Some(class) = self.class_of(base, 0) else {
            return false;
        };
        let cx = &mut *self.cx;
        let Some((module, ty)) = cx.linkage.field_type(cx.program, &cx.entities, class, name)
        else {
            let fields = &cx.program.classes[class.0 as usize].fields;
            let declared = fields.iter().any(|f| f.name == name);
            return declared
                && !cx.changed_fields.contains(&name)
                && !cx.indexed_fields.contains(&name);
        };
        let target =
            cx.linkage
                .type_target(cx.program, module, ty, &mut cx.names, &mut cx.entities);
        matches!(target, Some(TypeTarget::Ext(_))) && ty.element.is_none()
    }
}
