// Several messages a packet: a small one that is matched message by message.
#include <v1model.p4>

header head_t {
    bit<16> length;
    bit<8>  count;
}

header item_t {
    @query_field_exact("key")
    bit<8> key;
    @query_field("value")
    bit<8> value;
}

@query_counter(total)
@query_counter(few, "3 packets")
@query_aggregate("sum(value) by key over 80us")
@query_aggregate("count() over 7 packets")
@query_aggregate("max(key) by value over 4 packets")
struct headers_t {
    head_t head;
    @query_messages[count = "head.count", lengths = "head.length"]
    item_t[3] items;
}

struct metadata_t {
    bit<8> left;
}

parser Batches(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.head);
        meta.left = hdr.head.count;
        transition select(hdr.head.count) {
            0: accept;
            default: item;
        }
    }
    state item {
        packet.extract(hdr.items.next);
        meta.left = meta.left - 1;
        transition select(meta.left, hdr.items.lastIndex) {
            (0, _): accept;
            (_, 2): accept;
            default: item;
        }
    }
}
