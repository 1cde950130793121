/* select on several values, with masks, ranges and "anything"; the first case that fits is taken. */
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; bit<8> got; }
struct headers { h_t h; }
struct metadata { bit<8> got; }

#include "common/empty.p4"

parser MyParser(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    const bit<8> eight = 8;
    state start {
        packet.extract(hdr.h);
        transition select(hdr.h.a, hdr.h.b) {
            (1, 1): s1;
            (1, _): s2;
            (0x10 &&& 0xf0, 5 .. 7): s3;
            (eight, 0 .. 127): s4;
            (default, 0xff): s5;
            _: accept;
        }
    }
    state s1 { meta.got = 1; transition accept; }
    state s2 { meta.got = 2; transition accept; }
    state s3 { meta.got = 3; transition accept; }
    state s4 { meta.got = 4; transition accept; }
    state s5 { meta.got = 5; transition accept; }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 1;
        hdr.h.got = meta.got;
    }
}

control MyDeparser(packet_out packet, in headers hdr) {
    apply { packet.emit(hdr); }
}

V1Switch(MyParser(), NoVerify(), MyIngress(), NoEgress(), NoCompute(), MyDeparser()) main;
