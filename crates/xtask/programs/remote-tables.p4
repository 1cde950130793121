// Four network functions for IPv6, each with one table that may lie in the memory of servers. The including file
// defines
//
//   NAT, FIREWALL, BALANCER or VPN_GATEWAY   the function
//   ENTRIES                                  the maximum number of entries
//   TABLE_ANNOTATION                         `@elastic` with its settings, or nothing
//
// Packets that have an entry leave by port 2. With OTHERS_TO, all that arrive at port 3 leave by the port of that
// number.

#include <core.p4>
#include <v1model.p4>

typedef bit<128> ip_t;
typedef bit<24> tunnel_t;

const bit<16> TYPE_IPV6 = 0x86dd;
const bit<8> PROTOCOL_TCP = 6;
const bit<8> PROTOCOL_UDP = 17;
const bit<8> PROTOCOL_GRE = 47;

header ethernet_h {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header ipv6_h {
    bit<4> version;
    bit<8> traffic_class;
    bit<20> flow_label;
    bit<16> payload_length;
    bit<8> next_header;
    bit<8> hop_limit;
    ip_t src;
    ip_t dst;
}

header ports_h {
    bit<16> src;
    bit<16> dst;
}

// GRE with a key (RFC 2890), whose first 24 bits number the tunnel.
header gre_h {
    bit<16> flags;
    bit<16> protocol;
    tunnel_t tunnel;
    bit<8> flow;
}

struct headers_t {
    ethernet_h ethernet;
    ipv6_h ipv6;
    ports_h ports;
    gre_h gre;
    ipv6_h inner;
}

struct metadata_t {
}

parser FunctionParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TYPE_IPV6: parse_ipv6;
            default: accept;
        }
    }

    state parse_ipv6 {
        packet.extract(hdr.ipv6);
        transition select(hdr.ipv6.next_header) {
            PROTOCOL_TCP: parse_ports;
            PROTOCOL_UDP: parse_ports;
            PROTOCOL_GRE: parse_gre;
            default: accept;
        }
    }

    state parse_ports {
        packet.extract(hdr.ports);
        transition accept;
    }

    state parse_gre {
        packet.extract(hdr.gre);
        packet.extract(hdr.inner);
        transition accept;
    }
}

control FunctionVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control FunctionIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action drop() {
        mark_to_drop(standard);
    }

    action leave() {
        hdr.ipv6.hop_limit = hdr.ipv6.hop_limit - 1;
        standard.egress_spec = 2;
    }

#ifdef NAT
    action translate(ip_t address, bit<16> port) {
        hdr.ipv6.src = address;
        hdr.ports.src = port;
        leave();
    }
#define ACTION translate
#endif

#ifdef FIREWALL
    action allow() {
        leave();
    }
#define ACTION allow
#endif

#ifdef BALANCER
    action to_server(ip_t address, bit<16> port) {
        hdr.ipv6.dst = address;
        hdr.ports.dst = port;
        leave();
    }
#define ACTION to_server
#endif

#ifdef VPN_GATEWAY
    action to_host(ip_t host, tunnel_t tunnel) {
        hdr.ipv6.dst = host;
        hdr.gre.tunnel = tunnel;
        leave();
    }
#define ACTION to_host
#endif

    TABLE_ANNOTATION
    table flows {
        key = {
#ifdef VPN_GATEWAY
            hdr.gre.tunnel: exact;
            hdr.inner.dst: exact;
#else
            hdr.ipv6.next_header: exact;
            hdr.ipv6.src: exact;
            hdr.ipv6.dst: exact;
            hdr.ports.src: exact;
            hdr.ports.dst: exact;
#endif
        }
        actions = { ACTION; drop; }
        default_action = drop();
        size = ENTRIES;
    }

    apply {
#ifdef OTHERS_TO
        if (standard.ingress_port == 3) {
            standard.egress_spec = OTHERS_TO;
            return;
        }
#endif
        if (standard.parser_error != error.NoError || hdr.ipv6.hop_limit <= 1) {
            drop();
        }
#ifdef VPN_GATEWAY
        else if (hdr.inner.isValid()) {
            flows.apply();
        }
#else
        else if (hdr.ports.isValid()) {
            flows.apply();
        }
#endif
        else {
            drop();
        }
    }
}

control FunctionEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {}
}

control FunctionUpdate(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control FunctionDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(FunctionParser(), FunctionVerify(), FunctionIngress(), FunctionEgress(), FunctionUpdate(),
         FunctionDeparser()) main;
