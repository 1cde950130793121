// A table of every kind, an object of every kind, and headers for packets to and from the controller.
#include <core.p4>
#include <v1model.p4>

@controller_header("packet_in")
header packet_in_t {
    bit<9> ingress_port;
    bit<7> reason;
}

@controller_header("packet_out")
header packet_out_t {
    bit<9> egress_port;
    bit<7> unused;
}

header data_t {
    bit<16> a;
    bit<16> b;
    bit<32> c;
    bit<8> d;
    bit<8> e;
}

struct headers_t {
    packet_in_t packet_in;
    packet_out_t packet_out;
    data_t data;
}

struct learned_t {
    bit<16> a;
    bit<9> port;
}

struct metadata_t {
    bit<2> color;
    bit<1> special;
}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    value_set<bit<16>>(2) specials;

    state start {
        transition select(standard.ingress_port) {
            510: packet_out;
            default: data;
        }
    }
    state packet_out {
        packet.extract(hdr.packet_out);
        transition data;
    }
    state data {
        packet.extract(hdr.data);
        transition select(hdr.data.a) {
            specials: special;
            default: accept;
        }
    }
    state special {
        meta.special = 1;
        transition accept;
    }
}

control Nothing(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    counter(4, CounterType.packets_and_bytes) counted;
    meter(4, MeterType.packets) metered;
    register<bit<16>>(4) remembered;
    register<int<12>>(2) signed;
    direct_counter(CounterType.packets_and_bytes) direct_counted;
    direct_meter<bit<2>>(MeterType.packets) direct_metered;
    action_profile(4) profile;
    action_selector(HashAlgorithm.crc16, 8, 16) selector;

    action forward(bit<9> port) {
        standard.egress_spec = port;
    }
    action drop() {
        mark_to_drop(standard);
    }
    action pair(bit<16> first, bit<8> second) {
        hdr.data.b = first;
        hdr.data.e = second;
    }
    action to_cpu(bit<7> reason) {
        standard.egress_spec = 510;
        hdr.packet_in.setValid();
        hdr.packet_in.ingress_port = standard.ingress_port;
        hdr.packet_in.reason = reason;
    }
    action replicate(bit<16> group) {
        standard.mcast_grp = group;
    }
    action learn() {
        digest<learned_t>(1, { hdr.data.a, standard.ingress_port });
    }
    action mirror() {
        clone(CloneType.I2E, 5);
    }
    action count_hit() {
        direct_counted.count();
    }
    action meter_hit() {
        direct_metered.read(meta.color);
    }

    table exact_t {
        key = { hdr.data.a: exact; }
        actions = { forward; drop; pair; to_cpu; replicate; learn; mirror; NoAction; }
        default_action = NoAction();
        size = 8;
    }
    table lpm_t {
        key = { hdr.data.c: lpm; }
        actions = { forward; NoAction; }
    }
    table ternary_t {
        key = { hdr.data.b: ternary; hdr.data.d: ternary; }
        actions = { forward; drop; NoAction; }
    }
    table range_t {
        key = { hdr.data.b: range; }
        actions = { forward; NoAction; }
    }
    table optional_t {
        key = { hdr.data.d: optional; }
        actions = { forward; NoAction; }
    }
    table keyless_t {
        actions = { forward; NoAction; }
    }
    table const_t {
        key = { hdr.data.d: ternary; }
        actions = { count_hit; forward; NoAction; }
        const entries = {
            0x11: forward(1);
            0x20 &&& 0xf0: forward(2);
            _: NoAction();
        }
    }
    table pre_t {
        key = { hdr.data.e: exact; }
        actions = { forward; NoAction; }
        entries = {
            const 0xe1: forward(1);
            0xe2: forward(2);
        }
    }
    table scoped_t {
        key = { hdr.data.e: exact; }
        actions = { @tableonly forward; @defaultonly drop; NoAction; }
    }
    table const_default_t {
        key = { hdr.data.e: exact; }
        actions = { forward; NoAction; }
        const default_action = NoAction();
    }
    table counted_t {
        key = { hdr.data.a: exact; }
        actions = { count_hit; NoAction; }
        counters = direct_counted;
    }
    table metered_t {
        key = { hdr.data.a: exact; }
        actions = { meter_hit; NoAction; }
        meters = direct_metered;
    }
    table idle_t {
        key = { hdr.data.a: exact; }
        actions = { NoAction; }
        support_timeout = true;
    }
    table member_t {
        key = { hdr.data.a: exact; }
        actions = { forward; NoAction; }
        implementation = profile;
    }
    table group_t {
        key = { hdr.data.a: exact; hdr.data.c: selector; }
        actions = { forward; drop; NoAction; }
        implementation = selector;
    }

    apply {
        if (hdr.packet_out.isValid()) {
            standard.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
        } else {
            exact_t.apply();
            lpm_t.apply();
            ternary_t.apply();
            range_t.apply();
            optional_t.apply();
            keyless_t.apply();
            const_t.apply();
            pre_t.apply();
            scoped_t.apply();
            const_default_t.apply();
            counted_t.apply();
            metered_t.apply();
            idle_t.apply();
            member_t.apply();
            group_t.apply();
            counted.count((bit<32>)(hdr.data.a & 3));
            metered.execute_meter<bit<2>>((bit<32>)(hdr.data.a & 3), meta.color);
            remembered.write((bit<32>)(hdr.data.a & 3), hdr.data.b);
            signed.write(0, 12s5);
            if (meta.special == 1) {
                standard.egress_spec = 3;
            }
        }
    }
}

control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {}
}

control D(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(P(), Nothing(), I(), E(), Nothing(), D()) main;
