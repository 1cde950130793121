// What a program can do wrong: a parser that does not end, an assertion that fails, a port that is not there, a header
// stack that overflows, more headers than a frame can hold.
#include <core.p4>
#include <v1model.p4>

header ask_t {
    bit<8> what;
    bit<8> arg;
}

header item_t {
    bit<7> value;
    bit<1> last;
}

header big_t {
    varbit<16000> data;
}

struct headers {
    ask_t     ask;
    item_t[3] items;
    big_t     big;
}

struct metadata {
    bit<8> turns;
}

parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ask);
        transition select(hdr.ask.what) {
            1: turn;
            2: items;
            3: big;
            default: accept;
        }
    }
    // Never comes to an end.
    state turn {
        meta.turns = meta.turns + 1;
        transition turn;
    }
    state items {
        packet.extract(hdr.items.next);
        transition select(hdr.items.last.last) {
            1: accept;
            default: items;
        }
    }
    state big {
        packet.extract(hdr.big, (bit<32>) hdr.ask.arg * 8);
        transition accept;
    }
}

control V(inout headers hdr, inout metadata meta) { apply { } }

control I(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 1;
        if (hdr.ask.what == 4) {
            assert(hdr.ask.arg < 3);
        } else if (hdr.ask.what == 5) {
            std.egress_spec = (bit<9>) hdr.ask.arg;
        }
        if (std.parser_error == error.StackOutOfBounds) {
            mark_to_drop(std);
        } else if (std.parser_error == error.HeaderTooShort) {
            std.egress_spec = 2;
        } else if (std.parser_error == error.PacketTooShort) {
            std.egress_spec = 3;
        }
    }
}

control E(inout headers hdr, inout metadata meta, inout standard_metadata_t std) { apply { } }

control C(inout headers hdr, inout metadata meta) { apply { } }

control D(packet_out packet, in headers hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
