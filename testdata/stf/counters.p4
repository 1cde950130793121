/* Counters count packets and bytes at an index; direct ones with the entries of a table, whatever the action. */
#include "common/bench.p4"

control MyIngress(INGRESS_PARAMS) {
    counter(4, CounterType.packets_and_bytes) both;
    counter(4, CounterType.bytes) bytes;
    direct_counter(CounterType.packets) hits;
    action set(bit<8> value) { hdr.h.c = value; }
    action counted(bit<8> value) { hdr.h.c = value; hits.count(); }
    table t {
        key = { hdr.h.a: exact; }
        actions = { set; counted; NoAction; }
        default_action = NoAction;
        counters = hits;
    }
    apply {
        std.egress_spec = 1;
        both.count((bit<32>) hdr.h.b);
        bytes.count((bit<32>) hdr.h.b);
        t.apply();
    }
}

BENCH(MyIngress);
