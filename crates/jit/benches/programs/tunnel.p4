// The end of VXLAN tunnels (RFC 7348): IPv4 packets for a remote site leave with 50 bytes of outer headers, packets
// that come through a tunnel lose theirs.

#include <core.p4>
#include <v1model.p4>
#include "headers.p4"

const bit<16> PORT_VXLAN = 4789;

header vxlan_t {
    bit<8> flags;
    bit<24> reserved;
    bit<24> vni;
    bit<8> reserved2;
}

struct headers_t {
    ethernet_t outer_ethernet;
    ipv4_h outer_ipv4;
    udp_t outer_udp;
    vxlan_t vxlan;
    ethernet_t ethernet;
    ipv4_h ipv4;
}

parser MyParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    state start {
        // Port 1 is where tunnels end.
        transition select(standard_metadata.ingress_port) {
            1: parse_outer;
            default: parse_inner;
        }
    }

    state parse_outer {
        packet.extract(hdr.outer_ethernet);
        transition select(hdr.outer_ethernet.type) {
            TYPE_IPV4: parse_outer_ipv4;
            default: reject;
        }
    }

    state parse_outer_ipv4 {
        packet.extract(hdr.outer_ipv4);
        verify(hdr.outer_ipv4.version == 4 && hdr.outer_ipv4.ihl == 5, error.ParserInvalidArgument);
        transition select(hdr.outer_ipv4.protocol) {
            PROTO_UDP: parse_outer_udp;
            default: reject;
        }
    }

    state parse_outer_udp {
        packet.extract(hdr.outer_udp);
        transition select(hdr.outer_udp.dst) {
            PORT_VXLAN: parse_vxlan;
            default: reject;
        }
    }

    state parse_vxlan {
        packet.extract(hdr.vxlan);
        packet.extract(hdr.ethernet);
        transition accept;
    }

    state parse_inner {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TYPE_IPV4: parse_ipv4;
            default: reject;
        }
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
}

control MyVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.outer_ipv4.isValid(), IPV4_FIELDS(hdr.outer_ipv4), hdr.outer_ipv4.checksum,
            HashAlgorithm.csum16);
    }
}

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    action drop() {
        mark_to_drop(standard_metadata);
    }

    action encapsulate(bit<24> vni, mac_t dst, mac_t src, ipv4_t from, ipv4_t to, bit<9> port) {
        hdr.outer_ethernet.setValid();
        hdr.outer_ethernet.dst = dst;
        hdr.outer_ethernet.src = src;
        hdr.outer_ethernet.type = TYPE_IPV4;
        hdr.outer_ipv4.setValid();
        hdr.outer_ipv4.version = 4;
        hdr.outer_ipv4.ihl = 5;
        hdr.outer_ipv4.tos = 0;
        hdr.outer_ipv4.total_length = (bit<16>) standard_metadata.packet_length + 36;
        hdr.outer_ipv4.identification = 0;
        hdr.outer_ipv4.flags = 2;
        hdr.outer_ipv4.fragment_offset = 0;
        hdr.outer_ipv4.ttl = 64;
        hdr.outer_ipv4.protocol = PROTO_UDP;
        hdr.outer_ipv4.src = from;
        hdr.outer_ipv4.dst = to;
        hdr.outer_udp.setValid();
        hdr.outer_udp.src = hdr.ipv4.src[15:0] ^ hdr.ipv4.dst[15:0];
        hdr.outer_udp.dst = PORT_VXLAN;
        hdr.outer_udp.length = (bit<16>) standard_metadata.packet_length + 16;
        hdr.outer_udp.checksum = 0;
        hdr.vxlan.setValid();
        hdr.vxlan.flags = 8;
        hdr.vxlan.reserved = 0;
        hdr.vxlan.vni = vni;
        hdr.vxlan.reserved2 = 0;
        standard_metadata.egress_spec = port;
    }

    table remote {
        key = { hdr.ipv4.dst: exact; }
        actions = { encapsulate; drop; }
        default_action = drop();
        size = 1048576;
    }

    action deliver(bit<9> port) {
        hdr.outer_ethernet.setInvalid();
        hdr.outer_ipv4.setInvalid();
        hdr.outer_udp.setInvalid();
        hdr.vxlan.setInvalid();
        standard_metadata.egress_spec = port;
    }

    table networks {
        key = { hdr.vxlan.vni: exact; hdr.ethernet.dst: exact; }
        actions = { deliver; drop; }
        default_action = drop();
        size = 1048576;
    }

    apply {
        if (standard_metadata.parser_error != error.NoError || standard_metadata.checksum_error == 1) {
            drop();
        } else if (hdr.vxlan.isValid()) {
            networks.apply();
        } else {
            remote.apply();
        }
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) { apply {} }

control MyUpdate(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.outer_ipv4.isValid(), IPV4_FIELDS(hdr.outer_ipv4), hdr.outer_ipv4.checksum,
            HashAlgorithm.csum16);
    }
}

control MyDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.outer_ethernet);
        packet.emit(hdr.outer_ipv4);
        packet.emit(hdr.outer_udp);
        packet.emit(hdr.vxlan);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
    }
}

V1Switch(MyParser(), MyVerify(), MyIngress(), MyEgress(), MyUpdate(), MyDeparser()) main;
