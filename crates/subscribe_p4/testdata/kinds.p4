// Fields of every kind: exact, range and lpm, from 1 bit to 128, numbers, text and addresses, with codes and without, in
// headers that may be there or not; one field lies in two of them.
#include <v1model.p4>

header ethernet_t {
    @query_field_exact("mac") @format(MAC_ADDRESS)
    bit<48> dst;
    @query_field("maker") @format(MAC_ADDRESS)
    bit<48> src;
    @query_field_exact("type")
    bit<16> etype;
}

header ipv4_t {
    @query_field_lpm("src4") @format(IPV4_ADDRESS)
    bit<32> src;
    @query_field_range("dst4") @format(IPV4_ADDRESS)
    bit<32> dst;
}

header ipv6_t {
    @query_codes(7) @query_field_lpm("src6") @format(IPV6_ADDRESS)
    bit<128> src;
    @query_field_range("dst6") @format(IPV6_ADDRESS)
    bit<128> dst;
}

header kind_t {
    @query_field_exact("kind")
    bit<8> kind;
    // What `mark` writes.
    bit<8> mark;
}

header order_t {
    @query_field_exact("urgent")
    bit<1>  urgent;
    @query_field("level")
    bit<3>  level;
    @query_codes(6) @query_field("weight")
    bit<12> weight;
    @query_field("shares")
    bit<24> shares;
    @query_field_exact("name") @format(TEXT)
    bit<64> name;
    @query_field_lpm("port")
    bit<16> port;
}

header trade_t {
    @query_field("shares")
    bit<24>  shares;
    @query_codes(9) @query_field("large")
    bit<100> large;
    @query_field("bit")
    bit<1>   one;
    @query_field_exact("odd")
    bit<3>   odd;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
    ipv6_t     ipv6;
    kind_t     kind;
    order_t    order;
    trade_t    trade;
}

struct metadata_t {}

@query_action
action mark(inout headers_t hdr, bit<8> value) {
    hdr.kind.mark = value;
}

parser Kinds(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.etype) {
            0x0800: ipv4;
            0x86dd: ipv6;
            default: kind;
        }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        transition kind;
    }
    state ipv6 {
        packet.extract(hdr.ipv6);
        transition kind;
    }
    state kind {
        packet.extract(hdr.kind);
        transition select(hdr.kind.kind) {
            1: order;
            2: trade;
            default: accept;
        }
    }
    state order {
        packet.extract(hdr.order);
        transition accept;
    }
    state trade {
        packet.extract(hdr.trade);
        transition accept;
    }
}
