// The router of generated labs: IPv4 by longest prefix over equal-cost paths, with ARP answered for everyone, so that
// hosts need no address of a gateway. It marks packets that say they can be marked (ECN, RFC 3168) when the queue
// that they joined is long.

#include <core.p4>
#include <v1model.p4>

const bit<16> TYPE_IPV4 = 0x0800;
const bit<16> TYPE_ARP = 0x0806;
const bit<16> ARP_REQUEST = 1;
const bit<16> ARP_REPLY = 2;
const bit<8> PROTOCOL_TCP = 6;
const bit<8> PROTOCOL_UDP = 17;

// How many packets wait before a packet that joins them is marked.
const bit<19> MARK_FROM = 20;

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
    bit<6> dscp;
    bit<2> ecn;
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

// The first four bytes of TCP and UDP.
header ports_t {
    bit<16> src;
    bit<16> dst;
}

struct headers_t {
    ethernet_t ethernet;
    arp_t arp;
    ipv4_h ipv4;
    ports_t ports;
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

control RouterVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol,
              hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control RouterIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    action no_route() {
        mark_to_drop(standard_metadata);
    }

    action malformed() {
        mark_to_drop(standard_metadata);
    }

    action not_for_us() {
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
    }

    // Answers "who has this address" with `mac`, out of the port the question came from.
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

    // Everybody's address, as far as hosts on a port are concerned, is the router's.
    table neighbours {
        key = { standard_metadata.ingress_port: exact; }
        actions = { arp_reply; not_for_us; }
        default_action = not_for_us();
        size = 512;
    }

    // Equal-cost paths; a flow keeps to one of them.
    table routes {
        key = {
            hdr.ipv4.dst: lpm;
            hdr.ipv4.src: selector;
            hdr.ipv4.dst: selector;
            hdr.ipv4.protocol: selector;
            hdr.ports.src: selector;
            hdr.ports.dst: selector;
        }
        actions = { forward; no_route; }
        default_action = no_route();
        @name("paths") implementation = action_selector(HashAlgorithm.crc32, 65536, 32);
        size = 65536;
    }

    apply {
        if (standard_metadata.parser_error != error.NoError || standard_metadata.checksum_error == 1) {
            malformed();
        } else if (hdr.arp.isValid()) {
            // A host that asks for its own address wants to know whether another has it.
            if (hdr.arp.operation == ARP_REQUEST && hdr.arp.sender_ip != hdr.arp.target_ip) {
                neighbours.apply();
            } else {
                not_for_us();
            }
        } else if (hdr.ipv4.isValid() && hdr.ipv4.ihl == 5) {
            if (hdr.ipv4.ttl <= 1) {
                ttl_expired();
            } else {
                routes.apply();
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

    // The router's own Ethernet address on each port.
    table port_mac {
        key = { standard_metadata.egress_port: exact; }
        actions = { set_source; NoAction; }
        default_action = NoAction();
        size = 512;
    }

    apply {
        port_mac.apply();
        if (hdr.ipv4.isValid() && hdr.ipv4.ecn != 0 && standard_metadata.enq_qdepth >= MARK_FROM) {
            hdr.ipv4.ecn = 3;
        }
    }
}

control RouterUpdate(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol,
              hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control RouterDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.arp);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ports);
    }
}

V1Switch(RouterParser(), RouterVerify(), RouterIngress(), RouterEgress(), RouterUpdate(), RouterDeparser()) main;
