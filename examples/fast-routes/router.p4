// Forwards IPv4 and ARP by address, between hosts of one network. Two routes lie in registers, before those of the
// table: a tiny packet program can write them, in every switch that it passes.

#include <core.p4>
#include <v1model.p4>
#include "../common/packet.p4"

// Number of routes in registers.
const bit<32> FAST_ROUTES = 2;

struct headers_t {
    ethernet_h ethernet;
    arp_h arp;
    ipv4_h ipv4;
}

struct metadata_t {}

parser RouteParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TYPE_IPV4: parse_ipv4;
            TYPE_ARP: parse_arp;
            default: accept;
        }
    }

    state parse_arp {
        packet.extract(hdr.arp);
        transition accept;
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
}

control RouteVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol,
              hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control RouteIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    // A route: packets whose address, under the mask, is the prefix leave by the port. Port 0 is no route.
    register<bit<32>>(FAST_ROUTES) prefixes;
    register<bit<32>>(FAST_ROUTES) masks;
    register<bit<32>>(FAST_ROUTES) ports;

    action not_ours() {
        mark_to_drop(standard);
    }

    action no_route() {
        mark_to_drop(standard);
    }

    action too_old() {
        mark_to_drop(standard);
    }

    action leave_by(port_t port) {
        standard.egress_spec = port;
    }

    table routes {
        key = { hdr.ipv4.dst: lpm; }
        actions = { leave_by; no_route; }
        default_action = no_route();
    }

    // ARP takes the way of the address that it asks for.
    table neighbours {
        key = { hdr.arp.target_ip: exact; }
        actions = { leave_by; not_ours; }
        default_action = not_ours();
    }

    // Looks at a route in registers.
    action try_fast(bit<32> number) {
        bit<32> prefix;
        bit<32> mask;
        bit<32> port;
        prefixes.read(prefix, number);
        masks.read(mask, number);
        ports.read(port, number);
        if (port != 0 && hdr.ipv4.dst & mask == prefix) {
            standard.egress_spec = (port_t) port;
        }
    }

    apply {
        if (standard.parser_error != error.NoError || standard.checksum_error == 1) {
            not_ours();
        } else if (hdr.arp.isValid()) {
            neighbours.apply();
        } else if (!hdr.ipv4.isValid() || hdr.ipv4.ihl != 5) {
            not_ours();
        } else if (hdr.ipv4.ttl <= 1) {
            too_old();
        } else {
            hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
            routes.apply();
            try_fast(0);
            try_fast(1);
        }
    }
}

control RouteEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {}
}

control RouteUpdate(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol,
              hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control RouteDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.arp);
        packet.emit(hdr.ipv4);
    }
}

V1Switch(RouteParser(), RouteVerify(), RouteIngress(), RouteEgress(), RouteUpdate(), RouteDeparser()) main;
