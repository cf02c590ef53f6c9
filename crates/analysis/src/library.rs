//! Models, made ready for asking: places parsed, names resolved, answers kept.

use std::rc::Rc;

use rustc_hash::FxHashMap;
use toctou_core::finding::EntryKind;
use toctou_core::{Name, Names};
use toctou_models::{
    CallModel, Callback, ChainModel, Effect, EntryModel, Models, Place, PlaceExpr, ResultModel,
    TypeName, When,
};

use crate::entity::{Entities, Entity, EntityId, GLOBAL};

/// What a call does, ready for use.
pub struct Call {
    pub effects: Vec<EffectRule>,
    pub callbacks: Vec<CallbackRule>,
    pub result: ResultRule,
    pub result_type: Option<EntityId>,
    pub min_args: usize,
    pub max_args: usize,
    pub when: Vec<WhenRule>,
    /// Known by the method's name alone.
    pub duck: bool,
    /// … which leaves no doubt.
    pub sure: bool,
    /// Only on a receiver that another call has shown to be a table.
    pub known_table: bool,
    /// Only where nothing in the syntax undoes it.
    pub by_hand: bool,
    pub clock: Option<toctou_models::Clock>,
    /// What comes back is the call's own.
    pub own: bool,
    /// Clients are let in by it.
    pub lets_in: Option<toctou_models::Door>,
    /// Arguments that say of a column that it has nothing twice.
    /// It gives the receiver itself, to be gone through.
    pub view: bool,
    pub unique_if: Vec<String>,
    /// Its arguments are columns that have nothing twice, together.
    pub unique_over: bool,
    /// The variables that are given what the call says.
    pub fills: Option<PlaceExpr>,
}

impl Call {
    /// Does it ask a service that is not this program's?
    pub fn asks_outside(&self) -> bool {
        let mut effects = self.effects.iter();
        effects.any(|e| e.effect.resource == Some(toctou_core::finding::ResourceKind::External))
    }
}

pub struct EffectRule {
    pub effect: Effect,
    pub key: Option<PlaceExpr>,
    pub entry: Option<PlaceExpr>,
    pub value: Option<PlaceExpr>,
    pub filter: Option<PlaceExpr>,
    pub update: Option<PlaceExpr>,
    pub sql: Option<PlaceExpr>,
    pub params: Option<PlaceExpr>,
    pub callback: Option<PlaceExpr>,
    pub permits: Option<PlaceExpr>,
    pub locking: Option<PlaceExpr>,
    pub idempotency: Vec<PlaceExpr>,
    pub when: Vec<WhenRule>,
}

pub struct CallbackRule {
    pub place: PlaceExpr,
    pub args: Option<PlaceExpr>,
    pub callback: Callback,
}

impl Call {
    /// Is it about rows only, whatever else may have a method of that name?
    pub fn is_of_rows(&self) -> bool {
        self.when.iter().any(|w| w.when.row && !w.when.not)
    }
}

pub struct WhenRule {
    pub place: PlaceExpr,
    pub when: When,
}

pub struct EntryRule {
    pub kind: EntryKind,
    pub name: Option<PlaceExpr>,
    pub handler: PlaceExpr,
    pub min_args: usize,
    pub when: Vec<WhenRule>,
    pub dispatches: bool,
    pub thread: bool,
    pub converts: bool,
    pub word: Option<String>,
}

pub struct ChainRule {
    pub steps: Vec<Name>,
    pub without: Vec<Name>,
    pub effects: Vec<EffectRule>,
    pub filter_steps: Vec<Name>,
    /// Steps that run it, and with which it ends.
    pub run_by: Vec<Name>,
    pub set_steps: Vec<Name>,
    pub exclusive_steps: Vec<Name>,
    pub returning_steps: Vec<Name>,
    pub locking_steps: Vec<Name>,
    /// It only builds a statement, for somebody to run.
    pub built: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResultRule {
    /// Depends on all operands.
    Default,
    Read,
    /// What was read, which was put there whole for others to look at.
    Published,
    Fresh,
    Join,
    /// The receiver, with the arguments behind it.
    Below,
    /// Another value like the receiver.
    Copy,
    /// What the callback gave back.
    Returned,
    Recv,
    /// The receiver, or argument 0 where it holds nothing.
    Either,
    Element,
    Array,
    None,
    /// Known by what it was made with.
    Made,
    /// A text with the arguments in it.
    Format,
    /// A list, and more behind it.
    Added,
    /// A list of what the fields of argument 0 hold.
    Values,
    /// A list of pairs, each a field's name and what it holds.
    Pairs,
    Table,
    /// A table that has argument 0 make what is not there.
    Makes,
    /// The receiver, to be gone through: what it holds, each with its name.
    Entries,
    /// A field or method of argument 0, whichever is asked for.
    Member,
    /// A list of all of them, each with its name.
    Members,
    Arg(usize),
}

/// Models and the answers given so far.
pub struct Library<'m> {
    models: &'m Models,
    calls: FxHashMap<EntityId, Rc<[Rc<Call>]>>,
    methods: FxHashMap<Name, Rc<[Rc<Call>]>>,
    entries: FxHashMap<EntityId, Rc<[Rc<EntryRule>]>>,
    duck_entries: FxHashMap<Name, Rc<[Rc<EntryRule>]>>,
    chains: Option<Rc<[Rc<ChainRule>]>>,
    known: FxHashMap<EntityId, bool>,
    empty: Rc<[Rc<Call>]>,
}

