//! Calls into libraries: what comes back, and whom they call back.

use super::{Env, Node, Obj, ObjId, Solver, Use};
use crate::entity::EntityId;
use crate::library::{Call as CallRule, EffectRule, ResultRule};
use smallvec::SmallVec;
use toctou_core::ir::{CallKind, FuncId};
use toctou_models::{Param, PlaceBase, PlaceExpr};

impl Solver {
    /// A library's function is called: its model says what comes back and who is called.
    pub(crate) fn called_ext(
        &mut self,
        env: &mut Env<'_, '_>,
        call: u32,
        entity: EntityId,
        recv: Option<ObjId>,
    ) {
        let site = &mut self.calls[call as usize];
        if site.exts.contains(&entity) {
            for rule in env.library.calls(entity, env.entities, env.names).iter() {
                self.of_object(env, call, rule, recv);
            }
            return;
        }
        if site.exts.len() >= 8 {
            return;
        }
        site.exts.push(entity);
        let (dst, kind) = (site.dst, site.kind);
        let rules = env.library.calls(entity, env.entities, env.names);
        if kind == CallKind::New && rules.iter().all(|r| r.result_type.is_none()) {
            let ty = env.library.instance_of(entity, env.entities, env.names);
            self.instance(env, dst, ty);
            let given = self.args(call).first().copied();
            if let Some(given) = given
                && crate::library::is_container(ty, env.entities, env.names)
            {
                let made = self.obj(Obj::Container(dst.0, ty));
                self.fill_from(env, given, made);
            }
        }
        if rules.is_empty() {
            self.duck(env, call, recv);
            self.stands_for_argument(call);
        }
        for rule in rules.iter() {
            self.use_rule(env, call, rule, recv);
        }
    }

    pub(crate) fn instance(&mut self, env: &mut Env<'_, '_>, dst: Node, ty: EntityId) {
        let obj = if crate::library::is_container(ty, env.entities, env.names) {
            self.obj(Obj::Container(dst.0, ty))
        } else {
            self.obj(Obj::Ext(ty))
        };
        self.add(dst, obj);
    }

    /// `new Map(list)`, `new Set(list)`: what is in a list, or in the pairs of one, is in the table.
    fn fill_from(&mut self, env: &mut Env<'_, '_>, list: Node, table: ObjId) {
        let (elem, listed) = (self.elem(table), self.fresh());
        self.on(env, list, Use::GetAny { dst: listed });
        self.copy(listed, elem);
        self.on(env, listed, Use::GetAny { dst: elem });
    }

    /// A list that holds these as well; the last of them may be a list of more.
    fn add_to_list(&mut self, list: Node, added: &[Node], spread: bool) {
        let single = added.len() - usize::from(spread && !added.is_empty());
        for &more in &added[single..] {
            self.copy(more, list);
        }
        if single > 0 {
            let own = self.obj(Obj::Array(list.0));
            let elem = self.elem(own);
            for &one in &added[..single] {
                self.copy(one, elem);
            }
            self.add(list, own);
        }
    }

    /// A method known by its name alone: `map`, `then`, `push`.
    pub(crate) fn duck(&mut self, env: &mut Env<'_, '_>, call: u32, recv: Option<ObjId>) {
        let Some(method) = self.calls[call as usize].method else {
            return;
        };
        if env.names.text(method) == "push" || env.names.text(method) == "unshift" {
            if let Some(recv) = recv {
                let elem = self.elem(recv);
                for i in 0..self.args(call).len() {
                    self.copy(self.args(call)[i], elem);
                }
            }
            return;
        }
        let again = std::mem::replace(&mut self.calls[call as usize].by_name, true);
        for rule in env.library.methods(method, env.entities, env.names).iter() {
            if again {
                self.of_object(env, call, rule, recv);
            } else {
                self.use_rule(env, call, rule, recv);
            }
        }
    }

