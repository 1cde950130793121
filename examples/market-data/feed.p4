// A stock exchange's feed: ITCH 5.0 in MoldUDP64, with the fields that rules may test.
//
// Every message type costs time and program size; orders.p4 is a smaller format of the same feed.
//
// This is the message format only: headers and their parser. `triplane subscribe` adds the tables.
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

// The messages, each with the two length bytes of MoldUDP64. Prices are in units of 0.0001 dollar. Every message has
// `locate`, the stock's number for the day; its name is only in new orders and in trades.

// A new order (`A`).
header add_order_t {
    bit<16> length;
    @query_field_exact("kind") @format(TEXT)
    bit<8>  kind;
    @query_field_exact("locate")
    bit<16> locate;
    bit<16> tracking;
    bit<48> timestamp;
    @query_field_exact("order")
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
    @query_field_exact("order")
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

// An order executed in part or in full at its own price (`E`),
header executed_t {
    bit<16> length;
    @query_field_exact("kind") @format(TEXT)
    bit<8>  kind;
    @query_field_exact("locate")
    bit<16> locate;
    bit<16> tracking;
    bit<48> timestamp;
    @query_field_exact("order")
    bit<64> order;
    @query_field("shares")
    bit<32> shares;
    bit<64> matched;
}

// or at another price (`C`); `printable` is `N` if the volume is counted elsewhere.
header executed_with_price_t {
    bit<16> length;
    @query_field_exact("kind") @format(TEXT)
    bit<8>  kind;
    @query_field_exact("locate")
    bit<16> locate;
    bit<16> tracking;
    bit<48> timestamp;
    @query_field_exact("order")
    bit<64> order;
    @query_field("shares")
    bit<32> shares;
    bit<64> matched;
    @query_field_exact("printable") @format(TEXT)
    bit<8>  printable;
    @query_field("price")
    bit<32> price;
}

// Some shares of an order cancelled (`X`),
header cancel_t {
    bit<16> length;
    @query_field_exact("kind") @format(TEXT)
    bit<8>  kind;
    @query_field_exact("locate")
    bit<16> locate;
    bit<16> tracking;
    bit<48> timestamp;
    @query_field_exact("order")
    bit<64> order;
    @query_field("shares")
    bit<32> shares;
}

// or all remaining shares (`D`).
header delete_t {
    bit<16> length;
    @query_field_exact("kind") @format(TEXT)
    bit<8>  kind;
    @query_field_exact("locate")
    bit<16> locate;
    bit<16> tracking;
    bit<48> timestamp;
    @query_field_exact("order")
    bit<64> order;
}

// An order replaced by another of the same stock and side (`U`).
header replace_t {
    bit<16> length;
    @query_field_exact("kind") @format(TEXT)
    bit<8>  kind;
    @query_field_exact("locate")
    bit<16> locate;
    bit<16> tracking;
    bit<48> timestamp;
    @query_field_exact("order")
    bit<64> order;
    bit<64> replacement;
    @query_field("shares")
    bit<32> shares;
    @query_field("price")
    bit<32> price;
}

// A trade against an order that is not displayed (`P`).
header trade_t {
    bit<16> length;
    @query_field_exact("kind") @format(TEXT)
    bit<8>  kind;
    @query_field_exact("locate")
    bit<16> locate;
    bit<16> tracking;
    bit<48> timestamp;
    @query_field_exact("order")
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

// Any other message: auctions (`Q`), halts (`H`), the stock directory (`R`), ...
@query_size("2 + length")
header other_t {
    bit<16> length;
    @query_field_exact("kind") @format(TEXT)
    bit<8>  kind;
    @query_field_exact("locate")
    bit<16> locate;
    varbit<2040> rest;
}

header_union message_t {
    add_order_t            add_order;
    attributed_t           attributed;
    executed_t             executed;
    executed_with_price_t  executed_with_price;
    cancel_t               cancel;
    delete_t               delete;
    replace_t              replace;
    trade_t                trade;
    other_t                other;
}

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
            (31, 0x45): executed;
            (36, 0x43): executed_with_price;
            (23, 0x58): cancel;
            (19, 0x44): delete;
            (35, 0x55): replace;
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
    state executed {
        packet.extract(hdr.messages.next.executed);
        transition behind;
    }
    state executed_with_price {
        packet.extract(hdr.messages.next.executed_with_price);
        transition behind;
    }
    state cancel {
        packet.extract(hdr.messages.next.cancel);
        transition behind;
    }
    state delete {
        packet.extract(hdr.messages.next.delete);
        transition behind;
    }
    state replace {
        packet.extract(hdr.messages.next.replace);
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
