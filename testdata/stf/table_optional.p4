/* optional: one value, or any. */
#include "common/bench.p4"

control MyIngress(INGRESS_PARAMS) {
    action set(bit<8> value) { hdr.h.c = value; }
    table t {
        key = {
            hdr.h.a: optional;
            hdr.h.b: optional;
        }
        actions = { set; }
        default_action = set(0xee);
    }
    apply {
        std.egress_spec = 1;
        t.apply();
    }
}

BENCH(MyIngress);
