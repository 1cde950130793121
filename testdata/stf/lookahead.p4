/* lookahead reads without taking, scalars, headers and structures; at the end of the packet it is an error. */
#include <core.p4>
#include <v1model.p4>

header one_t { bit<8> a; }
header two_t { bit<8> a; bit<8> b; }
struct pair_t { bit<4> high; bit<4> low; }
struct headers {
    one_t one;
    two_t two;
}
struct metadata { bit<8> seen; pair_t pair; two_t ahead; }

#include "common/empty.p4"

parser MyParser(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start {
        meta.seen = packet.lookahead<bit<16>>()[7:0];
        meta.pair = packet.lookahead<pair_t>();
        meta.ahead = packet.lookahead<two_t>();
        transition select(packet.lookahead<bit<4>>()) {
            1: one;
            2: two;
        }
    }
    state one {
        packet.extract(hdr.one);
        transition accept;
    }
    state two {
        packet.extract(hdr.two);
        transition accept;
    }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 1;
        if (std.parser_error == error.PacketTooShort) {
            std.egress_spec = 2;
        } else if (std.parser_error == error.NoMatch) {
            std.egress_spec = 3;
        }
        if (hdr.one.isValid()) {
            hdr.one.a = meta.seen;
        }
        if (hdr.two.isValid()) {
            hdr.two.a = meta.pair.low ++ meta.pair.high;
            hdr.two.b = meta.ahead.isValid() ? meta.ahead.b + 1 : 0;
        }
    }
}

control MyDeparser(packet_out packet, in headers hdr) {
    apply { packet.emit(hdr); }
}

V1Switch(MyParser(), NoVerify(), MyIngress(), NoEgress(), NoCompute(), MyDeparser()) main;
