/* What a select compares with may be known at run time only: values, masks and ends of ranges, signed ones too. */
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> kind; bit<8> a; bit<8> b; bit<8> result; }
struct headers { h_t h; }
struct metadata { bit<8> wanted; bit<8> state; }

#include "common/empty.p4"

parser MyParser(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.h);
        transition select(hdr.h.kind) {
            1: value;
            2: mask;
            3: range;
            4: signed;
            default: accept;
        }
    }
    state value {
        meta.wanted = hdr.h.b + 1;
        transition select(hdr.h.a, hdr.h.kind) {
            (meta.wanted, 1): yes;
            (_, meta.wanted): also;
            default: no;
        }
    }
    state mask {
        transition select(hdr.h.a) {
            0x50 &&& hdr.h.b: yes;
            hdr.h.b &&& 0x0f: also;
            default: no;
        }
    }
    state range {
        transition select(hdr.h.a) {
            hdr.h.b .. 0x7f: yes;
            0x02 .. hdr.h.b - 3: also;
            default: no;
        }
    }
    state signed {
        transition select((int<8>) hdr.h.a) {
            -2 .. (int<8>) hdr.h.b: yes;
            default: no;
        }
    }
    state yes { meta.state = 1; transition accept; }
    state also { meta.state = 2; transition accept; }
    state no { meta.state = 3; transition accept; }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 1;
        hdr.h.result = meta.state;
    }
}

control MyDeparser(packet_out packet, in headers hdr) {
    apply { packet.emit(hdr); }
}

V1Switch(MyParser(), NoVerify(), MyIngress(), NoEgress(), NoCompute(), MyDeparser()) main;
