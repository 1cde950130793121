// A load balancer whose shares are rules: flows to a service's address are spread over servers by a hash, and all other
// packets are switched by Ethernet address.
//
// The servers have the service's address, too, and answer clients directly (direct server return). So the balancer
// changes the Ethernet address only, and no checksum.
#include <v1model.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header ipv4_t {
    bit<4>  version;
    bit<4>  ihl;
    bit<8>  tos;
    bit<16> total_len;
    bit<16> id;
    bit<3>  flags;
    bit<13> offset;
    bit<8>  ttl;
    @query_field_exact("protocol")
    bit<8>  protocol;
    bit<16> checksum;
    @query_field_lpm("src") @format(IPV4_ADDRESS)
    bit<32> src;
    @query_field_exact("dst") @format(IPV4_ADDRESS)
    bit<32> dst;
}

// The first four bytes of TCP and UDP.
header ports_t {
    bit<16> src;
    @query_field_exact("port")
    bit<16> dst;
}

// What rules may test besides: a number of 8 bits that all packets of a flow share. It is not part of the packet.
header flow_t {
    @query_field("bucket")
    bit<8> bucket;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
    ports_t    ports;
    flow_t     flow;
}

struct metadata_t {}

parser Packets(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            0x800: ipv4;
            default: accept;
        }
    }
    // Fragments have no ports, so they are not balanced.
    state ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.ihl, hdr.ipv4.protocol, hdr.ipv4.flags[0:0], hdr.ipv4.offset) {
            (5, 6, 0, 0): ports;
            (5, 17, 0, 0): ports;
            default: accept;
        }
    }
    state ports {
        packet.extract(hdr.ports);
        transition accept;
    }
}

// Applied before the rules.
control Flows(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        if (hdr.ports.isValid()) {
            hdr.flow.setValid();
            hash(hdr.flow.bucket, HashAlgorithm.crc32, 8w0,
                 { hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4.protocol, hdr.ports.src, hdr.ports.dst }, 9w256);
        }
    }
}

// An action of rules: addresses the packet to a server.
@query_action
action to_server(inout headers_t hdr, bit<48> mac) {
    hdr.ethernet.dst = mac;
}

// Forwards what no rule delivers. It is called with packets that are marked to be dropped.
@query_fallback
control Bridge(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    action send(bit<9> port) {
        standard_metadata.egress_spec = port;
    }
    table stations {
        key = { hdr.ethernet.dst: exact; }
        actions = { send; NoAction; }
        default_action = NoAction;
        const entries = {
            0x020000000001: send(1);    // the gateway to the clients
            0x020000000002: send(2);    // the servers
            0x020000000003: send(3);
            0x020000000004: send(4);
        }
    }
    apply {
        stations.apply();
    }
}

// All headers except `flow`.
control Emit(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ports);
    }
}
