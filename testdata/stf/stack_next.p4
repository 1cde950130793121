/* A parser loop fills a stack with `next` and looks at `last` and `lastIndex`; the deparser emits what is valid. */
#include <core.p4>
#include <v1model.p4>

header label_t {
    bit<7> value;
    bit<1> bottom;
}
header count_t { bit<8> index; }
struct headers {
    count_t count;
    label_t[4] labels;
}
struct metadata { bit<32> last; }

#include "common/empty.p4"

parser MyParser(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.labels.next);
        transition select(hdr.labels.last.bottom) {
            1: done;
            default: start;
        }
    }
    state done {
        meta.last = hdr.labels.lastIndex;
        transition accept;
    }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 1;
        hdr.count.setValid();
        hdr.count.index = (bit<8>) meta.last;
        if (std.parser_error == error.StackOutOfBounds) {
            hdr.count.index = 0xee;
        }
        hdr.labels[0].value = hdr.labels[0].value + 1;
    }
}

control MyDeparser(packet_out packet, in headers hdr) {
    apply {
        packet.emit(hdr.count);
        packet.emit(hdr.labels);
    }
}

V1Switch(MyParser(), NoVerify(), MyIngress(), NoEgress(), NoCompute(), MyDeparser()) main;
