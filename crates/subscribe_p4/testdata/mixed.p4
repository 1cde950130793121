// Several messages a packet, of which the parser knows the kind before it extracts them; one field lies in all of them.
#include <v1model.p4>

header outer_t {
    @query_field_exact("proto")
    bit<8> proto;
}

header head_t {
    bit<16> length;
    bit<8>  count;
    @query_field_exact("version")
    bit<8>  version;
}

header buy_t {
    @query_field_exact("kind")
    bit<8> kind;
    @query_field("price")
    bit<8> price;
}

header sell_t {
    @query_field_exact("kind")
    bit<8> kind;
    @query_field("price")
    bit<8> price;
    @query_field("fee")
    bit<8> fee;
}

header note_t {
    @query_field_exact("kind")
    bit<8> kind;
}

header_union message_t {
    buy_t  buy;
    sell_t sell;
    note_t note;
}

struct headers_t {
    outer_t outer;
    head_t  head;
    @query_messages[count = "head.count", lengths = "head.length"]
    message_t[3] messages;
}

struct metadata_t {
    bit<8> left;
}

parser Mixed(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.outer);
        transition select(hdr.outer.proto) {
            17: head;
            default: accept;
        }
    }
    state head {
        packet.extract(hdr.head);
        meta.left = hdr.head.count;
        transition select(hdr.head.version, hdr.head.count) {
            (_, 0): accept;
            (1, 1 .. 3): message;
            (2, 1 .. 3): message;
            default: accept;
        }
    }
    state message {
        transition select(packet.lookahead<bit<8>>()) {
            0x42: buy;
            0x53: sell;
            0x60 .. 0x6f: note;
            default: accept;
        }
    }
    state buy {
        packet.extract(hdr.messages.next.buy);
        transition behind;
    }
    state sell {
        packet.extract(hdr.messages.next.sell);
        transition behind;
    }
    state note {
        packet.extract(hdr.messages.next.note);
        transition behind;
    }
    state behind {
        meta.left = meta.left - 1;
        transition select(meta.left) {
            0: accept;
            default: message;
        }
    }
}
