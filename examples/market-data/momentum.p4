// A stock exchange's feed with aggregates over earlier messages: averages, rates and a counter.
//
// The headers are those of orders.p4: new orders and trades are parsed; of other messages, rules may test the type and
// the stock's number for the day. momentum.sub has rules.
#include <v1model.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header ipv4_t {
    bit<4>  version;
    bit<4>  ihl;
    bit<8>  tos;
    bit<16> total_len;
    bit<16> id;
    bit<3>  flags;
    bit<13> offset;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

header udp_t {
    bit<16> src;
    bit<16> dst;
    bit<16> length;
    bit<16> checksum;
}

header mold_t {
    bit<80> session;
    bit<64> sequence;
    bit<16> count;
}

// The messages, each with the two length bytes of MoldUDP64. Prices are in units of 0.0001 dollar.

header add_order_t {
    bit<16> length;
    @query_field_exact("kind") @format(TEXT)
    bit<8>  kind;
    @query_field_exact("locate")
    bit<16> locate;
    bit<16> tracking;
    bit<48> timestamp;
    bit<64> order;
    @query_field_exact("side") @format(TEXT)
    bit<8>  side;
    @query_field("shares")
    bit<32> shares;
    @query_field_exact("stock") @format(TEXT)
    bit<64> stock;
    @query_field("price")
    bit<32> price;
}

// A new order with its participant (`F`).
header attributed_t {
    bit<16> length;
    @query_field_exact("kind") @format(TEXT)
    bit<8>  kind;
    @query_field_exact("locate")
    bit<16> locate;
    bit<16> tracking;
    bit<48> timestamp;
    bit<64> order;
    @query_field_exact("side") @format(TEXT)
    bit<8>  side;
    @query_field("shares")
    bit<32> shares;
    @query_field_exact("stock") @format(TEXT)
    bit<64> stock;
    @query_field("price")
    bit<32> price;
    @query_field_exact("attribution") @format(TEXT)
    bit<32> attribution;
}

header trade_t {
    bit<16> length;
    @query_field_exact("kind") @format(TEXT)
    bit<8>  kind;
    @query_field_exact("locate")
    bit<16> locate;
    bit<16> tracking;
    bit<48> timestamp;
    bit<64> order;
    @query_field_exact("side") @format(TEXT)
    bit<8>  side;
    @query_field("shares")
    bit<32> shares;
    @query_field_exact("stock") @format(TEXT)
    bit<64> stock;
    @query_field("price")
    bit<32> price;
    bit<64> matched;
}

// Any other message: its type and the stock's number for the day.
@query_size("2 + length")
header other_t {
    bit<16> length;
    @query_field_exact("kind") @format(TEXT)
    bit<8>  kind;
    @query_field_exact("locate")
    bit<16> locate;
    varbit<2040> body;
}

header_union message_t {
    add_order_t  add_order;
    attributed_t attributed;
    trade_t      trade;
    other_t      other;
}

// Aggregates over one second: the average price of each stock (up to 256 that rules name) and of the messages that
// match the rest of a rule (up to four rests), the number of messages of each stock, and a counter that rules update.
// The moving average has no window: a stock that trades rarely keeps its price.
@query_aggregate("avg(price) by stock over 1s", 4096)
@query_aggregate("avg(price) over 1s", 1, 4)
@query_aggregate("count() by locate over 1s")
@query_aggregate("ewma(price) over 16 packets")
@query_counter(traded, "1s")
struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
    udp_t      udp;
    mold_t     mold;
    @query_messages[count = "mold.count", sequence = "mold.sequence", session = "mold.session",
                    lengths = "ipv4.total_len, udp.length", checksum = "ipv4.checksum", clear = "udp.checksum"]
    message_t[12] messages;
}

struct metadata_t {
    bit<16> left;
}

struct start_t {
    bit<16> length;
    bit<8>  kind;
}

parser FeedParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            0x800: ipv4;
            default: accept;
        }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.ihl, hdr.ipv4.protocol, hdr.ipv4.offset) {
            (5, 17, 0): udp;
            default: accept;
        }
    }
    state udp {
        packet.extract(hdr.udp);
        transition select(hdr.udp.dst) {
            26400: mold;
            default: accept;
        }
    }
    state mold {
        packet.extract(hdr.mold);
        meta.left = hdr.mold.count;
        transition select(hdr.mold.count) {
            0: accept;
            0xffff: accept;
            1 .. 12: message;
            default: more;
        }
    }
    // The stack holds 12 messages; the rest are parsed after recirculation.
    state more {
        meta.left = 12;
        transition message;
    }
    state message {
        start_t next = packet.lookahead<start_t>();
        transition select(next.length, next.kind) {
            (36, 0x41): add_order;
            (40, 0x46): attributed;
            (44, 0x50): trade;
            (3 .. 255, _): other;
            default: accept;
        }
    }
    state add_order {
        packet.extract(hdr.messages.next.add_order);
        transition behind;
    }
    state attributed {
        packet.extract(hdr.messages.next.attributed);
        transition behind;
    }
    state trade {
        packet.extract(hdr.messages.next.trade);
        transition behind;
    }
    state other {
        packet.extract(hdr.messages.next.other, (bit<32>)(packet.lookahead<bit<16>>() - 3) << 3);
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
