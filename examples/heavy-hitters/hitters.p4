// Finds heavy flows: those with 1,000 packets or more leave with the lowest priority in their VLAN tag. Each VLAN has a
// count-min sketch: three rows of 64 counters, of which each flow uses one a row, at the position of a hash. The least
// of the three is the estimate of the flow's packets, and never less than their number.
//
// The sketches survive the switch as snapshots: packets never wait for the stores, and another switch continues with
// counts that lack the last few milliseconds.
#include <core.p4>
#include <v1model.p4>
#include "../common/packet.p4"

const bit<16> TYPE_VLAN = 0x8100;
const bit<16> TYPE_ESTIMATE = 0x88b5;

// A sketch of each VLAN, one behind the other.
#define VLANS 4096
#define COUNTERS 64
#define SKETCHES register<bit<32>>(VLANS * COUNTERS)

// Adds 1 to a counter of the VLAN's sketch, and lowers the estimate to it.
#define COUNT(ARRAY, POSITION) {                               \
    bit<32> packets;                                           \
    bit<32> at = 14w0 ++ hdr.vlan.id ++ POSITION;              \
    ARRAY.read(packets, at);                                   \
    packets = packets |+| 1;                                   \
    ARRAY.write(at, packets);                                  \
    if (packets < estimate) { estimate = packets; }            \
}

const bit<32> THRESHOLD = 1000;
const bit<3> LOWEST_PRIORITY = 1;

header vlan_h {
    bit<3> priority;
    bit<1> drop_eligible;
    bit<12> id;
    bit<16> type;
}

// Between VLAN tag and IPv4: a packet that has this header leaves with the estimate.
header estimate_h {
    bit<32> packets;
    bit<16> type;
}

struct headers_t {
    ethernet_h ethernet;
    vlan_h vlan;
    estimate_h estimate;
    ipv4_h ipv4;
    ports_h ports;
}

struct metadata_t {}

parser HittersParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TYPE_VLAN: parse_vlan;
            default: accept;
        }
    }

    state parse_vlan {
        packet.extract(hdr.vlan);
        transition select(hdr.vlan.type) {
            TYPE_ESTIMATE: parse_estimate;
            TYPE_IPV4: parse_ipv4;
            default: accept;
        }
    }

    state parse_estimate {
        packet.extract(hdr.estimate);
        transition select(hdr.estimate.type) {
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

control HittersIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    // Whether the last snapshot of a VLAN's sketch is older than its bound.
    register<bit<1>>(VLANS) is_stale;

    // 64 counters of each array are a row: the sketch of a VLAN, which belongs to one switch at a time.
    @resilient[group = "sketch", every = "1ms", bound = "10ms", row = "64", stale = "is_stale"] SKETCHES first;
    @resilient[group = "sketch", every = "1ms", bound = "10ms", row = "64", stale = "is_stale"] SKETCHES second;
    @resilient[group = "sketch", every = "1ms", bound = "10ms", row = "64", stale = "is_stale"] SKETCHES third;

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
        if (!crossings.apply().hit || !hdr.ports.isValid()) {
            return;
        }
        bit<1> stale;
        is_stale.read(stale, (bit<32>) hdr.vlan.id);
        if (stale == 1) {
            // Without counting, nothing more can be lost.
            return;
        }
        bit<32> positions;
        hash(positions, HashAlgorithm.crc32, 32w0,
            { hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4.protocol, hdr.ports.src, hdr.ports.dst }, 32w262144);
        bit<32> estimate = 0xffffffff;
        COUNT(first, positions[5:0])
        COUNT(second, positions[11:6])
        COUNT(third, positions[17:12])
        if (estimate >= THRESHOLD) {
            hdr.vlan.priority = LOWEST_PRIORITY;
        }
        if (hdr.estimate.isValid()) {
            hdr.estimate.packets = estimate;
        }
    }
}

control HittersEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {}
}

control HittersDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(HittersParser(), NoChecksum(), HittersIngress(), HittersEgress(), NoChecksum(), HittersDeparser()) main;
