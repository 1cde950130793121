//! Generates random parsers: states that go forward, a loop over the stack, a sub-parser, a value set.

use super::{Code, Generator, Ty};

impl Generator {
    /// Writes the sub-parser and the parser.
    pub(super) fn parser(&mut self) {
        self.open("parser SubParse(packet_in p, inout g_t g, inout bit<8> x, out h_t h)");
        self.open("state start");
        self.line("p.extract(g);");
        let scope = self.places.len();
        self.declare("x", Ty::Bit(8), true);
        self.declare("g", Ty::Small, true);
        self.declare("h", Ty::Header, true);
        self.code = Code::Parser;
        self.statements(2, 1);
        let value = self.expr(Ty::Bit(8), 2);
        self.open(format!("transition select({value})"));
        self.line("8w0 .. 8w99: more;");
        self.line("default: accept;");
        self.close("}");
        self.close("}");
        self.open("state more");
        self.line("p.extract(h);");
        self.statements(1, 1);
        self.line("transition accept;");
        self.close("}");
        self.close("}");
        self.places.truncate(scope);

        self.open("parser Parse(packet_in p, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std)");
        self.line("SubParse() sub;");
        self.line("value_set<bit<8>>(4) vs;");
        self.line("bit<8> l0 = 3;");
        let scope = self.places.len();
        self.packet_places();
        self.declare("l0", Ty::Bit(8), true);
        self.open("state start");
        self.line("p.extract(hdr.h);");
        self.parser_statements(3);
        let next = if self.percent(70) { "stack" } else { "middle" };
        self.line(format!("transition {next};"));
        self.close("}");
        self.stack_state();
        self.middle_state();
        self.last_state();
        self.close("}");
        self.places.truncate(scope);
    }

    fn parser_statements(&mut self, most: usize) {
        self.code = Code::Parser;
        let count = self.below(most + 1);
        self.statements(count, 1);
    }

    fn stack_state(&mut self) {
        self.open("state stack");
        self.line("p.extract(hdr.st.next);");
        self.parser_statements(2);
        let (first, second) = match self.below(3) {
            0 => ("hdr.st.last.n".to_owned(), "hdr.st.lastIndex[1:0]".to_owned()),
            1 => (self.expr(Ty::Bit(4), 2), "hdr.st.lastIndex[1:0]".to_owned()),
            _ => ("hdr.st.last.m".to_owned(), self.expr(Ty::Bit(1), 2)),
        };
        self.open(format!("transition select({first}, {second})"));
        let one_bit = !second.contains("lastIndex");
        let limit = if one_bit { 2 } else { 4 };
        let value = self.below(limit);
        let mask = self.below(16);
        self.line(format!("(4w0 &&& 4w{mask}, {value}): stack;"));
        let (low, high) = (self.below(8), 8 + self.below(8));
        self.line(format!("(4w{low} .. 4w{high}, _): stack;"));
        let value = self.below(limit);
        self.line(format!("(_, {value}): last;"));
        if self.percent(85) {
            self.line("default: middle;");
        }
        self.close("}");
        self.close("}");
    }

    fn middle_state(&mut self) {
        self.open("state middle");
        self.parser_statements(2);
        match self.below(4) {
            0 => {
                if let (Some(x), Some(h)) = (self.lvalue(Ty::Bit(8), 0), self.one_of(&["hdr.k", "meta.s.h"])) {
                    self.line(format!("sub.apply(p, hdr.g, {x}, {h});"));
                }
            }
            1 => {
                let value = self.expr(Ty::Bit(4), 2);
                self.line(format!("p.extract(hdr.v, (bit<32>) ({value}) << 3);"));
            }
            2 => {
                self.line("p.extract(hdr.us.next.x);");
                self.line("p.extract(hdr.us.next.y);");
            }
            _ => {
                let member = if self.percent(50) { "x" } else { "y" };
                self.line(format!("p.extract(hdr.u.{member});"));
            }
        }
        let value = self.expr(Ty::Bit(8), 2);
        self.open(format!("transition select({value}, p.lookahead<bit<8>>())"));
        self.line("(8w0 .. 8w60, _): last;");
        let (mask, value) = (self.below(256), self.below(256));
        self.line(format!("(8w{} &&& 8w{mask}, 8w0 .. 8w127): last;", value & mask));
        self.line("(_, 8w255): reject;");
        if self.percent(80) {
            self.line("default: accept;");
        }
        self.close("}");
        self.close("}");
    }

    fn last_state(&mut self) {
        self.open("state last");
        let bits = 8 * self.below(4);
        self.line(format!("p.advance({bits});"));
        self.parser_statements(2);
        if self.percent(40) {
            let condition = self.expr(Ty::Bool, 2);
            self.line(format!("verify({condition}, error.Odd);"));
        }
        if self.percent(40) {
            self.line("hdr.k = p.lookahead<h_t>();");
        }
        if self.percent(50) {
            self.line("p.extract(hdr.g);");
        }
        let value = self.expr(Ty::Bit(8), 2);
        self.open(format!("transition select({value})"));
        self.line("vs: accept;");
        self.line("8w1: accept;");
        self.line("default: accept;");
        self.close("}");
        self.close("}");
    }

    /// Writes a statement that only parsers can have.
    pub(super) fn parser_statement(&mut self) {
        match self.below(4) {
            0 => {
                if let Some(place) = self.lvalue(Ty::Bit(8), 1) {
                    self.line(format!("{place} = p.lookahead<bit<8>>();"));
                }
            }
            1 => self.line("meta.w = p.length();"),
            2 => {
                if let Some(place) = self.lvalue(Ty::Bit(32), 1) {
                    self.line(format!("{place} = hdr.st.lastIndex;"));
                }
            }
            _ => {
                let value = self.expr(Ty::Bit(8), 2);
                self.line(format!("hdr.st.next.a = {value};"));
            }
        }
    }
}
