// An ITCH Add Order message a packet, with nothing around it: what matching costs, and nothing else.
#include <v1model.p4>

header add_order_t {
    bit<16> length;
    bit<8>  kind;
    bit<16> locate;
    bit<16> tracking;
    bit<48> timestamp;
    bit<64> order;
    bit<8>  side;
    @query_field
    bit<32> shares;
    @query_field_exact @format(TEXT)
    bit<64> stock;
    @query_field
    bit<32> price;
}

struct headers_t {
    add_order_t add_order;
}

struct metadata_t {}

struct start_t {
    bit<16> length;
    bit<8>  kind;
}

parser Orders(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        start_t next = packet.lookahead<start_t>();
        transition select(next.length, next.kind) {
            (36, 0x41): add_order;
            default: accept;
        }
    }
    state add_order {
        packet.extract(hdr.add_order);
        transition accept;
    }
}
