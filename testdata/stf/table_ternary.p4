/* Under masks the larger priority wins, whichever came first. */
#include "common/bench.p4"

control MyIngress(INGRESS_PARAMS) {
    action set(bit<8> value) { hdr.h.c = value; }
    table t {
        key = {
            hdr.h.x: ternary;
            hdr.h.a: exact;
        }
        actions = { set; }
        default_action = set(0);
    }
    apply {
        std.egress_spec = 1;
        t.apply();
    }
}

BENCH(MyIngress);
