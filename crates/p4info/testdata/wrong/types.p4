/* Types the control plane cannot see. */

#include <core.p4>
#include <v1model.p4>

@p4runtime_translation("example.org/flag", bit<8>)
type bool flag_t;
@p4runtime_translation("example.org/none")
type bit<8> half_t;
enum int<8> negative_t { below = -1 }

struct headers_t {}
struct meta_t {
    flag_t flag;
    half_t half;
}

parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    state start {
        transition accept;
    }
}

control Nothing(inout headers_t hdr, inout meta_t meta) {
    apply {}
}

control C(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    register<negative_t>(1) negative;
    action set(int<8> number) {}
    table t {
        key = { meta.flag: exact; meta.half: exact; }
        actions = { set; }
        default_action = set(-1);
    }
    apply {
        t.apply();
    }
}

control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {}
}

control D(packet_out packet, in headers_t hdr) {
    apply {}
}

V1Switch(P(), Nothing(), C(), E(), Nothing(), D()) main;
