//! Random expressions of a given type.

use super::{Generator, Place, Ty, Where};

impl Generator<'_> {
    /// An expression of this type, at most about `depth` operators high.
    pub(super) fn expr(&mut self, ty: Ty, depth: usize) -> String {
        if depth == 0 || self.random.one_in(4) {
            return self.leaf(ty);
        }
        match ty {
            Ty::Bit(width) => self.bit(width, depth - 1),
            Ty::Int(width) => self.int(width, depth - 1),
            Ty::Bool => self.bool(depth - 1),
        }
    }

    /// A value of this type, written out.
    pub(super) fn literal(&mut self, ty: Ty) -> String {
        let value = self.random.interesting();
        match ty {
            Ty::Bool => if value & 1 == 0 { "false" } else { "true" }.to_owned(),
            Ty::Bit(width) => {
                let value = if width < 64 { value % (1 << width) } else { value };
                match self.random.below(3) {
                    0 => format!("{width}w0x{value:x}"),
                    1 => format!("(bit<{width}>) {value}"),
                    _ => format!("{width}w{value}"),
                }
            }
            Ty::Int(width) => {
                let value = if width < 64 { value % (1 << (width - 1)) } else { value / 2 };
                let sign = if self.random.one_in(3) { "-" } else { "" };
                format!("({sign}{width}s{value})")
            }
        }
    }

    fn leaf(&mut self, ty: Ty) -> String {
        match self.place(ty, false) {
            Some(place) if !self.random.one_in(4) => place.text,
            _ => self.literal(ty),
        }
    }

    /// A place in scope of this type.
    pub(super) fn place(&mut self, ty: Ty, writable: bool) -> Option<Place> {
        let fit = |place: &&Place| place.ty == ty && (place.writable || !writable);
        let count = self.places.iter().filter(fit).count();
        if count == 0 {
            return None;
        }
        let at = self.random.below(count);
        self.places.iter().filter(fit).nth(at).cloned()
    }

    fn pair(&mut self, ty: Ty, depth: usize, operator: &str) -> String {
        let (left, right) = (self.expr(ty, depth), self.expr(ty, depth));
        format!("({left} {operator} {right})")
    }

    fn bit(&mut self, width: u32, depth: usize) -> String {
        let ty = Ty::Bit(width);
        match self.random.below(12) {
            0..=3 => {
                let operator = *self.random.pick(&["+", "-", "*", "&", "|", "^", "|+|", "|-|"]);
                self.pair(ty, depth, operator)
            }
            4 => {
                let operator = *self.random.pick(&["<<", ">>"]);
                let value = self.expr(ty, depth);
                let amount = super::width(self.random).min(16);
                let amount = self.expr(Ty::Bit(amount), depth.min(1));
                format!("({value} {operator} {amount})")
            }
            5 if width > 1 => {
                let left = self.random.between(1, width - 1);
                let (left, right) = (self.expr(Ty::Bit(left), depth), self.expr(Ty::Bit(width - left), depth));
                format!("({left} ++ {right})")
            }
            6 => {
                let wider = width + self.random.below(9) as u32;
                let low = self.random.below((wider - width) as usize + 1) as u32;
                // Slices are taken of names, which every front end agrees about.
                match self.place(Ty::Bit(wider), false) {
                    Some(place) => format!("{}[{}:{low}]", place.text, low + width - 1),
                    None => self.leaf(ty),
                }
            }
            7 => {
                let from = super::width(self.random);
                let value = self.expr(Ty::Bit(from), depth);
                format!("((bit<{width}>) {value})")
            }
            8 if width > 1 => {
                let value = self.expr(Ty::Int(width), depth);
                format!("((bit<{width}>) {value})")
            }
            8 => {
                let value = self.expr(Ty::Bool, depth);
                format!("((bit<1>) {value})")
            }
            9 => {
                let operator = *self.random.pick(&["~", "-"]);
                let value = self.expr(ty, depth);
                format!("({operator}{value})")
            }
            10 => self.conditional(ty, depth),
            _ => self.call(ty, depth).unwrap_or_else(|| self.leaf(ty)),
        }
    }

    fn int(&mut self, width: u32, depth: usize) -> String {
        let ty = Ty::Int(width);
        match self.random.below(7) {
            0..=2 => {
                let operator = *self.random.pick(&["+", "-", "*", "&", "|", "^", "|+|", "|-|"]);
                self.pair(ty, depth, operator)
            }
            3 => {
                let operator = *self.random.pick(&["<<", ">>"]);
                let (value, amount) = (self.expr(ty, depth), self.expr(Ty::Bit(8), depth.min(1)));
                format!("({value} {operator} {amount})")
            }
            4 => {
                let from =
                    if self.random.one_in(2) { Ty::Bit(width) } else { Ty::Int(super::width(self.random).max(2)) };
                let value = self.expr(from, depth);
                format!("((int<{width}>) {value})")
            }
            5 => self.conditional(ty, depth),
            _ => self.call(ty, depth).unwrap_or_else(|| self.leaf(ty)),
        }
    }

    fn bool(&mut self, depth: usize) -> String {
        match self.random.below(8) {
            0 | 1 => {
                let operator = *self.random.pick(&["&&", "||"]);
                self.pair(Ty::Bool, depth, operator)
            }
            2 => {
                let value = self.expr(Ty::Bool, depth);
                format!("(!{value})")
            }
            3 | 4 => {
                let ty = match Ty::any(self.random) {
                    Ty::Bool => Ty::Bit(8),
                    other => other,
                };
                let operator = *self.random.pick(&["<", "<=", ">", ">=", "==", "!="]);
                self.pair(ty, depth, operator)
            }
            5 if !self.headers.is_empty() && self.here != Where::Function => {
                let header = self.header_element();
                format!("{header}.isValid()")
            }
            6 => self.conditional(Ty::Bool, depth),
            _ => self.pair(Ty::Bool, depth, "=="),
        }
    }

    fn conditional(&mut self, ty: Ty, depth: usize) -> String {
        let (condition, yes, no) = (self.expr(Ty::Bool, depth), self.expr(ty, depth), self.expr(ty, depth));
        format!("({condition} ? {yes} : {no})")
    }

    /// A header of `hdr`, or an element of a stack of them.
    pub(super) fn header_element(&mut self) -> String {
        let header = &self.headers[self.random.below(self.headers.len())];
        match header.stack {
            None => header.text.clone(),
            Some(size) => format!("{}[{}]", header.text, self.random.below(size as usize)),
        }
    }

    /// A call of a function that returns this type.
    fn call(&mut self, ty: Ty, depth: usize) -> Option<String> {
        let function = self.functions.iter().find(|function| function.returns == Some(ty))?.clone();
        let arguments = self.arguments(&function.params, depth)?;
        Some(format!("{}({arguments})", function.name))
    }

    /// Arguments for these parameters; `None` if nothing in scope can be written to.
    pub(super) fn arguments(&mut self, params: &[(Ty, bool)], depth: usize) -> Option<String> {
        let mut texts: Vec<String> = Vec::new();
        for (ty, writable) in params {
            texts.push(if *writable { self.place(*ty, true)?.text } else { self.expr(*ty, depth.min(2)) });
        }
        Some(texts.join(", "))
    }
}
