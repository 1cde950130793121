//! Tables: created on first application, applied wherever the program says so.

use ir::{BodyKind, Expr, LValue, Op, SlotId};
use p4::ast::Direction;
use p4::typed::{self, Call, Callee, StmtKind, Type};

use crate::call::CopyPolicy;
use crate::instance::given_name;
use crate::lowering::{Binding, Lowering};
use crate::storage::Lifetime;
use crate::value::Val;
use crate::walk::{self, CodeNode};
use ir::fold;

/// A table of a control instance.
#[derive(Clone)]
pub(crate) struct LoweredTable {
    pub(crate) id: ir::TableId,
    /// Slots for keys that have to be evaluated before the lookup.
    hoisted: Vec<Option<SlotId>>,
    /// Whether its actions report an exit by the exit flag, because values have to be copied out first.
    flagged: bool,
}

impl<'a> Lowering<'a> {
    /// Lowers `t.apply().hit`.
    pub(crate) fn hit(&mut self, call: &Call) -> Val {
        let Callee::Table(table) = &call.callee else { return Val::Bits(fold::bool(false)) };
        let outer = self.at(call.span);
        let hit = self.temp(1);
        self.apply_table(*table, Some(hit), None);
        self.at(outer);
        Val::Bits(Expr::Slot(hit))
    }

    /// Applies a table of the current control.
    pub(crate) fn apply_table(&mut self, table: typed::TableId, hit: Option<SlotId>, action: Option<SlotId>) {
        let Some(inst) = self.inst else { return };
        if self.body.kind != BodyKind::Control {
            let span = self.span;
            self.unsupported(span, "a table can be applied only in the `apply` block of a control");
            return;
        }
        let decl = &self.program.tables[table];
        let record = match self.insts[inst.0].tables.get(&table) {
            Some(record) => {
                let record = record.clone();
                for (key, slot) in decl.keys.iter().zip(&record.hoisted) {
                    if let Some(slot) = slot {
                        let value = self.scalar(&key.expr);
                        self.set(LValue::Slot(*slot), value);
                    }
                }
                record
            }
            None => {
                let record = self.new_table(table);
                self.insts[inst.0].tables.insert(table, record.clone());
                record
            }
        };
        if record.flagged {
            let flag = self.exit_flag();
            self.set(LValue::Slot(flag), fold::constant(0, 1));
        }
        self.emit(Op::Apply { table: record.id, hit, action });
        if record.flagged {
            let flag = self.exit_flag();
            if let Some(exit) = self.frames.last().map(|frame| frame.exit_to) {
                let on = self.block("on");
                self.branch(Expr::Slot(flag), exit, on);
                self.body.start(on);
            }
        }
    }

    fn exit_flag(&mut self) -> SlotId {
        if let Some(flag) = self.exit_flag {
            return flag;
        }
        let flag = self.packet_slot("$exit", 1);
        self.exit_flag = Some(flag);
        flag
    }

