// What parsers may do: headers extracted again and again, unions, parsers in parsers, headers that are made up, values that
// are changed, and a control before the rules that takes headers away.
#include <v1model.p4>

error { Odd }

header head_t {
    @query_field_exact("kind")
    bit<8> kind;
    @query_field("next")
    bit<8> next;
}

header step_t {
    @query_field("more")
    bit<8> more;
}

header short_t {
    @query_field("tag")
    bit<4> tag;
    @query_field("short")
    bit<4> value;
}

header long_t {
    @query_field("tag")
    bit<4>  tag;
    @query_field("long")
    bit<12> value;
}

header inner_t {
    @query_field("inner")
    bit<8> value;
}

header made_t {
    @query_field("made")
    bit<8> value;
}

header twin_t {
    @query_field("left")
    bit<8> left;
    @query_field("right")
    bit<8> right;
}

header_union either_t {
    short_t short;
    long_t  long;
}

struct headers_t {
    head_t   head;
    step_t   step;
    either_t either;
    inner_t  inner;
    made_t   made;
    twin_t   twin;
}

struct metadata_t {
    bit<8> left;
}

parser Inner(packet_in packet, out inner_t inner, inout bit<8> left) {
    state start {
        transition select(packet.lookahead<bit<8>>()) {
            0 .. 99: found;
            default: accept;
        }
    }
    state found {
        packet.extract(inner);
        left = inner.value;
        transition accept;
    }
}

parser Odd(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Inner() within;

    state start {
        packet.extract(hdr.head);
        transition select(hdr.head.kind) {
            1: step;
            2 &&& 0xfe: either;
            10 .. 20: inner;
            30: made;
            31: changed;
            40 .. 49: twin;
            200: reject;
            default: accept;
        }
    }
    // The last of them is the one that rules see.
    state step {
        packet.extract(hdr.step);
        transition select(hdr.step.more) {
            0x80 &&& 0x80: step;
            7: twin;
            default: accept;
        }
    }
    state either {
        short_t next = packet.lookahead<short_t>();
        transition select(next.tag) {
            1: short;
            2: long;
            3: both;
        }
    }
    state short {
        packet.extract(hdr.either.short);
        transition inner;
    }
    state long {
        packet.extract(hdr.either.long);
        transition accept;
    }
    state both {
        packet.extract(hdr.either.long);
        packet.extract(hdr.either.short);
        transition accept;
    }
    state inner {
        within.apply(packet, hdr.inner, meta.left);
        transition select(hdr.head.next) {
            5: made;
            default: accept;
        }
    }
    state made {
        hdr.made.setValid();
        hdr.made.value = hdr.head.next;
        verify(hdr.head.next != 9, error.Odd);
        hdr.head.setInvalid();
        transition accept;
    }
    state changed {
        hdr.head.kind = 32;
        if (hdr.head.next > 15) {
            hdr.head.next[3:0] = 0;
        }
        transition accept;
    }
    state twin {
        transition select(packet.lookahead<bit<16>>()[15:8], packet.lookahead<bit<16>>()[7:0]) {
            (1, _): two;
            (2, 0 .. 9): two;
            (3, 4): two;
            default: accept;
        }
    }
    state two {
        packet.extract(hdr.twin);
        transition accept;
    }
}

control Before(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    action hide(inout step_t step) {
        step.setInvalid();
    }
    table hidden {
        key = { hdr.step.more: exact; }
        actions = { hide(hdr.step); NoAction; }
        const entries = { 3: hide(hdr.step); }
        default_action = NoAction;
    }
    apply {
        if (hdr.twin.isValid() && hdr.twin.right == 8) {
            hdr.inner.setValid();
            hdr.inner.value = 0;
        }
        hidden.apply();
    }
}
