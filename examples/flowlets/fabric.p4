// A leaf or a spine of a fabric in which senders choose the path: IPv4 by longest prefix, ECMP by the source port, and
// on leaves the gateways of the hosts' networks, which answer ARP. A path whose port is down is not taken.

#include <core.p4>
#include <v1model.p4>
#include "../common/packet.p4"

const bit<16> ARP_REQUEST = 1;
const bit<16> ARP_REPLY = 2;

struct headers_t {
    ethernet_h ethernet;
    arp_h arp;
    ipv4_h ipv4;
    ports_h ports;
}

struct metadata_t {}

parser FabricParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
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

control FabricVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol,
              hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control FabricIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action not_ours() {
        mark_to_drop(standard);
    }

    action no_route() {
        mark_to_drop(standard);
    }

    action too_old() {
        mark_to_drop(standard);
    }

    // Answers an ARP request on its input port.
    action answer(mac_t mac) {
        ip_t asked = hdr.arp.target_ip;
        hdr.arp.operation = ARP_REPLY;
        hdr.arp.target_mac = hdr.arp.sender_mac;
        hdr.arp.target_ip = hdr.arp.sender_ip;
        hdr.arp.sender_mac = mac;
        hdr.arp.sender_ip = asked;
        hdr.ethernet.dst = hdr.ethernet.src;
        hdr.ethernet.src = mac;
        standard.egress_spec = standard.ingress_port;
    }

    // Sends a packet by a port, from the switch's address there to the next hop's.
    action forward(port_t port, mac_t own, mac_t next) {
        standard.egress_spec = port;
        hdr.ethernet.src = own;
        hdr.ethernet.dst = next;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
    }

    // The gateway addresses of hosts.
    table gateways {
        key = { hdr.arp.target_ip: exact; }
        actions = { answer; not_ours; }
        default_action = not_ours();
    }

    // Consecutive source ports take the paths in turn. All packets of a port take the same one, whatever their
    // destination port: the programs that a host sends on a path go where its data goes.
    action_selector(HashAlgorithm.identity, 64, 16) paths;

    table routes {
        key = {
            hdr.ipv4.dst: lpm;
            hdr.ports.src: selector;
        }
        actions = { forward; no_route; }
        default_action = no_route();
        implementation = paths;
    }

    apply {
        if (standard.parser_error != error.NoError || standard.checksum_error == 1) {
            not_ours();
        } else if (hdr.arp.isValid() && hdr.arp.operation == ARP_REQUEST) {
            gateways.apply();
        } else if (!hdr.ipv4.isValid() || hdr.ipv4.ihl != 5) {
            not_ours();
        } else if (hdr.ipv4.ttl <= 1) {
            too_old();
        } else {
            routes.apply();
        }
    }
}

control FabricEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {}
}

control FabricUpdate(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol,
              hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control FabricDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(FabricParser(), FabricVerify(), FabricIngress(), FabricEgress(), FabricUpdate(), FabricDeparser()) main;
