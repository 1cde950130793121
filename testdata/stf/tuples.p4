/* Tuples and lists: elements by number, copies, comparison, and as what a structure is made of. */
#include "common/bench.p4"

typedef tuple<bit<8>, bit<16>> pair_t;
struct both_t { bit<8> small; bit<16> large; }

control MyIngress(INGRESS_PARAMS) {
    apply {
        std.egress_spec = 1;
        pair_t p = { hdr.h.a, hdr.h.x };
        pair_t q = p;
        q[0] = hdr.h.b;
        tuple<pair_t, bool> nested = { q, p == q };
        hdr.h.c = nested[0][0];
        hdr.h.y = nested[0][1] + (nested[1] ? 16w0x100 : 0);
        both_t s = { hdr.h.b, 5 };
        if (s == { hdr.h.a, 5 }) {
            hdr.h.r = 1;
        }
    }
}

BENCH(MyIngress);
