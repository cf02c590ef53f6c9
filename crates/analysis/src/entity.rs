//! Names for what libraries export: `fs/promises` + `readFile`, `pg` + `Pool#query`.

use rustc_hash::FxHashMap;
use toctou_core::{Name, Names};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EntityId(pub u32);

/// A library's module, and a path below it. `instance` means an object of the
/// type that the path names; otherwise it is the thing itself.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Entity {
    pub module: Name,
    pub path: Name,
    pub instance: bool,
}

#[derive(Default)]
pub struct Entities {
    map: FxHashMap<Entity, EntityId>,
    /// What was asked for before.
    members: FxHashMap<(EntityId, Name), Option<EntityId>>,
    list: Vec<Entity>,
}

pub const GLOBAL: &str = "<global>";

impl Entities {
    pub fn make(&mut self, entity: Entity) -> EntityId {
        *self.map.entry(entity).or_insert_with(|| {
            self.list.push(entity);
            EntityId(self.list.len() as u32 - 1)
        })
    }

    pub fn get(&self, id: EntityId) -> Entity {
        self.list[id.0 as usize]
    }

    /// `fs` + `promises`; `Pool` instance + `query` = `Pool#query`.
    /// `None` past a sane length, so that a cycle cannot grow names for ever.
    pub fn member(&mut self, id: EntityId, field: Name, names: &mut Names) -> Option<EntityId> {
        if let Some(known) = self.members.get(&(id, field)) {
            return *known;
        }
        let member = self.make_member(id, field, names);
        self.members.insert((id, field), member);
        member
    }

    fn make_member(&mut self, id: EntityId, field: Name, names: &mut Names) -> Option<EntityId> {
        let entity = self.get(id);
        let path = names.text(entity.path);
        let field_text = names.text(field);
        // `import x from "lib"` and `import * as x` are the same object to us.
        if !entity.instance && field_text == "default" {
            return Some(id);
        }
        let text = if path.is_empty() {
            field_text.to_owned()
        } else if path.len() > 80 {
            return None;
        } else {
            let joiner = if entity.instance && !path.contains('#') {
                '#'
            } else {
                '.'
            };
            format!("{path}{joiner}{field_text}")
        };
        let path = names.intern(&text);
        Some(self.make(Entity {
            module: entity.module,
            path,
            instance: false,
        }))
    }
}