    pub(crate) fn use_rule(
        &mut self,
        env: &mut Env<'_, '_>,
        call: u32,
        rule: &std::rc::Rc<CallRule>,
        recv: Option<ObjId>,
    ) {
        let site = &self.calls[call as usize];
        if !site.fits(rule) {
            return;
        }
        let (dst, recv_node) = (site.dst, site.recv);
        let spread = site.spread;
        let args: SmallVec<[Node; 8]> = SmallVec::from_slice(self.args(call));
        if let Some(ty) = rule.result_type {
            self.instance(env, dst, ty);
        }
        match rule.result {
            ResultRule::Recv | ResultRule::Copy => {
                if let Some(node) = recv_node {
                    self.copy(node, dst);
                }
            }
            ResultRule::Either => {
                let other = args.first().copied();
                for node in recv_node.into_iter().chain(other) {
                    self.copy(node, dst);
                }
            }
            ResultRule::Entries => {
                if let Some(node) = recv_node {
                    self.copy(node, dst);
                    let list = self.obj(Obj::Array(dst.0));
                    let elem = self.elem(list);
                    let pair = self.obj(Obj::Array(elem.0 | 1 << 31));
                    self.add(elem, pair);
                    let inner = self.elem(pair);
                    self.on(env, node, Use::GetAny { dst: inner });
                    self.add(dst, list);
                }
            }
            ResultRule::Arg(i) => {
                if let Some(&arg) = args.get(i) {
                    self.copy(arg, dst);
                }
            }
            ResultRule::Array => {
                for &arg in &args {
                    self.copy(arg, dst);
                }
            }
            ResultRule::Values | ResultRule::Pairs | ResultRule::Members => {
                if let Some(&arg) = args.first() {
                    let list = self.obj(Obj::Array(dst.0));
                    let mut elem = self.elem(list);
                    if rule.result != ResultRule::Values {
                        let pair = self.obj(Obj::Array(elem.0 | 1 << 31));
                        self.add(elem, pair);
                        elem = self.elem(pair);
                    }
                    let each = match rule.result {
                        ResultRule::Members => Use::Member { dst: elem },
                        _ => Use::GetAny { dst: elem },
                    };
                    self.on(env, arg, each);
                    self.add(dst, list);
                }
            }
            ResultRule::Member => {
                if let Some(&arg) = args.first() {
                    self.on(env, arg, Use::Member { dst });
                }
                // What it is if there is none of that name.
                if let Some(&default) = args.get(2) {
                    self.copy(default, dst);
                }
            }
            ResultRule::Table => {
                if let Some(&arg) = args.first() {
                    let table = self.obj(Obj::Array(dst.0));
                    self.fill_from(env, arg, table);
                    self.add(dst, table);
                }
            }
            // `defaultdict(asyncio.Lock)`: whatever is asked for was made by the argument.
            ResultRule::Makes => {
                if let Some(&arg) = args.first() {
                    let table = self.obj(Obj::Array(dst.0));
                    let elem = self.elem(table);
                    self.on(env, arg, Use::Makes { dst: elem });
                    self.add(dst, table);
                }
            }
            // `append(list, a, more...)`: what was in there, and what is added.
            ResultRule::Added => {
                if let Some((&list, added)) = args.split_first() {
                    self.copy(list, dst);
                    self.add_to_list(dst, added, spread);
                }
            }
            ResultRule::Default
            | ResultRule::Read
            | ResultRule::Published
            | ResultRule::Element
            | ResultRule::Fresh
            | ResultRule::Join
            | ResultRule::Made
            | ResultRule::Format
            | ResultRule::Below
            | ResultRule::Returned
            | ResultRule::None => {}
        }
        self.of_object(env, call, rule, recv);
        for e in &rule.effects {
            if let Some(callback) = &e.callback {
                self.callback_place(env, call, rule, usize::MAX, callback, &args);
            }
        }
        for (i, c) in rule.callbacks.iter().enumerate() {
            self.callback_place(env, call, rule, i, &c.place, &args);
        }
    }

    /// What a rule says of each object that the receiver can be; the rest of it is said once per call.
    fn of_object(
        &mut self,
        env: &mut Env<'_, '_>,
        call: u32,
        rule: &CallRule,
        recv: Option<ObjId>,
    ) {
        let site = &self.calls[call as usize];
        let (Some(recv), true) = (recv, site.fits(rule)) else {
            return;
        };
        let dst = site.dst;
        match (rule.result, self.objs[recv.0 as usize]) {
            // `filter`, `sort`, `slice`: an array of the same elements.
            (ResultRule::Default, Obj::Array(_))
                if rule.duck && !rule.callbacks.iter().any(|c| c.callback.returns) =>
            {
                self.add(dst, recv);
            }
            // What is looked up by name among things that were written down: a table of handlers.
            (ResultRule::Read, Obj::Literal(_)) if rule.duck => {
                self.apply(env, Use::GetAny { dst }, recv);
            }
            _ => {}
        }
        self.entries(call, rule, recv);
    }

