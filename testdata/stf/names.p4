/* Names for the control plane: @name on tables, actions, keys and controls, with dots and with a leading dot. */
#include "common/bench.p4"

control Inner(inout headers hdr) {
    @name("renamed")
    action set(@name("amount") bit<8> value) { hdr.h.a = value; }
    @name("inner.table")
    table t {
        key = { hdr.h.x: exact @name("the_key"); }
        actions = { set; NoAction; }
    }
    @name(".global")
    table g {
        key = { hdr.h.x: exact; }
        actions = { @name("other") set; NoAction; }
    }
    apply {
        t.apply();
        g.apply();
    }
}

control MyIngress(INGRESS_PARAMS) {
    @name("one") Inner() first;
    apply {
        std.egress_spec = 1;
        first.apply(hdr);
    }
}

BENCH(MyIngress);
