/* Members of a group are chosen by their weights, and only while the port that they watch is up. */
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
        hdr.h.op = 0;
        if (t.apply().hit) {
            hdr.h.op = 1;
        }
    }
}

BENCH(MyIngress);
