/* A hash of the selector keys chooses one of a group's members, the same for the same keys. */
#include "common/bench.p4"

control MyIngress(INGRESS_PARAMS) {
    action_selector(HashAlgorithm.identity, 16, 8) selector;
    action set(bit<8> value) { hdr.h.c = value; }
    table t {
        key = {
            hdr.h.a: exact;
            hdr.h.b: selector;
        }
        actions = { set; NoAction; }
        implementation = selector;
        default_action = NoAction;
    }
    apply {
        std.egress_spec = 1;
        t.apply();
    }
}

BENCH(MyIngress);
