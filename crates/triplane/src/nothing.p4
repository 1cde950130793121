// What a switch runs until a controller sends it a program: every packet is dropped.
#include <core.p4>
#include <v1model.p4>

struct none_t {}

parser Nothing(packet_in packet, out none_t hdr, inout none_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        transition accept;
    }
}

control Checked(inout none_t hdr, inout none_t meta) {
    apply {}
}

control Drop(inout none_t hdr, inout none_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        mark_to_drop(standard_metadata);
    }
}

control Sent(inout none_t hdr, inout none_t meta, inout standard_metadata_t standard_metadata) {
    apply {}
}

control Emit(packet_out packet, in none_t hdr) {
    apply {}
}

V1Switch(Nothing(), Checked(), Drop(), Sent(), Checked(), Emit()) main;
