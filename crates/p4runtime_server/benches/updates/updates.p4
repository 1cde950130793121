// What the benchmark of updates writes to: an exact, an LPM and a ternary table, and packets for the controller.
#include <core.p4>
#include <v1model.p4>

@controller_header("packet_in")
header packet_in_t {
    bit<9> ingress_port;
    bit<7> unused;
}

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header ipv4_t {
    bit<64> start;
    bit<8> ttl;
    bit<24> rest;
    bit<32> src;
    bit<32> dst;
}

struct headers_t {
    packet_in_t packet_in;
    ethernet_t ethernet;
    ipv4_t ipv4;
}

struct metadata_t {}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            0x0800: ipv4;
            default: accept;
        }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
}

control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action drop() {
        mark_to_drop(standard);
    }
    action to_controller() {
        standard.egress_spec = 510;
        hdr.packet_in.setValid();
        hdr.packet_in.ingress_port = standard.ingress_port;
    }
    action forward(bit<48> mac, bit<9> port) {
        hdr.ethernet.src = hdr.ethernet.dst;
        hdr.ethernet.dst = mac;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        standard.egress_spec = port;
    }
    action pass() {}

    table exact_table {
        key = { hdr.ethernet.dst: exact; }
        actions = { forward; drop; }
        default_action = drop;
        size = 1048576;
    }
    table lpm_table {
        key = { hdr.ipv4.dst: lpm; }
        actions = { forward; drop; }
        default_action = drop;
        size = 1048576;
    }
    table ternary_table {
        key = { hdr.ipv4.src: ternary; hdr.ipv4.dst: ternary; }
        actions = { drop; pass; }
        default_action = pass;
        size = 1048576;
    }

    apply {
        if (!hdr.ipv4.isValid()) {
            to_controller();
        } else if (standard.ingress_port == 1) {
            lpm_table.apply();
        } else {
            exact_table.apply();
            ternary_table.apply();
        }
    }
}

control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {}
}

control C(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control D(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(P(), C(), I(), E(), C(), D()) main;
