//! Generates random controls: actions, tables, sub-controls.

use super::{Callable, Code, Dir, Generator, Param, Ty, signature};

impl Generator {
    fn clear_control(&mut self) {
        self.actions.clear();
        self.tables.clear();
        self.registers.clear();
    }

    /// Writes ingress or egress.
    pub(super) fn control(&mut self, name: &str) {
        self.clear_control();
        let scope = self.places.len();
        self.open(format!("control {name}(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std)"));
        self.packet_places();
        let subs: Vec<Callable> = self.controls.clone();
        let mut instances = Vec::new();
        for sub in &subs {
            if self.percent(60) {
                let instance = self.fresh("c");
                self.line(format!("{}() {instance};", sub.name));
                instances.push(Callable { name: format!("{instance}.apply"), ..sub.clone() });
            }
        }
        let all = std::mem::replace(&mut self.controls, instances);
        self.contents(true);
        self.open("apply");
        if name == "MyIngress" {
            self.line("if (std.parser_error == error.PacketTooShort) { meta.err = 1; }");
            self.line("if (std.parser_error == error.NoMatch) { meta.err = 2; }");
            self.line("if (std.parser_error == error.StackOutOfBounds) { meta.err = 3; }");
            self.line("if (std.parser_error == error.HeaderTooShort) { meta.err = 4; }");
            self.line("if (std.parser_error == error.ParserInvalidArgument) { meta.err = 5; }");
            self.line("if (std.parser_error == error.Odd) { meta.err = 6; }");
        }
        self.code = Code::Apply;
        self.budget = self.budget.max(12);
        let count = 6 + self.below(14);
        self.statements(count, 3);
        self.close("}");
        self.close("}");
        self.controls = all;
        self.places.truncate(scope);
    }

    /// Writes a control with parameters of its own, which others apply.
    pub(super) fn sub_control(&mut self) {
        self.clear_control();
        let scope = self.places.len();
        let outer = std::mem::take(&mut self.controls);
        let name = self.fresh("Sub");
        let params = self.params(3, false);
        let params: Vec<Param> = params.into_iter().map(|param| Param { default: None, ..param }).collect();
        self.open(format!("control {name}({})", signature(&params)));
        for param in &params {
            self.declare(&param.name, param.ty, param.dir != Dir::In);
        }
        self.contents(false);
        self.open("apply");
        self.code = Code::Apply;
        for param in params.iter().filter(|param| param.dir == Dir::Out) {
            let value = self.expr(param.ty, 2);
            self.line(format!("{} = {value};", param.name));
        }
        let count = 2 + self.below(5);
        // `hdr` is not in scope.
        let has_packet = self.places.iter().any(|place| place.text == "meta.a");
        debug_assert!(!has_packet);
        self.code = Code::Apply;
        self.sub_statements(count);
        self.close("}");
        self.close("}");
        self.places.truncate(scope);
        self.controls = outer;
        self.controls.push(Callable { name, params, returns: None });
    }

    /// Writes statements that do not name `hdr`, as those of functions, and perhaps an `exit` or a table.
    fn sub_statements(&mut self, count: usize) {
        for _ in 0..count {
            if self.percent(30) {
                self.apply_statement(1);
            } else {
                self.code = Code::Function;
                self.returns = None;
                self.statements(1, 2);
                self.code = Code::Apply;
            }
            if self.percent(12) {
                let condition = self.expr(Ty::Bool, 2);
                self.open(format!("if ({condition})"));
                self.line("exit;");
                self.close("}");
            }
        }
    }

    /// Writes registers, variables, actions and tables.
    fn contents(&mut self, has_packet: bool) {
        for _ in 0..self.below(3) {
            let name = self.fresh("r");
            let ty = self.rng.pick(&[(2, Ty::Bit(8)), (2, Ty::Bit(16)), (1, Ty::Int(8)), (1, Ty::Bit(32))]);
            let size = [1, 4, 16][self.below(3)];
            self.line(format!("register<{}>({size}) {name};", ty.text()));
            self.registers.push((name, ty));
        }
        for _ in 0..self.below(3) {
            let (name, ty) = (self.fresh("l"), self.param_ty());
            let value = self.literal(ty);
            self.line(format!("{} {name} = {value};", ty.text()));
            self.declare(&name, ty, true);
        }
        let mut bound = Vec::new();
        for _ in 0..1 + self.below(3) {
            let action = self.action(has_packet, false);
            self.actions.push(action);
        }
        for _ in 0..1 + self.below(2) {
            bound.push(self.action(has_packet, true));
        }
        for _ in 0..1 + self.below(2) {
            self.table(&bound);
        }
    }

