//! Generates random expressions, l-values and arguments.

use super::{Callable, Dir, Generator, Param, Ty};

impl Generator {
    /// Returns a literal.
    pub(super) fn literal(&mut self, ty: Ty) -> String {
        match ty {
            Ty::Bit(width) => {
                let limit = if width >= 16 { 65_536 } else { 1 << width };
                let value = match self.below(3) {
                    0 => self.below(limit.min(4)),
                    1 => limit - 1,
                    _ => self.below(limit),
                };
                format!("{width}w{value}")
            }
            Ty::Int(width) => {
                let limit = 1usize << (width.min(16) - 1);
                let value = self.below(limit);
                if self.percent(40) { format!("-{width}s{value}") } else { format!("{width}s{value}") }
            }
            Ty::Bool => if self.percent(50) { "true" } else { "false" }.to_owned(),
            Ty::Header => {
                let parts = [Ty::Bit(8), Ty::Bit(8), Ty::Int(8), Ty::Bit(4), Ty::Bit(4), Ty::Bit(16)];
                format!("(h_t) {{ {} }}", parts.map(|ty| self.literal(ty)).join(", "))
            }
            Ty::Small => {
                let parts = [Ty::Bit(16), Ty::Int(8), Ty::Bit(7), Ty::Bit(1)];
                format!("(g_t) {{ {} }}", parts.map(|ty| self.literal(ty)).join(", "))
            }
            Ty::Struct => {
                let parts = [Ty::Bit(8), Ty::Bit(16), Ty::Bool, Ty::Int(8), Ty::Header];
                format!("(s_t) {{ {} }}", parts.map(|ty| self.literal(ty)).join(", "))
            }
            Ty::Stack => "hdr.st".to_owned(),
        }
    }

    /// Returns a readable place of a type.
    fn place(&mut self, ty: Ty) -> Option<String> {
        let fitting: Vec<String> =
            self.places.iter().filter(|place| place.ty == ty).map(|place| place.text.clone()).collect();
        self.one_of(&fitting)
    }

    /// Returns an index into a stack of three: now and then it is beyond the end.
    fn index(&mut self, depth: usize) -> String {
        // A constant index beyond the end is an error, so that literals must not fold.
        let calls: Vec<Callable> =
            self.functions.iter().filter(|function| function.returns == Some(Ty::Bit(8))).cloned().collect();
        if depth > 0
            && self.effects
            && self.percent(40)
            && let Some(call) = self.one_of(&calls).and_then(|function| self.call_text(&function, depth - 1))
        {
            return format!("(bit<2>) ({call})");
        }
        self.one_of(&["meta.ix", "(bit<2>) (meta.a)", "(meta.a)[1:0]", "meta.ix + 1"]).unwrap_or("meta.ix").to_owned()
    }

    /// Whether `hdr` and `meta` are in scope.
    pub(super) fn has_packet(&self) -> bool {
        self.places.iter().any(|place| place.text == "meta.a")
    }

    /// Returns an l-value of a type: a place, a slice, or a field of a computed stack element.
    pub(super) fn lvalue(&mut self, ty: Ty, depth: usize) -> Option<String> {
        if depth > 0 && self.has_packet() && self.percent(12) {
            let field = match ty {
                Ty::Bit(8) => self.one_of(&[".a", ".b"]),
                Ty::Int(8) => Some(".s"),
                Ty::Bit(4) => self.one_of(&[".n", ".m"]),
                Ty::Bit(16) => Some(".c"),
                Ty::Header => Some(""),
                _ => None,
            };
            if let Some(field) = field {
                let index = self.index(depth - 1);
                let stack = if self.percent(20) && !field.is_empty() { "hdr.us" } else { "hdr.st" };
                let member = if stack == "hdr.us" { ".x" } else { "" };
                return Some(format!("{stack}[{index}]{member}{field}"));
            }
        }
        if let Ty::Bit(width) = ty
            && self.percent(25)
        {
            let wide: Vec<(String, u32)> = self
                .places
                .iter()
                .filter(|place| place.writable)
                .filter_map(|place| match place.ty {
                    Ty::Bit(whole) if whole > width => Some((place.text.clone(), whole)),
                    _ => None,
                })
                .collect();
            if let Some((text, whole)) = self.one_of(&wide) {
                let low = self.below((whole - width + 1) as usize) as u32;
                return Some(format!("{text}[{}:{low}]", low + width - 1));
            }
        }
        let fitting: Vec<String> = self
            .places
            .iter()
            .filter(|place| place.writable && place.ty == ty)
            .map(|place| place.text.clone())
            .collect();
        self.one_of(&fitting)
    }