    /// Creates the table: evaluates the keys here and lowers the actions.
    fn new_table(&mut self, id: typed::TableId) -> LoweredTable {
        let decl = &self.program.tables[id];
        let hoist = decl.keys.iter().any(|key| walk::has_effects(&key.expr));
        let mut keys = Vec::new();
        let mut hoisted = Vec::new();
        for key in &decl.keys {
            let outer = self.at(key.span);
            let width = self.scalar_width(&key.expr.ty).unwrap_or_else(|| {
                self.unsupported(key.span, "a key element must be a number, `bool`, `error` or enum");
                0
            });
            let mut expr = self.scalar(&key.expr);
            if hoist {
                let slot = self.slot("$key", width, false, Lifetime::Scoped);
                self.set(LValue::Slot(slot), expr);
                hoisted.push(Some(slot));
                expr = Expr::Slot(slot);
            } else {
                hoisted.push(None);
            }
            let kind = self.match_kind(&key.match_kind).unwrap_or_else(|| {
                self.unsupported(key.span, format!("match kind `{}` is not supported", key.match_kind));
                ir::MatchKind::Exact
            });
            let annotations = self.annotations(&key.annotations);
            let signed = self.is_signed(&key.expr.ty);
            keys.push(ir::Key { name: key.name.to_string(), expr, width, kind, signed, annotations });
            self.at(outer);
        }
        let mut prefixes = keys.iter().zip(&decl.keys).filter(|(key, _)| key.kind == ir::MatchKind::Lpm);
        if let Some((_, second)) = prefixes.nth(1) {
            self.unsupported(second.span, "a table with two `lpm` keys is not supported");
        }
        let exits = decl.actions.iter().any(|action| self.may_exit(action.action));
        let pending = self.frames.last().is_some_and(|frame| frame.copies);
        let multi = self.inst.is_some_and(|inst| self.insts[inst.0].multi);
        let flagged = exits && (pending || multi);
        let mut actions: Vec<ir::TableAction> = Vec::new();
        for action in &decl.actions {
            let marked = |name: &str| action.annotations.iter().any(|annotation| &*annotation.name == name);
            let (default_only, table_only) = (marked("defaultonly"), marked("tableonly"));
            let span = action.span;
            let action = self.table_action(action, flagged);
            let name = &self.ir.actions[action].name;
            if actions.iter().any(|other| self.ir.actions[other.action].name == *name) {
                let message = format!("two actions of this table have the control-plane name `{name}`");
                self.error(diagnostics::Diagnostic::error("duplicate-name", span, message));
            }
            actions.push(ir::TableAction { action, default_only, table_only });
        }
        let name = self.qualified(&decl.name);
        let name = self.claim("table", name, decl.span);
        let (default, args) = &decl.default_action;
        let mut table = ir::Table {
            name,
            keys,
            default_action: (*default as u32, self.action_data(args)),
            const_default: decl.const_default,
            entries: Vec::new(),
            const_entries: decl.const_entries,
            size: decl.size,
            profile: None,
            counter: None,
            meter: None,
            idle_timeout: false,
            largest_priority_wins: decl.largest_priority_wins,
            annotations: self.annotations(&decl.annotations),
            loc: self.loc_of(decl.span),
            actions,
        };
        table.entries = self.entries(decl, &table.keys);
        // The checker has assigned priorities to the program's own entries.
        for property in decl.properties.iter().filter(|property| &*property.name != "priority_delta") {
            let outer = self.at(property.span);
            let val = self.value(&property.value);
            if let Val::Object(object) = &val {
                self.name_by_property(object, property);
            }
            let arch = self.arch;
            arch.table_property(self, &mut table, &property.name, &val, property.span);
            self.at(outer);
        }
        self.drop_selector_keys(&mut table, decl);
        let id = self.ir.tables.push(table);
        self.note_resilient_table(id, &decl.annotations);
        self.note_elastic_table(id, decl);
        LoweredTable { id, hoisted, flagged }
    }

    /// Drops selector keys from a table without groups: they select a member of a group.
    fn drop_selector_keys(&mut self, table: &mut ir::Table, decl: &typed::Table) {
        let selects = table.profile.is_some_and(|profile| self.ir.profiles[profile].selector.is_some());
        if selects {
            return;
        }
        let before = table.keys.len();
        table.keys.retain(|key| key.kind != ir::MatchKind::Selector);
        if table.keys.len() != before {
            for key in &decl.keys {
                if self.match_kind(&key.match_kind) == Some(ir::MatchKind::Selector) {
                    let message = "this `selector` key has no action selector";
                    self.error(
                        diagnostics::Diagnostic::warning("useless-selector", key.span, message)
                            .help("a `selector` key needs an action selector as `implementation`"),
                    );
                }
            }
        }
    }

    /// Returns constants for an action's parameters, one per scalar.
    pub(crate) fn action_data(&mut self, args: &[typed::Expr]) -> Vec<bits::Bits> {
        let mut data = Vec::new();
        for arg in args {
            let val = self.without_emitting(|cx| cx.value(arg));
            for (_, leaf, ty) in self.leaves("", val, &arg.ty) {
                let bits = self.bits(leaf, &ty);
                match fold::as_const(&bits) {
                    Some(bits) => data.push(bits.clone()),
                    None => {
                        self.unsupported(arg.span, "this must be known at compile time");
                        data.push(bits::Bits::zero(self.scalar_width(&ty).unwrap_or(0)));
                    }
                }
            }
        }
        data
    }

