#include <core.p4>

header h_t { bit<8> a; }
header v_t { varbit<8> v; }
struct headers_t { h_t h; h_t[2] s; v_t v; }

parser nostart(packet_in b) { state begin { transition accept; } }
parser endless(packet_in b) { state start { transition start; } }
parser p(packet_in b, out headers_t hdr) {
    value_set<bit<16>>(4) wide;
    state start {
        b.extract(hdr);
        b.extract(hdr.v);
        b.extract(hdr.h, 8);
        bit<8> peek = b.lookahead<void>();
        transition selct;
    }
    state accept { }
    state select_it {
        hdr.s.next.a = 1;
        transition select(hdr.h.a, hdr.h) {
            (1, 2): start;
            1: start;
            (wide, true): strat;
            default: accept;
        }
    }
    state select_it { transition accept; }
    state one {
        transition select(hdr.h.a) {
            wide: accept;
            1 .. 300: accept;
            true &&& 1: accept;
            hdr.h.a &&& b.lookahead<bit<8>>(): accept;
        }
    }
}
