/* Functions and controls' actions by the number and the names of their arguments; parameters with defaults. */
#include "common/bench.p4"

bit<8> pick(in bit<8> a) { return 1; }
bit<8> pick(in bit<8> a, in bit<8> b) { return 2; }
bit<8> pick(in bit<8> a, in bit<8> other, in bit<8> third) { return 3; }

bit<8> plus(in bit<8> value, in bit<8> more = 5) { return value + more; }

control MyIngress(INGRESS_PARAMS) {
    apply {
        std.egress_spec = 1;
        hdr.h.a = pick(0);
        hdr.h.b = pick(b = 0, a = 0);
        hdr.h.c = pick(a = 0, third = 1, other = 2);
        hdr.h.x = plus(1) ++ plus(more = 2, value = 1);
    }
}

BENCH(MyIngress);