    /// What is put into a container comes out of it again.
    fn entries(&mut self, call: u32, rule: &CallRule, recv: ObjId) {
        let put_by_name = |e: &EffectRule| e.entry.is_some() && e.value.is_some();
        match self.objs[recv.0 as usize] {
            Obj::Container(..) | Obj::Array(_) => {}
            // A dict that was written down: `locks.setdefault(key, Lock())`.
            Obj::Literal(_) if rule.duck && rule.effects.iter().any(put_by_name) => {}
            _ => return,
        }
        let elem = self.elem(recv);
        let dst = self.calls[call as usize].dst;
        let args = self.args(call);
        let put = rule.effects.iter().filter_map(|e| match &e.value {
            Some(PlaceExpr {
                base: PlaceBase::Arg(i),
                fields,
                ..
            }) if fields.is_empty() => args.get(*i).copied(),
            _ => None,
        });
        for arg in put.collect::<Vec<_>>() {
            self.copy(arg, elem);
        }
        if matches!(rule.result, ResultRule::Element | ResultRule::Read) {
            self.copy(elem, dst);
        }
    }

    /// What a class or function makes when somebody else calls it, without arguments.
    pub(crate) fn made_by(&mut self, env: &mut Env<'_, '_>, maker: ObjId, dst: Node) {
        match self.objs[maker.0 as usize] {
            Obj::Func(f) => {
                let ret = self.rets[f.0 as usize];
                self.copy(ret, dst);
            }
            Obj::Class(class) => {
                let instance = self.obj(Obj::Instance(class));
                self.add(dst, instance);
            }
            Obj::Ext(entity) => {
                let rules = env.library.calls(entity, env.entities, env.names);
                for ty in rules.iter().filter_map(|r| r.result_type) {
                    self.instance(env, dst, ty);
                }
            }
            _ => {}
        }
    }

    pub(crate) fn callback_place(
        &mut self,
        env: &mut Env<'_, '_>,
        call: u32,
        rule: &std::rc::Rc<CallRule>,
        index: usize,
        place: &PlaceExpr,
        args: &[Node],
    ) {
        let start = match place.base {
            PlaceBase::Arg(i) => {
                let keyword = place.keyword.as_ref().and_then(|k| env.names.find(k));
                let named = self.calls[call as usize].named.iter();
                let named = named
                    .flat_map(|named| named.iter())
                    .find(|(name, _)| Some(*name) == keyword);
                named.map(|(_, node)| *node).or(args.get(i).copied())
            }
            PlaceBase::Last => args.last().copied(),
            _ => None,
        };
        let Some(mut node) = start else { return };
        for field in &place.fields {
            let field = env.names.intern(field);
            let next = self.fresh();
            self.on(env, node, Use::Get { field, dst: next });
            node = next;
        }
        let rule_index = self.callback_rules.len() as u32;
        self.callback_rules.push((std::rc::Rc::clone(rule), index));
        self.on(
            env,
            node,
            Use::Callback {
                call,
                rule: rule_index,
            },
        );
    }

    /// A library calls a function that it was given.
    pub(crate) fn called_back(&mut self, env: &mut Env<'_, '_>, call: u32, rule: u32, f: FuncId) {
        let (rule, index) = &self.callback_rules[rule as usize];
        let (rule, index) = (std::rc::Rc::clone(rule), *index);
        let site = &self.calls[call as usize];
        let (recv, dst) = (site.recv, site.dst);
        let params = self.params[f.0 as usize].clone();
        let Some(callback) = rule.callbacks.get(index) else {
            let ret = self.rets[f.0 as usize];
            self.copy(ret, dst);
            return;
        };
        for (param, what) in params.iter().zip(&callback.callback.params) {
            match (what, recv) {
                (Param::Receiver, Some(recv)) => self.copy(recv, *param),
                (Param::Element, Some(recv)) => self.on(env, recv, Use::Element { dst: *param }),
                (Param::Client, Some(recv)) => self.copy(recv, *param),
                _ => {}
            }
        }
        if callback.callback.returns {
            let ret = self.rets[f.0 as usize];
            self.copy(ret, dst);
            // `map` gives an array of what the callback gives.
            if matches!(callback.callback.params.first(), Some(Param::Element)) {
                let obj = self.obj(Obj::Array(dst.0));
                let elem = self.elem(obj);
                self.copy(ret, elem);
                self.add(dst, obj);
            }
        }
    }
}
