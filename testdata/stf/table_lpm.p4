/* The longest prefix wins, whichever came first; a prefix of nothing matches everything. */
#include "common/bench.p4"

control MyIngress(INGRESS_PARAMS) {
    action set(bit<8> value) { hdr.h.c = value; }
    table t {
        key = { hdr.h.r: lpm; }
        actions = { set; NoAction; }
        const default_action = NoAction;
    }
    apply {
        std.egress_spec = 1;
        t.apply();
    }
}

BENCH(MyIngress);