    /// Returns an expression of a type.
    pub(super) fn expr(&mut self, ty: Ty, depth: usize) -> String {
        if depth == 0 || self.percent(15) {
            return match self.place(ty) {
                Some(place) if self.percent(75) => place,
                _ => self.literal(ty),
            };
        }
        if self.effects && self.percent(30) {
            let fitting: Vec<Callable> =
                self.functions.iter().filter(|function| function.returns == Some(ty)).cloned().collect();
            if let Some(function) = self.one_of(&fitting)
                && let Some(call) = self.call_text(&function, depth - 1)
            {
                return call;
            }
        }
        match ty {
            Ty::Bit(width) => self.bit_expr(width, depth - 1),
            Ty::Int(width) => self.int_expr(width, depth - 1),
            Ty::Bool => self.bool_expr(depth - 1),
            Ty::Header | Ty::Small | Ty::Struct | Ty::Stack => match self.place(ty) {
                Some(place) if self.percent(70) => place,
                _ => self.compound(ty, depth - 1),
            },
        }
    }

    /// Returns a struct or header expression whose parts are expressions.
    fn compound(&mut self, ty: Ty, depth: usize) -> String {
        let (name, parts): (&str, &[Ty]) = match ty {
            Ty::Header => ("h_t", &[Ty::Bit(8), Ty::Bit(8), Ty::Int(8), Ty::Bit(4), Ty::Bit(4), Ty::Bit(16)]),
            Ty::Small => ("g_t", &[Ty::Bit(16), Ty::Int(8), Ty::Bit(7), Ty::Bit(1)]),
            Ty::Struct => ("s_t", &[Ty::Bit(8), Ty::Bit(16), Ty::Bool, Ty::Int(8), Ty::Header]),
            _ => return self.literal(ty),
        };
        let parts: Vec<String> = parts.iter().map(|ty| self.expr(*ty, depth.min(1))).collect();
        format!("({name}) {{ {} }}", parts.join(", "))
    }

    fn bit_expr(&mut self, width: u32, depth: usize) -> String {
        let ty = Ty::Bit(width);
        match self.below(12) {
            0..=3 => {
                let op = self.one_of(&["+", "-", "*", "&", "|", "^", "|+|", "|-|"]).unwrap_or("+");
                let (a, b) = (self.expr(ty, depth), self.expr(ty, depth));
                format!("({a} {op} {b})")
            }
            4 => {
                let op = if self.percent(50) { "<<" } else { ">>" };
                let (a, b) = (self.expr(ty, depth), self.expr(Ty::Bit(4), depth));
                format!("({a} {op} {b})")
            }
            5 if width >= 2 => {
                let high = 1 + self.below((width - 1) as usize) as u32;
                let (a, b) = (self.expr(Ty::Bit(high), depth), self.expr(Ty::Bit(width - high), depth));
                format!("({a} ++ {b})")
            }
            6 if width <= 16 => {
                let whole = if width < 8 { 8 } else { 32 };
                let low = self.below((whole - width + 1) as usize) as u32;
                let base = self.expr(Ty::Bit(whole), depth);
                format!("({base})[{}:{low}]", low + width - 1)
            }
            // A signed number that becomes wider or narrower on the way.
            8 if width == 16 => format!("((bit<16>) ((int<16>) ({})))", self.expr(Ty::Int(8), depth)),
            7 => {
                let from = self.rng.pick(&[(1, Ty::Bit(8)), (1, Ty::Bit(16)), (1, Ty::Bit(4))]);
                let value = self.expr(from, depth);
                format!("((bit<{width}>) ({value}))")
            }
            8 if width == 8 => format!("((bit<8>) ({}))", self.expr(Ty::Int(8), depth)),
            9 => {
                let condition = self.expr(Ty::Bool, depth);
                let (a, b) = (self.expr(ty, depth), self.expr(ty, depth));
                format!("({condition} ? {a} : {b})")
            }
            10 => {
                let op = if self.percent(50) { "~" } else { "-" };
                format!("({op}{})", self.expr(ty, depth))
            }
            11 if matches!(width, 4 | 8 | 16) && self.has_packet() => {
                let field = match width {
                    4 => "n",
                    8 => "a",
                    _ => "c",
                };
                let index = self.index(depth);
                format!("hdr.st[{index}].{field}")
            }
            _ => self.expr(ty, depth),
        }
    }

