//! Leaving code early: `break`, `continue`, `return`, and what must run on
//! the way out.
//!
//! A `finally` body is lowered once. Everybody who leaves through it jumps to
//! its entry and notes where they meant to go; at its end a [`Term::Multi`]
//! leads to all of those places. `using` declarations work the same way, with
//! an [`Op::Exit`] for a body.

use oxc_ast::ast::{BlockStatement, CatchClause, TryStatement};
use oxc_span::GetSpan;
use toctou_core::ir::{BlockId, Op, Term, Var, VarInfo, VarKind};
use toctou_core::{Name, Span};

use super::{Lower, span};

/// Something that encloses the current statement and that a jump can aim at
/// or must pass.
pub(super) enum Frame {
    Label {
        name: Name,
        exit: Exit,
    },
    Loop {
        exit: Exit,
        again: BlockId,
    },
    /// `switch`: a `break` without label stops here, a `continue` does not.
    Switch {
        exit: Exit,
    },
    Finally {
        entry: BlockId,
        pending: Vec<Jump>,
    },
}

/// The block after a statement. Made when somebody first jumps there, so that
/// an endless loop has none.
pub(super) struct Exit {
    pub(super) block: Option<BlockId>,
    handler: Option<BlockId>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Jump {
    /// Out of the frame at this position.
    Break(usize),
    Continue(usize),
    Return,
}

/// A `finally` that has been entered; see [`Lower::begin_finally`].
pub(super) struct Finally {
    entry: BlockId,
    /// Where exceptions arrive.
    thrown: BlockId,
    outer_handler: Option<BlockId>,
    /// Somebody reaches it without jumping.
    falls_through: bool,
}

impl<'a> Lower<'a, '_> {
    pub(super) fn exit(&self) -> Exit {
        Exit {
            block: None,
            handler: self.f.handler,
        }
    }

    /// Takes off the innermost frame and continues behind it, if anybody does.
    pub(super) fn leave(&mut self, at: Span) {
        let exit = match self.f.frames.pop() {
            Some(Frame::Label { exit, .. } | Frame::Loop { exit, .. } | Frame::Switch { exit }) => {
                exit
            }
            Some(Frame::Finally { .. }) | None => return,
        };
        if let Some(block) = exit.block {
            self.goto(at, block);
            self.start(block);
        }
    }

    pub(super) fn jump(&mut self, jump: Jump, at: Span) {
        let Some(from) = self.f.current else {
            return;
        };
        if self.is_held_up(jump) {
            let to = self.goal(jump);
            self.f.detours.jumps.push((from, to));
        }
        if let Some(target) = self.route(jump, at) {
            self.goto(at, target);
        }
    }

    /// The next block on the way: the nearest `finally` that has to run first,
    /// or else the goal.
    fn route(&mut self, jump: Jump, at: Span) -> Option<BlockId> {
        if self.is_held_up(jump)
            && let Some(&index) = self.f.finallies.last()
            && let Some(Frame::Finally { entry, pending }) = self.f.frames.get_mut(index)
        {
            if !pending.contains(&jump) {
                pending.push(jump);
            }
            return Some(*entry);
        }
        if jump != Jump::Return {
            return self.goal(jump);
        }
        let block = self.block();
        let resume = self.f.current.replace(block);
        let value = self.f.returned;
        self.end(at, Term::Return(value));
        self.f.current = resume;
        Some(block)
    }

    /// Must a `finally` run first?
    fn is_held_up(&self, jump: Jump) -> bool {
        let inside = match jump {
            Jump::Break(frame) | Jump::Continue(frame) => frame + 1,
            Jump::Return => 0,
        };
        self.f
            .finallies
            .last()
            .is_some_and(|&index| index >= inside)
    }

    /// Where a jump within the function leads in the end.
    fn goal(&mut self, jump: Jump) -> Option<BlockId> {
        match jump {
            Jump::Return => None,
            Jump::Continue(frame) => match self.f.frames.get(frame) {
                Some(Frame::Loop { again, .. }) => Some(*again),
                _ => None,
            },
            Jump::Break(frame) => self.exit_of(frame),
        }
    }

    /// The block behind the frame at this position, made if need be.
    pub(super) fn exit_of(&mut self, frame: usize) -> Option<BlockId> {
        let exit = match self.f.frames.get(frame)? {
            Frame::Label { exit, .. } | Frame::Loop { exit, .. } | Frame::Switch { exit } => exit,
            Frame::Finally { .. } => return None,
        };
        if let Some(block) = exit.block {
            return Some(block);
        }
        let handler = exit.handler;
        let block = self.block_under(handler);
        if let Some(Frame::Label { exit, .. } | Frame::Loop { exit, .. } | Frame::Switch { exit }) =
            self.f.frames.get_mut(frame)
        {
            exit.block = Some(block);
        }
        Some(block)
    }

    pub(super) fn break_target(&mut self, label: Option<&str>) -> Option<Jump> {
        let label = label.map(|text| self.names.intern(text));
        self.f
            .frames
            .iter()
            .rposition(|frame| match (frame, label) {
                (Frame::Label { name, .. }, Some(label)) => *name == label,
                (Frame::Loop { .. } | Frame::Switch { .. }, None) => true,
                _ => false,
            })
            .map(Jump::Break)
    }

