/* Serialisable enums travel in headers, with values that have no name too; plain enums and errors are compared. */
#include <core.p4>
#include <v1model.p4>

enum Kind { Small, Large }

enum bit<8> Op {
    Add = 1,
    Sub = 2,
    Alias = 2,
    Last = 0xff
}

header op_t {
    Op op;
    bit<8> a;
    bit<8> b;
}

struct headers { op_t h; }
struct metadata { Kind kind; }

#include "common/empty.p4"

parser MyParser(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.h);
        transition select(hdr.h.op) {
            Op.Last: large;
            default: accept;
        }
    }
    state large {
        meta.kind = Kind.Large;
        transition accept;
    }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 1;
        if (hdr.h.op == Op.Add) {
            hdr.h.a = hdr.h.a + hdr.h.b;
        } else if (hdr.h.op == Op.Sub) {
            hdr.h.a = hdr.h.a - hdr.h.b;
            hdr.h.op = Op.Last;
        } else if (meta.kind == Kind.Large && std.parser_error == error.NoError) {
            hdr.h.op = (Op) 0x77;
            hdr.h.b = (bit<8>) Op.Alias;
        }
    }
}

control MyDeparser(packet_out packet, in headers hdr) {
    apply { packet.emit(hdr.h); }
}

V1Switch(MyParser(), NoVerify(), MyIngress(), NoEgress(), NoCompute(), MyDeparser()) main;