    fn int_expr(&mut self, width: u32, depth: usize) -> String {
        let ty = Ty::Int(width);
        match self.below(7) {
            0..=2 => {
                let op = self.one_of(&["+", "-", "*", "&", "|", "^", "|+|", "|-|"]).unwrap_or("+");
                let (a, b) = (self.expr(ty, depth), self.expr(ty, depth));
                format!("({a} {op} {b})")
            }
            3 => {
                let op = if self.percent(30) { "<<" } else { ">>" };
                let (a, b) = (self.expr(ty, depth), self.expr(Ty::Bit(4), depth));
                format!("({a} {op} {b})")
            }
            4 => format!("((int<{width}>) ({}))", self.expr(Ty::Bit(width), depth)),
            5 => {
                let condition = self.expr(Ty::Bool, depth);
                let (a, b) = (self.expr(ty, depth), self.expr(ty, depth));
                format!("({condition} ? {a} : {b})")
            }
            _ => format!("(-{})", self.expr(ty, depth)),
        }
    }

    fn bool_expr(&mut self, depth: usize) -> String {
        match self.below(9) {
            0..=2 => {
                let ty = if self.percent(30) { Ty::Int(8) } else { Ty::Bit(8) };
                let op = self.one_of(&["<", "<=", ">", ">=", "==", "!="]).unwrap_or("<");
                let (a, b) = (self.expr(ty, depth), self.expr(ty, depth));
                format!("({a} {op} {b})")
            }
            3 | 4 => {
                let op = if self.percent(50) { "&&" } else { "||" };
                let (a, b) = (self.expr(Ty::Bool, depth), self.expr(Ty::Bool, depth));
                format!("({a} {op} {b})")
            }
            5 => format!("(!{})", self.expr(Ty::Bool, depth)),
            6 => {
                let ty = self.rng.pick(&[(2, Ty::Header), (1, Ty::Small)]);
                match self.place(ty) {
                    Some(place) => format!("{place}.isValid()"),
                    None => self.literal(Ty::Bool),
                }
            }
            7 => {
                let ty = self.rng.pick(&[(2, Ty::Header), (1, Ty::Struct), (2, Ty::Bit(16))]);
                let op = if self.percent(50) { "==" } else { "!=" };
                match (self.place(ty), self.place(ty)) {
                    (Some(a), Some(b)) => format!("({a} {op} {b})"),
                    _ => self.literal(Ty::Bool),
                }
            }
            _ if self.has_packet() => self
                .one_of(&["hdr.u.isValid()", "hdr.u.x.isValid()", "hdr.us[1].y.isValid()"])
                .unwrap_or("true")
                .to_owned(),
            _ => self.expr(Ty::Bool, depth),
        }
    }

    /// Returns a call; `None` if there is no l-value for one of its parameters.
    pub(super) fn call_text(&mut self, callee: &Callable, depth: usize) -> Option<String> {
        let args = self.args(&callee.params, depth)?;
        Some(format!("{}({args})", callee.name))
    }

    /// Returns a member of a header union, now and then, if the packet is in scope.
    fn union_member(&mut self, ty: Ty) -> Option<String> {
        let member = match ty {
            Ty::Header => "x",
            Ty::Small => "y",
            _ => return None,
        };
        if !self.has_packet() || !self.percent(25) {
            return None;
        }
        let union = self.one_of(&["hdr.u", "hdr.us[0]", "hdr.us[meta.ix]"])?;
        Some(format!("{union}.{member}"))
    }

    /// Returns arguments, in order or by name.
    pub(super) fn args(&mut self, params: &[Param], depth: usize) -> Option<String> {
        let mut args = Vec::new();
        for param in params {
            if param.default.is_some() && self.percent(50) {
                continue;
            }
            let value = match param.dir {
                Dir::In | Dir::Data => self.expr(param.ty, depth),
                Dir::Out | Dir::InOut => match self.union_member(param.ty) {
                    Some(member) => member,
                    None => self.lvalue(param.ty, depth)?,
                },
            };
            args.push((param.name.clone(), value));
        }
        if self.percent(30) {
            for at in (1..args.len()).rev() {
                let other = self.below(at + 1);
                args.swap(at, other);
            }
            let named: Vec<String> = args.into_iter().map(|(name, value)| format!("{name} = {value}")).collect();
            return Some(named.join(", "));
        }
        Some(args.into_iter().map(|(_, value)| value).collect::<Vec<_>>().join(", "))
    }
}
