// Two private networks joined over a provider without routes to them: IPv4 in IPv4 (RFC 2003). The edges encapsulate
// and decapsulate packets; the core forwards by the outer header. All switches run this program.

#include <core.p4>
#include <v1model.p4>
#include "../common/packet.p4"

const bit<8> FIRST_TTL = 64;
const bit<16> HEADER_BYTES = 20;

struct headers_t {
    ethernet_h ethernet;
    ipv4_h outer;
    ipv4_h inner;
}

struct metadata_t {}

parser TunnelParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TYPE_IPV4: parse_outer;
            default: accept;
        }
    }

    state parse_outer {
        packet.extract(hdr.outer);
        transition select(hdr.outer.ihl, hdr.outer.fragment_offset, hdr.outer.protocol) {
            (5, 0, PROTOCOL_IPV4): parse_inner;
            default: accept;
        }
    }

    state parse_inner {
        packet.extract(hdr.inner);
        transition accept;
    }
}

control TunnelVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.outer.isValid() && hdr.outer.ihl == 5,
            { hdr.outer.version, hdr.outer.ihl, hdr.outer.dscp, hdr.outer.ecn, hdr.outer.total_length,
              hdr.outer.identification, hdr.outer.flags, hdr.outer.fragment_offset, hdr.outer.ttl, hdr.outer.protocol,
              hdr.outer.src, hdr.outer.dst },
            hdr.outer.checksum, HashAlgorithm.csum16);
    }
}

control TunnelIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    counter(16, CounterType.packets_and_bytes) entered;

    action unknown() {
        mark_to_drop(standard);
    }

    action too_old() {
        mark_to_drop(standard);
    }

    // Encapsulates the packet between two addresses of the provider. Entering the tunnel decrements the TTL.
    action enter(ip_t from, ip_t to, bit<8> number) {
        hdr.inner = hdr.outer;
        hdr.inner.ttl = hdr.inner.ttl - 1;
        hdr.outer.ihl = 5;
        hdr.outer.total_length = hdr.inner.total_length + HEADER_BYTES;
        hdr.outer.identification = 0;
        hdr.outer.flags = hdr.inner.flags & 0b010;
        hdr.outer.fragment_offset = 0;
        hdr.outer.ttl = FIRST_TTL;
        hdr.outer.protocol = PROTOCOL_IPV4;
        hdr.outer.src = from;
        hdr.outer.dst = to;
        entered.count((bit<32>) number);
    }

    // Decapsulates the packet. Congestion marks are copied to the inner header (RFC 6040).
    action leave() {
        if (hdr.outer.ecn == 3 && hdr.inner.ecn != 0) {
            hdr.inner.ecn = 3;
        }
        hdr.outer = hdr.inner;
        hdr.inner.setInvalid();
    }

    action forward(port_t port, mac_t own, mac_t next) {
        standard.egress_spec = port;
        hdr.ethernet.src = own;
        hdr.ethernet.dst = next;
        hdr.outer.ttl = hdr.outer.ttl - 1;
    }

    // The tunnels that end here, by the addresses of both ends: other sources may not send into a network.
    table ends {
        key = {
            hdr.outer.src: exact;
            hdr.outer.dst: exact;
        }
        actions = { leave; NoAction; }
        default_action = NoAction();
    }

    // Routes to remote private networks.
    table begins {
        key = { hdr.outer.dst: lpm; }
        actions = { enter; NoAction; }
        default_action = NoAction();
    }

    table routes {
        key = { hdr.outer.dst: lpm; }
        actions = { forward; unknown; }
        default_action = unknown();
    }

    apply {
        if (standard.parser_error != error.NoError || standard.checksum_error == 1 || !hdr.outer.isValid()) {
            unknown();
        } else if (hdr.outer.ttl <= 1) {
            too_old();
        } else {
            if (!hdr.inner.isValid() || !ends.apply().hit) {
                begins.apply();
            }
            routes.apply();
        }
    }
}

control TunnelEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {}
}

control TunnelUpdate(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.outer.isValid() && hdr.outer.ihl == 5,
            { hdr.outer.version, hdr.outer.ihl, hdr.outer.dscp, hdr.outer.ecn, hdr.outer.total_length,
              hdr.outer.identification, hdr.outer.flags, hdr.outer.fragment_offset, hdr.outer.ttl, hdr.outer.protocol,
              hdr.outer.src, hdr.outer.dst },
            hdr.outer.checksum, HashAlgorithm.csum16);
        update_checksum(hdr.inner.isValid() && hdr.inner.ihl == 5,
            { hdr.inner.version, hdr.inner.ihl, hdr.inner.dscp, hdr.inner.ecn, hdr.inner.total_length,
              hdr.inner.identification, hdr.inner.flags, hdr.inner.fragment_offset, hdr.inner.ttl, hdr.inner.protocol,
              hdr.inner.src, hdr.inner.dst },
            hdr.inner.checksum, HashAlgorithm.csum16);
    }
}

control TunnelDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(TunnelParser(), TunnelVerify(), TunnelIngress(), TunnelEgress(), TunnelUpdate(), TunnelDeparser()) main;
