//! Random parsers: states in a chain or with loops, each extracting, computing and choosing.

use super::{Generator, Place, Ty, Where};

impl Generator<'_> {
    pub(super) fn parser(&mut self) {
        self.here = Where::ParserState;
        self.open(
            "parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, \
             inout standard_metadata_t standard_metadata)",
        );
        let scope = self.places.len();
        if self.random.one_in(3) {
            self.line("bit<16> seen = 0;");
            self.places.push(Place { text: "seen".to_owned(), ty: Ty::Bit(16), writable: true });
        }
        self.packet_places(true);
        let states = 1 + self.random.below(4);
        for state in 0..states {
            self.state(state, states);
        }
        self.places.truncate(scope);
        self.close("}");
    }

    fn state(&mut self, index: usize, states: usize) {
        let name = if index == 0 { "start".to_owned() } else { format!("s{index}") };
        let scope = self.places.len();
        self.open(format!("state {name}"));
        for _ in 0..self.random.below(3) {
            self.extraction();
        }
        self.statements(2);
        // Mostly forward; a step back makes a loop, which ends when the packet does, or a stack is full.
        let target = |generator: &mut Self| match generator.random.below(6) {
            0 => "accept".to_owned(),
            1 if generator.random.one_in(3) => "reject".to_owned(),
            2 if index > 0 => format!("s{}", 1 + generator.random.below(index)),
            _ if index + 1 < states => format!("s{}", index + 1),
            _ => "accept".to_owned(),
        };
        if self.random.one_in(3) {
            let to = target(self);
            self.line(format!("transition {to};"));
        } else {
            let ty = match Ty::any(self.random) {
                Ty::Bool => Ty::Bit(8),
                other => other,
            };
            let key = match ty {
                Ty::Bit(width) if self.random.one_in(4) => format!("packet.lookahead<bit<{width}>>()"),
                _ => self.expr(ty, 2),
            };
            let second = self.random.below(2);
            self.open(format!("transition select({key}, 1w{second})"));
            for _ in 0..self.random.below(4) {
                let (label, to) = (self.label(ty), target(self));
                self.line(format!("({label}, _): {to};"));
            }
            if self.random.one_in(8) {
                self.line("(_, 1): reject;");
            } else {
                let to = target(self);
                self.line(format!("default: {to};"));
            }
            self.close("}");
        }
        self.close("}");
        self.places.truncate(scope);
    }

    /// A key set for a value of this type.
    fn label(&mut self, ty: Ty) -> String {
        let (first, second) = (self.literal(ty), self.literal(ty));
        match self.random.below(4) {
            0 if matches!(ty, Ty::Bit(_)) => format!("{first} &&& {second}"),
            1 => format!("{first} .. {second}"),
            _ => first,
        }
    }

    fn extraction(&mut self) {
        match self.random.below(8) {
            0 => {
                let bits = self.random.below(12) * 8;
                self.line(format!("packet.advance({bits});"));
            }
            1 => {
                let condition = self.expr(Ty::Bool, 2);
                let error = *self.random.pick(&["Strange", "Stranger", "NoMatch"]);
                self.line(format!("verify({condition}, error.{error});"));
            }
            _ => {
                let header = &self.headers[self.random.below(self.headers.len())];
                let (text, stack, varbit) = (header.text.clone(), header.stack, self.types[header.ty].varbit);
                match stack {
                    Some(_) => self.line(format!("packet.extract({text}.next);")),
                    None if varbit => {
                        let size = self.expr(Ty::Bit(8), 1);
                        self.line(format!("packet.extract({text}, ((bit<32>) ({size})) << 3);"));
                    }
                    None => self.line(format!("packet.extract({text});")),
                }
            }
        }
    }
}
