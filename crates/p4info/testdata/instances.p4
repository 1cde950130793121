/* Controls and parsers inside others, with constructor parameters: each instance has its own objects. */

#include <core.p4>
#include <v1model.p4>

parser Inner(packet_in packet)(bit<32> unused) {
    value_set<bit<8>>(3) set;
    state start {
        transition select(packet.lookahead<bit<8>>()) {
            set: accept;
            default: reject;
        }
    }
}

control Leaf(inout bit<8> value)(bit<32> size, bool with_table) {
    counter(size * 2, CounterType.packets) count;
    action add(bit<8> by) {
        value = value + by;
    }
    @name(".everywhere")
    action fixed() {}
    table t {
        key = { value: exact; }
        actions = { add; fixed; NoAction; }
        size = size;
    }
    table only_if {
        actions = { add; }
        default_action = add(2);
    }
    apply {
        count.count(0);
        t.apply();
        if (with_table) {
            only_if.apply();
        } else {
            value = 0;
        }
    }
}

control Branch(inout bit<8> value) {
    Leaf(8, true) leaf;
    apply {
        leaf.apply(value);
    }
}

control NeverApplied(inout bit<8> value) {
    table t {
        actions = { NoAction; }
    }
    apply {
        t.apply();
    }
}

control Plain(inout bit<8> value) {
    table t {
        actions = { NoAction; }
    }
    apply {
        t.apply();
    }
}

struct headers_t {}
struct meta_t {
    bit<8> value;
}

parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    Inner(1) inner;
    state start {
        inner.apply(packet);
        transition accept;
    }
}

control Nothing(inout headers_t hdr, inout meta_t meta) {
    apply {}
}

control C(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    Leaf(4, false) first;
    @name("other") Leaf(0, true) second;
    Branch() branch;
    NeverApplied() never;
    apply {
        first.apply(meta.value);
        second.apply(meta.value);
        branch.apply(meta.value);
        Plain.apply(meta.value);
    }
}

control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard) {
    apply {}
}

control D(packet_out packet, in headers_t hdr) {
    apply {}
}

V1Switch(P(), Nothing(), C(), E(), Nothing(), D()) main;
