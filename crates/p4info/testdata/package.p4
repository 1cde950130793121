/* What is said of the program as a whole. */

#include <core.p4>
#include <v1model.p4>


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

@pkginfo(name = "switch.p4", version = "2")
@pkginfo(organization = "example.org", contact = "info@example.org", url = "www.example.org", arch = "mine", colour = "red")
@brief("a switch")
@description("a switch that does nothing")
@platform_property(multicast_group_table_size = 10, multicast_group_table_total_replicas = 0x20)
@custom("yes") @other[1]
V1Switch(P(), Nothing(), C(), E(), Nothing(), D()) main;
