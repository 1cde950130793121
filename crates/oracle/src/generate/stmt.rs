//! Generates random statements.

use super::{Callable, Code, Generator, Ty};

impl Generator {
    /// Writes up to `count` statements of at most `depth` levels.
    pub(super) fn statements(&mut self, count: usize, depth: usize) {
        let scope = self.places.len();
        for _ in 0..count {
            if self.budget == 0 {
                break;
            }
            self.budget -= 1;
            self.statement(depth);
        }
        self.places.truncate(scope);
    }

    fn statement(&mut self, depth: usize) {
        let nested = depth > 0;
        match self.below(28) {
            0..=5 => self.assign(),
            6 => self.compound_assign(),
            7 => self.whole_assign(),
            8 => self.variable(),
            9 | 10 => self.call_statement(),
            11 | 12 if nested => self.if_statement(depth),
            13 if nested => self.switch_statement(depth),
            14 if nested && self.loops < 2 => self.loop_statement(depth),
            15 => self.validity(),
            16 => self.shift(),
            17 => self.leave(),
            18..=25 if self.code == Code::Apply => self.apply_statement(depth),
            18 | 19 if self.code == Code::Action => self.action_statement(),
            18 | 19 if self.code == Code::Parser && self.has_packet() => self.parser_statement(),
            26 if nested && matches!(self.code, Code::Apply | Code::Action) => {
                let head = if self.percent(30) { "@atomic" } else { "" };
                self.open(head);
                let count = 1 + self.below(3);
                self.statements(count, depth - 1);
                self.close("}");
            }
            _ => self.assign(),
        }
    }

    fn assign(&mut self) {
        let ty = self.scalar_ty();
        if let Some(place) = self.lvalue(ty, 2) {
            let value = self.expr(ty, 3);
            self.line(format!("{place} = {value};"));
        }
    }

    fn compound_assign(&mut self) {
        let ty = if self.percent(50) { Ty::Bit(8) } else { Ty::Bit(16) };
        let op = self.one_of(&["+=", "-=", "&=", "|=", "^=", "*="]).unwrap_or("+=");
        if let Some(place) = self.lvalue(ty, 2) {
            let value = self.expr(ty, 2);
            self.line(format!("{place} {op} {value};"));
        }
    }

    /// Assigns a header, struct, stack or union.
    fn whole_assign(&mut self) {
        if self.has_packet() && self.percent(25) {
            let text = self.one_of(&[
                "hdr.u.x = hdr.h;",
                "hdr.u.y = hdr.g;",
                "hdr.u = hdr.us[0];",
                "hdr.us[1] = hdr.u;",
                "hdr.us[meta.ix] = hdr.u;",
                "hdr.u = hdr.us[meta.ix];",
                "hdr.h = hdr.u.x;",
                "hdr.g = { 1, 2, 3, 1 };",
                "hdr.u.y = (g_t) { 16w5, 8s1, 7w2, 1w0 };",
            ]);
            self.line(text.unwrap_or(";"));
            return;
        }
        let ty = self.rng.pick(&[(3, Ty::Header), (2, Ty::Struct), (1, Ty::Small)]);
        if let Some(place) = self.lvalue(ty, 2) {
            let value = if ty != Ty::Struct && self.percent(5) { "{#}".to_owned() } else { self.expr(ty, 2) };
            self.line(format!("{place} = {value};"));
        }
    }

    fn variable(&mut self) {
        let ty = self.param_ty();
        let name = self.fresh("v");
        let value = self.expr(ty, 2);
        self.line(format!("{} {name} = {value};", ty.text()));
        self.declare(&name, ty, true);
    }

    /// Calls a function or action for its side effects.
    fn call_statement(&mut self) {
        let mut callables: Vec<Callable> = self.functions.clone();
        if matches!(self.code, Code::Apply | Code::Action) {
            callables.extend(self.actions.clone());
        }
        let Some(callee) = self.one_of(&callables) else { return self.assign() };
        if let Some(call) = self.call_text(&callee, 2) {
            self.line(format!("{call};"));
        }
    }

    fn if_statement(&mut self, depth: usize) {
        let condition = self.expr(Ty::Bool, 3);
        self.open(format!("if ({condition})"));
        let count = 1 + self.below(3);
        self.statements(count, depth - 1);
        if self.percent(40) {
            self.indent -= 1;
            self.open("} else");
            let count = 1 + self.below(2);
            self.statements(count, depth - 1);
        }
        self.close("}");
    }