    pub(super) fn continue_target(&mut self, label: Option<&str>) -> Option<Jump> {
        let frames = &self.f.frames;
        let Some(label) = label else {
            return frames
                .iter()
                .rposition(|frame| matches!(frame, Frame::Loop { .. }))
                .map(Jump::Continue);
        };
        let label = self.names.intern(label);
        let frames = &self.f.frames;
        let at = frames
            .iter()
            .rposition(|frame| matches!(frame, Frame::Label { name, .. } if *name == label))?;
        // The loop stands right behind its labels.
        let behind = frames
            .iter()
            .skip(at)
            .position(|frame| !matches!(frame, Frame::Label { .. }))?;
        Some(Jump::Continue(at + behind))
    }

    pub(super) fn return_value(&mut self, value: Option<Var>, at: Span) {
        if self.f.finallies.is_empty() {
            self.end(at, Term::Return(value));
            return;
        }
        if let Some(src) = value {
            let dst = match self.f.returned {
                Some(var) => var,
                None => {
                    let var = self.f.var(VarInfo {
                        name: None,
                        kind: VarKind::Let,
                        captured: false,
                        lent: false,
                        word: false,
                        ty: None,
                    });
                    self.f.returned = Some(var);
                    var
                }
            };
            self.emit(at, Op::Copy { dst, src });
        }
        self.jump(Jump::Return, at);
    }

    /// From here to [`Lower::end_finally`], every way out leads through it.
    pub(super) fn begin_finally(&mut self, at: Span) -> Finally {
        let outer_handler = self.f.handler;
        let entry = self.block();
        let thrown = self.block();
        self.f.finallies.push(self.f.frames.len());
        self.f.frames.push(Frame::Finally {
            entry,
            pending: Vec::new(),
        });
        self.f.handler = Some(thrown);
        let body = self.block();
        self.goto(at, body);
        self.start(body);
        Finally {
            entry,
            thrown,
            outer_handler,
            falls_through: false,
        }
    }

    /// The protected code ends here, in the ordinary way.
    pub(super) fn fall_into(&mut self, finally: &mut Finally, at: Span) {
        if self.reachable() {
            finally.falls_through = true;
            self.goto(at, finally.entry);
        }
    }

    pub(super) fn end_finally(
        &mut self,
        mut finally: Finally,
        at: Span,
        body: impl FnOnce(&mut Self),
    ) {
        self.fall_into(&mut finally, at);
        self.f.handler = finally.outer_handler;
        self.f.finallies.pop();
        let pending = match self.f.frames.pop() {
            Some(Frame::Finally { pending, .. }) => pending,
            _ => Vec::new(),
        };
        self.start(finally.thrown);
        let exception = self.temp();
        self.emit(at, Op::Catch { dst: exception });
        self.goto(at, finally.entry);

        self.start(finally.entry);
        let first = self.f.blocks.len();
        body(self);
        if !pending.is_empty() {
            let own = (first..self.f.blocks.len()).map(|b| BlockId(b as u32));
            self.f.detours.meanwhile.push(finally.entry);
            self.f.detours.meanwhile.extend(own);
        }
        if !self.reachable() {
            return;
        }
        let after = finally.falls_through.then(|| self.block());
        let rethrow = self.block();
        let mut next: Vec<BlockId> = after.into_iter().collect();
        next.push(rethrow);
        for jump in pending {
            if let Some(block) = self.route(jump, at)
                && !next.contains(&block)
            {
                next.push(block);
            }
        }
        self.end(at, Term::Multi(next));
        self.start(rethrow);
        self.end(at, Term::Throw(exception));
        self.f.current = after;
    }

    pub(super) fn try_statement(&mut self, s: &'a TryStatement<'a>) {
        let at = span(s.span);
        let Some(finalizer) = &s.finalizer else {
            self.try_catch(&s.block, s.handler.as_deref(), at);
            return;
        };
        let finally = self.begin_finally(at);
        self.try_catch(&s.block, s.handler.as_deref(), at);
        self.end_finally(finally, span(finalizer.span), |this| {
            this.statements(&finalizer.body);
        });
    }

    fn try_catch(
        &mut self,
        body: &'a BlockStatement<'a>,
        clause: Option<&'a CatchClause<'a>>,
        at: Span,
    ) {
        let Some(clause) = clause else {
            self.statements(&body.body);
            return;
        };
        let outer = self.f.handler;
        let caught = self.block();
        self.f.handler = Some(caught);
        let entry = self.block();
        self.goto(at, entry);
        self.start(entry);
        self.statements(&body.body);
        self.f.handler = outer;
        let end = self.f.current.take();

        self.start(caught);
        let dst = self.temp();
        let clause_at = clause
            .param
            .as_ref()
            .map_or(span(clause.span), |p| span(p.pattern.span()));
        self.emit(clause_at, Op::Catch { dst });
        if let Some(param) = &clause.param {
            self.bind(&param.pattern, dst);
        }
        self.statements(&clause.body.body);
        if end.is_none() && !self.reachable() {
            return;
        }
        let after = self.block();
        self.goto(at, after);
        if let Some(end) = end {
            self.start(end);
            self.goto(at, after);
        }
        self.start(after);
    }
}
