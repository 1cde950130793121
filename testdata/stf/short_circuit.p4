/* && and || evaluate the right side only where it matters, and so does `? :`. */
#include "common/bench.p4"

bool count(inout bit<8> counter, in bool result) {
    counter = counter + 1;
    return result;
}

control MyIngress(INGRESS_PARAMS) {
    apply {
        std.egress_spec = 1;
        bool a = hdr.h.a == 1;
        bool b = hdr.h.b == 1;
        bit<8> n = 0;
        if (count(n, a) && count(n, b)) { hdr.h.x[0:0] = 1; }
        hdr.h.c = n;
        n = 0;
        if (count(n, a) || count(n, b)) { hdr.h.x[1:1] = 1; }
        hdr.h.op = n;
        n = 0;
        hdr.h.y = a ? 16w1 : count(n, b) ? 16w2 : 3;
        hdr.h.r = (bit<32>) n;
    }
}

BENCH(MyIngress);
