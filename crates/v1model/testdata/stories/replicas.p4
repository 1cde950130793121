// Copies to the ports of a bitmap. The first byte says what ingress does, the second has a bit for each port; every
// packet leaves with a report of what egress saw.
#include <core.p4>
#include <v1model.p4>

header ask_t {
    bit<8> what;
    bit<8> ports;
}

header seen_t {
    bit<8> instance_type;
    bit<8> rid;
    bit<8> port;
}

struct headers {
    ask_t  ask;
    seen_t seen;
}

struct metadata { }

const bit<8> REPLICATE = 1;
const bit<8> THEN_DROP = 2;
const bit<8> AFTER_DROP = 3;
const bit<8> THEN_GROUP = 4;
const bit<8> THEN_UNICAST = 5;
const bit<8> TWICE = 6;
const bit<8> WIDE = 7;

parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ask);
        transition accept;
    }
}

control V(inout headers hdr, inout metadata meta) { apply { } }

control I(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        if (hdr.ask.what == AFTER_DROP) { mark_to_drop(std); }
        if (hdr.ask.what == WIDE) {
            replicate_to_ports(1w1 ++ 503w0 ++ hdr.ask.ports);
        } else {
            replicate_to_ports(hdr.ask.ports);
        }
        if (hdr.ask.what == THEN_DROP) { mark_to_drop(std); }
        if (hdr.ask.what == THEN_GROUP) { std.mcast_grp = 5; }
        if (hdr.ask.what == THEN_UNICAST) { std.egress_spec = 3; }
        if (hdr.ask.what == TWICE) { replicate_to_ports(4w2); }
    }
}

control E(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        hdr.seen = { (bit<8>) std.instance_type, (bit<8>) std.egress_rid, (bit<8>) std.egress_port };
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
