// Telemetry reports of INT: "Telemetry Report Format Specification", version 2.0, of the P4.org Applications Working
// Group, over UDP and IPv4.
//
// This is the message format only: headers and their parser. `triplane subscribe` adds the tables.
#include <v1model.p4>

// The deployment chooses the port (section 3.1.1).
const bit<16> REPORT_PORT = 32766;

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
    bit<8>  protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

header udp_t {
    bit<16> src;
    bit<16> dst;
    bit<16> length;
    bit<16> checksum;
}

// Section 3.2, Telemetry Report Group Header.
header group_t {
    bit<4>  ver;
    bit<6>  hw_id;
    bit<22> sequence_number;
    // Called switch ID until version 1.0.
    @query_field_exact("switch_id")
    bit<32> node_id;
}

// Section 3.3, Individual Report Header.
header report_t {
    bit<4>  rep_type;
    bit<4>  in_type;
    bit<8>  report_length;      // in words of 4 bytes, without this header
    bit<8>  md_length;
    @query_field_exact("dropped")
    bit<1>  d;
    @query_field_exact("congested")
    bit<1>  q;
    @query_field_exact("tracked")
    bit<1>  f;
    bit<1>  i;
    bit<4>  rsvd;
}

// Section 3.3.1, the main contents of an INT report. `rep_md_bits` says which metadata follow, highest bit first.
header main_t {
    bit<1>  reserved;
    bit<1>  has_interfaces;
    bit<1>  has_hop_latency;
    bit<1>  has_queue;
    bit<12> more_md_bits;
    bit<16> domain_specific_id;
    bit<16> ds_md_bits;
    bit<16> ds_md_status;
}

header interfaces_t {
    @query_field_exact("ingress_interface")
    bit<16> ingress;
    @query_field_exact("egress_interface")
    bit<16> egress;
}

header hop_latency_t {
    @query_field("hop_latency")
    bit<32> value;              // in nanoseconds
}

header queue_t {
    @query_field_exact("queue_id")
    bit<8>  id;
    @query_field("queue_occupancy")
    bit<24> occupancy;
}

// All ones mean that the value is unknown (section 3.3.1). Then the field is absent, and rules on it do not match.
const bit<32> UNKNOWN = 0xffffffff;
header unknown_t {
    bit<32> ones;
}

// Rules test no fields after the queue: timestamps and the beginning of the reported packet.
struct headers_t {
    ethernet_t    ethernet;
    ipv4_t        ipv4;
    udp_t         udp;
    group_t       group;
    report_t      report;
    main_t        main_contents;
    interfaces_t  interfaces;
    hop_latency_t latency;
    unknown_t     unknown_latency;
    queue_t       queue;
    unknown_t     unknown_queue;
}

struct metadata_t {}

parser Reports(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            0x800: ipv4;
            default: accept;
        }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.ihl, hdr.ipv4.protocol, hdr.ipv4.flags[0:0], hdr.ipv4.offset) {
            (5, 17, 0, 0): udp;
            default: accept;
        }
    }
    state udp {
        packet.extract(hdr.udp);
        transition select(hdr.udp.dst, packet.lookahead<bit<4>>()) {
            (REPORT_PORT, 2): group;
            default: accept;
        }
    }
    state group {
        packet.extract(hdr.group);
        report_t next = packet.lookahead<report_t>();
        // A datagram may hold a group of reports. Only a single report is parsed; groups are not split.
        bit<16> alone = 8 + 8 + 4 + ((bit<16>)next.report_length << 2);
        transition select(next.rep_type, hdr.udp.length == alone) {
            (1, true): report;
            default: accept;
        }
    }
    state report {
        packet.extract(hdr.report);
        packet.extract(hdr.main_contents);
        transition select(hdr.main_contents.has_interfaces) {
            1: interfaces;
            default: behind_interfaces;
        }
    }
    state interfaces {
        packet.extract(hdr.interfaces);
        transition behind_interfaces;
    }
    state behind_interfaces {
        transition select(hdr.main_contents.has_hop_latency) {
            1: latency;
            default: behind_latency;
        }
    }
    state latency {
        transition select(packet.lookahead<bit<32>>()) {
            UNKNOWN: unknown_latency;
            default: known_latency;
        }
    }
    state known_latency {
        packet.extract(hdr.latency);
        transition behind_latency;
    }
    state unknown_latency {
        packet.extract(hdr.unknown_latency);
        transition behind_latency;
    }
    state behind_latency {
        transition select(hdr.main_contents.has_queue) {
            1: queue;
            default: accept;
        }
    }
    state queue {
        transition select(packet.lookahead<bit<32>>()) {
            UNKNOWN: unknown_queue;
            default: known_queue;
        }
    }
    state known_queue {
        packet.extract(hdr.queue);
        transition accept;
    }
    state unknown_queue {
        packet.extract(hdr.unknown_queue);
        transition accept;
    }
}
