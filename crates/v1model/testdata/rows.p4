// Uses rows of resilient state in ingress and egress, with copies, digests, packet-ins and further passes.
#include <core.p4>
#include <v1model.p4>

header h_h {
    bit<8> ways;
    bit<8> row;
    bit<32> count;
    bit<32> leaving;
}
struct headers_t { h_h h; }
struct metadata_t { @field_list(1) bit<8> again; }
struct digest_t { bit<8> row; bit<32> count; }

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.h);
        transition accept;
    }
}

control Nothing(inout headers_t hdr, inout metadata_t meta) { apply {} }

control MainIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    @resilient[group = "flow"] register<bit<32>>(16) seen;
    @resilient[group = "other"] register<bit<32>>(16) others;
    register<bit<32>>(1) plain;
    counter(16, CounterType.packets_and_bytes) all;
    direct_counter(CounterType.packets_and_bytes) hits;
    action found(bit<32> value) {
        hdr.h.leaving = value;
    }
    table known {
        key = { hdr.h.row: exact; }
        actions = { found; NoAction; }
        const entries = { 3: found(33); 4: found(44); 5: found(55); }
        counters = hits;
    }
    apply {
        bit<32> row = (bit<32>) hdr.h.row;
        bit<32> value;
        plain.read(value, 0);
        plain.write(0, value + 1);
        all.count(row);
        random(value, 0, 1000);
        hdr.h.leaving = value;
        known.apply();
        if (hdr.h.ways[0:0] == 1) {
            seen.read(value, row);
            value = value + 1;
            if (hdr.h.ways[1:1] == 1) { seen.write(row, value); }
            hdr.h.count = value;
            digest<digest_t>(1, { hdr.h.row, value });
        }
        if (hdr.h.ways[7:7] == 1) { others.write(row, 1); }
        standard.egress_spec = 2;
        if (hdr.h.ways[2:2] == 1) { clone_preserving_field_list(CloneType.I2E, 1, 1); }
        if (hdr.h.ways[3:3] == 1) { standard.mcast_grp = 1; }
        if (hdr.h.ways[4:4] == 1 && meta.again == 0) { meta.again = 1; resubmit_preserving_field_list(1); }
        if (hdr.h.ways[5:5] == 1) { standard.egress_spec = 5; }
    }
}

control MainEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    @resilient[group = "flow"] register<bit<32>>(16) left;
    apply {
        if (hdr.h.ways[6:6] == 1) {
            bit<32> value;
            left.read(value, (bit<32>) hdr.h.row);
            left.write((bit<32>) hdr.h.row, value + 1);
            hdr.h.leaving = hdr.h.leaving + value;
            if (meta.again == 0 && standard.instance_type == 0) {
                meta.again = 1;
                recirculate_preserving_field_list(1);
            }
        }
    }
}

control Emit(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.h); } }

V1Switch(P(), Nothing(), MainIngress(), MainEgress(), Nothing(), Emit()) main;
