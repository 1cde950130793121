/* Structures within structures, headers in metadata, stacks in structures; copies of the whole and of parts. */
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> value; }
struct pair_t { bit<8> a; bit<8> b; }
struct inner_t { pair_t pair; h_t[2] stack; }
struct headers { h_t first; inner_t rest; }
struct metadata { inner_t saved; inner_t other; h_t kept; }

#include "common/empty.p4"

parser MyParser(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.first);
        packet.extract(hdr.rest.stack.next);
        packet.extract(hdr.rest.stack.next);
        transition accept;
    }
}

control Swap(inout inner_t one, inout inner_t two) {
    apply {
        inner_t kept = one;
        one = two;
        two = kept;
    }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    Swap() swap;
    apply {
        std.egress_spec = 1;
        meta.saved = hdr.rest;
        meta.saved.pair = { a = 5, b = meta.saved.stack[1].value };
        meta.saved.stack[0].value = meta.saved.pair.b;
        meta.other.stack[1].setValid();
        meta.other.stack[1].value = 0x77;
        meta.kept = meta.saved.stack[1];
        if (hdr.first.value == 1) {
            swap.apply(hdr.rest, meta.saved);
        } else if (hdr.first.value == 2) {
            swap.apply(meta.other, hdr.rest);
        }
        hdr.first = meta.kept;
    }
}

control MyDeparser(packet_out packet, in headers hdr) {
    apply {
        packet.emit(hdr.first);
        packet.emit(hdr.rest.stack);
    }
}

V1Switch(MyParser(), NoVerify(), MyIngress(), NoEgress(), NoCompute(), MyDeparser()) main;
