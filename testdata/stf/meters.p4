/* Meters have two rates and three colours; direct ones go with the entries of a table. */
#include "common/bench.p4"

control MyIngress(INGRESS_PARAMS) {
    meter(4, MeterType.packets) by_index;
    direct_meter<bit<8>>(MeterType.bytes) by_entry;
    action colour() { by_entry.read(hdr.h.b); }
    table t {
        key = { hdr.h.a: exact; }
        actions = { colour; NoAction; }
        default_action = NoAction;
        meters = by_entry;
    }
    apply {
        std.egress_spec = 1;
        by_index.execute_meter((bit<32>) hdr.h.op, hdr.h.c);
        t.apply();
    }
}

BENCH(MyIngress);
