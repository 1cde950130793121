/* New types, type definitions, nested structures, generic structures and headers, boolean fields. */
#include <core.p4>
#include <v1model.p4>

type bit<9> port_t;
typedef bit<8> byte_t;

header flags_t {
    bool first;
    bool second;
    bit<6> rest;
}
header of_t<T> {
    T value;
    byte_t more;
}
struct pair_t<A, B> { A a; B b; }
struct twin_t<T> { T first; T second; }
struct headers {
    flags_t flags;
    of_t<bit<16>> wide;
    of_t<byte_t> narrow;
}
struct metadata {
    pair_t<twin_t<bit<8>>, port_t> nested;
    bool other;
}

#include "common/empty.p4"

parser MyParser(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.flags);
        packet.extract(hdr.wide);
        packet.extract(hdr.narrow);
        meta.nested.b = (port_t) 9w3;
        meta.other = hdr.flags.second;
        transition accept;
    }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        if (meta.other) {
            std.egress_spec = (bit<9>) meta.nested.b;
        } else {
            std.egress_spec = 1;
        }
        meta.nested.a = { 1, hdr.narrow.value };
        hdr.wide.value = (bit<16>) meta.nested.a.second;
        hdr.flags.first = !hdr.flags.first;
    }
}

control MyDeparser(packet_out packet, in headers hdr) {
    apply { packet.emit(hdr); }
}

V1Switch(MyParser(), NoVerify(), MyIngress(), NoEgress(), NoCompute(), MyDeparser()) main;