impl<'m> Library<'m> {
    pub fn new(models: &'m Models) -> Self {
        Self {
            models,
            calls: FxHashMap::default(),
            methods: FxHashMap::default(),
            entries: FxHashMap::default(),
            duck_entries: FxHashMap::default(),
            chains: None,
            known: FxHashMap::default(),
            empty: Rc::from([]),
        }
    }

    pub fn calls(
        &mut self,
        id: EntityId,
        entities: &mut Entities,
        names: &mut Names,
    ) -> Rc<[Rc<Call>]> {
        if let Some(found) = self.calls.get(&id) {
            return Rc::clone(found);
        }
        let entity = entities.get(id);
        let path = if entity.instance {
            format!("{}#()", names.text(entity.path))
        } else {
            names.text(entity.path).to_owned()
        };
        let found = self.models.call(names.text(entity.module), &path);
        let rules: Rc<[Rc<Call>]> = match found {
            None => Rc::clone(&self.empty),
            Some(list) => list
                .iter()
                .map(|m| {
                    let ty = m
                        .result_type
                        .as_ref()
                        .map(|t| make_type(t, entities, names));
                    Rc::new(compile(&m.model, ty, false))
                })
                .collect(),
        };
        self.calls.insert(id, Rc::clone(&rules));
        rules
    }

    /// Does a method make another list of the one that it is called on, entry by entry?
    pub fn makes_list(&self, name: Name, names: &Names) -> bool {
        let is_recv =
            |r: &Option<ResultModel>| matches!(r, Some(ResultModel::Word(w)) if w == "recv");
        self.models.method(names.text(name)).iter().any(|m| {
            let made = is_recv(&m.result) || m.callbacks.iter().any(|c| c.returns);
            m.effects.is_empty() && !m.callbacks.is_empty() && made
        })
    }

    pub fn methods(
        &mut self,
        name: Name,
        entities: &mut Entities,
        names: &mut Names,
    ) -> Rc<[Rc<Call>]> {
        if let Some(found) = self.methods.get(&name) {
            return Rc::clone(found);
        }
        let list = self.models.method(names.text(name));
        let rules: Rc<[Rc<Call>]> = list
            .iter()
            .map(|m| {
                let ty = m
                    .result_type
                    .as_ref()
                    .map(|t| make_type(t, entities, names));
                Rc::new(compile(&m.model, ty, true))
            })
            .collect();
        self.methods.insert(name, Rc::clone(&rules));
        rules
    }

    /// What a method of a text does to its letters.
    pub fn letters(&self, method: &str) -> Option<toctou_models::Letters> {
        self.models.method(method).iter().find_map(|m| m.letters)
    }

    pub fn entries(
        &mut self,
        id: EntityId,
        entities: &Entities,
        names: &Names,
    ) -> Rc<[Rc<EntryRule>]> {
        let models = self.models;
        Rc::clone(self.entries.entry(id).or_insert_with(|| {
            let entity = entities.get(id);
            let mut path = names.text(entity.path).to_owned();
            if entity.instance {
                path.push_str("#()");
            }
            models
                .entries_for(names.text(entity.module), &path)
                .iter()
                .filter_map(|m| entry(&m.model))
                .collect()
        }))
    }

    pub fn duck_entries(&mut self, method: Name, names: &Names) -> Rc<[Rc<EntryRule>]> {
        let models = self.models;
        Rc::clone(self.duck_entries.entry(method).or_insert_with(|| {
            models
                .duck_entries(names.text(method))
                .iter()
                .filter_map(|m| entry(&m.model))
                .collect()
        }))
    }

