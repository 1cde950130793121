/* Of a header union's members one at most is valid; setting one takes the validity of the others. */
#include <core.p4>
#include <v1model.p4>

header tag_t { bit<8> kind; }
header short_t { bit<8> value; }
header long_t { bit<16> value; }
header_union body_t {
    short_t s;
    long_t l;
}

struct headers {
    tag_t tag;
    body_t body;
}
struct metadata { }

#include "common/empty.p4"

parser MyParser(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.tag);
        transition select(hdr.tag.kind) {
            1: small;
            2: large;
            default: accept;
        }
    }
    state small {
        packet.extract(hdr.body.s);
        transition accept;
    }
    state large {
        packet.extract(hdr.body.l);
        transition accept;
    }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 1;
        if (!hdr.body.isValid()) {
            hdr.tag.kind = 0xee;
        } else if (hdr.body.s.isValid()) {
            // The other member becomes the valid one.
            bit<8> value = hdr.body.s.value;
            hdr.body.l.setValid();
            hdr.body.l.value = 8w0xaa ++ value;
            hdr.tag.kind = hdr.body.s.isValid() ? 8w0xff : 2;
        } else {
            body_t copy = hdr.body;
            copy.s = { copy.l.value[7:0] };
            hdr.body = copy;
            hdr.tag.kind = 1;
        }
    }
}

control MyDeparser(packet_out packet, in headers hdr) {
    apply {
        packet.emit(hdr.tag);
        packet.emit(hdr.body);
    }
}

V1Switch(MyParser(), NoVerify(), MyIngress(), NoEgress(), NoCompute(), MyDeparser()) main;
