/* Leaving early, from functions, sub-controls and actions, copies out what was written; arguments by name choose overloads. */
#include "common/bench.p4"
struct pair_t<A, B> { A first; B second; }
T pick<T>(in bool c, in T x, in T y) { if (c) { return x; } return y; }
bit<8> dflt(in bit<8> a, in bit<8> b = 5) { return a + b; }
bit<8> ov(in bit<8> x) { return 1; }
bit<8> ov(in bit<8> y, in bit<8> z) { return 2; }
bit<8> ov(in bit<8> x, in bit<8> q) { return 3; }
bit<8> early(inout bit<8> a) { a = 9; if (a == 9) { return a + 1; } a = 20; return 0; }
control Sub(inout bit<8> x)(bit<8> by) { apply { x = x + by; if (x == 4) exit; x = x + 1; } }
control MyIngress(INGRESS_PARAMS) {
    Sub(8w3) s;
    action ex(inout bit<8> z) { z = 77; exit; }
    apply {
        std.egress_spec = 1;
        pair_t<bit<8>, bit<16>> p = { first = 7, second = 0x1234 };
        hdr.h.b = pick(p.second == 0x1234, p.first, 8w1);
        hdr.h.c = ov(x = 1, q = 2);
        bit<8> e = 0;
        hdr.h.x = early(e) ++ e; hdr.h.y = dflt(1) ++ dflt(b = 1, a = 1);
        s.apply(hdr.h.a);
        if (hdr.h.a == 9) { ex(hdr.h.c); }
        hdr.h.b = 0xee;
    }
}
BENCH(MyIngress);
