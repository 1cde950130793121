// Copies of one packet that differ: egress changes, adds and removes headers by the replica id. The bits of `todo` say
// what it does, `way` how ingress makes the copies. MORE is a list of further headers, so that the unit for copies has
// many of them; tests put requests at the end of egress.
#include <core.p4>
#include <v1model.p4>

header command_h { bit<8> way; bit<8> todo; bit<16> value; bit<8> tags; }
header tag_h { bit<8> v; }
header option_h { bit<8> bits; varbit<64> data; }
header extra_h { bit<16> rid; bit<16> port; bit<32> length; }
header more_h { bit<8> v; }

struct headers_t {
    command_h command;
    extra_h extra;
    tag_h[4] tags;
    option_h option;
    MORE
}
struct metadata_t {
    bit<512> wide;
    @field_list(1) bit<16> kept;
    bit<16> lost;
}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.command);
        transition select(hdr.command.tags & 3) { 0: option; 1: one; 2: two; _: three; }
    }
    state three { packet.extract(hdr.tags.next); transition two; }
    state two { packet.extract(hdr.tags.next); transition one; }
    state one { packet.extract(hdr.tags.next); transition option; }
    state option {
        transition select(hdr.command.tags[7:7]) { 1: with_option; _: accept; }
    }
    state with_option {
        bit<8> bits = packet.lookahead<bit<8>>();
        packet.extract(hdr.option, (bit<32>) (bits & 0x38));
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) { apply {} }
control Compute(inout headers_t hdr, inout metadata_t meta) { apply {} }

control MainIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 2;
        meta.wide = (bit<512>) hdr.command.value << 400;
        meta.kept = hdr.command.value;
        meta.lost = hdr.command.value;
        if (hdr.command.value[3:3] == 1) { hdr.tags[0].setInvalid(); }
        if (hdr.command.value[4:4] == 1) { hdr.extra.setValid(); hdr.extra = { 7, 7, 7 }; }
        if (hdr.command.way[6:6] == 1) { replicate_to_ports(hdr.command.value[6:0]); }
        if (hdr.command.way[7:7] == 1) { mark_to_drop(standard); }
        if (hdr.command.way[0:0] == 1) { standard.mcast_grp = 1; }
        if (hdr.command.way[1:1] == 1) { clone_preserving_field_list(CloneType.I2E, 1, 1); }
        if (hdr.command.way[2:2] == 1) { clone(CloneType.I2E, 2); }
        if (hdr.command.way[3:3] == 1) { truncate(12); }
        if (hdr.command.way[4:4] == 1 && standard.instance_type == 0) { resubmit_preserving_field_list(1); }
        if (hdr.command.way[5:5] == 1) { standard.mcast_grp = 9; }
    }
}

control MainEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    direct_counter(CounterType.packets) hits;
    action mark(bit<16> x) { hits.count(); hdr.command.value = hdr.command.value ^ x; }
    action leave() { exit; }
    table marks {
        key = { standard.egress_rid: exact; }
        actions = { mark; leave; NoAction; }
        default_action = NoAction();
        counters = hits;
        const entries = { 2: mark(0x5555); 3: mark(0xaaaa); 5: leave(); }
    }
    apply {
        if (hdr.command.todo[0:0] == 1) { hdr.command.value = hdr.command.value + standard.egress_rid; }
        if (hdr.command.todo[1:1] == 1) {
            bit<16> before = hdr.extra.isValid() ? hdr.extra.rid : 16w0x100;
            hdr.extra.setValid();
            hdr.extra.rid = before + standard.egress_rid;
            hdr.extra.port = standard.egress_port ++ meta.kept[6:0];
            hdr.extra.length = LENGTH;
        }
        if (hdr.command.todo[2:2] == 1) {
            bit<2> at = standard.egress_rid[1:0];
            hdr.tags[at].v = hdr.tags[at].v + 1;
            if (standard.egress_rid == 2) { hdr.tags[at].setInvalid(); }
            if (standard.egress_rid == 3) { hdr.tags[at].setValid(); hdr.tags[at].v = 99; }
        }
        if (hdr.command.todo[3:3] == 1) {
            if (standard.egress_rid == 1) { hdr.option.setInvalid(); }
            hdr.option.bits = hdr.option.bits + 1;
        }
        if (hdr.command.todo[4:4] == 1) {
            meta.wide = meta.wide + ((bit<512>) standard.egress_rid << 400);
            hdr.command.value = meta.wide[415:400] + meta.lost;
        }
        if (hdr.command.todo[5:5] == 1 && standard.egress_port == 2) { mark_to_drop(standard); }
        if (hdr.command.todo[6:6] == 1) { marks.apply(); }
        if (hdr.command.todo[7:7] == 1) {
            assert(standard.egress_rid != 3);
            hdr.command.way = hdr.command.way + (bit<8>) standard.instance_type;
            meta.lost = meta.lost + 1;
        }
        ASKS
    }
}

control D(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.command);
        packet.emit(hdr.extra);
        packet.emit(hdr.tags);
        packet.emit(hdr.option);
        EMITS
    }
}

V1Switch(P(), Verify(), MainIngress(), MainEgress(), Compute(), D()) main;