    fn action(&mut self, has_packet: bool, for_tables: bool) -> Callable {
        let name = self.fresh("a");
        let scope = self.places.len();
        let mut params = if self.percent(30) && for_tables { Vec::new() } else { self.params(3, for_tables) };
        params.retain(|param| param.default.is_none());
        if for_tables && self.percent(60) {
            params.retain(|param| param.dir == Dir::Data);
        }
        for param in &params {
            self.declare(&param.name, param.ty, matches!(param.dir, Dir::Out | Dir::InOut));
        }
        self.code = Code::Action;
        self.returns = None;
        self.open(format!("action {name}({})", signature(&params)));
        for param in params.iter().filter(|param| param.dir == Dir::Out) {
            let value = self.expr(param.ty, 2);
            self.line(format!("{} = {value};", param.name));
        }
        let count = 1 + self.below(4);
        if has_packet {
            self.statements(count, 2);
        } else {
            self.code = Code::Function;
            self.statements(count, 2);
            if self.percent(20) {
                let condition = self.expr(Ty::Bool, 1);
                self.open(format!("if ({condition})"));
                self.line("exit;");
                self.close("}");
            }
        }
        self.close("}");
        self.places.truncate(scope);
        Callable { name, params, returns: None }
    }

    fn table(&mut self, actions: &[Callable]) {
        let name = self.fresh("t");
        let keys = self.below(4);
        let mut kinds = Vec::new();
        let mut lines = Vec::new();
        for _ in 0..keys {
            let kind = self.rng.pick(&[(4, "exact"), (2, "ternary"), (2, "lpm"), (1, "range"), (1, "optional")]);
            let kind = if kind == "lpm" && kinds.iter().any(|(known, _)| *known == "lpm") { "exact" } else { kind };
            let ty = self.rng.pick(&[(4, Ty::Bit(8)), (2, Ty::Bit(16)), (1, Ty::Bit(4)), (1, Ty::Bit(1))]);
            let value = self.expr(ty, 2);
            let key = self.fresh("k");
            lines.push(format!("{value}: {kind} @name(\"{key}\");"));
            kinds.push((kind, ty));
        }
        // Arguments that the table binds are evaluated when the action runs.
        let mut listed = Vec::new();
        let mut names = Vec::new();
        for action in actions {
            let bound: Vec<Param> = action.params.iter().filter(|param| param.dir != Dir::Data).cloned().collect();
            let effects = std::mem::replace(&mut self.effects, false);
            let args = if bound.is_empty() { Some(String::new()) } else { self.bound_args(&bound) };
            self.effects = effects;
            let Some(args) = args else { continue };
            let call = if bound.is_empty() { action.name.clone() } else { format!("{}({args})", action.name) };
            let has_data = action.params.iter().any(|param| param.dir == Dir::Data);
            listed.push((call, action.clone(), bound.is_empty(), has_data));
            names.push(action.name.clone());
        }
        let fixed: Vec<_> =
            listed.iter().filter(|(_, _, _, has_data)| !*has_data).map(|(call, ..)| call.clone()).collect();
        let default = self.one_of(&fixed).unwrap_or_else(|| "NoAction".to_owned());
        let default = if default.contains('(') || default == "NoAction" { default } else { format!("{default}()") };
        let entries = self.entries(&kinds, &listed);
        self.open(format!("table {name}"));
        if keys > 0 {
            self.open("key =");
            for line in lines {
                self.line(line);
            }
            self.close("}");
        }
        self.open("actions =");
        for (call, ..) in &listed {
            self.line(format!("{call};"));
        }
        self.line("NoAction;");
        self.close("}");
        self.line(format!("default_action = {default};"));
        if !entries.is_empty() {
            self.open("const entries =");
            for entry in entries {
                self.line(entry);
            }
            self.close("}");
        }
        self.close("}");
        names.push("NoAction".to_owned());
        self.tables.push((name, names));
    }

    /// Returns arguments in order, without side effects.
    fn bound_args(&mut self, params: &[Param]) -> Option<String> {
        let mut args = Vec::new();
        for param in params {
            args.push(match param.dir {
                Dir::In | Dir::Data => self.expr(param.ty, 1),
                Dir::Out | Dir::InOut => self.lvalue(param.ty, 1)?,
            });
        }
        Some(args.join(", "))
    }

