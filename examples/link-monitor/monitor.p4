// Routers that report the load of their links. A probe carries its output ports, one for each switch on its
// path. Each switch removes its port and prepends a record: the bytes sent by that port since the last probe, and the
// time since then. The receiver of the probe divides the two.
//
//     Ethernet 88b5 | hops left, records | port of each hop ... | record of each switch, newest first ...

#include <core.p4>
#include <v1model.p4>
#include "../common/packet.p4"

// Local experimental Ethertype (IEEE 802).
const bit<16> TYPE_PROBE = 0x88b5;

const bit<32> PORTS = 16;

#define MOST_HOPS 8

header probe_h {
    bit<8> hops;
    bit<8> records;
}

header hop_h {
    bit<8> port;
}

header record_h {
    bit<16> switch_number;
    bit<16> port;
    bit<32> bytes;
    bit<32> microseconds;
}

struct headers_t {
    ethernet_h ethernet;
    probe_h probe;
    hop_h[MOST_HOPS] hops;
    record_h[MOST_HOPS] records;
    ipv4_h ipv4;
}

struct metadata_t {
    bit<8> left;
}

parser MonitorParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TYPE_PROBE: parse_probe;
            TYPE_IPV4: parse_ipv4;
            default: accept;
        }
    }

    state parse_probe {
        packet.extract(hdr.probe);
        meta.left = hdr.probe.hops;
        transition parse_hops;
    }

    state parse_hops {
        transition select(meta.left) {
            0: parse_first_record;
            default: parse_hop;
        }
    }

    state parse_hop {
        packet.extract(hdr.hops.next);
        meta.left = meta.left - 1;
        transition parse_hops;
    }

    state parse_first_record {
        meta.left = hdr.probe.records;
        transition parse_records;
    }

    state parse_records {
        transition select(meta.left) {
            0: accept;
            default: parse_record;
        }
    }

    state parse_record {
        packet.extract(hdr.records.next);
        meta.left = meta.left - 1;
        transition parse_records;
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
}

control MonitorVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol,
              hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control MonitorIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action unknown() {
        mark_to_drop(standard);
    }

    action forward(port_t port, mac_t own, mac_t next) {
        standard.egress_spec = port;
        hdr.ethernet.src = own;
        hdr.ethernet.dst = next;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
    }

    // Sends a probe to its next port.
    action next_hop() {
        standard.egress_spec = (port_t) hdr.hops[0].port;
        hdr.hops.pop_front(1);
        hdr.probe.hops = hdr.probe.hops - 1;
    }

    table routes {
        key = { hdr.ipv4.dst: lpm; }
        actions = { forward; unknown; }
        default_action = unknown();
    }

    apply {
        if (standard.parser_error != error.NoError || standard.checksum_error == 1) {
            unknown();
        } else if (hdr.probe.isValid() && hdr.hops[0].isValid() && hdr.probe.records < MOST_HOPS) {
            next_hop();
        } else if (hdr.ipv4.isValid() && hdr.ipv4.ihl == 5 && hdr.ipv4.ttl > 1) {
            routes.apply();
        } else {
            unknown();
        }
    }
}

control MonitorEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    // Bytes sent by each port since its last probe, and the time of that probe.
    register<bit<32>>(PORTS) bytes;
    register<bit<48>>(PORTS) told;

    bit<16> own_number = 0;

    action is(bit<16> number) {
        own_number = number;
    }

    // The ID of this switch, set by the default action.
    table self {
        actions = { is; }
        default_action = is(0);
    }

    apply {
        bit<32> port = (bit<32>) standard.egress_port;
        bit<32> so_far;
        @atomic {
            bytes.read(so_far, port);
            so_far = so_far + standard.packet_length;
            if (!hdr.probe.isValid()) {
                bytes.write(port, so_far);
            } else {
                bit<48> before;
                told.read(before, port);
                told.write(port, standard.egress_global_timestamp);
                bytes.write(port, 0);
                self.apply();
                hdr.records.push_front(1);
                hdr.records[0].setValid();
                hdr.records[0].switch_number = own_number;
                hdr.records[0].port = (bit<16>) standard.egress_port;
                hdr.records[0].bytes = so_far;
                hdr.records[0].microseconds = (bit<32>) (standard.egress_global_timestamp - before);
                hdr.probe.records = hdr.probe.records + 1;
            }
        }
    }
}

control MonitorUpdate(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol,
              hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control MonitorDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(MonitorParser(), MonitorVerify(), MonitorIngress(), MonitorEgress(), MonitorUpdate(), MonitorDeparser()) main;
