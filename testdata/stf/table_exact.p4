/* Exact matches on two keys; entries come and go, the default action changes, hit and miss are told apart. */
#include "common/bench.p4"

control MyIngress(INGRESS_PARAMS) {
    action set(bit<8> value) { hdr.h.c = value; }
    action none() { hdr.h.c = 0xee; }
    table t {
        key = {
            hdr.h.a: exact;
            hdr.h.x: exact @name("long");
        }
        actions = { set; none; }
        default_action = none();
        size = 16;
    }
    apply {
        std.egress_spec = 1;
        if (t.apply().hit) {
            hdr.h.y = 1;
        } else {
            hdr.h.y = 2;
        }
        if (!t.apply().miss) {
            hdr.h.r = 3;
        }
    }
}

BENCH(MyIngress);
