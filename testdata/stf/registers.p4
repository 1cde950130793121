/* Registers outlive packets, in ingress and egress; beyond the end nothing is written and zeros are read. */
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> index; bit<8> add; bit<16> got; bit<16> total; }
struct headers { h_t h; }
struct metadata { }

parser MyParser(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.h);
        transition accept;
    }
}

control NoVerify(inout headers hdr, inout metadata meta) { apply { } }
control NoCompute(inout headers hdr, inout metadata meta) { apply { } }

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    register<bit<16>>(4) sums;
    apply {
        std.egress_spec = 1;
        @atomic {
            sums.read(hdr.h.got, (bit<32>) hdr.h.index);
            sums.write((bit<32>) hdr.h.index, hdr.h.got + (bit<16>) hdr.h.add);
        }
    }
}

control MyEgress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    register<bit<16>>(1) total;
    apply {
        total.read(hdr.h.total, 0);
        hdr.h.total = hdr.h.total + (bit<16>) hdr.h.add;
        total.write(0, hdr.h.total);
    }
}

control MyDeparser(packet_out packet, in headers hdr) {
    apply { packet.emit(hdr); }
}

V1Switch(MyParser(), NoVerify(), MyIngress(), MyEgress(), NoCompute(), MyDeparser()) main;
