/* Every match kind, sizes, default actions, entries, ageing, and what is hidden from the control plane. */

#include <core.p4>
#include <v1model.p4>

header ethernet_t {
    bit<48> destination;
    bit<48> source;
    bit<16> kind;
}

struct headers_t {
    ethernet_t ethernet;
}
struct meta_t {
    bit<9> port;
    bool copy;
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
    action drop() {
        mark_to_drop(standard);
    }
    action send(bit<9> port, bool copy) {
        standard.egress_spec = port;
        meta.copy = copy;
    }
    table all_kinds {
        key = {
            hdr.ethernet.destination: exact;
            hdr.ethernet.source: ternary;
            hdr.ethernet.kind: lpm @name("type");
            meta.port: range;
            meta.copy: optional @id(77);
            hdr.ethernet.isValid(): exact;
            hdr.ethernet.source[47:40]: exact @name("vendor") @brief("who made it");
        }
        actions = { drop; send; }
        default_action = send(9w3, true);
        support_timeout = true;
        size = 4096;
    }
    table constant {
        key = {
            hdr.ethernet.kind & 0x0F0: exact;
        }
        actions = { send; @tableonly drop; @defaultonly NoAction; }
        const default_action = NoAction;
        const entries = {
            0x10: drop();
        }
        size = 0;
    }
    table initial {
        key = {
            meta.port: exact;
        }
        actions = { send; }
        default_action = send(1, false);
        entries = {
            1: send(2, true);
        }
    }
    @hidden
    table secret {
        actions = { NoAction; }
    }
    table never_applied {
        actions = { drop; }
    }
    apply {
        all_kinds.apply();
        if (constant.apply().hit) {
            initial.apply();
        }
        secret.apply();
    }
}

control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {}
}

control D(packet_out packet, in headers_t hdr) {
    apply {}
}

V1Switch(P(), Nothing(), C(), E(), Nothing(), D()) main;
