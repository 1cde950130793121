// Uses rows of resilient arrays in an order that each packet chooses, without other effects before it.
#include <core.p4>
#include <v1model.p4>

header h_h {
    bit<16> ways;
    bit<8> row;
    bit<8> other;
    bit<8> cell;
    bit<8> far;
    bit<32> value;
    bit<32> sum;
}
struct headers_t { h_h h; }
struct metadata_t {}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.h);
        transition accept;
    }
}

control Nothing(inout headers_t hdr, inout metadata_t meta) { apply {} }

#define ADD(AT) { s1.read(value, AT); s1.write(AT, value + hdr.h.value); sum = sum + value; }

control MainIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    @resilient[group = "flow"] register<bit<32>>(16) seen;
    @resilient[group = "flow"] register<bit<32>>(16) marks;
    @resilient[group = "other"] register<bit<16>>(16) others;
    @resilient[group = "sketch", every = "1ms", row = "4"] register<bit<32>>(16) s1;
    @resilient[group = "sketch", every = "1ms", row = "4"] register<bit<8>>(16) s2;
    @resilient[group = "wide"] register<bit<100>>(16) wides;
    register<bit<32>>(1) plain;
    counter(16, CounterType.packets) hits;
    apply {
        bit<32> row = (bit<32>) hdr.h.row;
        bit<32> cell = (bit<32>) hdr.h.cell;
        bit<32> value;
        bit<32> sum = 0;
        if (hdr.h.ways[12:12] == 1) {
            bit<100> wide;
            wides.read(wide, (bit<32>) hdr.h.other);
            sum = sum + wide[31:0];
        }
        if (hdr.h.ways[0:0] == 1) { seen.read(value, row); sum = sum + value; }
        if (hdr.h.ways[1:1] == 1) { marks.read(value, row); marks.write(row, value); sum = sum + value; }
        if (hdr.h.ways[2:2] == 1) { ADD(cell) }
        if (hdr.h.ways[3:3] == 1) { s2.write(cell ^ 1, (bit<8>) hdr.h.value); }
        if (hdr.h.ways[4:4] == 1) { plain.read(value, 0); plain.write(0, value + 1); sum = sum + value; }
        if (hdr.h.ways[5:5] == 1) { seen.write(row, hdr.h.value); }
        if (hdr.h.ways[6:6] == 1) { bit<16> w; others.read(w, (bit<32>) hdr.h.other); sum = sum + (bit<32>) w; }
        if (hdr.h.ways[7:7] == 1) { ADD((bit<32>) hdr.h.far) }
        if (hdr.h.ways[8:8] == 1) {
            ADD(cell) ADD(cell) ADD(cell) ADD(cell) ADD(cell) ADD(cell) ADD(cell) ADD(cell) ADD(cell)
        }
        if (hdr.h.ways[9:9] == 1) { marks.write(row, hdr.h.value); }
        if (hdr.h.ways[10:10] == 1) { others.write((bit<32>) hdr.h.other, hdr.h.value[15:0]); }
        if (hdr.h.ways[11:11] == 1) { wides.write((bit<32>) hdr.h.other, 68w1 ++ hdr.h.value); }
        // An effect behind writes.
        if (hdr.h.ways[15:15] == 1) { hits.count(cell); }
        hdr.h.sum = sum;
        standard.egress_spec = 2;
        if (hdr.h.ways[14:14] == 1) { standard.mcast_grp = 1; }
    }
}

control MainEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    @resilient[group = "flow"] register<bit<32>>(16) left;
    apply {
        // Ingress has used the row: what a packet that is refused here has done in ingress depends on the executor.
        if (hdr.h.ways[13:13] == 1 && hdr.h.ways[0:0] == 1) {
            bit<32> value;
            left.read(value, (bit<32>) hdr.h.row);
            hdr.h.sum = hdr.h.sum + value;
        }
    }
}

control Emit(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.h); } }

V1Switch(P(), Nothing(), MainIngress(), MainEgress(), Nothing(), Emit()) main;
