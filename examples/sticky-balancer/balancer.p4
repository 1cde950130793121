// One service address for several servers. The first packet of a flow chooses a server, and the flow keeps it. The
// choice survives the switch: it is an entry that the stores make, so a flow keeps its server at another switch.

#include <core.p4>
#include <v1model.p4>
#include "../common/packet.p4"
#include "../common/checksum.p4"

struct headers_t {
    ethernet_h ethernet;
    ipv4_h ipv4;
    ports_h ports;
    tcp_rest_h tcp;
    udp_rest_h udp;
}

struct metadata_t {
    bit<8> server;
}

parser BalanceParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
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
            (5, 0, PROTOCOL_TCP): parse_tcp;
            (5, 0, PROTOCOL_UDP): parse_udp;
            default: accept;
        }
    }

    state parse_tcp {
        packet.extract(hdr.ports);
        packet.extract(hdr.tcp);
        transition accept;
    }

    state parse_udp {
        packet.extract(hdr.ports);
        packet.extract(hdr.udp);
        transition accept;
    }
}

control BalanceVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol,
              hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control BalanceIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action unknown() {
        mark_to_drop(standard);
    }

    // Updates the checksums of TCP and UDP. A UDP checksum of 0 means none and stays.
    action readdress(ip_t before, ip_t after) {
        if (hdr.tcp.isValid()) {
            hdr.tcp.checksum = replaced(hdr.tcp.checksum, before, after);
        }
        if (hdr.udp.isValid() && hdr.udp.checksum != 0) {
            bit<16> checksum = replaced(hdr.udp.checksum, before, after);
            hdr.udp.checksum = checksum == 0 ? 16w0xffff : checksum;
        }
    }

    action use(bit<8> server) {
        meta.server = server;
    }

    action to_server(ip_t server) {
        readdress(hdr.ipv4.dst, server);
        hdr.ipv4.dst = server;
    }

    action answer_as(ip_t service) {
        readdress(hdr.ipv4.src, service);
        hdr.ipv4.src = service;
    }

    action forward(port_t port, mac_t own, mac_t next) {
        standard.egress_spec = port;
        hdr.ethernet.src = own;
        hdr.ethernet.dst = next;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
    }

    // The addresses that stand for all servers.
    table services {
        key = { hdr.ipv4.dst: exact; }
        actions = { NoAction; }
        default_action = NoAction();
    }

    // The first packet of a flow makes an entry with one of the numbers. It ends after 124 minutes without a packet.
    @resilient[choice = "0-2", idle = "124m"]
    table flows {
        key = {
            hdr.ipv4.protocol: exact;
            hdr.ipv4.src: exact;
            hdr.ipv4.dst: exact;
            hdr.ports.src: exact;
            hdr.ports.dst: exact;
        }
        actions = { use; unknown; }
        default_action = unknown();
    }

    // The address of each number.
    table servers {
        key = { meta.server: exact; }
        actions = { to_server; unknown; }
        default_action = unknown();
    }

    // Answers leave with the service's address.
    table answers {
        key = { hdr.ipv4.src: exact; }
        actions = { answer_as; NoAction; }
        default_action = NoAction();
    }

    table routes {
        key = { hdr.ipv4.dst: lpm; }
        actions = { forward; unknown; }
        default_action = unknown();
    }

    apply {
        if (standard.parser_error == error.NoError && standard.checksum_error == 0 && hdr.ipv4.isValid()
            && hdr.ipv4.ihl == 5 && hdr.ipv4.ttl > 1) {
            // A flow has ports. Pings go to the servers' own addresses.
            if (hdr.ports.isValid()) {
                if (!services.apply().hit) {
                    answers.apply();
                } else if (!flows.apply().hit || !servers.apply().hit) {
                    return;
                }
            }
            routes.apply();
        } else {
            unknown();
        }
    }
}

control BalanceEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {}
}

control BalanceUpdate(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol,
              hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control BalanceDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(BalanceParser(), BalanceVerify(), BalanceIngress(), BalanceEgress(), BalanceUpdate(), BalanceDeparser()) main;
