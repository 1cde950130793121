/* Meters, alone and on tables, and how they mark. */

#include <core.p4>
#include <v1model.p4>


struct headers_t {}
struct meta_t {
    bit<2> colour;
}

parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    state start {
        transition accept;
    }
}

control Nothing(inout headers_t hdr, inout meta_t meta) {
    apply {}
}

control C(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    meter(10, MeterType.bytes) plain;
    @single_rate_two_color @owner("edge")
    meter(20, MeterType.packets) simple;
    @single_rate_three_color
    direct_meter<bit<2>>(MeterType.packets) on_table;
    direct_counter(CounterType.packets_and_bytes) count;
    action read() {
        on_table.read(meta.colour);
    }
    table metered {
        key = { standard.ingress_port: exact; }
        actions = { read; NoAction; }
        meters = on_table;
        counters = count;
        default_action = NoAction;
    }
    apply {
        metered.apply();
    }
}

control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {}
}

control D(packet_out packet, in headers_t hdr) {
    apply {}
}

V1Switch(P(), Nothing(), C(), E(), Nothing(), D()) main;
