// A router that signals congestion before it has to drop: ECN-capable packets (RFC 3168) are
// marked when they join a queue that is longer than its port's threshold.

#include <core.p4>
#include <v1model.p4>
#include "../common/packet.p4"

const bit<2> NOT_CAPABLE = 0;
const bit<2> CONGESTION = 3;

struct headers_t {
    ethernet_h ethernet;
    ipv4_h ipv4;
}

struct metadata_t {}

parser EcnParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TYPE_IPV4: parse_ipv4;
            default: accept;
        }
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
}

control EcnVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol,
              hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control EcnIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action unknown() {
        mark_to_drop(standard);
    }

    action forward(port_t port, mac_t own, mac_t next) {
        standard.egress_spec = port;
        hdr.ethernet.src = own;
        hdr.ethernet.dst = next;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
    }

    table routes {
        key = { hdr.ipv4.dst: lpm; }
        actions = { forward; unknown; }
        default_action = unknown();
    }

    apply {
        if (standard.checksum_error == 0 && hdr.ipv4.isValid() && hdr.ipv4.ihl == 5 && hdr.ipv4.ttl > 1) {
            routes.apply();
        } else {
            unknown();
        }
    }
}

control EcnEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    counter(8, CounterType.packets) marked;

    // Marks packets that found at least this number of packets in the queue.
    action mark_from(bit<19> threshold) {
        if (standard.enq_qdepth >= threshold && hdr.ipv4.ecn != NOT_CAPABLE) {
            hdr.ipv4.ecn = CONGESTION;
            marked.count((bit<32>) standard.egress_port);
        }
    }

    table marking {
        key = { standard.egress_port: exact; }
        actions = { mark_from; NoAction; }
        default_action = NoAction();
    }

    apply {
        marking.apply();
    }
}

control EcnUpdate(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol,
              hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control EcnDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(EcnParser(), EcnVerify(), EcnIngress(), EcnEgress(), EcnUpdate(), EcnDeparser()) main;
