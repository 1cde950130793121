/* push_front and pop_front move elements and their validity; what is pushed is invalid until it is set. */
#include <core.p4>
#include <v1model.p4>

header op_t { bit<8> op; }
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
        packet.extract(hdr.items.next);
        packet.extract(hdr.items.next);
        transition accept;
    }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 1;
        switch (hdr.op.op) {
            1: {
                hdr.items.push_front(1);
                hdr.items[0].setValid();
                hdr.items[0].value = 0xa0;
            }
            2: { hdr.items.push_front(2); }
            3: { hdr.items.pop_front(1); }
            4: { hdr.items.pop_front(3); }
            5: {
                hdr.items.push_front(3);
                hdr.items[1] = { 0xb0 };
            }
            6: {
                item_t[3] copy = hdr.items;
                copy[0].value = 0xc0;
                hdr.items = copy;
                hdr.items[2] = copy[1];
            }
        }
    }
}

control MyDeparser(packet_out packet, in headers hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(MyParser(), NoVerify(), MyIngress(), NoEgress(), NoCompute(), MyDeparser()) main;
