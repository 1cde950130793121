/* The control plane says at run time which values a parser's select takes. */
#include <core.p4>
#include <v1model.p4>

struct vlan_t {
    bit<8> kind;
    @match(ternary) bit<8> flags;
}
header h_t { bit<8> kind; bit<8> flags; bit<8> got; }
struct headers { h_t h; }
struct metadata { bit<8> got; }

#include "common/empty.p4"

parser MyParser(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    value_set<bit<8>>(4) kinds;
    value_set<vlan_t>(4) pairs;
    state start {
        packet.extract(hdr.h);
        transition select(hdr.h.kind) {
            kinds: first;
            default: more;
        }
    }
    state first {
        meta.got = 1;
        transition accept;
    }
    state more {
        transition select(hdr.h.kind, hdr.h.flags) {
            pairs: second;
            (9, _): third;
            default: accept;
        }
    }
    state second {
        meta.got = 2;
        transition accept;
    }
    state third {
        meta.got = 3;
        transition accept;
    }
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
