// A sequencer of flows: each packet of a flow leaves with its number, which is the count of the flow's packets so far.
// The counters survive the switch: every packet waits until its number is at the stores, so no number is given twice.
//
// A count is at a position given by a hash of the flow. Flows with equal hashes share a count.
#include <core.p4>
#include <v1model.p4>
#include "../common/packet.p4"

const bit<16> TYPE_COUNTED = 0x88b5;
const bit<32> COUNTS = 65536;

// Between Ethernet and IPv4: the packet's number, and the type of what follows.
header counted_h {
    bit<32> count;
    bit<16> type;
}

struct headers_t {
    ethernet_h ethernet;
    counted_h counted;
    ipv4_h ipv4;
    ports_h ports;
}

struct metadata_t {}

parser CounterParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TYPE_COUNTED: parse_counted;
            default: accept;
        }
    }

    state parse_counted {
        packet.extract(hdr.counted);
        transition select(hdr.counted.type) {
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

control NoChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control CounterIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    @resilient register<bit<32>>(COUNTS) counts;

    action drop() {
        mark_to_drop(standard);
    }

    action leave_by(port_t port) {
        standard.egress_spec = port;
    }

    table crossings {
        key = { standard.ingress_port: exact; }
        actions = { leave_by; drop; }
        default_action = drop();
    }

    apply {
        if (!hdr.ports.isValid() || !crossings.apply().hit) {
            drop();
            return;
        }
        bit<32> flow;
        hash(flow, HashAlgorithm.crc32, 32w0,
            { hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4.protocol, hdr.ports.src, hdr.ports.dst }, COUNTS);
        bit<32> count;
        counts.read(count, flow);
        count = count + 1;
        counts.write(flow, count);
        hdr.counted.count = count;
    }
}

control CounterEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {}
}

control CounterDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(CounterParser(), NoChecksum(), CounterIngress(), CounterEgress(), NoChecksum(), CounterDeparser()) main;
