/* Parsers called from parsers, with constructor parameters, out arguments, and an error that goes through. */
#include <core.p4>
#include <v1model.p4>

error { Unwanted }

header tag_t { bit<8> kind; bit<8> value; }
struct headers { tag_t outer; tag_t inner; }
struct metadata { bit<8> sum; }

#include "common/empty.p4"

parser Tag(packet_in packet, out tag_t tag, inout bit<8> sum)(bit<8> wanted, bit<8> weight) {
    bit<8> local = weight;
    state start {
        packet.extract(tag);
        verify(tag.kind == wanted, error.Unwanted);
        transition select(tag.value) {
            0: accept;
            default: add;
        }
    }
    state add {
        local = local * tag.value;
        sum = sum + local;
        transition accept;
    }
}

parser MyParser(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    Tag(1, 10) outer;
    Tag(weight = 3, wanted = 2) inner;
    state start {
        outer.apply(packet, hdr.outer, meta.sum);
        inner.apply(packet, hdr.inner, meta.sum);
        transition accept;
    }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 1;
        if (std.parser_error == error.Unwanted) {
            std.egress_spec = 2;
        } else {
            hdr.outer.value = meta.sum;
        }
    }
}

control MyDeparser(packet_out packet, in headers hdr) {
    apply { packet.emit(hdr); }
}

V1Switch(MyParser(), NoVerify(), MyIngress(), NoEgress(), NoCompute(), MyDeparser()) main;
