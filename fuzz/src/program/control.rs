//! Random controls: objects, actions, tables, and statements.

use super::{Callable, Generator, Place, Ty, Where};

impl Generator<'_> {
    pub(super) fn control_body(&mut self) {
        self.actions.clear();
        self.tables.clear();
        self.registers.clear();
        self.counters.clear();
        self.packet_places(true);
        self.standard_places();
        self.here = Where::Control;
        for _ in 0..self.random.below(3) {
            let (name, width) = (self.fresh("register"), super::width(self.random));
            let size = *self.random.pick(&[1, 16, 1000]);
            self.line(format!("register<bit<{width}>>({size}) {name};"));
            self.registers.push((name, width));
        }
        if self.random.one_in(2) {
            let name = self.fresh("counter");
            let unit = *self.random.pick(&["packets", "bytes", "packets_and_bytes"]);
            self.line(format!("counter(64, CounterType.{unit}) {name};"));
            self.counters.push(name);
        }
        for _ in 0..self.random.below(4) {
            self.action();
        }
        for _ in 0..self.random.below(4) {
            self.table();
        }
        self.open("apply");
        self.here = Where::Control;
        self.statements(12);
        self.close("}");
    }

    fn action(&mut self) {
        self.here = Where::Action;
        let (name, scope) = (self.fresh("action"), self.places.len());
        // Either all parameters have a direction, and the program calls the action, or none has, and a table does.
        let direct = self.random.one_in(3);
        let (mut params, mut texts) = (Vec::new(), Vec::new());
        for _ in 0..self.random.below(4) {
            let (ty, writable) = (Ty::any(self.random), direct && self.random.one_in(2));
            let param = self.fresh("a");
            let direction = match (direct, writable) {
                (true, true) => "inout ",
                (true, false) => "in ",
                _ => "",
            };
            texts.push(format!("{direction}{} {param}", ty.text()));
            self.places.push(Place { text: param, ty, writable });
            params.push((ty, writable));
        }
        self.open(format!("action {name}({})", texts.join(", ")));
        self.statements(4);
        self.close("}");
        self.places.truncate(scope);
        let returns = direct.then_some(Ty::Bool);
        self.actions.push(Callable { name, params, returns });
    }

    fn table(&mut self) {
        let name = self.fresh("table");
        let scope = self.places.len();
        let mut keys: Vec<(Ty, &str)> = Vec::new();
        self.open(format!("table {name}"));
        self.open("key =");
        let mut prefixes = 0;
        for _ in 0..self.random.below(4) {
            let ty = match Ty::any(self.random) {
                Ty::Int(width) => Ty::Bit(width),
                other => other,
            };
            let kind = match ty {
                Ty::Bool => "exact",
                _ => *self.random.pick(&["exact", "exact", "lpm", "ternary", "range", "optional"]),
            };
            // One prefix a table is what v1model allows.
            let kind = if kind == "lpm" && prefixes > 0 { "exact" } else { kind };
            prefixes += usize::from(kind == "lpm");
            let expr = self.expr(ty, 2);
            let key = self.fresh("key");
            self.line(format!("{expr}: {kind} @name(\"{key}\");"));
            keys.push((ty, kind));
        }
        self.close("}");
        let candidates: Vec<String> =
            self.actions.iter().filter(|action| action.returns.is_none()).map(|action| action.name.clone()).collect();
        let mut chosen: Vec<String> = candidates.into_iter().filter(|_| self.random.below(3) > 0).collect();
        chosen.push("NoAction".to_owned());
        self.line(format!("actions = {{ {}; }}", chosen.join("; ")));
        if self.random.one_in(2) {
            self.line("default_action = NoAction();");
        }
        if self.random.one_in(2) {
            let size = *self.random.pick(&[1, 16, 1024]);
            self.line(format!("size = {size};"));
        }
        if !keys.is_empty() && self.random.one_in(3) {
            self.open("const entries =");
            for _ in 0..self.random.below(3) {
                let values: Vec<String> = keys.iter().map(|(ty, kind)| self.key_value(*ty, kind)).collect();
                self.line(format!("({}): NoAction();", values.join(", ")));
            }
            self.close("}");
        }
        self.close("}");
        self.places.truncate(scope);
        self.tables.push((name, chosen));
    }

    fn key_value(&mut self, ty: Ty, kind: &str) -> String {
        let (first, second) = (self.literal(ty), self.literal(ty));
        match kind {
            "ternary" if self.random.one_in(2) => format!("{first} &&& {second}"),
            "range" => format!("{first} .. {second}"),
            "lpm" | "ternary" | "optional" if self.random.one_in(2) => "_".to_owned(),
            _ => first,
        }
    }

    /// Up to `most` statements; what they declare goes out of scope with the block that is around them.
    pub(super) fn statements(&mut self, most: usize) {
        for _ in 0..self.random.below(most + 1) {
            if self.budget == 0 {
                return;
            }
            self.budget -= 1;
            self.statement();
        }
    }

    fn block(&mut self, head: &str, most: usize) {
        let scope = self.places.len();
        self.open(head);
        self.statements(most);
        self.places.truncate(scope);
        self.close("}");
    }

    fn statement(&mut self) {
        match self.random.below(14) {
            0 | 1 => self.variable(),
            2..=5 => self.assignment(),
            6 | 7 => {
                let condition = self.expr(Ty::Bool, 3);
                self.block(&format!("if ({condition})"), 3);
                if self.random.one_in(2) {
                    self.block("else", 3);
                }
            }
            8 if self.here != Where::ParserState => self.looping(),
            8 | 9 if self.here != Where::Function => self.header_statement(),
            10 if matches!(self.here, Where::Control) => self.apply(),
            11 if matches!(self.here, Where::Control | Where::Action) => self.object_statement(),
            12 if matches!(self.here, Where::Control) => self.switch(),
            13 if self.here == Where::Control => {
                let direct: Vec<_> = self.actions.iter().filter(|action| action.returns.is_some()).cloned().collect();
                if !direct.is_empty() {
                    let action = self.random.pick(&direct).clone();
                    if let Some(arguments) = self.arguments(&action.params, 2) {
                        self.line(format!("{}({arguments});", action.name));
                    }
                }
            }
            _ => self.leave(),
        }
    }

    fn variable(&mut self) {
        let (name, ty) = (self.fresh("v"), Ty::any(self.random));
        let value = self.expr(ty, 4);
        if self.random.one_in(6) {
            self.line(format!("{} {name};", ty.text()));
            self.line(format!("{name} = {value};"));
        } else {
            self.line(format!("{} {name} = {value};", ty.text()));
        }
        self.places.push(Place { text: name, ty, writable: true });
    }

    fn assignment(&mut self) {
        let writable: Vec<usize> = (0..self.places.len()).filter(|index| self.places[*index].writable).collect();
        if writable.is_empty() {
            return self.variable();
        }
        let Place { text, ty, .. } = self.places[*self.random.pick(&writable)].clone();
        match ty {
            Ty::Bit(width) if width > 1 && self.random.one_in(5) => {
                let low = self.random.below(width as usize) as u32;
                let high = self.random.between(low, width - 1);
                let value = self.expr(Ty::Bit(high - low + 1), 3);
                self.line(format!("{text}[{high}:{low}] = {value};"));
            }
            Ty::Bit(_) if self.random.one_in(8) => {
                let (operator, value) = (*self.random.pick(&["+=", "-=", "|=", "^=", "&="]), self.expr(ty, 3));
                self.line(format!("{text} {operator} {value};"));
            }
            _ => {
                let value = self.expr(ty, 4);
                self.line(format!("{text} = {value};"));
            }
        }
    }

    fn looping(&mut self) {
        if std::mem::replace(&mut self.in_loop, true) {
            return self.assignment();
        }
        let scope = self.places.len();
        let name = self.fresh("i");
        let last = self.random.below(6);
        self.places.push(Place { text: name.clone(), ty: Ty::Bit(8), writable: false });
        let head = match self.random.below(2) {
            0 => format!("for (bit<8> {name} = 0; {name} < {last}; {name} = {name} + 1)"),
            _ => format!("for (bit<8> {name} in 8w0 .. 8w{last})"),
        };
        self.block(&head, 3);
        self.places.truncate(scope);
        self.in_loop = false;
    }

    fn header_statement(&mut self) {
        let header = self.header_element();
        match self.random.below(5) {
            0 => self.line(format!("{header}.setInvalid();")),
            1 => {
                let other = self.headers[self.random.below(self.headers.len())].text.clone();
                let same = |place: &super::HeaderPlace| place.stack.is_none();
                let plain: Vec<_> = self.headers.iter().filter(|place| same(place)).collect();
                match (plain.first(), plain.last()) {
                    (Some(first), Some(last)) if first.ty == last.ty => {
                        let text = format!("{} = {};", first.text, last.text);
                        self.line(text);
                    }
                    _ if self.here == Where::Control && self.random.one_in(2) => {
                        let stack = self.headers.iter().find(|place| place.stack.is_some());
                        if let Some(text) = stack.map(|place| place.text.clone()) {
                            let verb = *self.random.pick(&["push_front", "pop_front"]);
                            self.line(format!("{text}.{verb}(1);"));
                        }
                    }
                    _ => self.line(format!("// {other} stays")),
                }
            }
            _ => self.line(format!("{header}.setValid();")),
        }
    }

    fn apply(&mut self) {
        if self.tables.is_empty() {
            return self.assignment();
        }
        // A table is applied in one place: some targets allow no more.
        let (name, actions) = self.tables.remove(self.random.below(self.tables.len()));
        match self.random.below(3) {
            0 => self.line(format!("{name}.apply();")),
            1 => {
                let property = *self.random.pick(&["hit", "miss"]);
                self.block(&format!("if ({name}.apply().{property})"), 3);
            }
            _ => {
                self.open(format!("switch ({name}.apply().action_run)"));
                for action in &actions {
                    if self.random.one_in(2) {
                        self.block(&format!("{action}:"), 2);
                    }
                }
                if self.random.one_in(2) {
                    self.block("default:", 2);
                }
                self.close("}");
            }
        }
    }

    fn switch(&mut self) {
        let width = super::width(self.random);
        let value = self.expr(Ty::Bit(width), 3);
        self.open(format!("switch ({value})"));
        for label in 0..self.random.below(4) {
            if width > 2 || label < 2 {
                self.block(&format!("{label}:"), 2);
            }
        }
        if self.random.one_in(2) {
            self.block("default:", 2);
        }
        self.close("}");
    }

    fn object_statement(&mut self) {
        match self.random.below(9) {
            0 | 1 if !self.registers.is_empty() => {
                let (name, width) = self.random.pick(&self.registers).clone();
                let index = self.expr(Ty::Bit(32), 2);
                match self.place(Ty::Bit(width), true) {
                    Some(place) if self.random.one_in(2) => {
                        self.line(format!("{name}.read({}, {index});", place.text));
                    }
                    _ => {
                        let value = self.expr(Ty::Bit(width), 2);
                        self.line(format!("{name}.write({index}, {value});"));
                    }
                }
            }
            2 if !self.counters.is_empty() => {
                let (name, index) = (self.random.pick(&self.counters).clone(), self.expr(Ty::Bit(32), 2));
                self.line(format!("{name}.count({index});"));
            }
            3 => self.line("mark_to_drop(standard_metadata);"),
            4 => {
                if let Some(place) = self.place(Ty::Bit(32), true) {
                    let algorithm = *self.random.pick(&["crc16", "crc32", "csum16", "identity", "xor16", "random"]);
                    let data = self.expr(Ty::Bit(32), 2);
                    let max = self.random.between(1, 100);
                    self.line(match algorithm {
                        "random" => format!("random({}, 32w0, 32w{max});", place.text),
                        _ => format!(
                            "hash({}, HashAlgorithm.{algorithm}, 32w0, {{ {data}, 16w7 }}, 32w{max});",
                            place.text
                        ),
                    });
                }
            }
            5 if self.ingress => {
                let group = self.random.below(3);
                self.line(format!("standard_metadata.mcast_grp = {group};"));
            }
            6 => {
                let kind = if self.ingress { "I2E" } else { "E2E" };
                let (session, list) = (self.random.below(3), self.random.between(1, 3));
                let plain = self.random.one_in(2);
                self.line(if plain {
                    format!("clone(CloneType.{kind}, {session});")
                } else {
                    format!("clone_preserving_field_list(CloneType.{kind}, {session}, {list});")
                });
            }
            7 => {
                let list = self.random.between(1, 3);
                let verb = if self.ingress { "resubmit" } else { "recirculate" };
                self.line(format!("{verb}_preserving_field_list({list});"));
            }
            _ => {
                let size = self.random.below(200);
                self.line(format!("truncate({size});"));
            }
        }
    }

    fn leave(&mut self) {
        // Rarely: what follows cannot be reached.
        if !self.random.one_in(4) {
            return self.assignment();
        }
        let condition = self.expr(Ty::Bool, 2);
        let how = match self.here {
            Where::Function => {
                let value = self.returns.map(|ty| self.expr(ty, 2)).unwrap_or_default();
                format!("return {value};")
            }
            Where::ParserState => return self.assignment(),
            Where::Action | Where::Control if self.random.one_in(2) => "return;".to_owned(),
            Where::Action | Where::Control => "exit;".to_owned(),
        };
        self.line(format!("if ({condition}) {{ {how} }}"));
    }
}
