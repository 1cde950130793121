/* Two instances of a control under one name: packets do not care, and a script tells the tables apart. */
#include "common/bench.p4"

control Part(inout headers hdr) {
    action add(bit<8> value) { hdr.h.c = hdr.h.c + value; }
    @name(".shared") table t {
        key = { hdr.h.a: exact; }
        actions = { add; NoAction; }
        default_action = NoAction;
    }
    apply { t.apply(); }
}

control MyIngress(INGRESS_PARAMS) {
    Part() one;
    Part() two;
    apply {
        std.egress_spec = 1;
        one.apply(hdr);
        two.apply(hdr);
    }
}

BENCH(MyIngress);
