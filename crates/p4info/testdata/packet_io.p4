/* Headers of packets to and from the controller. */

#include <core.p4>
#include <v1model.p4>

@p4runtime_translation("example.org/port", string)
type bit<9> port_t;
type bit<7> padding_t;
struct inner_t {
    bit<3> queue;
    @id(9) bit<5> rest;
}
@controller_header("packet_in")
header to_controller_t {
    port_t ingress;
    padding_t padding;
    bit<16> reason;
}
@controller_header("packet_out") @owner("controller")
header from_controller_t {
    bit<9> egress;
    @hidden bit<7> padding;
    inner_t inner;
}

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

V1Switch(P(), Nothing(), C(), E(), Nothing(), D()) main;
