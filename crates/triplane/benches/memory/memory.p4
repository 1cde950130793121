// Tables of every kind for the benchmark of their memory.
#include <core.p4>
#include <v1model.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header ipv4_t {
    bit<64> start;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

header ipv6_t {
    bit<64> start;
    bit<128> src;
    bit<128> dst;
}

header ports_t {
    bit<16> src;
    bit<16> dst;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t ipv4;
    ipv6_t ipv6;
    ports_t ports;
}

struct metadata_t {}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            0x0800: ipv4;
            0x86dd: ipv6;
            default: accept;
        }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        packet.extract(hdr.ports);
        transition accept;
    }
    state ipv6 {
        packet.extract(hdr.ipv6);
        transition accept;
    }
}

control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action drop() {
        mark_to_drop(standard);
    }
    action forward(bit<48> mac, bit<9> port) {
        hdr.ethernet.dst = mac;
        standard.egress_spec = port;
    }
    action pass() {}

    table stations {
        key = { hdr.ethernet.dst: exact; }
        actions = { forward; drop; }
        default_action = drop;
        size = 2097152;
    }
    table routes {
        key = { hdr.ipv4.dst: lpm; }
        actions = { forward; drop; }
        default_action = drop;
        size = 2097152;
    }
    table routes6 {
        key = { hdr.ipv6.dst: lpm; }
        actions = { forward; drop; }
        default_action = drop;
        size = 2097152;
    }
    table rules {
        key = {
            hdr.ipv4.src: ternary;
            hdr.ipv4.dst: ternary;
            hdr.ipv4.protocol: ternary;
            hdr.ports.src: ternary;
            hdr.ports.dst: ternary;
        }
        actions = { pass; drop; }
        default_action = pass;
        size = 2097152;
    }
    table services {
        key = { hdr.ipv4.dst: exact; hdr.ports.dst: range; }
        actions = { forward; drop; }
        default_action = drop;
        size = 2097152;
    }

    apply {
        stations.apply();
        if (hdr.ipv4.isValid()) {
            routes.apply();
            rules.apply();
            services.apply();
        } else if (hdr.ipv6.isValid()) {
            routes6.apply();
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
