// Source NAT of UDP flows: each flow has an entry with the address and port that it leaves with. The UDP checksum is
// updated for what changes (RFC 1624); 0 means that there is none.

#include <core.p4>
#include <v1model.p4>
#include "headers.p4"

struct headers_t {
    ethernet_t ethernet;
    ipv4_h ipv4;
    udp_t udp;
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

    action translate(ipv4_t address, bit<16> source, mac_t next_hop, bit<9> port) {
        bit<32> sum = (bit<32>) ~hdr.udp.checksum + (bit<32>) ~hdr.ipv4.src[31:16] + (bit<32>) ~hdr.ipv4.src[15:0] +
                      (bit<32>) ~hdr.udp.src + (bit<32>) address[31:16] + (bit<32>) address[15:0] + (bit<32>) source;
        sum = (sum >> 16) + (sum & 0xffff);
        sum = (sum >> 16) + (sum & 0xffff);
        if (hdr.udp.checksum != 0) {
            hdr.udp.checksum = ~sum[15:0];
        }
        hdr.ipv4.src = address;
        hdr.udp.src = source;
        hdr.ethernet.dst = next_hop;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        standard_metadata.egress_spec = port;
    }

    table flows {
        key = {
            hdr.ipv4.src: exact;
            hdr.ipv4.dst: exact;
            hdr.ipv4.protocol: exact;
            hdr.udp.src: exact;
            hdr.udp.dst: exact;
        }
        actions = { translate; drop; }
        default_action = drop();
        size = 1048576;
    }

    apply {
        if (standard_metadata.parser_error != error.NoError || standard_metadata.checksum_error == 1 ||
            !hdr.udp.isValid() || hdr.ipv4.ttl <= 1) {
            drop();
        } else {
            flows.apply();
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
    }
}

V1Switch(MyParser(), MyVerify(), MyIngress(), MyEgress(), MyUpdate(), MyDeparser()) main;
