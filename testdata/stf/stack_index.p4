/* Stacks indexed at run time, read and written; beyond the end nothing is written and zeros are read. */
#include <core.p4>
#include <v1model.p4>

header op_t {
    bit<8> read;
    bit<8> write;
    bit<8> got;
}
header item_t { bit<8> value; }
struct headers {
    op_t op;
    item_t[3] items;
}
struct metadata { }

#include "common/empty.p4"

parser MyParser(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.op);
        packet.extract(hdr.items[0]);
        packet.extract(hdr.items[1]);
        packet.extract(hdr.items[2]);
        transition accept;
    }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 1;
        hdr.op.got = hdr.items[hdr.op.read].value;
        hdr.items[hdr.op.write].value = 0x99;
    }
}

control MyDeparser(packet_out packet, in headers hdr) {
    apply {
        packet.emit(hdr.op);
        packet.emit(hdr.items);
    }
}

V1Switch(MyParser(), NoVerify(), MyIngress(), NoEgress(), NoCompute(), MyDeparser()) main;
