/* Actions: data with annotations, directions, direct calls, nesting, and names that are global. */

#include <core.p4>
#include <v1model.p4>

action global(bit<8> value) {}

@name("renamed")
action top() {}

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
    bit<8> last;
    action inner(inout bit<8> value) {
        value = value + 1;
    }
    action outer(in bit<8> factor, @id(5) bit<8> value, @name("second") @brief("the other one") bit<4> other) {
        last = value * factor;
        inner(last);
    }
    action direct(bit<8> value) {
        last = value;
    }
    @name(".absolute")
    action elsewhere() {}
    @hidden
    action hidden_one() {}
    action unused() {}
    table t {
        actions = { global; top; outer(last); elsewhere; hidden_one; }
    }
    apply {
        direct(3);
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
