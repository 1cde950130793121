// A firewall that admits only return traffic: packets from outside pass if their flow began inside. A flow is two addresses, a
// protocol and two ports, as seen from inside. The flows survive the switch: they are entries that the stores make.
#include <core.p4>
#include <v1model.p4>
#include "../common/packet.p4"

struct headers_t {
    ethernet_h ethernet;
    ipv4_h ipv4;
    ports_h ports;
}

struct flow_t {
    bit<8> protocol;
    ip_t ip_inside;
    ip_t ip_outside;
    bit<16> port_inside;
    bit<16> port_outside;
}

struct metadata_t {
    flow_t flow;
}

parser FirewallParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TYPE_IPV4: parse_ipv4;
            default: accept;
        }
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.ihl, hdr.ipv4.fragment_offset, hdr.ipv4.protocol) {
            (5, 0, PROTOCOL_TCP): parse_ports;
            (5, 0, PROTOCOL_UDP): parse_ports;
            default: accept;
        }
    }

    state parse_ports {
        packet.extract(hdr.ports);
        transition accept;
    }
}

control FirewallVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol,
              hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control FirewallIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    bool is_from_inside = false;

    action drop() {
        mark_to_drop(standard);
    }

    action from_inside(port_t port) {
        is_from_inside = true;
        standard.egress_spec = port;
    }

    action from_outside(port_t port) {
        standard.egress_spec = port;
    }

    // The side that a packet comes from, and the port of the other side.
    table sides {
        key = { standard.ingress_port: exact; }
        actions = { from_inside; from_outside; drop; }
        default_action = drop();
    }

    action allow() {}

    // The first packet of a flow from inside makes an entry, which ends after 124 minutes without a packet.
    @resilient[group = "flows", add = "allow", idle = "124m"]
    table inside {
        key = {
            meta.flow.protocol: exact;
            meta.flow.ip_inside: exact;
            meta.flow.ip_outside: exact;
            meta.flow.port_inside: exact;
            meta.flow.port_outside: exact;
        }
        actions = { allow; drop; }
        default_action = drop();
    }

    // Packets from outside find these entries, and make none.
    @resilient[group = "flows"]
    table outside {
        key = {
            meta.flow.protocol: exact;
            meta.flow.ip_inside: exact;
            meta.flow.ip_outside: exact;
            meta.flow.port_inside: exact;
            meta.flow.port_outside: exact;
        }
        actions = { allow; drop; }
        default_action = drop();
    }

    apply {
        if (standard.parser_error != error.NoError || standard.checksum_error == 1 || !hdr.ipv4.isValid()
            || hdr.ipv4.ihl != 5) {
            drop();
            return;
        }
        if (!sides.apply().hit) {
            return;
        }
        // Packets without ports (other protocols, and all fragments but the first) use port 0. So once a host inside has
        // sent one, all packets without ports of this protocol between the two hosts are admitted.
        bit<16> src_port = 0;
        bit<16> dst_port = 0;
        if (hdr.ports.isValid()) {
            src_port = hdr.ports.src;
            dst_port = hdr.ports.dst;
        }
        meta.flow.protocol = hdr.ipv4.protocol;
        if (is_from_inside) {
            meta.flow.ip_inside = hdr.ipv4.src;
            meta.flow.ip_outside = hdr.ipv4.dst;
            meta.flow.port_inside = src_port;
            meta.flow.port_outside = dst_port;
            inside.apply();
        } else {
            meta.flow.ip_inside = hdr.ipv4.dst;
            meta.flow.ip_outside = hdr.ipv4.src;
            meta.flow.port_inside = dst_port;
            meta.flow.port_outside = src_port;
            outside.apply();
        }
    }
}

control FirewallEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {}
}

control FirewallUpdate(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control FirewallDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(FirewallParser(), FirewallVerify(), FirewallIngress(), FirewallEgress(), FirewallUpdate(),
         FirewallDeparser()) main;