    /// Whether an action, or code that it calls, contains `exit`.
    fn may_exit(&self, id: typed::ActionId) -> bool {
        let mut seen = std::collections::HashSet::new();
        let mut actions = vec![id];
        let mut exits = false;
        while let Some(id) = actions.pop() {
            if seen.insert(id) {
                walk::block(&self.program.actions[id].body, &mut |node| match node {
                    CodeNode::Stmt(stmt) => exits |= matches!(stmt.kind, StmtKind::Exit),
                    CodeNode::Call(Call { callee: Callee::Action(callee), .. }) => actions.push(*callee),
                    _ => {}
                });
            }
        }
        exits
    }

    /// Returns the action as a table runs it. An action with arguments bound by the table exists once per table.
    fn table_action(&mut self, listed: &typed::TableAction, flagged: bool) -> ir::ActionId {
        let decl = &self.program.actions[listed.action];
        let own = self
            .inst
            .filter(|inst| self.control_of(*inst).is_some_and(|control| control.actions.contains(&listed.action)));
        let key = (own, listed.action, flagged);
        if let (true, Some(id)) = (listed.args.is_empty(), self.actions.get(&key)) {
            return *id;
        }
        let outer = self.at(decl.span);
        let name = if own.is_some() { self.qualified(&decl.name) } else { decl.name.to_string() };
        let mut params = Vec::new();
        let body = self.with_body(name.clone(), BodyKind::Action, |cx| {
            if flagged {
                cx.exit_by_flag();
            }
            cx.action_body(listed, decl, &name, &mut params);
        });
        let annotations = self.annotations(&decl.annotations);
        let loc = self.here();
        let id = self.ir.actions.push(ir::Action { name, params, body, annotations, loc });
        if listed.args.is_empty() {
            self.actions.insert(key, id);
        }
        self.at(outer);
        id
    }

    /// Makes `exit` in the current body set the exit flag and return.
    fn exit_by_flag(&mut self) {
        let flag = self.exit_flag();
        let exit = self.block("exit");
        if let Some(frame) = self.frames.last_mut() {
            frame.exit_to = exit;
        }
        let here = self.here();
        let set = ir::Instr { op: Op::Assign(LValue::Slot(flag), fold::constant(1, 1)), loc: here };
        self.body.blocks[exit].instrs.push(set);
    }

    fn action_body(
        &mut self,
        listed: &typed::TableAction,
        decl: &typed::Action,
        name: &str,
        params: &mut Vec<ir::ActionParam>,
    ) {
        let (bound, data): (Vec<_>, Vec<_>) =
            decl.params.iter().cloned().partition(|param| param.direction != Direction::None);
        for param in &data {
            let var = &self.program.vars[param.var];
            let store = self.store(&format!("{name}.{}", var.name), &var.ty, Lifetime::Argument);
            self.env.insert(param.var, Binding::Store(store.clone()));
            let annotations = self.annotations(&var.annotations);
            let known_as = given_name(&var.annotations).unwrap_or_else(|| var.name.to_string());
            for (full, leaf, _) in self.leaves(&known_as, store.read(), &var.ty) {
                match leaf {
                    Val::Bits(Expr::Slot(slot)) => {
                        params.push(ir::ActionParam { name: full, slot, annotations: annotations.clone() });
                    }
                    _ => self.unsupported(var.span, "the control plane cannot set a parameter of this type"),
                }
            }
        }
        let types: Vec<(Direction, Type)> =
            bound.iter().map(|param| (param.direction, self.program.vars[param.var].ty.clone())).collect();
        let order: Vec<usize> = (0..listed.args.len()).collect();
        let passed = self.pass(&types, &listed.args, &order);
        let captured = self.captured(listed.action);
        let copies = self.bind(&bound, passed, &captured, None, CopyPolicy::WhereNeeded);
        self.inline(copies, None, |cx| cx.statements(&decl.body));
    }
}
