// One service address for several servers. The controller gives each client of a service a server, and this table lies
// in the memory of other servers (`@elastic`). A client without an entry is new.

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
    action drop() {
        mark_to_drop(standard);
    }

    // Updates the checksums of TCP and UDP. A UDP checksum of 0 means none and stays.
    action to_server(ip_t server, mac_t next, port_t port) {
        if (hdr.tcp.isValid()) {
            hdr.tcp.checksum = replaced(hdr.tcp.checksum, hdr.ipv4.dst, server);
        }
        if (hdr.udp.isValid() && hdr.udp.checksum != 0) {
            bit<16> checksum = replaced(hdr.udp.checksum, hdr.ipv4.dst, server);
            hdr.udp.checksum = checksum == 0 ? 16w0xffff : checksum;
        }
        hdr.ipv4.dst = server;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        hdr.ethernet.src = hdr.ethernet.dst;
        hdr.ethernet.dst = next;
        standard.egress_spec = port;
    }

    // The addresses that stand for all servers.
    table services {
        key = { hdr.ipv4.dst: exact; }
        actions = { NoAction; }
        default_action = NoAction();
    }

    // The server of each client and service. Without a cache, each packet asks the memory servers.
    @elastic[cache = "0"]
    table assignments {
        key = {
            hdr.ipv4.protocol: exact;
            hdr.ipv4.src: exact;
            hdr.ipv4.dst: exact;
            hdr.ports.dst: exact;
        }
        actions = { to_server; NoAction; }
        default_action = NoAction();
        size = 100000;
    }

    // The server of clients without an entry.
    table new_clients {
        key = { hdr.ipv4.dst: exact; }
        actions = { to_server; drop; }
        default_action = drop();
    }

    apply {
        if (standard.parser_error == error.NoError && standard.checksum_error == 0 && hdr.ports.isValid()
            && hdr.ipv4.ttl > 1 && services.apply().hit) {
            if (!assignments.apply().hit) {
                new_clients.apply();
            }
        } else {
            drop();
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
