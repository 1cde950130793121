// In-band telemetry: what this switch knows of a UDP packet is pushed behind the UDP header, 12 bytes, and the lengths
// before it follow.

#include <core.p4>
#include <v1model.p4>
#include "headers.p4"

header int_shim_t {
    bit<8> kind;
    bit<8> words;
    bit<16> next;
}

header int_hop_t {
    bit<32> node;
    bit<16> ingress_port;
    bit<16> egress_port;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_h ipv4;
    udp_t udp;
    int_shim_t shim;
    int_hop_t hop;
}

parser MyParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TYPE_IPV4: parse_ipv4;
            default: accept;
        }
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        verify(hdr.ipv4.version == 4 && hdr.ipv4.ihl == 5, error.ParserInvalidArgument);
        transition select(hdr.ipv4.protocol) {
            PROTO_UDP: parse_udp;
            default: accept;
        }
    }

    state parse_udp {
        packet.extract(hdr.udp);
        transition accept;
    }
}

control MyVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid(), IPV4_FIELDS(hdr.ipv4), hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    action drop() {
        mark_to_drop(standard_metadata);
    }

    action watch(bit<32> node, bit<9> port) {
        hdr.shim.setValid();
        hdr.shim.kind = 1;
        hdr.shim.words = 3;
        hdr.shim.next = hdr.udp.dst;
        hdr.hop.setValid();
        hdr.hop.node = node;
        hdr.hop.ingress_port = (bit<16>) standard_metadata.ingress_port;
        hdr.hop.egress_port = (bit<16>) port;
        hdr.udp.dst = 5000;
        hdr.udp.length = hdr.udp.length + 12;
        hdr.udp.checksum = 0;
        hdr.ipv4.total_length = hdr.ipv4.total_length + 12;
        standard_metadata.egress_spec = port;
    }

    table watched {
        key = { hdr.ipv4.dst: lpm; }
        actions = { watch; drop; }
        default_action = drop();
        size = 1048576;
    }

    apply {
        if (standard_metadata.parser_error != error.NoError || standard_metadata.checksum_error == 1 ||
            !hdr.udp.isValid()) {
            drop();
        } else {
            watched.apply();
        }
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) { apply {} }

control MyUpdate(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid(), IPV4_FIELDS(hdr.ipv4), hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control MyDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.udp);
        packet.emit(hdr.shim);
        packet.emit(hdr.hop);
    }
}

V1Switch(MyParser(), MyVerify(), MyIngress(), MyEgress(), MyUpdate(), MyDeparser()) main;