    fn switch_statement(&mut self, depth: usize) {
        if self.code == Code::Parser {
            return self.assign();
        }
        let subject = self.expr(Ty::Bit(8), 2);
        self.open(format!("switch ({subject} & 3)"));
        let mut labels = vec!["0", "1", "2", "3"];
        while labels.len() > 1 && self.percent(75) {
            let label = labels.remove(self.below(labels.len()));
            if self.percent(20) {
                // Falls through to the next label.
                let next = labels.remove(self.below(labels.len()));
                self.line(format!("8w{label}:"));
                self.open(format!("8w{next}:"));
                if labels.is_empty() {
                    labels.push("9");
                }
            } else {
                self.open(format!("8w{label}:"));
            }
            let count = 1 + self.below(2);
            self.statements(count, depth - 1);
            self.close("}");
        }
        if self.percent(60) {
            self.open("default:");
            let count = self.below(3);
            self.statements(count, depth - 1);
            self.close("}");
        }
        self.close("}");
    }

    fn loop_statement(&mut self, depth: usize) {
        if self.code == Code::Parser {
            return self.assign();
        }
        let scope = self.places.len();
        let name = self.fresh("i");
        match self.below(3) {
            0 => {
                let high = self.expr(Ty::Bit(4), 2);
                self.open(format!("for (bit<4> {name} in 0 .. {high})"));
                self.declare(&name, Ty::Bit(4), false);
            }
            1 => {
                let low = self.below(6);
                self.open(format!("for (bit<8> {name} = {low}; {name} < 5; {name} = {name} + 1)"));
                self.declare(&name, Ty::Bit(8), false);
            }
            _ if self.has_packet() => {
                self.open(format!("for (h_t {name} in hdr.st)"));
                self.declare(&name, Ty::Header, false);
            }
            _ => {
                self.open(format!("for (bit<4> {name} in 1 .. 3)"));
                self.declare(&name, Ty::Bit(4), false);
            }
        }
        self.loops += 1;
        let count = 1 + self.below(3);
        self.statements(count, depth - 1);
        self.loops -= 1;
        self.close("}");
        self.places.truncate(scope);
    }

    fn validity(&mut self) {
        let header = if !self.has_packet() || self.percent(70) {
            let ty = if self.percent(70) { Ty::Header } else { Ty::Small };
            self.lvalue(ty, 1)
        } else {
            self.one_of(&["hdr.u.x", "hdr.u.y", "hdr.us[0].x", "hdr.us[meta.ix].y", "hdr.g"]).map(str::to_owned)
        };
        if let Some(header) = header {
            let to = if self.percent(65) { "setValid" } else { "setInvalid" };
            self.line(format!("{header}.{to}();"));
        }
    }

    fn shift(&mut self) {
        if !self.has_packet() {
            return self.assign();
        }
        let (method, count) = (if self.percent(50) { "push_front" } else { "pop_front" }, 1 + self.below(2));
        let stack = if self.percent(80) { "hdr.st" } else { "hdr.us" };
        self.line(format!("{stack}.{method}({count});"));
    }

    /// Leaves a loop, function, action or control, under a condition.
    fn leave(&mut self) {
        let mut ways = Vec::new();
        if self.loops > 0 {
            ways.extend(["break;".to_owned(), "continue;".to_owned()]);
        }
        match (self.code, self.returns) {
            (Code::Function, Some(ty)) => ways.push(format!("return {};", self.expr(ty, 1))),
            (Code::Function, None) => ways.push("return;".to_owned()),
            (Code::Action | Code::Apply, _) => ways.extend(["return;".to_owned(), "exit;".to_owned()]),
            (Code::Parser, _) => return self.assign(),
        }
        let Some(way) = self.one_of(&ways) else { return };
        let condition = self.expr(Ty::Bool, 2);
        self.open(format!("if ({condition})"));
        self.line(way);
        self.close("}");
    }

    fn action_statement(&mut self) {
        match self.below(3) {
            0 => self.register_statement(),
            1 => self.line("std.egress_spec = (bit<9>) (meta.a & 3);"),
            _ => self.call_statement(),
        }
    }

    pub(super) fn register_statement(&mut self) {
        let Some((register, ty)) = self.one_of(&self.registers.clone()) else { return self.assign() };
        let index = self.expr(Ty::Bit(4), 2);
        let index = format!("(bit<32>) ({index})");
        if self.percent(50) {
            if let Some(place) = self.lvalue(ty, 2) {
                self.line(format!("{register}.read({place}, {index});"));
            }
        } else {
            let value = self.expr(ty, 2);
            self.line(format!("{register}.write({index}, {value});"));
        }
    }
}
