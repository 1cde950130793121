// Added: what the rules' tables leave for egress.
struct subscription_t {
    bit<32> state;                      // of the diagram, after the last table
    @field_list(1) bit<16> done;        // messages that this pass dealt with
    bit<32> keep;                       // bytes of the packet that leaves; 0 for all
    @field_list(1) bit<8> rounds;       // how often it went round before
    bit<64> missed;                     // messages that never came here
}

// A stock exchange's feed: ITCH 5.0 in MoldUDP64, and what subscribers may ask of it.
//
// This is the message format only: headers, and the parser that finds them. `triplane subscribe` adds the tables.
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

// The messages, each with the two bytes of MoldUDP64 before it. Prices are in ten-thousandths of a dollar.

header add_order_t {
    bit<16> length;
    @query_field_exact("kind") @format(TEXT)
    bit<8>  kind;
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

// An order with the participant who made it (`F`).
header attributed_t {
    bit<16> length;
    @query_field_exact("kind") @format(TEXT)
    bit<8>  kind;
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

// Any other: the type, and the stock by its number of the day.
@query_size("2 + length")
header other_t {
    bit<16> length;
    @query_field_exact("kind") @format(TEXT)
    bit<8>  kind;
    bit<16> locate;
    varbit<2040> body;
}

header_union message_t {
    add_order_t  add_order;
    attributed_t attributed;
    trade_t      trade;
    other_t      other;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
    udp_t      udp;
    mold_t     mold;
    @query_messages[count = "mold.count", sequence = "mold.sequence", lengths = "ipv4.total_len, udp.length",
                    checksum = "ipv4.checksum", clear = "udp.checksum"]
    message_t[12] messages;
}

struct metadata_t {
    // Added: what the rules' tables leave for egress.
    subscription_t subscription;

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
    // The stack takes 12; the others come here when they go round.
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


// Added: tables for rules over kind, side, stock, attribution, shares, price.

control Subscriptions(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    bit<8> kind_value = 0;
    bit<8> side_value = 0;
    bit<64> stock_value = 0;
    bit<32> attribution_value = 0;
    bit<32> shares_value = 0;
    bit<32> price_value = 0;
    bit<1> ethernet_valid = 0;
    bit<1> ipv4_valid = 0;
    bit<1> udp_valid = 0;
    bit<1> mold_valid = 0;
    bit<1> add_order_valid = 0;
    bit<1> attributed_valid = 0;
    bit<1> trade_valid = 0;
    bit<1> other_valid = 0;
    bit<1> add_order_or_attributed_or_trade_or_other_valid = 0;
    bit<1> add_order_or_attributed_or_trade_valid = 0;
    bit<32> target = 0;    // a port, with the highest bit set, or a group
    register<bit<64>>(512) due_message;    // for each port, the number that should come next
    register<bit<64>>(1) lost_messages;    // how many never came, or went no further
    bit<64> lost = 0;

    action lose(bit<64> messages) {
        @atomic {
            lost_messages.read(lost, 0);
            lost_messages.write(0, lost + messages);
        }
    }

    action to_state(bit<32> state) { meta.subscription.state = state; }
    action to_port(bit<9> port) { target = 0x80000000 | (bit<32>)port; }
    action to_group(bit<16> group) { target = (bit<32>)group; }

    table validity {
        key = {
            ethernet_valid: ternary @name("ethernet_valid");
            ipv4_valid: ternary @name("ipv4_valid");
            udp_valid: ternary @name("udp_valid");
            mold_valid: ternary @name("mold_valid");
            add_order_valid: ternary @name("add_order_valid");
            attributed_valid: ternary @name("attributed_valid");
            trade_valid: ternary @name("trade_valid");
            other_valid: ternary @name("other_valid");
            add_order_or_attributed_or_trade_or_other_valid: ternary @name("add_order_or_attributed_or_trade_or_other_valid");
            add_order_or_attributed_or_trade_valid: ternary @name("add_order_or_attributed_or_trade_valid");
        }
        actions = { to_state; to_port; to_group; NoAction; }
        default_action = NoAction;
        size = 1048576;
    }

    table kind_exact_1 {
        key = {
            meta.subscription.state: exact @name("state");
            kind_value: exact @name("value");
        }
        actions = { to_state; to_port; to_group; NoAction; }
        default_action = NoAction;
        size = 1048576;
    }

    table kind_rest_1 {
        key = { meta.subscription.state: exact @name("state"); }
        actions = { to_state; to_port; to_group; NoAction; }
        default_action = NoAction;
        size = 1048576;
    }

    table side_exact_2 {
        key = {
            meta.subscription.state: exact @name("state");
            side_value: exact @name("value");
        }
        actions = { to_state; to_port; to_group; NoAction; }
        default_action = NoAction;
        size = 1048576;
    }

    table side_rest_2 {
        key = { meta.subscription.state: exact @name("state"); }
        actions = { to_state; to_port; to_group; NoAction; }
        default_action = NoAction;
        size = 1048576;
    }

    table stock_exact_3 {
        key = {
            meta.subscription.state: exact @name("state");
            stock_value: exact @name("value");
        }
        actions = { to_state; to_port; to_group; NoAction; }
        default_action = NoAction;
        size = 1048576;
    }

    table stock_rest_3 {
        key = { meta.subscription.state: exact @name("state"); }
        actions = { to_state; to_port; to_group; NoAction; }
        default_action = NoAction;
        size = 1048576;
    }

    table attribution_exact_4 {
        key = {
            meta.subscription.state: exact @name("state");
            attribution_value: exact @name("value");
        }
        actions = { to_state; to_port; to_group; NoAction; }
        default_action = NoAction;
        size = 1048576;
    }

    table attribution_rest_4 {
        key = { meta.subscription.state: exact @name("state"); }
        actions = { to_state; to_port; to_group; NoAction; }
        default_action = NoAction;
        size = 1048576;
    }

    table shares_range_5 {
        key = {
            meta.subscription.state: exact @name("state");
            shares_value: range @name("value");
        }
        actions = { to_state; to_port; to_group; NoAction; }
        default_action = NoAction;
        size = 1048576;
    }

    table shares_rest_5 {
        key = { meta.subscription.state: exact @name("state"); }
        actions = { to_state; to_port; to_group; NoAction; }
        default_action = NoAction;
        size = 1048576;
    }

    table price_range_6 {
        key = {
            meta.subscription.state: exact @name("state");
            price_value: range @name("value");
        }
        actions = { to_state; to_port; to_group; NoAction; }
        default_action = NoAction;
        size = 1048576;
    }

    table price_rest_6 {
        key = { meta.subscription.state: exact @name("state"); }
        actions = { to_state; to_port; to_group; NoAction; }
        default_action = NoAction;
        size = 1048576;
    }

    table leaf {
        key = { meta.subscription.state: exact @name("state"); }
        actions = { to_port; to_group; NoAction; }
        default_action = NoAction;
        size = 1048576;
    }

    apply {
        if (!hdr.mold.isValid() || standard_metadata.parser_error != error.NoError) {
            if (hdr.mold.isValid() && standard_metadata.instance_type != 0) {
                lose((bit<64>)hdr.mold.count);
            }
            mark_to_drop(standard_metadata);
            return;
        }
        bit<1> empty = (hdr.mold.count == 0 || hdr.mold.count == 65535 ? 1w1 : 1w0);
        if (standard_metadata.instance_type == 0) {
            bit<64> first = (bit<64>)hdr.mold.sequence;
            bit<64> next = first + (empty == 1 ? 64w0 : (bit<64>)hdr.mold.count);
            bit<64> due;
            @atomic {
                due_message.read(due, (bit<32>)standard_metadata.ingress_port);
                if (due != 0 && first > due) {
                    lose(first - due);
                }
                if (next > due) {
                    due_message.write((bit<32>)standard_metadata.ingress_port, next);
                }
            }
        }
        lost_messages.read(lost, 0);
        meta.subscription.missed = lost;
        if (empty == 1) {
            standard_metadata.mcast_grp = 32767;
            return;
        }
        if (hdr.ethernet.isValid()) {
            ethernet_valid = 1;
        }
        if (hdr.ipv4.isValid()) {
            ipv4_valid = 1;
        }
        if (hdr.udp.isValid()) {
            udp_valid = 1;
        }
        if (hdr.mold.isValid()) {
            mold_valid = 1;
        }

        bit<16> done = 0;      // messages that this pass deals with, from the first on
        bit<16> kept = 0;      // of these, the ones that leave
        bit<32> run = 0;       // to whom
        bit<1> full = 0;       // the next message is for others
        bit<32> seen = 0;      // bytes of all messages in the stack
        bit<32> removed = 0;   // bytes that do not leave
        bit<32> size = 0;

        if (hdr.messages[0].add_order.isValid() || hdr.messages[0].attributed.isValid() || hdr.messages[0].trade.isValid() || hdr.messages[0].other.isValid()) {
            kind_value = 0;
            side_value = 0;
            stock_value = 0;
            attribution_value = 0;
            shares_value = 0;
            price_value = 0;
            add_order_valid = 0;
            attributed_valid = 0;
            trade_valid = 0;
            other_valid = 0;
            add_order_or_attributed_or_trade_or_other_valid = 0;
            add_order_or_attributed_or_trade_valid = 0;
            if (hdr.messages[0].add_order.isValid()) {
                size = 32w38;
                kind_value = hdr.messages[0].add_order.kind;
                side_value = hdr.messages[0].add_order.side;
                stock_value = hdr.messages[0].add_order.stock;
                shares_value = hdr.messages[0].add_order.shares;
                price_value = hdr.messages[0].add_order.price;
                add_order_valid = 1;
                add_order_or_attributed_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
            } else if (hdr.messages[0].attributed.isValid()) {
                size = 32w42;
                kind_value = hdr.messages[0].attributed.kind;
                side_value = hdr.messages[0].attributed.side;
                stock_value = hdr.messages[0].attributed.stock;
                attribution_value = hdr.messages[0].attributed.attribution;
                shares_value = hdr.messages[0].attributed.shares;
                price_value = hdr.messages[0].attributed.price;
                attributed_valid = 1;
                add_order_or_attributed_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
            } else if (hdr.messages[0].trade.isValid()) {
                size = 32w46;
                kind_value = hdr.messages[0].trade.kind;
                side_value = hdr.messages[0].trade.side;
                stock_value = hdr.messages[0].trade.stock;
                shares_value = hdr.messages[0].trade.shares;
                price_value = hdr.messages[0].trade.price;
                trade_valid = 1;
                add_order_or_attributed_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
            } else if (hdr.messages[0].other.isValid()) {
                size = (2 + (bit<32>)hdr.messages[0].other.length);
                kind_value = hdr.messages[0].other.kind;
                other_valid = 1;
                add_order_or_attributed_or_trade_or_other_valid = 1;
            }
            seen = seen + size;
            if (full == 0) {
                meta.subscription.state = 0;
                target = 0;
                validity.apply();
                if (meta.subscription.state[31:24] == 2) {
                    if (!kind_exact_1.apply().hit) { kind_rest_1.apply(); }
                }
                if (meta.subscription.state[31:24] == 3) {
                    if (!side_exact_2.apply().hit) { side_rest_2.apply(); }
                }
                if (meta.subscription.state[31:24] == 4) {
                    if (!stock_exact_3.apply().hit) { stock_rest_3.apply(); }
                }
                if (meta.subscription.state[31:24] == 5) {
                    if (!attribution_exact_4.apply().hit) { attribution_rest_4.apply(); }
                }
                if (meta.subscription.state[31:24] == 6) {
                    if (!shares_range_5.apply().hit) { shares_rest_5.apply(); }
                }
                if (meta.subscription.state[31:24] == 7) {
                    if (!price_range_6.apply().hit) { price_rest_6.apply(); }
                }
                if (meta.subscription.state[31:24] == 255) {
                    leaf.apply();
                }
                if (target != 0 && run != 0 && target != run) {
                    full = 1;
                }
            }
            if (full == 1) {
                removed = removed + size;
                hdr.messages[0].add_order.setInvalid();
                hdr.messages[0].attributed.setInvalid();
                hdr.messages[0].trade.setInvalid();
                hdr.messages[0].other.setInvalid();
            } else {
                done = done + 1;
                if (target == 0) {
                    removed = removed + size;
                    hdr.messages[0].add_order.setInvalid();
                    hdr.messages[0].attributed.setInvalid();
                    hdr.messages[0].trade.setInvalid();
                    hdr.messages[0].other.setInvalid();
                } else {
                    run = target;
                    kept = kept + 1;
                }
            }
        }

        if (hdr.messages[1].add_order.isValid() || hdr.messages[1].attributed.isValid() || hdr.messages[1].trade.isValid() || hdr.messages[1].other.isValid()) {
            kind_value = 0;
            side_value = 0;
            stock_value = 0;
            attribution_value = 0;
            shares_value = 0;
            price_value = 0;
            add_order_valid = 0;
            attributed_valid = 0;
            trade_valid = 0;
            other_valid = 0;
            add_order_or_attributed_or_trade_or_other_valid = 0;
            add_order_or_attributed_or_trade_valid = 0;
            if (hdr.messages[1].add_order.isValid()) {
                size = 32w38;
                kind_value = hdr.messages[1].add_order.kind;
                side_value = hdr.messages[1].add_order.side;
                stock_value = hdr.messages[1].add_order.stock;
                shares_value = hdr.messages[1].add_order.shares;
                price_value = hdr.messages[1].add_order.price;
                add_order_valid = 1;
                add_order_or_attributed_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
            } else if (hdr.messages[1].attributed.isValid()) {
                size = 32w42;
                kind_value = hdr.messages[1].attributed.kind;
                side_value = hdr.messages[1].attributed.side;
                stock_value = hdr.messages[1].attributed.stock;
                attribution_value = hdr.messages[1].attributed.attribution;
                shares_value = hdr.messages[1].attributed.shares;
                price_value = hdr.messages[1].attributed.price;
                attributed_valid = 1;
                add_order_or_attributed_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
            } else if (hdr.messages[1].trade.isValid()) {
                size = 32w46;
                kind_value = hdr.messages[1].trade.kind;
                side_value = hdr.messages[1].trade.side;
                stock_value = hdr.messages[1].trade.stock;
                shares_value = hdr.messages[1].trade.shares;
                price_value = hdr.messages[1].trade.price;
                trade_valid = 1;
                add_order_or_attributed_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
            } else if (hdr.messages[1].other.isValid()) {
                size = (2 + (bit<32>)hdr.messages[1].other.length);
                kind_value = hdr.messages[1].other.kind;
                other_valid = 1;
                add_order_or_attributed_or_trade_or_other_valid = 1;
            }
            seen = seen + size;
            if (full == 0) {
                meta.subscription.state = 0;
                target = 0;
                validity.apply();
                if (meta.subscription.state[31:24] == 2) {
                    if (!kind_exact_1.apply().hit) { kind_rest_1.apply(); }
                }
                if (meta.subscription.state[31:24] == 3) {
                    if (!side_exact_2.apply().hit) { side_rest_2.apply(); }
                }
                if (meta.subscription.state[31:24] == 4) {
                    if (!stock_exact_3.apply().hit) { stock_rest_3.apply(); }
                }
                if (meta.subscription.state[31:24] == 5) {
                    if (!attribution_exact_4.apply().hit) { attribution_rest_4.apply(); }
                }
                if (meta.subscription.state[31:24] == 6) {
                    if (!shares_range_5.apply().hit) { shares_rest_5.apply(); }
                }
                if (meta.subscription.state[31:24] == 7) {
                    if (!price_range_6.apply().hit) { price_rest_6.apply(); }
                }
                if (meta.subscription.state[31:24] == 255) {
                    leaf.apply();
                }
                if (target != 0 && run != 0 && target != run) {
                    full = 1;
                }
            }
            if (full == 1) {
                removed = removed + size;
                hdr.messages[1].add_order.setInvalid();
                hdr.messages[1].attributed.setInvalid();
                hdr.messages[1].trade.setInvalid();
                hdr.messages[1].other.setInvalid();
            } else {
                done = done + 1;
                if (target == 0) {
                    removed = removed + size;
                    hdr.messages[1].add_order.setInvalid();
                    hdr.messages[1].attributed.setInvalid();
                    hdr.messages[1].trade.setInvalid();
                    hdr.messages[1].other.setInvalid();
                } else {
                    run = target;
                    kept = kept + 1;
                }
            }
        }

        if (hdr.messages[2].add_order.isValid() || hdr.messages[2].attributed.isValid() || hdr.messages[2].trade.isValid() || hdr.messages[2].other.isValid()) {
            kind_value = 0;
            side_value = 0;
            stock_value = 0;
            attribution_value = 0;
            shares_value = 0;
            price_value = 0;
            add_order_valid = 0;
            attributed_valid = 0;
            trade_valid = 0;
            other_valid = 0;
            add_order_or_attributed_or_trade_or_other_valid = 0;
            add_order_or_attributed_or_trade_valid = 0;
            if (hdr.messages[2].add_order.isValid()) {
                size = 32w38;
                kind_value = hdr.messages[2].add_order.kind;
                side_value = hdr.messages[2].add_order.side;
                stock_value = hdr.messages[2].add_order.stock;
                shares_value = hdr.messages[2].add_order.shares;
                price_value = hdr.messages[2].add_order.price;
                add_order_valid = 1;
                add_order_or_attributed_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
            } else if (hdr.messages[2].attributed.isValid()) {
                size = 32w42;
                kind_value = hdr.messages[2].attributed.kind;
                side_value = hdr.messages[2].attributed.side;
                stock_value = hdr.messages[2].attributed.stock;
                attribution_value = hdr.messages[2].attributed.attribution;
                shares_value = hdr.messages[2].attributed.shares;
                price_value = hdr.messages[2].attributed.price;
                attributed_valid = 1;
                add_order_or_attributed_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
            } else if (hdr.messages[2].trade.isValid()) {
                size = 32w46;
                kind_value = hdr.messages[2].trade.kind;
                side_value = hdr.messages[2].trade.side;
                stock_value = hdr.messages[2].trade.stock;
                shares_value = hdr.messages[2].trade.shares;
                price_value = hdr.messages[2].trade.price;
                trade_valid = 1;
                add_order_or_attributed_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
            } else if (hdr.messages[2].other.isValid()) {
                size = (2 + (bit<32>)hdr.messages[2].other.length);
                kind_value = hdr.messages[2].other.kind;
                other_valid = 1;
                add_order_or_attributed_or_trade_or_other_valid = 1;
            }
            seen = seen + size;
            if (full == 0) {
                meta.subscription.state = 0;
                target = 0;
                validity.apply();
                if (meta.subscription.state[31:24] == 2) {
                    if (!kind_exact_1.apply().hit) { kind_rest_1.apply(); }
                }
                if (meta.subscription.state[31:24] == 3) {
                    if (!side_exact_2.apply().hit) { side_rest_2.apply(); }
                }
                if (meta.subscription.state[31:24] == 4) {
                    if (!stock_exact_3.apply().hit) { stock_rest_3.apply(); }
                }
                if (meta.subscription.state[31:24] == 5) {
                    if (!attribution_exact_4.apply().hit) { attribution_rest_4.apply(); }
                }
                if (meta.subscription.state[31:24] == 6) {
                    if (!shares_range_5.apply().hit) { shares_rest_5.apply(); }
                }
                if (meta.subscription.state[31:24] == 7) {
                    if (!price_range_6.apply().hit) { price_rest_6.apply(); }
                }
                if (meta.subscription.state[31:24] == 255) {
                    leaf.apply();
                }
                if (target != 0 && run != 0 && target != run) {
                    full = 1;
                }
            }
            if (full == 1) {
                removed = removed + size;
                hdr.messages[2].add_order.setInvalid();
                hdr.messages[2].attributed.setInvalid();
                hdr.messages[2].trade.setInvalid();
                hdr.messages[2].other.setInvalid();
            } else {
                done = done + 1;
                if (target == 0) {
                    removed = removed + size;
                    hdr.messages[2].add_order.setInvalid();
                    hdr.messages[2].attributed.setInvalid();
                    hdr.messages[2].trade.setInvalid();
                    hdr.messages[2].other.setInvalid();
                } else {
                    run = target;
                    kept = kept + 1;
                }
            }
        }

        if (hdr.messages[3].add_order.isValid() || hdr.messages[3].attributed.isValid() || hdr.messages[3].trade.isValid() || hdr.messages[3].other.isValid()) {
            kind_value = 0;
            side_value = 0;
            stock_value = 0;
            attribution_value = 0;
            shares_value = 0;
            price_value = 0;
            add_order_valid = 0;
            attributed_valid = 0;
            trade_valid = 0;
            other_valid = 0;
            add_order_or_attributed_or_trade_or_other_valid = 0;
            add_order_or_attributed_or_trade_valid = 0;
            if (hdr.messages[3].add_order.isValid()) {
                size = 32w38;
                kind_value = hdr.messages[3].add_order.kind;
                side_value = hdr.messages[3].add_order.side;
                stock_value = hdr.messages[3].add_order.stock;
                shares_value = hdr.messages[3].add_order.shares;
                price_value = hdr.messages[3].add_order.price;
                add_order_valid = 1;
                add_order_or_attributed_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
            } else if (hdr.messages[3].attributed.isValid()) {
                size = 32w42;
                kind_value = hdr.messages[3].attributed.kind;
                side_value = hdr.messages[3].attributed.side;
                stock_value = hdr.messages[3].attributed.stock;
                attribution_value = hdr.messages[3].attributed.attribution;
                shares_value = hdr.messages[3].attributed.shares;
                price_value = hdr.messages[3].attributed.price;
                attributed_valid = 1;
                add_order_or_attributed_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
            } else if (hdr.messages[3].trade.isValid()) {
                size = 32w46;
                kind_value = hdr.messages[3].trade.kind;
                side_value = hdr.messages[3].trade.side;
                stock_value = hdr.messages[3].trade.stock;
                shares_value = hdr.messages[3].trade.shares;
                price_value = hdr.messages[3].trade.price;
                trade_valid = 1;
                add_order_or_attributed_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
            } else if (hdr.messages[3].other.isValid()) {
                size = (2 + (bit<32>)hdr.messages[3].other.length);
                kind_value = hdr.messages[3].other.kind;
                other_valid = 1;
                add_order_or_attributed_or_trade_or_other_valid = 1;
            }
            seen = seen + size;
            if (full == 0) {
                meta.subscription.state = 0;
                target = 0;
                validity.apply();
                if (meta.subscription.state[31:24] == 2) {
                    if (!kind_exact_1.apply().hit) { kind_rest_1.apply(); }
                }
                if (meta.subscription.state[31:24] == 3) {
                    if (!side_exact_2.apply().hit) { side_rest_2.apply(); }
                }
                if (meta.subscription.state[31:24] == 4) {
                    if (!stock_exact_3.apply().hit) { stock_rest_3.apply(); }
                }
                if (meta.subscription.state[31:24] == 5) {
                    if (!attribution_exact_4.apply().hit) { attribution_rest_4.apply(); }
                }
                if (meta.subscription.state[31:24] == 6) {
                    if (!shares_range_5.apply().hit) { shares_rest_5.apply(); }
                }
                if (meta.subscription.state[31:24] == 7) {
                    if (!price_range_6.apply().hit) { price_rest_6.apply(); }
                }
                if (meta.subscription.state[31:24] == 255) {
                    leaf.apply();
                }
                if (target != 0 && run != 0 && target != run) {
                    full = 1;
                }
            }
            if (full == 1) {
                removed = removed + size;
                hdr.messages[3].add_order.setInvalid();
                hdr.messages[3].attributed.setInvalid();
                hdr.messages[3].trade.setInvalid();
                hdr.messages[3].other.setInvalid();
            } else {
                done = done + 1;
                if (target == 0) {
                    removed = removed + size;
                    hdr.messages[3].add_order.setInvalid();
                    hdr.messages[3].attributed.setInvalid();
                    hdr.messages[3].trade.setInvalid();
                    hdr.messages[3].other.setInvalid();
                } else {
                    run = target;
                    kept = kept + 1;
                }
            }
        }

        if (hdr.messages[4].add_order.isValid() || hdr.messages[4].attributed.isValid() || hdr.messages[4].trade.isValid() || hdr.messages[4].other.isValid()) {
            kind_value = 0;
            side_value = 0;
            stock_value = 0;
            attribution_value = 0;
            shares_value = 0;
            price_value = 0;
            add_order_valid = 0;
            attributed_valid = 0;
            trade_valid = 0;
            other_valid = 0;
            add_order_or_attributed_or_trade_or_other_valid = 0;
            add_order_or_attributed_or_trade_valid = 0;
            if (hdr.messages[4].add_order.isValid()) {
                size = 32w38;
                kind_value = hdr.messages[4].add_order.kind;
                side_value = hdr.messages[4].add_order.side;
                stock_value = hdr.messages[4].add_order.stock;
                shares_value = hdr.messages[4].add_order.shares;
                price_value = hdr.messages[4].add_order.price;
                add_order_valid = 1;
                add_order_or_attributed_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
            } else if (hdr.messages[4].attributed.isValid()) {
                size = 32w42;
                kind_value = hdr.messages[4].attributed.kind;
                side_value = hdr.messages[4].attributed.side;
                stock_value = hdr.messages[4].attributed.stock;
                attribution_value = hdr.messages[4].attributed.attribution;
                shares_value = hdr.messages[4].attributed.shares;
                price_value = hdr.messages[4].attributed.price;
                attributed_valid = 1;
                add_order_or_attributed_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
            } else if (hdr.messages[4].trade.isValid()) {
                size = 32w46;
                kind_value = hdr.messages[4].trade.kind;
                side_value = hdr.messages[4].trade.side;
                stock_value = hdr.messages[4].trade.stock;
                shares_value = hdr.messages[4].trade.shares;
                price_value = hdr.messages[4].trade.price;
                trade_valid = 1;
                add_order_or_attributed_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
            } else if (hdr.messages[4].other.isValid()) {
                size = (2 + (bit<32>)hdr.messages[4].other.length);
                kind_value = hdr.messages[4].other.kind;
                other_valid = 1;
                add_order_or_attributed_or_trade_or_other_valid = 1;
            }
            seen = seen + size;
            if (full == 0) {
                meta.subscription.state = 0;
                target = 0;
                validity.apply();
                if (meta.subscription.state[31:24] == 2) {
                    if (!kind_exact_1.apply().hit) { kind_rest_1.apply(); }
                }
                if (meta.subscription.state[31:24] == 3) {
                    if (!side_exact_2.apply().hit) { side_rest_2.apply(); }
                }
                if (meta.subscription.state[31:24] == 4) {
                    if (!stock_exact_3.apply().hit) { stock_rest_3.apply(); }
                }
                if (meta.subscription.state[31:24] == 5) {
                    if (!attribution_exact_4.apply().hit) { attribution_rest_4.apply(); }
                }
                if (meta.subscription.state[31:24] == 6) {
                    if (!shares_range_5.apply().hit) { shares_rest_5.apply(); }
                }
                if (meta.subscription.state[31:24] == 7) {
                    if (!price_range_6.apply().hit) { price_rest_6.apply(); }
                }
                if (meta.subscription.state[31:24] == 255) {
                    leaf.apply();
                }
                if (target != 0 && run != 0 && target != run) {
                    full = 1;
                }
            }
            if (full == 1) {
                removed = removed + size;
                hdr.messages[4].add_order.setInvalid();
                hdr.messages[4].attributed.setInvalid();
                hdr.messages[4].trade.setInvalid();
                hdr.messages[4].other.setInvalid();
            } else {
                done = done + 1;
                if (target == 0) {
                    removed = removed + size;
                    hdr.messages[4].add_order.setInvalid();
                    hdr.messages[4].attributed.setInvalid();
                    hdr.messages[4].trade.setInvalid();
                    hdr.messages[4].other.setInvalid();
                } else {
                    run = target;
                    kept = kept + 1;
                }
            }
        }

        if (hdr.messages[5].add_order.isValid() || hdr.messages[5].attributed.isValid() || hdr.messages[5].trade.isValid() || hdr.messages[5].other.isValid()) {
            kind_value = 0;
            side_value = 0;
            stock_value = 0;
            attribution_value = 0;
            shares_value = 0;
            price_value = 0;
            add_order_valid = 0;
            attributed_valid = 0;
            trade_valid = 0;
            other_valid = 0;
            add_order_or_attributed_or_trade_or_other_valid = 0;
            add_order_or_attributed_or_trade_valid = 0;
            if (hdr.messages[5].add_order.isValid()) {
                size = 32w38;
                kind_value = hdr.messages[5].add_order.kind;
                side_value = hdr.messages[5].add_order.side;
                stock_value = hdr.messages[5].add_order.stock;
                shares_value = hdr.messages[5].add_order.shares;
                price_value = hdr.messages[5].add_order.price;
                add_order_valid = 1;
                add_order_or_attributed_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
            } else if (hdr.messages[5].attributed.isValid()) {
                size = 32w42;
                kind_value = hdr.messages[5].attributed.kind;
                side_value = hdr.messages[5].attributed.side;
                stock_value = hdr.messages[5].attributed.stock;
                attribution_value = hdr.messages[5].attributed.attribution;
                shares_value = hdr.messages[5].attributed.shares;
                price_value = hdr.messages[5].attributed.price;
                attributed_valid = 1;
                add_order_or_attributed_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
            } else if (hdr.messages[5].trade.isValid()) {
                size = 32w46;
                kind_value = hdr.messages[5].trade.kind;
                side_value = hdr.messages[5].trade.side;
                stock_value = hdr.messages[5].trade.stock;
                shares_value = hdr.messages[5].trade.shares;
                price_value = hdr.messages[5].trade.price;
                trade_valid = 1;
                add_order_or_attributed_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
            } else if (hdr.messages[5].other.isValid()) {
                size = (2 + (bit<32>)hdr.messages[5].other.length);
                kind_value = hdr.messages[5].other.kind;
                other_valid = 1;
                add_order_or_attributed_or_trade_or_other_valid = 1;
            }
            seen = seen + size;
            if (full == 0) {
                meta.subscription.state = 0;
                target = 0;
                validity.apply();
                if (meta.subscription.state[31:24] == 2) {
                    if (!kind_exact_1.apply().hit) { kind_rest_1.apply(); }
                }
                if (meta.subscription.state[31:24] == 3) {
                    if (!side_exact_2.apply().hit) { side_rest_2.apply(); }
                }
                if (meta.subscription.state[31:24] == 4) {
                    if (!stock_exact_3.apply().hit) { stock_rest_3.apply(); }
                }
                if (meta.subscription.state[31:24] == 5) {
                    if (!attribution_exact_4.apply().hit) { attribution_rest_4.apply(); }
                }
                if (meta.subscription.state[31:24] == 6) {
                    if (!shares_range_5.apply().hit) { shares_rest_5.apply(); }
                }
                if (meta.subscription.state[31:24] == 7) {
                    if (!price_range_6.apply().hit) { price_rest_6.apply(); }
                }
                if (meta.subscription.state[31:24] == 255) {
                    leaf.apply();
                }
                if (target != 0 && run != 0 && target != run) {
                    full = 1;
                }
            }
            if (full == 1) {
                removed = removed + size;
                hdr.messages[5].add_order.setInvalid();
                hdr.messages[5].attributed.setInvalid();
                hdr.messages[5].trade.setInvalid();
                hdr.messages[5].other.setInvalid();
            } else {
                done = done + 1;
                if (target == 0) {
                    removed = removed + size;
                    hdr.messages[5].add_order.setInvalid();
                    hdr.messages[5].attributed.setInvalid();
                    hdr.messages[5].trade.setInvalid();
                    hdr.messages[5].other.setInvalid();
                } else {
                    run = target;
                    kept = kept + 1;
                }
            }
        }

        if (hdr.messages[6].add_order.isValid() || hdr.messages[6].attributed.isValid() || hdr.messages[6].trade.isValid() || hdr.messages[6].other.isValid()) {
            kind_value = 0;
            side_value = 0;
            stock_value = 0;
            attribution_value = 0;
            shares_value = 0;
            price_value = 0;
            add_order_valid = 0;
            attributed_valid = 0;
            trade_valid = 0;
            other_valid = 0;
            add_order_or_attributed_or_trade_or_other_valid = 0;
            add_order_or_attributed_or_trade_valid = 0;
            if (hdr.messages[6].add_order.isValid()) {
                size = 32w38;
                kind_value = hdr.messages[6].add_order.kind;
                side_value = hdr.messages[6].add_order.side;
                stock_value = hdr.messages[6].add_order.stock;
                shares_value = hdr.messages[6].add_order.shares;
                price_value = hdr.messages[6].add_order.price;
                add_order_valid = 1;
                add_order_or_attributed_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
            } else if (hdr.messages[6].attributed.isValid()) {
                size = 32w42;
                kind_value = hdr.messages[6].attributed.kind;
                side_value = hdr.messages[6].attributed.side;
                stock_value = hdr.messages[6].attributed.stock;
                attribution_value = hdr.messages[6].attributed.attribution;
                shares_value = hdr.messages[6].attributed.shares;
                price_value = hdr.messages[6].attributed.price;
                attributed_valid = 1;
                add_order_or_attributed_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
            } else if (hdr.messages[6].trade.isValid()) {
                size = 32w46;
                kind_value = hdr.messages[6].trade.kind;
                side_value = hdr.messages[6].trade.side;
                stock_value = hdr.messages[6].trade.stock;
                shares_value = hdr.messages[6].trade.shares;
                price_value = hdr.messages[6].trade.price;
                trade_valid = 1;
                add_order_or_attributed_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
            } else if (hdr.messages[6].other.isValid()) {
                size = (2 + (bit<32>)hdr.messages[6].other.length);
                kind_value = hdr.messages[6].other.kind;
                other_valid = 1;
                add_order_or_attributed_or_trade_or_other_valid = 1;
            }
            seen = seen + size;
            if (full == 0) {
                meta.subscription.state = 0;
                target = 0;
                validity.apply();
                if (meta.subscription.state[31:24] == 2) {
                    if (!kind_exact_1.apply().hit) { kind_rest_1.apply(); }
                }
                if (meta.subscription.state[31:24] == 3) {
                    if (!side_exact_2.apply().hit) { side_rest_2.apply(); }
                }
                if (meta.subscription.state[31:24] == 4) {
                    if (!stock_exact_3.apply().hit) { stock_rest_3.apply(); }
                }
                if (meta.subscription.state[31:24] == 5) {
                    if (!attribution_exact_4.apply().hit) { attribution_rest_4.apply(); }
                }
                if (meta.subscription.state[31:24] == 6) {
                    if (!shares_range_5.apply().hit) { shares_rest_5.apply(); }
                }
                if (meta.subscription.state[31:24] == 7) {
                    if (!price_range_6.apply().hit) { price_rest_6.apply(); }
                }
                if (meta.subscription.state[31:24] == 255) {
                    leaf.apply();
                }
                if (target != 0 && run != 0 && target != run) {
                    full = 1;
                }
            }
            if (full == 1) {
                removed = removed + size;
                hdr.messages[6].add_order.setInvalid();
                hdr.messages[6].attributed.setInvalid();
                hdr.messages[6].trade.setInvalid();
                hdr.messages[6].other.setInvalid();
            } else {
                done = done + 1;
                if (target == 0) {
                    removed = removed + size;
                    hdr.messages[6].add_order.setInvalid();
                    hdr.messages[6].attributed.setInvalid();
                    hdr.messages[6].trade.setInvalid();
                    hdr.messages[6].other.setInvalid();
                } else {
                    run = target;
                    kept = kept + 1;
                }
            }
        }

        if (hdr.messages[7].add_order.isValid() || hdr.messages[7].attributed.isValid() || hdr.messages[7].trade.isValid() || hdr.messages[7].other.isValid()) {
            kind_value = 0;
            side_value = 0;
            stock_value = 0;
            attribution_value = 0;
            shares_value = 0;
            price_value = 0;
            add_order_valid = 0;
            attributed_valid = 0;
            trade_valid = 0;
            other_valid = 0;
            add_order_or_attributed_or_trade_or_other_valid = 0;
            add_order_or_attributed_or_trade_valid = 0;
            if (hdr.messages[7].add_order.isValid()) {
                size = 32w38;
                kind_value = hdr.messages[7].add_order.kind;
                side_value = hdr.messages[7].add_order.side;
                stock_value = hdr.messages[7].add_order.stock;
                shares_value = hdr.messages[7].add_order.shares;
                price_value = hdr.messages[7].add_order.price;
                add_order_valid = 1;
                add_order_or_attributed_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
            } else if (hdr.messages[7].attributed.isValid()) {
                size = 32w42;
                kind_value = hdr.messages[7].attributed.kind;
                side_value = hdr.messages[7].attributed.side;
                stock_value = hdr.messages[7].attributed.stock;
                attribution_value = hdr.messages[7].attributed.attribution;
                shares_value = hdr.messages[7].attributed.shares;
                price_value = hdr.messages[7].attributed.price;
                attributed_valid = 1;
                add_order_or_attributed_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
            } else if (hdr.messages[7].trade.isValid()) {
                size = 32w46;
                kind_value = hdr.messages[7].trade.kind;
                side_value = hdr.messages[7].trade.side;
                stock_value = hdr.messages[7].trade.stock;
                shares_value = hdr.messages[7].trade.shares;
                price_value = hdr.messages[7].trade.price;
                trade_valid = 1;
                add_order_or_attributed_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
            } else if (hdr.messages[7].other.isValid()) {
                size = (2 + (bit<32>)hdr.messages[7].other.length);
                kind_value = hdr.messages[7].other.kind;
                other_valid = 1;
                add_order_or_attributed_or_trade_or_other_valid = 1;
            }
            seen = seen + size;
            if (full == 0) {
                meta.subscription.state = 0;
                target = 0;
                validity.apply();
                if (meta.subscription.state[31:24] == 2) {
                    if (!kind_exact_1.apply().hit) { kind_rest_1.apply(); }
                }
                if (meta.subscription.state[31:24] == 3) {
                    if (!side_exact_2.apply().hit) { side_rest_2.apply(); }
                }
                if (meta.subscription.state[31:24] == 4) {
                    if (!stock_exact_3.apply().hit) { stock_rest_3.apply(); }
                }
                if (meta.subscription.state[31:24] == 5) {
                    if (!attribution_exact_4.apply().hit) { attribution_rest_4.apply(); }
                }
                if (meta.subscription.state[31:24] == 6) {
                    if (!shares_range_5.apply().hit) { shares_rest_5.apply(); }
                }
                if (meta.subscription.state[31:24] == 7) {
                    if (!price_range_6.apply().hit) { price_rest_6.apply(); }
                }
                if (meta.subscription.state[31:24] == 255) {
                    leaf.apply();
                }
                if (target != 0 && run != 0 && target != run) {
                    full = 1;
                }
            }
            if (full == 1) {
                removed = removed + size;
                hdr.messages[7].add_order.setInvalid();
                hdr.messages[7].attributed.setInvalid();
                hdr.messages[7].trade.setInvalid();
                hdr.messages[7].other.setInvalid();
            } else {
                done = done + 1;
                if (target == 0) {
                    removed = removed + size;
                    hdr.messages[7].add_order.setInvalid();
                    hdr.messages[7].attributed.setInvalid();
                    hdr.messages[7].trade.setInvalid();
                    hdr.messages[7].other.setInvalid();
                } else {
                    run = target;
                    kept = kept + 1;
                }
            }
        }

        if (hdr.messages[8].add_order.isValid() || hdr.messages[8].attributed.isValid() || hdr.messages[8].trade.isValid() || hdr.messages[8].other.isValid()) {
            kind_value = 0;
            side_value = 0;
            stock_value = 0;
            attribution_value = 0;
            shares_value = 0;
            price_value = 0;
            add_order_valid = 0;
            attributed_valid = 0;
            trade_valid = 0;
            other_valid = 0;
            add_order_or_attributed_or_trade_or_other_valid = 0;
            add_order_or_attributed_or_trade_valid = 0;
            if (hdr.messages[8].add_order.isValid()) {
                size = 32w38;
                kind_value = hdr.messages[8].add_order.kind;
                side_value = hdr.messages[8].add_order.side;
                stock_value = hdr.messages[8].add_order.stock;
                shares_value = hdr.messages[8].add_order.shares;
                price_value = hdr.messages[8].add_order.price;
                add_order_valid = 1;
                add_order_or_attributed_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
            } else if (hdr.messages[8].attributed.isValid()) {
                size = 32w42;
                kind_value = hdr.messages[8].attributed.kind;
                side_value = hdr.messages[8].attributed.side;
                stock_value = hdr.messages[8].attributed.stock;
                attribution_value = hdr.messages[8].attributed.attribution;
                shares_value = hdr.messages[8].attributed.shares;
                price_value = hdr.messages[8].attributed.price;
                attributed_valid = 1;
                add_order_or_attributed_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
            } else if (hdr.messages[8].trade.isValid()) {
                size = 32w46;
                kind_value = hdr.messages[8].trade.kind;
                side_value = hdr.messages[8].trade.side;
                stock_value = hdr.messages[8].trade.stock;
                shares_value = hdr.messages[8].trade.shares;
                price_value = hdr.messages[8].trade.price;
                trade_valid = 1;
                add_order_or_attributed_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
            } else if (hdr.messages[8].other.isValid()) {
                size = (2 + (bit<32>)hdr.messages[8].other.length);
                kind_value = hdr.messages[8].other.kind;
                other_valid = 1;
                add_order_or_attributed_or_trade_or_other_valid = 1;
            }
            seen = seen + size;
            if (full == 0) {
                meta.subscription.state = 0;
                target = 0;
                validity.apply();
                if (meta.subscription.state[31:24] == 2) {
                    if (!kind_exact_1.apply().hit) { kind_rest_1.apply(); }
                }
                if (meta.subscription.state[31:24] == 3) {
                    if (!side_exact_2.apply().hit) { side_rest_2.apply(); }
                }
                if (meta.subscription.state[31:24] == 4) {
                    if (!stock_exact_3.apply().hit) { stock_rest_3.apply(); }
                }
                if (meta.subscription.state[31:24] == 5) {
                    if (!attribution_exact_4.apply().hit) { attribution_rest_4.apply(); }
                }
                if (meta.subscription.state[31:24] == 6) {
                    if (!shares_range_5.apply().hit) { shares_rest_5.apply(); }
                }
                if (meta.subscription.state[31:24] == 7) {
                    if (!price_range_6.apply().hit) { price_rest_6.apply(); }
                }
                if (meta.subscription.state[31:24] == 255) {
                    leaf.apply();
                }
                if (target != 0 && run != 0 && target != run) {
                    full = 1;
                }
            }
            if (full == 1) {
                removed = removed + size;
                hdr.messages[8].add_order.setInvalid();
                hdr.messages[8].attributed.setInvalid();
                hdr.messages[8].trade.setInvalid();
                hdr.messages[8].other.setInvalid();
            } else {
                done = done + 1;
                if (target == 0) {
                    removed = removed + size;
                    hdr.messages[8].add_order.setInvalid();
                    hdr.messages[8].attributed.setInvalid();
                    hdr.messages[8].trade.setInvalid();
                    hdr.messages[8].other.setInvalid();
                } else {
                    run = target;
                    kept = kept + 1;
                }
            }
        }

        if (hdr.messages[9].add_order.isValid() || hdr.messages[9].attributed.isValid() || hdr.messages[9].trade.isValid() || hdr.messages[9].other.isValid()) {
            kind_value = 0;
            side_value = 0;
            stock_value = 0;
            attribution_value = 0;
            shares_value = 0;
            price_value = 0;
            add_order_valid = 0;
            attributed_valid = 0;
            trade_valid = 0;
            other_valid = 0;
            add_order_or_attributed_or_trade_or_other_valid = 0;
            add_order_or_attributed_or_trade_valid = 0;
            if (hdr.messages[9].add_order.isValid()) {
                size = 32w38;
                kind_value = hdr.messages[9].add_order.kind;
                side_value = hdr.messages[9].add_order.side;
                stock_value = hdr.messages[9].add_order.stock;
                shares_value = hdr.messages[9].add_order.shares;
                price_value = hdr.messages[9].add_order.price;
                add_order_valid = 1;
                add_order_or_attributed_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
            } else if (hdr.messages[9].attributed.isValid()) {
                size = 32w42;
                kind_value = hdr.messages[9].attributed.kind;
                side_value = hdr.messages[9].attributed.side;
                stock_value = hdr.messages[9].attributed.stock;
                attribution_value = hdr.messages[9].attributed.attribution;
                shares_value = hdr.messages[9].attributed.shares;
                price_value = hdr.messages[9].attributed.price;
                attributed_valid = 1;
                add_order_or_attributed_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
            } else if (hdr.messages[9].trade.isValid()) {
                size = 32w46;
                kind_value = hdr.messages[9].trade.kind;
                side_value = hdr.messages[9].trade.side;
                stock_value = hdr.messages[9].trade.stock;
                shares_value = hdr.messages[9].trade.shares;
                price_value = hdr.messages[9].trade.price;
                trade_valid = 1;
                add_order_or_attributed_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
            } else if (hdr.messages[9].other.isValid()) {
                size = (2 + (bit<32>)hdr.messages[9].other.length);
                kind_value = hdr.messages[9].other.kind;
                other_valid = 1;
                add_order_or_attributed_or_trade_or_other_valid = 1;
            }
            seen = seen + size;
            if (full == 0) {
                meta.subscription.state = 0;
                target = 0;
                validity.apply();
                if (meta.subscription.state[31:24] == 2) {
                    if (!kind_exact_1.apply().hit) { kind_rest_1.apply(); }
                }
                if (meta.subscription.state[31:24] == 3) {
                    if (!side_exact_2.apply().hit) { side_rest_2.apply(); }
                }
                if (meta.subscription.state[31:24] == 4) {
                    if (!stock_exact_3.apply().hit) { stock_rest_3.apply(); }
                }
                if (meta.subscription.state[31:24] == 5) {
                    if (!attribution_exact_4.apply().hit) { attribution_rest_4.apply(); }
                }
                if (meta.subscription.state[31:24] == 6) {
                    if (!shares_range_5.apply().hit) { shares_rest_5.apply(); }
                }
                if (meta.subscription.state[31:24] == 7) {
                    if (!price_range_6.apply().hit) { price_rest_6.apply(); }
                }
                if (meta.subscription.state[31:24] == 255) {
                    leaf.apply();
                }
                if (target != 0 && run != 0 && target != run) {
                    full = 1;
                }
            }
            if (full == 1) {
                removed = removed + size;
                hdr.messages[9].add_order.setInvalid();
                hdr.messages[9].attributed.setInvalid();
                hdr.messages[9].trade.setInvalid();
                hdr.messages[9].other.setInvalid();
            } else {
                done = done + 1;
                if (target == 0) {
                    removed = removed + size;
                    hdr.messages[9].add_order.setInvalid();
                    hdr.messages[9].attributed.setInvalid();
                    hdr.messages[9].trade.setInvalid();
                    hdr.messages[9].other.setInvalid();
                } else {
                    run = target;
                    kept = kept + 1;
                }
            }
        }

        if (hdr.messages[10].add_order.isValid() || hdr.messages[10].attributed.isValid() || hdr.messages[10].trade.isValid() || hdr.messages[10].other.isValid()) {
            kind_value = 0;
            side_value = 0;
            stock_value = 0;
            attribution_value = 0;
            shares_value = 0;
            price_value = 0;
            add_order_valid = 0;
            attributed_valid = 0;
            trade_valid = 0;
            other_valid = 0;
            add_order_or_attributed_or_trade_or_other_valid = 0;
            add_order_or_attributed_or_trade_valid = 0;
            if (hdr.messages[10].add_order.isValid()) {
                size = 32w38;
                kind_value = hdr.messages[10].add_order.kind;
                side_value = hdr.messages[10].add_order.side;
                stock_value = hdr.messages[10].add_order.stock;
                shares_value = hdr.messages[10].add_order.shares;
                price_value = hdr.messages[10].add_order.price;
                add_order_valid = 1;
                add_order_or_attributed_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
            } else if (hdr.messages[10].attributed.isValid()) {
                size = 32w42;
                kind_value = hdr.messages[10].attributed.kind;
                side_value = hdr.messages[10].attributed.side;
                stock_value = hdr.messages[10].attributed.stock;
                attribution_value = hdr.messages[10].attributed.attribution;
                shares_value = hdr.messages[10].attributed.shares;
                price_value = hdr.messages[10].attributed.price;
                attributed_valid = 1;
                add_order_or_attributed_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
            } else if (hdr.messages[10].trade.isValid()) {
                size = 32w46;
                kind_value = hdr.messages[10].trade.kind;
                side_value = hdr.messages[10].trade.side;
                stock_value = hdr.messages[10].trade.stock;
                shares_value = hdr.messages[10].trade.shares;
                price_value = hdr.messages[10].trade.price;
                trade_valid = 1;
                add_order_or_attributed_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
            } else if (hdr.messages[10].other.isValid()) {
                size = (2 + (bit<32>)hdr.messages[10].other.length);
                kind_value = hdr.messages[10].other.kind;
                other_valid = 1;
                add_order_or_attributed_or_trade_or_other_valid = 1;
            }
            seen = seen + size;
            if (full == 0) {
                meta.subscription.state = 0;
                target = 0;
                validity.apply();
                if (meta.subscription.state[31:24] == 2) {
                    if (!kind_exact_1.apply().hit) { kind_rest_1.apply(); }
                }
                if (meta.subscription.state[31:24] == 3) {
                    if (!side_exact_2.apply().hit) { side_rest_2.apply(); }
                }
                if (meta.subscription.state[31:24] == 4) {
                    if (!stock_exact_3.apply().hit) { stock_rest_3.apply(); }
                }
                if (meta.subscription.state[31:24] == 5) {
                    if (!attribution_exact_4.apply().hit) { attribution_rest_4.apply(); }
                }
                if (meta.subscription.state[31:24] == 6) {
                    if (!shares_range_5.apply().hit) { shares_rest_5.apply(); }
                }
                if (meta.subscription.state[31:24] == 7) {
                    if (!price_range_6.apply().hit) { price_rest_6.apply(); }
                }
                if (meta.subscription.state[31:24] == 255) {
                    leaf.apply();
                }
                if (target != 0 && run != 0 && target != run) {
                    full = 1;
                }
            }
            if (full == 1) {
                removed = removed + size;
                hdr.messages[10].add_order.setInvalid();
                hdr.messages[10].attributed.setInvalid();
                hdr.messages[10].trade.setInvalid();
                hdr.messages[10].other.setInvalid();
            } else {
                done = done + 1;
                if (target == 0) {
                    removed = removed + size;
                    hdr.messages[10].add_order.setInvalid();
                    hdr.messages[10].attributed.setInvalid();
                    hdr.messages[10].trade.setInvalid();
                    hdr.messages[10].other.setInvalid();
                } else {
                    run = target;
                    kept = kept + 1;
                }
            }
        }

        if (hdr.messages[11].add_order.isValid() || hdr.messages[11].attributed.isValid() || hdr.messages[11].trade.isValid() || hdr.messages[11].other.isValid()) {
            kind_value = 0;
            side_value = 0;
            stock_value = 0;
            attribution_value = 0;
            shares_value = 0;
            price_value = 0;
            add_order_valid = 0;
            attributed_valid = 0;
            trade_valid = 0;
            other_valid = 0;
            add_order_or_attributed_or_trade_or_other_valid = 0;
            add_order_or_attributed_or_trade_valid = 0;
            if (hdr.messages[11].add_order.isValid()) {
                size = 32w38;
                kind_value = hdr.messages[11].add_order.kind;
                side_value = hdr.messages[11].add_order.side;
                stock_value = hdr.messages[11].add_order.stock;
                shares_value = hdr.messages[11].add_order.shares;
                price_value = hdr.messages[11].add_order.price;
                add_order_valid = 1;
                add_order_or_attributed_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
            } else if (hdr.messages[11].attributed.isValid()) {
                size = 32w42;
                kind_value = hdr.messages[11].attributed.kind;
                side_value = hdr.messages[11].attributed.side;
                stock_value = hdr.messages[11].attributed.stock;
                attribution_value = hdr.messages[11].attributed.attribution;
                shares_value = hdr.messages[11].attributed.shares;
                price_value = hdr.messages[11].attributed.price;
                attributed_valid = 1;
                add_order_or_attributed_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
            } else if (hdr.messages[11].trade.isValid()) {
                size = 32w46;
                kind_value = hdr.messages[11].trade.kind;
                side_value = hdr.messages[11].trade.side;
                stock_value = hdr.messages[11].trade.stock;
                shares_value = hdr.messages[11].trade.shares;
                price_value = hdr.messages[11].trade.price;
                trade_valid = 1;
                add_order_or_attributed_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
            } else if (hdr.messages[11].other.isValid()) {
                size = (2 + (bit<32>)hdr.messages[11].other.length);
                kind_value = hdr.messages[11].other.kind;
                other_valid = 1;
                add_order_or_attributed_or_trade_or_other_valid = 1;
            }
            seen = seen + size;
            if (full == 0) {
                meta.subscription.state = 0;
                target = 0;
                validity.apply();
                if (meta.subscription.state[31:24] == 2) {
                    if (!kind_exact_1.apply().hit) { kind_rest_1.apply(); }
                }
                if (meta.subscription.state[31:24] == 3) {
                    if (!side_exact_2.apply().hit) { side_rest_2.apply(); }
                }
                if (meta.subscription.state[31:24] == 4) {
                    if (!stock_exact_3.apply().hit) { stock_rest_3.apply(); }
                }
                if (meta.subscription.state[31:24] == 5) {
                    if (!attribution_exact_4.apply().hit) { attribution_rest_4.apply(); }
                }
                if (meta.subscription.state[31:24] == 6) {
                    if (!shares_range_5.apply().hit) { shares_rest_5.apply(); }
                }
                if (meta.subscription.state[31:24] == 7) {
                    if (!price_range_6.apply().hit) { price_rest_6.apply(); }
                }
                if (meta.subscription.state[31:24] == 255) {
                    leaf.apply();
                }
                if (target != 0 && run != 0 && target != run) {
                    full = 1;
                }
            }
            if (full == 1) {
                removed = removed + size;
                hdr.messages[11].add_order.setInvalid();
                hdr.messages[11].attributed.setInvalid();
                hdr.messages[11].trade.setInvalid();
                hdr.messages[11].other.setInvalid();
            } else {
                done = done + 1;
                if (target == 0) {
                    removed = removed + size;
                    hdr.messages[11].add_order.setInvalid();
                    hdr.messages[11].attributed.setInvalid();
                    hdr.messages[11].trade.setInvalid();
                    hdr.messages[11].other.setInvalid();
                } else {
                    run = target;
                    kept = kept + 1;
                }
            }
        }

        bit<32> promised = (bit<32>)hdr.udp.length;
        // Up to the end of the last message in the stack.
        bit<32> before = seen + 28;
        // A message that the parser does not know, or lengths that lie.
        if (done == 0 || promised < before) {
            lose((bit<64>)hdr.mold.count);
            mark_to_drop(standard_metadata);
            return;
        }
        if (done < (bit<16>)hdr.mold.count) {
            if (meta.subscription.rounds == 32) {
                lose((bit<64>)hdr.mold.count - (bit<64>)done);    // the switch would drop them
            } else {
                meta.subscription.done = done;
                clone_preserving_field_list(CloneType.I2E, 1, 1);
            }
        }
        if (run == 0) {
            mark_to_drop(standard_metadata);
        } else if (run[31:31] == 1) {
            standard_metadata.egress_spec = run[8:0];
        } else {
            standard_metadata.mcast_grp = run[15:0];
        }
        if (promised > before) {
            removed = removed + promised - before;
            meta.subscription.keep = standard_metadata.packet_length - removed;
        }
        if (removed != 0) {
            hdr.mold.count = (bit<16>)kept;
            {
                bit<32> sum = (bit<32>)(~hdr.ipv4.checksum) + (bit<32>)(~hdr.ipv4.total_len);
                hdr.ipv4.total_len = hdr.ipv4.total_len - (bit<16>)removed;
                sum = sum + (bit<32>)hdr.ipv4.total_len;
                sum = (sum & 0xffff) + (sum >> 16);
                sum = (sum & 0xffff) + (sum >> 16);
                hdr.ipv4.checksum = ~(bit<16>)sum;
            }
            hdr.udp.length = hdr.udp.length - (bit<16>)removed;
            hdr.udp.checksum = 0;
        }
    }
}

control SubscriptionsEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    register<bit<64>>(512) delivered;    // messages that each port was given
    register<bit<64>>(512) opened;       // messages that each port was shown to miss

    apply {
        if (standard_metadata.instance_type == 1) {
            bit<32> removed = 0;
            if (meta.subscription.done > 0) {
                if (hdr.messages[0].add_order.isValid()) {
                    removed = removed + 32w38;
                    hdr.messages[0].add_order.setInvalid();
                } else if (hdr.messages[0].attributed.isValid()) {
                    removed = removed + 32w42;
                    hdr.messages[0].attributed.setInvalid();
                } else if (hdr.messages[0].trade.isValid()) {
                    removed = removed + 32w46;
                    hdr.messages[0].trade.setInvalid();
                } else if (hdr.messages[0].other.isValid()) {
                    removed = removed + (2 + (bit<32>)hdr.messages[0].other.length);
                    hdr.messages[0].other.setInvalid();
                }
            }
            if (meta.subscription.done > 1) {
                if (hdr.messages[1].add_order.isValid()) {
                    removed = removed + 32w38;
                    hdr.messages[1].add_order.setInvalid();
                } else if (hdr.messages[1].attributed.isValid()) {
                    removed = removed + 32w42;
                    hdr.messages[1].attributed.setInvalid();
                } else if (hdr.messages[1].trade.isValid()) {
                    removed = removed + 32w46;
                    hdr.messages[1].trade.setInvalid();
                } else if (hdr.messages[1].other.isValid()) {
                    removed = removed + (2 + (bit<32>)hdr.messages[1].other.length);
                    hdr.messages[1].other.setInvalid();
                }
            }
            if (meta.subscription.done > 2) {
                if (hdr.messages[2].add_order.isValid()) {
                    removed = removed + 32w38;
                    hdr.messages[2].add_order.setInvalid();
                } else if (hdr.messages[2].attributed.isValid()) {
                    removed = removed + 32w42;
                    hdr.messages[2].attributed.setInvalid();
                } else if (hdr.messages[2].trade.isValid()) {
                    removed = removed + 32w46;
                    hdr.messages[2].trade.setInvalid();
                } else if (hdr.messages[2].other.isValid()) {
                    removed = removed + (2 + (bit<32>)hdr.messages[2].other.length);
                    hdr.messages[2].other.setInvalid();
                }
            }
            if (meta.subscription.done > 3) {
                if (hdr.messages[3].add_order.isValid()) {
                    removed = removed + 32w38;
                    hdr.messages[3].add_order.setInvalid();
                } else if (hdr.messages[3].attributed.isValid()) {
                    removed = removed + 32w42;
                    hdr.messages[3].attributed.setInvalid();
                } else if (hdr.messages[3].trade.isValid()) {
                    removed = removed + 32w46;
                    hdr.messages[3].trade.setInvalid();
                } else if (hdr.messages[3].other.isValid()) {
                    removed = removed + (2 + (bit<32>)hdr.messages[3].other.length);
                    hdr.messages[3].other.setInvalid();
                }
            }
            if (meta.subscription.done > 4) {
                if (hdr.messages[4].add_order.isValid()) {
                    removed = removed + 32w38;
                    hdr.messages[4].add_order.setInvalid();
                } else if (hdr.messages[4].attributed.isValid()) {
                    removed = removed + 32w42;
                    hdr.messages[4].attributed.setInvalid();
                } else if (hdr.messages[4].trade.isValid()) {
                    removed = removed + 32w46;
                    hdr.messages[4].trade.setInvalid();
                } else if (hdr.messages[4].other.isValid()) {
                    removed = removed + (2 + (bit<32>)hdr.messages[4].other.length);
                    hdr.messages[4].other.setInvalid();
                }
            }
            if (meta.subscription.done > 5) {
                if (hdr.messages[5].add_order.isValid()) {
                    removed = removed + 32w38;
                    hdr.messages[5].add_order.setInvalid();
                } else if (hdr.messages[5].attributed.isValid()) {
                    removed = removed + 32w42;
                    hdr.messages[5].attributed.setInvalid();
                } else if (hdr.messages[5].trade.isValid()) {
                    removed = removed + 32w46;
                    hdr.messages[5].trade.setInvalid();
                } else if (hdr.messages[5].other.isValid()) {
                    removed = removed + (2 + (bit<32>)hdr.messages[5].other.length);
                    hdr.messages[5].other.setInvalid();
                }
            }
            if (meta.subscription.done > 6) {
                if (hdr.messages[6].add_order.isValid()) {
                    removed = removed + 32w38;
                    hdr.messages[6].add_order.setInvalid();
                } else if (hdr.messages[6].attributed.isValid()) {
                    removed = removed + 32w42;
                    hdr.messages[6].attributed.setInvalid();
                } else if (hdr.messages[6].trade.isValid()) {
                    removed = removed + 32w46;
                    hdr.messages[6].trade.setInvalid();
                } else if (hdr.messages[6].other.isValid()) {
                    removed = removed + (2 + (bit<32>)hdr.messages[6].other.length);
                    hdr.messages[6].other.setInvalid();
                }
            }
            if (meta.subscription.done > 7) {
                if (hdr.messages[7].add_order.isValid()) {
                    removed = removed + 32w38;
                    hdr.messages[7].add_order.setInvalid();
                } else if (hdr.messages[7].attributed.isValid()) {
                    removed = removed + 32w42;
                    hdr.messages[7].attributed.setInvalid();
                } else if (hdr.messages[7].trade.isValid()) {
                    removed = removed + 32w46;
                    hdr.messages[7].trade.setInvalid();
                } else if (hdr.messages[7].other.isValid()) {
                    removed = removed + (2 + (bit<32>)hdr.messages[7].other.length);
                    hdr.messages[7].other.setInvalid();
                }
            }
            if (meta.subscription.done > 8) {
                if (hdr.messages[8].add_order.isValid()) {
                    removed = removed + 32w38;
                    hdr.messages[8].add_order.setInvalid();
                } else if (hdr.messages[8].attributed.isValid()) {
                    removed = removed + 32w42;
                    hdr.messages[8].attributed.setInvalid();
                } else if (hdr.messages[8].trade.isValid()) {
                    removed = removed + 32w46;
                    hdr.messages[8].trade.setInvalid();
                } else if (hdr.messages[8].other.isValid()) {
                    removed = removed + (2 + (bit<32>)hdr.messages[8].other.length);
                    hdr.messages[8].other.setInvalid();
                }
            }
            if (meta.subscription.done > 9) {
                if (hdr.messages[9].add_order.isValid()) {
                    removed = removed + 32w38;
                    hdr.messages[9].add_order.setInvalid();
                } else if (hdr.messages[9].attributed.isValid()) {
                    removed = removed + 32w42;
                    hdr.messages[9].attributed.setInvalid();
                } else if (hdr.messages[9].trade.isValid()) {
                    removed = removed + 32w46;
                    hdr.messages[9].trade.setInvalid();
                } else if (hdr.messages[9].other.isValid()) {
                    removed = removed + (2 + (bit<32>)hdr.messages[9].other.length);
                    hdr.messages[9].other.setInvalid();
                }
            }
            if (meta.subscription.done > 10) {
                if (hdr.messages[10].add_order.isValid()) {
                    removed = removed + 32w38;
                    hdr.messages[10].add_order.setInvalid();
                } else if (hdr.messages[10].attributed.isValid()) {
                    removed = removed + 32w42;
                    hdr.messages[10].attributed.setInvalid();
                } else if (hdr.messages[10].trade.isValid()) {
                    removed = removed + 32w46;
                    hdr.messages[10].trade.setInvalid();
                } else if (hdr.messages[10].other.isValid()) {
                    removed = removed + (2 + (bit<32>)hdr.messages[10].other.length);
                    hdr.messages[10].other.setInvalid();
                }
            }
            if (meta.subscription.done > 11) {
                if (hdr.messages[11].add_order.isValid()) {
                    removed = removed + 32w38;
                    hdr.messages[11].add_order.setInvalid();
                } else if (hdr.messages[11].attributed.isValid()) {
                    removed = removed + 32w42;
                    hdr.messages[11].attributed.setInvalid();
                } else if (hdr.messages[11].trade.isValid()) {
                    removed = removed + 32w46;
                    hdr.messages[11].trade.setInvalid();
                } else if (hdr.messages[11].other.isValid()) {
                    removed = removed + (2 + (bit<32>)hdr.messages[11].other.length);
                    hdr.messages[11].other.setInvalid();
                }
            }
            hdr.mold.count = hdr.mold.count - (bit<16>)meta.subscription.done;
            hdr.mold.sequence = hdr.mold.sequence + (bit<64>)meta.subscription.done;
            meta.subscription.rounds = meta.subscription.rounds + 1;
            {
                bit<32> sum = (bit<32>)(~hdr.ipv4.checksum) + (bit<32>)(~hdr.ipv4.total_len);
                hdr.ipv4.total_len = hdr.ipv4.total_len - (bit<16>)removed;
                sum = sum + (bit<32>)hdr.ipv4.total_len;
                sum = (sum & 0xffff) + (sum >> 16);
                sum = (sum & 0xffff) + (sum >> 16);
                hdr.ipv4.checksum = ~(bit<16>)sum;
            }
            hdr.udp.length = hdr.udp.length - (bit<16>)removed;
            hdr.udp.checksum = 0;
            recirculate_preserving_field_list(1);
        } else {
            if (hdr.mold.isValid()) {
                bit<32> port = (bit<32>)standard_metadata.egress_port;
                bit<64> given;
                bit<64> gap;
                @atomic {
                    delivered.read(given, port);
                    opened.read(gap, port);
                    if (meta.subscription.missed > gap) {
                        gap = meta.subscription.missed;
                        opened.write(port, gap);
                    }
                    if (hdr.mold.count != 65535) {
                        delivered.write(port, given + (bit<64>)hdr.mold.count);
                    }
                }
                hdr.mold.sequence = (bit<64>)(given + gap + 1);
                hdr.udp.checksum = 0;
            }
            if (meta.subscription.keep != 0) {
                truncate(meta.subscription.keep);
            }
        }
    }
}

control SubscriptionsVerify(inout headers_t hdr, inout metadata_t meta) { apply {} }

control SubscriptionsCompute(inout headers_t hdr, inout metadata_t meta) { apply {} }

control SubscriptionsDeparser(packet_out packet, in headers_t hdr) {
    apply { packet.emit(hdr); }
}

V1Switch(FeedParser(), SubscriptionsVerify(), Subscriptions(), SubscriptionsEgress(), SubscriptionsCompute(), SubscriptionsDeparser()) main;
