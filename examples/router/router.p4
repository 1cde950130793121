// An IPv4 router that two ordinary hosts can use as their gateway: it answers ARP for its own addresses, forwards
// by longest prefix, decrements TTL, rewrites MAC addresses and keeps the header checksum right.

#include <core.p4>
#include <v1model.p4>

const bit<16> TYPE_IPV4 = 0x0800;
const bit<16> TYPE_ARP = 0x0806;
const bit<16> ARP_REQUEST = 1;
const bit<16> ARP_REPLY = 2;

typedef bit<48> mac_t;
typedef bit<32> ipv4_t;

header ethernet_t {
    mac_t dst;
    mac_t src;
    bit<16> type;
}

header arp_t {
    bit<16> hardware;
    bit<16> protocol;
    bit<8> hardware_length;
    bit<8> protocol_length;
    bit<16> operation;
    mac_t sender_mac;
    ipv4_t sender_ip;
    mac_t target_mac;
    ipv4_t target_ip;
}

header ipv4_h {
    bit<4> version;
    bit<4> ihl;
    bit<8> tos;
    bit<16> total_length;
    bit<16> identification;
    bit<3> flags;
    bit<13> fragment_offset;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    ipv4_t src;
    ipv4_t dst;
}

struct headers_t {
    ethernet_t ethernet;
    arp_t arp;
    ipv4_h ipv4;
}

struct metadata_t {}

parser RouterParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
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
        verify(hdr.ipv4.version == 4 && hdr.ipv4.ihl >= 5, error.ParserInvalidArgument);
        transition accept;
    }
}

// The checksum covers IPv4 headers without options; those with options pass unchecked and are dropped by Ingress.
control RouterVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_length, hdr.ipv4.identification,
              hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control RouterIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    counter(512, CounterType.packets_and_bytes) routed;

    action no_route() {
        mark_to_drop(standard_metadata);
    }

    action not_for_us() {
        mark_to_drop(standard_metadata);
    }

    action malformed() {
        mark_to_drop(standard_metadata);
    }

    action ttl_expired() {
        mark_to_drop(standard_metadata);
    }

    // Sends the packet to the next hop `mac` through `port`.
    action forward(mac_t mac, bit<9> port) {
        standard_metadata.egress_spec = port;
        hdr.ethernet.dst = mac;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        routed.count((bit<32>) port);
    }

    // Answers "who has this address" with `mac`, by the port that the request came from.
    action arp_reply(mac_t mac) {
        hdr.ethernet.dst = hdr.arp.sender_mac;
        hdr.ethernet.src = mac;
        ipv4_t asked = hdr.arp.target_ip;
        hdr.arp.operation = ARP_REPLY;
        hdr.arp.target_mac = hdr.arp.sender_mac;
        hdr.arp.target_ip = hdr.arp.sender_ip;
        hdr.arp.sender_mac = mac;
        hdr.arp.sender_ip = asked;
        standard_metadata.egress_spec = standard_metadata.ingress_port;
    }

    // The router's own addresses.
    table gateway {
        key = { hdr.arp.target_ip: exact; }
        actions = { arp_reply; not_for_us; }
        default_action = not_for_us();
        size = 64;
    }

    table ipv4_lpm {
        key = { hdr.ipv4.dst: lpm; }
        actions = { forward; no_route; }
        default_action = no_route();
        size = 1024;
    }

    apply {
        if (standard_metadata.parser_error != error.NoError || standard_metadata.checksum_error == 1) {
            malformed();
        } else if (hdr.arp.isValid()) {
            if (hdr.arp.operation == ARP_REQUEST) {
                gateway.apply();
            } else {
                not_for_us();
            }
        } else if (hdr.ipv4.isValid() && hdr.ipv4.ihl == 5) {
            if (hdr.ipv4.ttl <= 1) {
                ttl_expired();
            } else {
                ipv4_lpm.apply();
            }
        } else {
            not_for_us();
        }
    }
}

control RouterEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    action set_source(mac_t mac) {
        hdr.ethernet.src = mac;
    }

    // The router's own MAC address on each port.
    table port_mac {
        key = { standard_metadata.egress_port: exact; }
        actions = { set_source; NoAction; }
        default_action = NoAction();
        size = 512;
    }

    apply {
        port_mac.apply();
    }
}

control RouterUpdate(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_length, hdr.ipv4.identification,
              hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control RouterDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.arp);
        packet.emit(hdr.ipv4);
    }
}

V1Switch(RouterParser(), RouterVerify(), RouterIngress(), RouterEgress(), RouterUpdate(), RouterDeparser()) main;
