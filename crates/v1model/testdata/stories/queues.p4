// What egress sees of the queue: when packets came and left, and how many waited.
#include <core.p4>
#include <v1model.p4>

header ask_t {
    bit<8> port;
    bit<8> priority;
}

header seen_t {
    bit<32> in_us;
    bit<32> enqueued_us;
    bit<32> out_us;
    bit<32> waited_us;
    bit<8>  enq_depth;
    bit<8>  deq_depth;
}

struct headers {
    ask_t  ask;
    seen_t seen;
}

struct metadata { }

parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ask);
        transition accept;
    }
}

control V(inout headers hdr, inout metadata meta) { apply { } }

control I(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = (bit<9>) hdr.ask.port;
        std.priority = (bit<3>) hdr.ask.priority;
    }
}

control E(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        hdr.seen.setValid();
        hdr.seen.in_us = (bit<32>) std.ingress_global_timestamp;
        hdr.seen.enqueued_us = std.enq_timestamp;
        hdr.seen.out_us = (bit<32>) std.egress_global_timestamp;
        hdr.seen.waited_us = std.deq_timedelta;
        hdr.seen.enq_depth = (bit<8>) std.enq_qdepth;
        hdr.seen.deq_depth = (bit<8>) std.deq_qdepth;
    }
}

control C(inout headers hdr, inout metadata meta) { apply { } }

control D(packet_out packet, in headers hdr) {
    apply {
        packet.emit(hdr.ask);
        packet.emit(hdr.seen);
    }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
