// What the switch runs where the subscriber filters: everything goes on.
#include <v1model.p4>

struct headers_t {}
struct metadata_t {}

parser NoParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start { transition accept; }
}

control Forward(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        if (standard_metadata.ingress_port == 1) {
            standard_metadata.egress_spec = 2;
        } else {
            mark_to_drop(standard_metadata);
        }
    }
}

control Nothing(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) { apply {} }
control NoVerify(inout headers_t hdr, inout metadata_t meta) { apply {} }
control NoUpdate(inout headers_t hdr, inout metadata_t meta) { apply {} }
control NoHeaders(packet_out packet, in headers_t hdr) { apply {} }

V1Switch(NoParser(), NoVerify(), Forward(), Nothing(), NoUpdate(), NoHeaders()) main;
