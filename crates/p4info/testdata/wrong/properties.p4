/* Properties and annotations that make no sense together. */

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
    direct_meter<bit<2>>(MeterType.bytes) metering;
    @max_group_size(4) action_profile(4) profile;
    @selector_size_semantics("sum_of_everything") @max_member_weight(1)
    action_selector(HashAlgorithm.crc32, 4, 4) selector;
    table t {
        actions = { @tableonly @defaultonly NoAction; }
        counters = metering;
        implementation = profile;
    }
    table u {
        actions = { NoAction; }
        implementation = selector;
    }
    apply {
        t.apply();
        u.apply();
    }
}

control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {}
}

control D(packet_out packet, in headers_t hdr) {
    apply {}
}

V1Switch(P(), Nothing(), C(), E(), Nothing(), D()) main;