    /// Returns const entries for half of the tables.
    fn entries(&mut self, kinds: &[(&str, Ty)], listed: &[(String, Callable, bool, bool)]) -> Vec<String> {
        if kinds.is_empty() || listed.is_empty() || self.percent(50) {
            return Vec::new();
        }
        let mut entries: Vec<String> = Vec::new();
        let mut seen = Vec::new();
        for _ in 0..1 + self.below(5) {
            let keys: Vec<String> = kinds.iter().map(|(kind, ty)| self.keyset(kind, *ty)).collect();
            let keys = keys.join(", ");
            if seen.contains(&keys) {
                continue;
            }
            let Some((call, action, _, _)) = self.one_of(listed) else { continue };
            let data: Vec<String> = action
                .params
                .iter()
                .filter(|param| param.dir == Dir::Data)
                .map(|param| param.ty)
                .collect::<Vec<_>>()
                .into_iter()
                .map(|ty| self.literal(ty))
                .collect();
            let bound = call.split_once('(').map(|(_, rest)| rest.trim_end_matches(')').to_owned());
            // An entry repeats nothing that the table binds; with both kinds of parameters the forms differ between
            // compilers, so that such actions stay with the control plane.
            if bound.is_some() && !data.is_empty() {
                continue;
            }
            let text = match bound {
                Some(_) => call.clone(),
                None => format!("{call}({})", data.join(", ")),
            };
            entries.push(format!("({keys}): {text};"));
            seen.push(keys);
        }
        entries
    }

    fn keyset(&mut self, kind: &str, ty: Ty) -> String {
        let Ty::Bit(width) = ty else { return "_".to_owned() };
        let limit = 1usize << width.min(3);
        let value = self.below(limit);
        match kind {
            "exact" => format!("{value}"),
            "lpm" => {
                let length = self.below(width as usize + 1);
                let mask = ((1usize << width) - 1) & !((1usize << (width as usize - length)) - 1);
                format!("{} &&& {mask}", value & mask)
            }
            "ternary" => {
                let mask = self.below(1 << width);
                if self.percent(20) { "_".to_owned() } else { format!("{} &&& {mask}", value & mask) }
            }
            "range" => format!("{value} .. {}", value + self.below((1 << width) - value)),
            _ if self.percent(40) => "_".to_owned(),
            _ => format!("{value}"),
        }
    }

    /// Writes a statement that only `apply` can have.
    pub(super) fn apply_statement(&mut self, depth: usize) {
        match self.below(8) {
            0..=2 => self.table_statement(depth),
            3 | 4 => {
                let Some(control) = self.one_of(&self.controls.clone()) else { return self.register_statement() };
                if let Some(call) = self.call_text(&control, 2) {
                    self.line(format!("{call};"));
                }
            }
            5 => self.register_statement(),
            _ => {
                let Some(action) = self.one_of(&self.actions.clone()) else { return };
                if let Some(call) = self.call_text(&action, 2) {
                    self.line(format!("{call};"));
                }
            }
        }
    }

    fn table_statement(&mut self, depth: usize) {
        let Some((table, actions)) = self.one_of(&self.tables.clone()) else { return };
        let depth = depth.min(1);
        match self.below(3) {
            0 => self.line(format!("{table}.apply();")),
            1 => {
                let property = if self.percent(60) { "hit" } else { "miss" };
                let mut condition = format!("{table}.apply().{property}");
                if self.percent(40) {
                    let other = self.expr(Ty::Bool, 2);
                    let op = if self.percent(50) { "&&" } else { "||" };
                    condition = if self.percent(50) {
                        format!("{other} {op} {condition}")
                    } else {
                        format!("{condition} {op} {other}")
                    };
                }
                self.open(format!("if ({condition})"));
                self.guarded(depth);
                self.close("}");
            }
            _ => {
                self.open(format!("switch ({table}.apply().action_run)"));
                for action in &actions {
                    if self.percent(60) {
                        self.open(format!("{action}:"));
                        self.guarded(depth);
                        self.close("}");
                    }
                }
                if self.percent(50) {
                    self.open("default:");
                    self.guarded(depth);
                    self.close("}");
                }
                self.close("}");
            }
        }
    }

    fn guarded(&mut self, depth: usize) {
        let count = 1 + self.below(2);
        let in_sub = !self.places.iter().any(|place| place.text == "meta.a");
        if in_sub {
            self.code = Code::Function;
        }
        self.statements(count, depth);
        self.code = Code::Apply;
    }
}
