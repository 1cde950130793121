/* Counters, alone and on tables; an index of a declared type has its name. */

#define V1MODEL_VERSION 20200408
#include <core.p4>
#include <v1model.p4>

type bit<4> lane_t;

struct headers_t {}
struct meta_t {}

parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    state start {
        transition accept;
    }
}

control Nothing(inout headers_t hdr, inout meta_t meta) {
    apply {}
}

control C(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    @brief("seen at all") @id(0x42)
    counter<bit<32>>(100, CounterType.packets) seen;
    counter<lane_t>(16, CounterType.bytes) lanes;
    @name("both_kinds")
    counter<bit<8>>(7, CounterType.packets_and_bytes) both;
    direct_counter(CounterType.bytes) on_table;
    direct_counter(CounterType.packets) on_nothing;
    table counted {
        actions = { NoAction; }
        counters = on_table;
    }
    apply {
        seen.count(1);
        counted.apply();
    }
}

control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {}
}

control D(packet_out packet, in headers_t hdr) {
    apply {}
}

V1Switch(P(), Nothing(), C(), E(), Nothing(), D()) main;
