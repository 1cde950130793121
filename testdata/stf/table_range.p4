/* Ranges include both ends; what is left out matches everything; signed keys compare with their sign. */
#include "common/bench.p4"

control MyIngress(INGRESS_PARAMS) {
    action set(bit<8> value) { hdr.h.c = value; }
    action other(bit<8> value) { hdr.h.b = value; }
    table t {
        key = {
            hdr.h.a: range;
            hdr.h.x: range;
        }
        actions = { set; NoAction; }
        default_action = NoAction();
    }
    table s {
        key = { (int<8>) hdr.h.a: range @name("signed"); }
        actions = { other; NoAction; }
        const entries = {
            -2 .. 3: other(9);
        }
    }
    apply {
        std.egress_spec = 1;
        t.apply();
        s.apply();
    }
}

BENCH(MyIngress);
