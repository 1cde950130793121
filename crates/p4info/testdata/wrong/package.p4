/* Package annotations that do not say what they should. */

#include <core.p4>
#include <v1model.p4>

@controller_header(packet_in)
header in_t { bit<8> a; }

struct headers_t {}
struct meta_t {}

parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    state start {
        transition accept;
    }
}

control Nothing(inout headers_t hdr, inout meta_t meta) {
    apply {}
}

control C(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {}
}

control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {}
}

control D(packet_out packet, in headers_t hdr) {
    apply {}
}

@pkginfo(name = "a", name = "b", version = 2)
@platform_property(multicast_group_table_size = "many")
V1Switch(P(), Nothing(), C(), E(), Nothing(), D()) main;
