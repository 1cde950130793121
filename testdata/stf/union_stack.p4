/* A stack of header unions, as options of a protocol are: each element is one of several headers. */
#include <core.p4>
#include <v1model.p4>

header end_t { bit<8> kind; }
header short_t { bit<8> kind; bit<8> value; }
header long_t { bit<8> kind; bit<24> value; }
header_union option_t {
    end_t end;
    short_t small;
    long_t large;
}
header after_t { bit<8> count; }

struct headers {
    option_t[4] options;
    after_t after;
}
struct metadata { bit<8> count; }

#include "common/empty.p4"

parser MyParser(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start {
        transition select(packet.lookahead<bit<8>>()) {
            0: end;
            1: small;
            2: large;
        }
    }
    state end {
        packet.extract(hdr.options.next.end);
        packet.extract(hdr.after);
        transition accept;
    }
    state small {
        packet.extract(hdr.options.next.small);
        meta.count = meta.count + 1;
        transition start;
    }
    state large {
        packet.extract(hdr.options.next.large);
        meta.count = meta.count + 0x10;
        transition start;
    }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 1;
        hdr.after.count = meta.count;
        if (hdr.options[0].large.isValid()) {
            hdr.options[0].small = { 1, hdr.options[0].large.value[7:0] };
        }
        if (std.parser_error != error.NoError) {
            std.egress_spec = 2;
        }
    }
}

control MyDeparser(packet_out packet, in headers hdr) {
    apply { packet.emit(hdr); }
}

V1Switch(MyParser(), NoVerify(), MyIngress(), NoEgress(), NoCompute(), MyDeparser()) main;