    /// Classes of the library whose subclasses' methods are handlers.
    pub fn class_entries(
        &self,
        id: EntityId,
        entities: &Entities,
        names: &Names,
    ) -> &'m [toctou_models::ClassEntryModelRef] {
        let entity = entities.get(id);
        self.models
            .class_entries(names.text(entity.module), names.text(entity.path))
    }

    pub fn export_entries(
        &self,
    ) -> impl Iterator<Item = (&'m [String], &'m toctou_models::ExportEntryModel)> {
        self.models.export_entries()
    }

    pub fn any_class_entries(&self) -> &'m [toctou_models::ClassEntryModelRef] {
        self.models.any_class_entries()
    }

    /// Handlers by the decorator, attribute or trait that they are marked with.
    pub fn marked_entries(
        &self,
        id: EntityId,
        entities: &Entities,
        names: &Names,
    ) -> &'m [toctou_models::MarkedEntryModelRef] {
        let entity = entities.get(id);
        self.models
            .marked_entries(names.text(entity.module), names.text(entity.path))
    }

    /// Can shared memory be changed through this type?
    pub fn is_holder(&self, id: EntityId, entities: &Entities, names: &Names) -> bool {
        let entity = entities.get(id);
        self.models
            .is_holder(names.text(entity.module), names.text(entity.path))
    }

    /// Is an object of the class a row of a table?
    pub fn is_record(&self, id: EntityId, entities: &Entities, names: &Names) -> bool {
        let entity = entities.get(id);
        self.models
            .is_record(names.text(entity.module), names.text(entity.path))
    }

    pub fn is_record_field(&self, field: Name, names: &Names) -> bool {
        self.models.is_record_field(names.text(field))
    }

    /// Does the error say that a row is there already?
    pub fn is_conflict(&self, id: EntityId, entities: &Entities, names: &Names) -> bool {
        let entity = entities.get(id);
        self.models
            .is_conflict(names.text(entity.module), names.text(entity.path))
    }

    pub fn is_own_to_process(&self, id: EntityId, entities: &Entities, names: &Names) -> bool {
        let entity = entities.get(id);
        self.models
            .is_own_to_process(names.text(entity.module), names.text(entity.path))
    }

    pub fn is_own_to_thread(&self, id: EntityId, entities: &Entities, names: &Names) -> bool {
        let entity = entities.get(id);
        let (module, path) = (names.text(entity.module), names.text(entity.path));
        entity.instance && self.models.is_own_to_thread(module, path)
    }

    /// Does going through a table fail if somebody adds to it meanwhile?
    pub fn fails_if_changed(&self) -> bool {
        self.models.fails_if_changed()
    }

    pub fn chains(&mut self, names: &mut Names) -> Rc<[Rc<ChainRule>]> {
        if let Some(chains) = &self.chains {
            return Rc::clone(chains);
        }
        let chains: Rc<[Rc<ChainRule>]> = self
            .models
            .chains()
            .iter()
            .map(|m| Rc::new(chain(&m.model, names)))
            .collect();
        self.chains = Some(Rc::clone(&chains));
        chains
    }

    /// Is there anything to say about it, or about something below it?
    pub fn knows(&mut self, id: EntityId, entities: &Entities, names: &Names) -> bool {
        let models = self.models;
        *self.known.entry(id).or_insert_with(|| {
            let entity = entities.get(id);
            models.knows_path(names.text(entity.module), names.text(entity.path))
        })
    }

    /// The instance type that `new` of this entity gives.
    pub fn instance_of(
        &self,
        id: EntityId,
        entities: &mut Entities,
        names: &mut Names,
    ) -> EntityId {
        let entity = entities.get(id);
        let alias = self
            .models
            .type_alias(names.text(entity.module), names.text(entity.path))
            .cloned();
        match alias {
            Some(ty) => make_type(&ty, entities, names),
            None => entities.make(Entity {
                instance: true,
                ..entity
            }),
        }
    }
}

fn make_type(ty: &TypeName, entities: &mut Entities, names: &mut Names) -> EntityId {
    let module = names.intern(&ty.module);
    let path = names.intern(&ty.name);
    entities.make(Entity {
        module,
        path,
        instance: true,
    })
}

