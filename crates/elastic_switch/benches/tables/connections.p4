// Forwards packets of known connections: the key is that of IPv4 connections, 13 bytes, and a record has 7 bytes.
#include <core.p4>
#include <v1model.p4>

header ethernet_h {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}
header ipv4_h {
    bit<64> start;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}
header ports_h {
    bit<16> src;
    bit<16> dst;
}
struct headers_t {
    ethernet_h ethernet;
    ipv4_h ipv4;
    ports_h ports;
}
struct metadata_t {}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ethernet);
        packet.extract(hdr.ipv4);
        packet.extract(hdr.ports);
        transition accept;
    }
}

control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action drop() {
        mark_to_drop(standard);
    }
    action forward(bit<32> address, bit<16> port) {
        hdr.ipv4.dst = address;
        hdr.ports.dst = port;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        standard.egress_spec = 2;
    }

    ANNOTATION
    table connections {
        key = {
            hdr.ipv4.protocol: exact;
            hdr.ipv4.src: exact;
            hdr.ipv4.dst: exact;
            hdr.ports.src: exact;
            hdr.ports.dst: exact;
        }
        actions = { forward; drop; }
        default_action = drop;
        size = ENTRIES;
    }

    apply {
        connections.apply();
    }
}

control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply {} }
control C(inout headers_t hdr, inout metadata_t meta) { apply {} }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }

V1Switch(P(), C(), I(), E(), C(), D()) main;