/// Is this a built-in container whose instances are told apart by where they are made?
pub fn is_container(id: EntityId, entities: &Entities, names: &Names) -> bool {
    let entity = entities.get(id);
    entity.instance
        && names.text(entity.module) == GLOBAL
        && matches!(
            names.text(entity.path),
            "Map" | "Set" | "WeakMap" | "WeakSet" | "Array"
        )
}

// Models are checked when they are loaded, so a place that does not parse is
// not there: the rule is then as if it had been left out.
fn place(place: &Option<Place>) -> Option<PlaceExpr> {
    place.as_ref().and_then(|p| p.parse().ok())
}

fn whens(list: &[When]) -> Vec<WhenRule> {
    list.iter()
        .filter_map(|w| {
            Some(WhenRule {
                place: w.place.parse().ok()?,
                when: w.clone(),
            })
        })
        .collect()
}

fn effect(e: &Effect) -> EffectRule {
    EffectRule {
        key: place(&e.key),
        entry: place(&e.entry),
        value: place(&e.value),
        filter: place(&e.filter),
        update: place(&e.update),
        sql: place(&e.sql),
        params: place(&e.params),
        callback: place(&e.callback),
        permits: place(&e.permits),
        locking: place(&e.locking),
        idempotency: e
            .idempotency
            .iter()
            .filter_map(|p| p.parse().ok())
            .collect(),
        when: whens(&e.when),
        effect: e.clone(),
    }
}

fn compile(m: &CallModel, result_type: Option<EntityId>, duck: bool) -> Call {
    let result = match &m.result {
        None | Some(ResultModel::Type { .. }) => ResultRule::Default,
        Some(ResultModel::Word(word)) => match word.as_str() {
            "read" => ResultRule::Read,
            "published" => ResultRule::Published,
            "fresh" => ResultRule::Fresh,
            "join" => ResultRule::Join,
            "below" => ResultRule::Below,
            "copy" => ResultRule::Copy,
            "returned" => ResultRule::Returned,
            "recv" => ResultRule::Recv,
            "either" => ResultRule::Either,
            "element" => ResultRule::Element,
            "array" => ResultRule::Array,
            "none" => ResultRule::None,
            "made" => ResultRule::Made,
            "format" => ResultRule::Format,
            "added" => ResultRule::Added,
            "values" => ResultRule::Values,
            "pairs" => ResultRule::Pairs,
            "entries" => ResultRule::Entries,
            "member" => ResultRule::Member,
            "members" => ResultRule::Members,
            "table" => ResultRule::Table,
            "makes" => ResultRule::Makes,
            other => other
                .strip_prefix("arg")
                .and_then(|n| n.parse().ok())
                .map_or(ResultRule::Default, ResultRule::Arg),
        },
    };
    Call {
        effects: m.effects.iter().map(effect).collect(),
        callbacks: m
            .callbacks
            .iter()
            .filter_map(|c| {
                Some(CallbackRule {
                    place: c.place.parse().ok()?,
                    args: place(&c.args),
                    callback: c.clone(),
                })
            })
            .collect(),
        result,
        result_type,
        min_args: m.min_args,
        max_args: m.max_args.unwrap_or(usize::MAX),
        when: whens(&m.when),
        duck,
        sure: m.sure,
        known_table: m.known_table,
        by_hand: m.by_hand,
        clock: m.clock,
        own: m.own_to_call,
        lets_in: m.lets_in,
        view: m.view,
        unique_if: m.unique_if.clone(),
        unique_over: m.unique_over,
        fills: place(&m.fills),
    }
}

fn entry(m: &EntryModel) -> Option<Rc<EntryRule>> {
    Some(Rc::new(EntryRule {
        kind: m.kind,
        name: place(&m.name),
        handler: m.handler.parse().ok()?,
        min_args: m.min_args,
        when: whens(&m.when),
        dispatches: m.dispatches,
        thread: m.thread,
        converts: m.converts,
        word: m.word.clone(),
    }))
}

fn chain(m: &ChainModel, names: &mut Names) -> ChainRule {
    let mut all = |list: &[String]| names.intern_all(list.iter().map(String::as_str));
    ChainRule {
        steps: all(&m.steps),
        without: all(&m.without),
        filter_steps: all(&m.filter_steps),
        run_by: all(&m.run_by),
        set_steps: all(&m.set_steps),
        exclusive_steps: all(&m.exclusive_steps),
        returning_steps: all(&m.returning_steps),
        locking_steps: all(&m.locking_steps),
        built: m.built,
        effects: m.effects.iter().map(effect).collect(),
    }
}
