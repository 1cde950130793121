// Made by `triplane subscribe`. Entries for it are compiled with `--order-of` this file, or with
// --order order,side,attribution,printable,shares,stock,price,kind,locate

// Added: what the rules' tables leave for egress.
struct subscription_t {
    bit<32> state;                      // of the diagram, after the last table
    @field_list(1) bit<16> done;        // messages that this pass dealt with
    bit<32> keep;                       // bytes of the packet that leaves; 0 for all
    bit<1> around;                      // whether the packet itself goes round, since nothing leaves
    @field_list(1) bit<8> passes;       // how often it was cloned or went round
    bit<64> missed;                     // messages that never came here
    @field_list(1) bit<32> stream;      // where its session's numbers are kept
    @field_list(1) bit<64> turn;        // which session of the stream that is
}

// A stock exchange's feed: ITCH 5.0 in MoldUDP64, and what subscribers may ask of it.
//
// Every kind of message costs time and room in the program; orders.p4 is a leaner format of the same feed.
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

// The messages, each with the two bytes of MoldUDP64 before it. Prices are in ten-thousandths of a dollar. Every message has
// `locate`, the stock's number of the day; its name stands only where an order comes up first, and in trades.

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

// A new order, and the participant who made it (`F`).
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

// So many shares of an order found their match at its own price (`E`),
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

// and at another (`C`); `printable` is `N` where they are counted elsewhere.
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

// So many shares of an order are taken back (`X`),
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

// and all that were left (`D`).
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

// An order is taken back for another of the same stock and side (`U`).
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

// A match of an order that the book does not show (`P`).
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

// Any other: auctions (`Q`), halts (`H`), the day's directory of stocks (`R`), ...
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


// Added: tables for rules over kind, locate, order, side, stock, attribution, printable, shares, price.

control Subscriptions(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    bit<8> kind_value = 0;
    bit<16> locate_value = 0;
    bit<64> order_value = 0;
    bit<8> side_value = 0;
    bit<64> stock_value = 0;
    bit<32> attribution_value = 0;
    bit<8> printable_value = 0;
    bit<32> shares_value = 0;
    bit<32> price_value = 0;
    bit<1> ethernet_valid = 0;
    bit<1> ipv4_valid = 0;
    bit<1> udp_valid = 0;
    bit<1> mold_valid = 0;
    bit<1> add_order_valid = 0;
    bit<1> attributed_valid = 0;
    bit<1> executed_valid = 0;
    bit<1> executed_with_price_valid = 0;
    bit<1> cancel_valid = 0;
    bit<1> delete_valid = 0;
    bit<1> replace_valid = 0;
    bit<1> trade_valid = 0;
    bit<1> other_valid = 0;
    bit<1> add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 0;
    bit<1> add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 0;
    bit<1> add_order_or_attributed_or_trade_valid = 0;
    bit<1> add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 0;
    bit<1> add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 0;
    bit<32> target = 0;    // a port, with the highest bit set, or a group
    register<bit<80>>(64) sessions;    // for each stream, which session it is
    register<bit<64>>(64) turns;    // how many sessions it was
    register<bit<1>>(64) ended;    // whether the session is over
    register<bit<64>>(64) lost_messages;    // how many never came, or went no further
    register<bit<64>>(32768) due_message;    // and each port, the number that should come next
    register<bit<64>>(32768) due_turn;    // in which session of the stream
    bit<64> turn = 0;
    bit<64> lost = 0;

    action lose(bit<64> messages) {
        @atomic {
            turns.read(turn, meta.subscription.stream);
            lost_messages.read(lost, meta.subscription.stream);
            lost = turn == meta.subscription.turn ? lost + messages : lost;
            lost_messages.write(meta.subscription.stream, lost);
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
            executed_valid: ternary @name("executed_valid");
            executed_with_price_valid: ternary @name("executed_with_price_valid");
            cancel_valid: ternary @name("cancel_valid");
            delete_valid: ternary @name("delete_valid");
            replace_valid: ternary @name("replace_valid");
            trade_valid: ternary @name("trade_valid");
            other_valid: ternary @name("other_valid");
            add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid: ternary @name("add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid");
            add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid: ternary @name("add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid");
            add_order_or_attributed_or_trade_valid: ternary @name("add_order_or_attributed_or_trade_valid");
            add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid: ternary @name("add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid");
            add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid: ternary @name("add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid");
        }
        actions = { to_state; to_port; to_group; NoAction; }
        default_action = NoAction;
        size = 1048576;
    }

    table order_exact_1 {
        key = {
            meta.subscription.state: exact @name("state");
            order_value: exact @name("value");
        }
        actions = { to_state; to_port; to_group; NoAction; }
        default_action = NoAction;
        size = 1048576;
    }

    table order_rest_1 {
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

    table attribution_exact_3 {
        key = {
            meta.subscription.state: exact @name("state");
            attribution_value: exact @name("value");
        }
        actions = { to_state; to_port; to_group; NoAction; }
        default_action = NoAction;
        size = 1048576;
    }

    table attribution_rest_3 {
        key = { meta.subscription.state: exact @name("state"); }
        actions = { to_state; to_port; to_group; NoAction; }
        default_action = NoAction;
        size = 1048576;
    }

    table printable_exact_4 {
        key = {
            meta.subscription.state: exact @name("state");
            printable_value: exact @name("value");
        }
        actions = { to_state; to_port; to_group; NoAction; }
        default_action = NoAction;
        size = 1048576;
    }

    table printable_rest_4 {
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

    table stock_exact_6 {
        key = {
            meta.subscription.state: exact @name("state");
            stock_value: exact @name("value");
        }
        actions = { to_state; to_port; to_group; NoAction; }
        default_action = NoAction;
        size = 1048576;
    }

    table stock_rest_6 {
        key = { meta.subscription.state: exact @name("state"); }
        actions = { to_state; to_port; to_group; NoAction; }
        default_action = NoAction;
        size = 1048576;
    }

    table price_range_7 {
        key = {
            meta.subscription.state: exact @name("state");
            price_value: range @name("value");
        }
        actions = { to_state; to_port; to_group; NoAction; }
        default_action = NoAction;
        size = 1048576;
    }

    table price_rest_7 {
        key = { meta.subscription.state: exact @name("state"); }
        actions = { to_state; to_port; to_group; NoAction; }
        default_action = NoAction;
        size = 1048576;
    }

    table kind_exact_8 {
        key = {
            meta.subscription.state: exact @name("state");
            kind_value: exact @name("value");
        }
        actions = { to_state; to_port; to_group; NoAction; }
        default_action = NoAction;
        size = 1048576;
    }

    table kind_rest_8 {
        key = { meta.subscription.state: exact @name("state"); }
        actions = { to_state; to_port; to_group; NoAction; }
        default_action = NoAction;
        size = 1048576;
    }

    table locate_exact_9 {
        key = {
            meta.subscription.state: exact @name("state");
            locate_value: exact @name("value");
        }
        actions = { to_state; to_port; to_group; NoAction; }
        default_action = NoAction;
        size = 1048576;
    }

    table locate_rest_9 {
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
            bit<80> session;
            bit<1> is_over;
            bit<64> mine;
            hash(meta.subscription.stream, HashAlgorithm.crc32, 32w0, { hdr.mold.session }, 32w64);
            bit<32> at_port = (meta.subscription.stream << 9) | (bit<32>)standard_metadata.ingress_port;
            @atomic {
                sessions.read(session, meta.subscription.stream);
                turns.read(turn, meta.subscription.stream);
                ended.read(is_over, meta.subscription.stream);
                if (turn == 0 || session != hdr.mold.session || is_over == 1 && first == 1 && hdr.mold.count != 65535) {
                    turn = turn + 1;
                    turns.write(meta.subscription.stream, turn);
                    sessions.write(meta.subscription.stream, hdr.mold.session);
                    ended.write(meta.subscription.stream, 0);
                    lost_messages.write(meta.subscription.stream, 0);
                }
                if (hdr.mold.count == 65535) {
                    ended.write(meta.subscription.stream, 1);
                }
                meta.subscription.turn = turn;
                due_turn.read(mine, at_port);
                if (mine != turn) {
                    due_turn.write(at_port, turn);
                    due_message.write(at_port, 0);
                }
                due_message.read(due, at_port);
                if (due != 0 && first > due) {
                    lose(first - due);
                }
                if (next > due) {
                    due_message.write(at_port, next);
                }
            }
        }
        lost_messages.read(lost, meta.subscription.stream);
        turns.read(turn, meta.subscription.stream);
        meta.subscription.missed = turn == meta.subscription.turn ? lost : 0;
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

        if (hdr.messages[0].add_order.isValid() || hdr.messages[0].attributed.isValid() || hdr.messages[0].executed.isValid() || hdr.messages[0].executed_with_price.isValid() || hdr.messages[0].cancel.isValid() || hdr.messages[0].delete.isValid() || hdr.messages[0].replace.isValid() || hdr.messages[0].trade.isValid() || hdr.messages[0].other.isValid()) {
            kind_value = 0;
            locate_value = 0;
            order_value = 0;
            side_value = 0;
            stock_value = 0;
            attribution_value = 0;
            printable_value = 0;
            shares_value = 0;
            price_value = 0;
            add_order_valid = 0;
            attributed_valid = 0;
            executed_valid = 0;
            executed_with_price_valid = 0;
            cancel_valid = 0;
            delete_valid = 0;
            replace_valid = 0;
            trade_valid = 0;
            other_valid = 0;
            add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 0;
            add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 0;
            add_order_or_attributed_or_trade_valid = 0;
            add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 0;
            add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 0;
            if (hdr.messages[0].add_order.isValid()) {
                size = 32w38;
                kind_value = hdr.messages[0].add_order.kind;
                locate_value = hdr.messages[0].add_order.locate;
                order_value = hdr.messages[0].add_order.order;
                side_value = hdr.messages[0].add_order.side;
                stock_value = hdr.messages[0].add_order.stock;
                shares_value = hdr.messages[0].add_order.shares;
                price_value = hdr.messages[0].add_order.price;
                add_order_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[0].attributed.isValid()) {
                size = 32w42;
                kind_value = hdr.messages[0].attributed.kind;
                locate_value = hdr.messages[0].attributed.locate;
                order_value = hdr.messages[0].attributed.order;
                side_value = hdr.messages[0].attributed.side;
                stock_value = hdr.messages[0].attributed.stock;
                attribution_value = hdr.messages[0].attributed.attribution;
                shares_value = hdr.messages[0].attributed.shares;
                price_value = hdr.messages[0].attributed.price;
                attributed_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[0].executed.isValid()) {
                size = 32w33;
                kind_value = hdr.messages[0].executed.kind;
                locate_value = hdr.messages[0].executed.locate;
                order_value = hdr.messages[0].executed.order;
                shares_value = hdr.messages[0].executed.shares;
                executed_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[0].executed_with_price.isValid()) {
                size = 32w38;
                kind_value = hdr.messages[0].executed_with_price.kind;
                locate_value = hdr.messages[0].executed_with_price.locate;
                order_value = hdr.messages[0].executed_with_price.order;
                printable_value = hdr.messages[0].executed_with_price.printable;
                shares_value = hdr.messages[0].executed_with_price.shares;
                price_value = hdr.messages[0].executed_with_price.price;
                executed_with_price_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[0].cancel.isValid()) {
                size = 32w25;
                kind_value = hdr.messages[0].cancel.kind;
                locate_value = hdr.messages[0].cancel.locate;
                order_value = hdr.messages[0].cancel.order;
                shares_value = hdr.messages[0].cancel.shares;
                cancel_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[0].delete.isValid()) {
                size = 32w21;
                kind_value = hdr.messages[0].delete.kind;
                locate_value = hdr.messages[0].delete.locate;
                order_value = hdr.messages[0].delete.order;
                delete_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[0].replace.isValid()) {
                size = 32w37;
                kind_value = hdr.messages[0].replace.kind;
                locate_value = hdr.messages[0].replace.locate;
                order_value = hdr.messages[0].replace.order;
                shares_value = hdr.messages[0].replace.shares;
                price_value = hdr.messages[0].replace.price;
                replace_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[0].trade.isValid()) {
                size = 32w46;
                kind_value = hdr.messages[0].trade.kind;
                locate_value = hdr.messages[0].trade.locate;
                order_value = hdr.messages[0].trade.order;
                side_value = hdr.messages[0].trade.side;
                stock_value = hdr.messages[0].trade.stock;
                shares_value = hdr.messages[0].trade.shares;
                price_value = hdr.messages[0].trade.price;
                trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[0].other.isValid()) {
                size = (2 + (bit<32>)hdr.messages[0].other.length);
                kind_value = hdr.messages[0].other.kind;
                locate_value = hdr.messages[0].other.locate;
                other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
            }
            seen = seen + size;
            if (full == 0) {
                meta.subscription.state = 0;
                target = 0;
                validity.apply();
                if (meta.subscription.state[31:24] == 2) {
                    if (!order_exact_1.apply().hit) { order_rest_1.apply(); }
                }
                if (meta.subscription.state[31:24] == 3) {
                    if (!side_exact_2.apply().hit) { side_rest_2.apply(); }
                }
                if (meta.subscription.state[31:24] == 4) {
                    if (!attribution_exact_3.apply().hit) { attribution_rest_3.apply(); }
                }
                if (meta.subscription.state[31:24] == 5) {
                    if (!printable_exact_4.apply().hit) { printable_rest_4.apply(); }
                }
                if (meta.subscription.state[31:24] == 6) {
                    if (!shares_range_5.apply().hit) { shares_rest_5.apply(); }
                }
                if (meta.subscription.state[31:24] == 7) {
                    if (!stock_exact_6.apply().hit) { stock_rest_6.apply(); }
                }
                if (meta.subscription.state[31:24] == 8) {
                    if (!price_range_7.apply().hit) { price_rest_7.apply(); }
                }
                if (meta.subscription.state[31:24] == 9) {
                    if (!kind_exact_8.apply().hit) { kind_rest_8.apply(); }
                }
                if (meta.subscription.state[31:24] == 10) {
                    if (!locate_exact_9.apply().hit) { locate_rest_9.apply(); }
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
                hdr.messages[0].executed.setInvalid();
                hdr.messages[0].executed_with_price.setInvalid();
                hdr.messages[0].cancel.setInvalid();
                hdr.messages[0].delete.setInvalid();
                hdr.messages[0].replace.setInvalid();
                hdr.messages[0].trade.setInvalid();
                hdr.messages[0].other.setInvalid();
            } else {
                done = done + 1;
                if (target == 0) {
                    removed = removed + size;
                    hdr.messages[0].add_order.setInvalid();
                    hdr.messages[0].attributed.setInvalid();
                    hdr.messages[0].executed.setInvalid();
                    hdr.messages[0].executed_with_price.setInvalid();
                    hdr.messages[0].cancel.setInvalid();
                    hdr.messages[0].delete.setInvalid();
                    hdr.messages[0].replace.setInvalid();
                    hdr.messages[0].trade.setInvalid();
                    hdr.messages[0].other.setInvalid();
                } else {
                    run = target;
                    kept = kept + 1;
                }
            }
        }

        if (hdr.messages[1].add_order.isValid() || hdr.messages[1].attributed.isValid() || hdr.messages[1].executed.isValid() || hdr.messages[1].executed_with_price.isValid() || hdr.messages[1].cancel.isValid() || hdr.messages[1].delete.isValid() || hdr.messages[1].replace.isValid() || hdr.messages[1].trade.isValid() || hdr.messages[1].other.isValid()) {
            kind_value = 0;
            locate_value = 0;
            order_value = 0;
            side_value = 0;
            stock_value = 0;
            attribution_value = 0;
            printable_value = 0;
            shares_value = 0;
            price_value = 0;
            add_order_valid = 0;
            attributed_valid = 0;
            executed_valid = 0;
            executed_with_price_valid = 0;
            cancel_valid = 0;
            delete_valid = 0;
            replace_valid = 0;
            trade_valid = 0;
            other_valid = 0;
            add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 0;
            add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 0;
            add_order_or_attributed_or_trade_valid = 0;
            add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 0;
            add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 0;
            if (hdr.messages[1].add_order.isValid()) {
                size = 32w38;
                kind_value = hdr.messages[1].add_order.kind;
                locate_value = hdr.messages[1].add_order.locate;
                order_value = hdr.messages[1].add_order.order;
                side_value = hdr.messages[1].add_order.side;
                stock_value = hdr.messages[1].add_order.stock;
                shares_value = hdr.messages[1].add_order.shares;
                price_value = hdr.messages[1].add_order.price;
                add_order_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[1].attributed.isValid()) {
                size = 32w42;
                kind_value = hdr.messages[1].attributed.kind;
                locate_value = hdr.messages[1].attributed.locate;
                order_value = hdr.messages[1].attributed.order;
                side_value = hdr.messages[1].attributed.side;
                stock_value = hdr.messages[1].attributed.stock;
                attribution_value = hdr.messages[1].attributed.attribution;
                shares_value = hdr.messages[1].attributed.shares;
                price_value = hdr.messages[1].attributed.price;
                attributed_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[1].executed.isValid()) {
                size = 32w33;
                kind_value = hdr.messages[1].executed.kind;
                locate_value = hdr.messages[1].executed.locate;
                order_value = hdr.messages[1].executed.order;
                shares_value = hdr.messages[1].executed.shares;
                executed_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[1].executed_with_price.isValid()) {
                size = 32w38;
                kind_value = hdr.messages[1].executed_with_price.kind;
                locate_value = hdr.messages[1].executed_with_price.locate;
                order_value = hdr.messages[1].executed_with_price.order;
                printable_value = hdr.messages[1].executed_with_price.printable;
                shares_value = hdr.messages[1].executed_with_price.shares;
                price_value = hdr.messages[1].executed_with_price.price;
                executed_with_price_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[1].cancel.isValid()) {
                size = 32w25;
                kind_value = hdr.messages[1].cancel.kind;
                locate_value = hdr.messages[1].cancel.locate;
                order_value = hdr.messages[1].cancel.order;
                shares_value = hdr.messages[1].cancel.shares;
                cancel_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[1].delete.isValid()) {
                size = 32w21;
                kind_value = hdr.messages[1].delete.kind;
                locate_value = hdr.messages[1].delete.locate;
                order_value = hdr.messages[1].delete.order;
                delete_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[1].replace.isValid()) {
                size = 32w37;
                kind_value = hdr.messages[1].replace.kind;
                locate_value = hdr.messages[1].replace.locate;
                order_value = hdr.messages[1].replace.order;
                shares_value = hdr.messages[1].replace.shares;
                price_value = hdr.messages[1].replace.price;
                replace_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[1].trade.isValid()) {
                size = 32w46;
                kind_value = hdr.messages[1].trade.kind;
                locate_value = hdr.messages[1].trade.locate;
                order_value = hdr.messages[1].trade.order;
                side_value = hdr.messages[1].trade.side;
                stock_value = hdr.messages[1].trade.stock;
                shares_value = hdr.messages[1].trade.shares;
                price_value = hdr.messages[1].trade.price;
                trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[1].other.isValid()) {
                size = (2 + (bit<32>)hdr.messages[1].other.length);
                kind_value = hdr.messages[1].other.kind;
                locate_value = hdr.messages[1].other.locate;
                other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
            }
            seen = seen + size;
            if (full == 0) {
                meta.subscription.state = 0;
                target = 0;
                validity.apply();
                if (meta.subscription.state[31:24] == 2) {
                    if (!order_exact_1.apply().hit) { order_rest_1.apply(); }
                }
                if (meta.subscription.state[31:24] == 3) {
                    if (!side_exact_2.apply().hit) { side_rest_2.apply(); }
                }
                if (meta.subscription.state[31:24] == 4) {
                    if (!attribution_exact_3.apply().hit) { attribution_rest_3.apply(); }
                }
                if (meta.subscription.state[31:24] == 5) {
                    if (!printable_exact_4.apply().hit) { printable_rest_4.apply(); }
                }
                if (meta.subscription.state[31:24] == 6) {
                    if (!shares_range_5.apply().hit) { shares_rest_5.apply(); }
                }
                if (meta.subscription.state[31:24] == 7) {
                    if (!stock_exact_6.apply().hit) { stock_rest_6.apply(); }
                }
                if (meta.subscription.state[31:24] == 8) {
                    if (!price_range_7.apply().hit) { price_rest_7.apply(); }
                }
                if (meta.subscription.state[31:24] == 9) {
                    if (!kind_exact_8.apply().hit) { kind_rest_8.apply(); }
                }
                if (meta.subscription.state[31:24] == 10) {
                    if (!locate_exact_9.apply().hit) { locate_rest_9.apply(); }
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
                hdr.messages[1].executed.setInvalid();
                hdr.messages[1].executed_with_price.setInvalid();
                hdr.messages[1].cancel.setInvalid();
                hdr.messages[1].delete.setInvalid();
                hdr.messages[1].replace.setInvalid();
                hdr.messages[1].trade.setInvalid();
                hdr.messages[1].other.setInvalid();
            } else {
                done = done + 1;
                if (target == 0) {
                    removed = removed + size;
                    hdr.messages[1].add_order.setInvalid();
                    hdr.messages[1].attributed.setInvalid();
                    hdr.messages[1].executed.setInvalid();
                    hdr.messages[1].executed_with_price.setInvalid();
                    hdr.messages[1].cancel.setInvalid();
                    hdr.messages[1].delete.setInvalid();
                    hdr.messages[1].replace.setInvalid();
                    hdr.messages[1].trade.setInvalid();
                    hdr.messages[1].other.setInvalid();
                } else {
                    run = target;
                    kept = kept + 1;
                }
            }
        }

        if (hdr.messages[2].add_order.isValid() || hdr.messages[2].attributed.isValid() || hdr.messages[2].executed.isValid() || hdr.messages[2].executed_with_price.isValid() || hdr.messages[2].cancel.isValid() || hdr.messages[2].delete.isValid() || hdr.messages[2].replace.isValid() || hdr.messages[2].trade.isValid() || hdr.messages[2].other.isValid()) {
            kind_value = 0;
            locate_value = 0;
            order_value = 0;
            side_value = 0;
            stock_value = 0;
            attribution_value = 0;
            printable_value = 0;
            shares_value = 0;
            price_value = 0;
            add_order_valid = 0;
            attributed_valid = 0;
            executed_valid = 0;
            executed_with_price_valid = 0;
            cancel_valid = 0;
            delete_valid = 0;
            replace_valid = 0;
            trade_valid = 0;
            other_valid = 0;
            add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 0;
            add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 0;
            add_order_or_attributed_or_trade_valid = 0;
            add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 0;
            add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 0;
            if (hdr.messages[2].add_order.isValid()) {
                size = 32w38;
                kind_value = hdr.messages[2].add_order.kind;
                locate_value = hdr.messages[2].add_order.locate;
                order_value = hdr.messages[2].add_order.order;
                side_value = hdr.messages[2].add_order.side;
                stock_value = hdr.messages[2].add_order.stock;
                shares_value = hdr.messages[2].add_order.shares;
                price_value = hdr.messages[2].add_order.price;
                add_order_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[2].attributed.isValid()) {
                size = 32w42;
                kind_value = hdr.messages[2].attributed.kind;
                locate_value = hdr.messages[2].attributed.locate;
                order_value = hdr.messages[2].attributed.order;
                side_value = hdr.messages[2].attributed.side;
                stock_value = hdr.messages[2].attributed.stock;
                attribution_value = hdr.messages[2].attributed.attribution;
                shares_value = hdr.messages[2].attributed.shares;
                price_value = hdr.messages[2].attributed.price;
                attributed_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[2].executed.isValid()) {
                size = 32w33;
                kind_value = hdr.messages[2].executed.kind;
                locate_value = hdr.messages[2].executed.locate;
                order_value = hdr.messages[2].executed.order;
                shares_value = hdr.messages[2].executed.shares;
                executed_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[2].executed_with_price.isValid()) {
                size = 32w38;
                kind_value = hdr.messages[2].executed_with_price.kind;
                locate_value = hdr.messages[2].executed_with_price.locate;
                order_value = hdr.messages[2].executed_with_price.order;
                printable_value = hdr.messages[2].executed_with_price.printable;
                shares_value = hdr.messages[2].executed_with_price.shares;
                price_value = hdr.messages[2].executed_with_price.price;
                executed_with_price_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[2].cancel.isValid()) {
                size = 32w25;
                kind_value = hdr.messages[2].cancel.kind;
                locate_value = hdr.messages[2].cancel.locate;
                order_value = hdr.messages[2].cancel.order;
                shares_value = hdr.messages[2].cancel.shares;
                cancel_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[2].delete.isValid()) {
                size = 32w21;
                kind_value = hdr.messages[2].delete.kind;
                locate_value = hdr.messages[2].delete.locate;
                order_value = hdr.messages[2].delete.order;
                delete_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[2].replace.isValid()) {
                size = 32w37;
                kind_value = hdr.messages[2].replace.kind;
                locate_value = hdr.messages[2].replace.locate;
                order_value = hdr.messages[2].replace.order;
                shares_value = hdr.messages[2].replace.shares;
                price_value = hdr.messages[2].replace.price;
                replace_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[2].trade.isValid()) {
                size = 32w46;
                kind_value = hdr.messages[2].trade.kind;
                locate_value = hdr.messages[2].trade.locate;
                order_value = hdr.messages[2].trade.order;
                side_value = hdr.messages[2].trade.side;
                stock_value = hdr.messages[2].trade.stock;
                shares_value = hdr.messages[2].trade.shares;
                price_value = hdr.messages[2].trade.price;
                trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[2].other.isValid()) {
                size = (2 + (bit<32>)hdr.messages[2].other.length);
                kind_value = hdr.messages[2].other.kind;
                locate_value = hdr.messages[2].other.locate;
                other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
            }
            seen = seen + size;
            if (full == 0) {
                meta.subscription.state = 0;
                target = 0;
                validity.apply();
                if (meta.subscription.state[31:24] == 2) {
                    if (!order_exact_1.apply().hit) { order_rest_1.apply(); }
                }
                if (meta.subscription.state[31:24] == 3) {
                    if (!side_exact_2.apply().hit) { side_rest_2.apply(); }
                }
                if (meta.subscription.state[31:24] == 4) {
                    if (!attribution_exact_3.apply().hit) { attribution_rest_3.apply(); }
                }
                if (meta.subscription.state[31:24] == 5) {
                    if (!printable_exact_4.apply().hit) { printable_rest_4.apply(); }
                }
                if (meta.subscription.state[31:24] == 6) {
                    if (!shares_range_5.apply().hit) { shares_rest_5.apply(); }
                }
                if (meta.subscription.state[31:24] == 7) {
                    if (!stock_exact_6.apply().hit) { stock_rest_6.apply(); }
                }
                if (meta.subscription.state[31:24] == 8) {
                    if (!price_range_7.apply().hit) { price_rest_7.apply(); }
                }
                if (meta.subscription.state[31:24] == 9) {
                    if (!kind_exact_8.apply().hit) { kind_rest_8.apply(); }
                }
                if (meta.subscription.state[31:24] == 10) {
                    if (!locate_exact_9.apply().hit) { locate_rest_9.apply(); }
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
                hdr.messages[2].executed.setInvalid();
                hdr.messages[2].executed_with_price.setInvalid();
                hdr.messages[2].cancel.setInvalid();
                hdr.messages[2].delete.setInvalid();
                hdr.messages[2].replace.setInvalid();
                hdr.messages[2].trade.setInvalid();
                hdr.messages[2].other.setInvalid();
            } else {
                done = done + 1;
                if (target == 0) {
                    removed = removed + size;
                    hdr.messages[2].add_order.setInvalid();
                    hdr.messages[2].attributed.setInvalid();
                    hdr.messages[2].executed.setInvalid();
                    hdr.messages[2].executed_with_price.setInvalid();
                    hdr.messages[2].cancel.setInvalid();
                    hdr.messages[2].delete.setInvalid();
                    hdr.messages[2].replace.setInvalid();
                    hdr.messages[2].trade.setInvalid();
                    hdr.messages[2].other.setInvalid();
                } else {
                    run = target;
                    kept = kept + 1;
                }
            }
        }

        if (hdr.messages[3].add_order.isValid() || hdr.messages[3].attributed.isValid() || hdr.messages[3].executed.isValid() || hdr.messages[3].executed_with_price.isValid() || hdr.messages[3].cancel.isValid() || hdr.messages[3].delete.isValid() || hdr.messages[3].replace.isValid() || hdr.messages[3].trade.isValid() || hdr.messages[3].other.isValid()) {
            kind_value = 0;
            locate_value = 0;
            order_value = 0;
            side_value = 0;
            stock_value = 0;
            attribution_value = 0;
            printable_value = 0;
            shares_value = 0;
            price_value = 0;
            add_order_valid = 0;
            attributed_valid = 0;
            executed_valid = 0;
            executed_with_price_valid = 0;
            cancel_valid = 0;
            delete_valid = 0;
            replace_valid = 0;
            trade_valid = 0;
            other_valid = 0;
            add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 0;
            add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 0;
            add_order_or_attributed_or_trade_valid = 0;
            add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 0;
            add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 0;
            if (hdr.messages[3].add_order.isValid()) {
                size = 32w38;
                kind_value = hdr.messages[3].add_order.kind;
                locate_value = hdr.messages[3].add_order.locate;
                order_value = hdr.messages[3].add_order.order;
                side_value = hdr.messages[3].add_order.side;
                stock_value = hdr.messages[3].add_order.stock;
                shares_value = hdr.messages[3].add_order.shares;
                price_value = hdr.messages[3].add_order.price;
                add_order_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[3].attributed.isValid()) {
                size = 32w42;
                kind_value = hdr.messages[3].attributed.kind;
                locate_value = hdr.messages[3].attributed.locate;
                order_value = hdr.messages[3].attributed.order;
                side_value = hdr.messages[3].attributed.side;
                stock_value = hdr.messages[3].attributed.stock;
                attribution_value = hdr.messages[3].attributed.attribution;
                shares_value = hdr.messages[3].attributed.shares;
                price_value = hdr.messages[3].attributed.price;
                attributed_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[3].executed.isValid()) {
                size = 32w33;
                kind_value = hdr.messages[3].executed.kind;
                locate_value = hdr.messages[3].executed.locate;
                order_value = hdr.messages[3].executed.order;
                shares_value = hdr.messages[3].executed.shares;
                executed_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[3].executed_with_price.isValid()) {
                size = 32w38;
                kind_value = hdr.messages[3].executed_with_price.kind;
                locate_value = hdr.messages[3].executed_with_price.locate;
                order_value = hdr.messages[3].executed_with_price.order;
                printable_value = hdr.messages[3].executed_with_price.printable;
                shares_value = hdr.messages[3].executed_with_price.shares;
                price_value = hdr.messages[3].executed_with_price.price;
                executed_with_price_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[3].cancel.isValid()) {
                size = 32w25;
                kind_value = hdr.messages[3].cancel.kind;
                locate_value = hdr.messages[3].cancel.locate;
                order_value = hdr.messages[3].cancel.order;
                shares_value = hdr.messages[3].cancel.shares;
                cancel_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[3].delete.isValid()) {
                size = 32w21;
                kind_value = hdr.messages[3].delete.kind;
                locate_value = hdr.messages[3].delete.locate;
                order_value = hdr.messages[3].delete.order;
                delete_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[3].replace.isValid()) {
                size = 32w37;
                kind_value = hdr.messages[3].replace.kind;
                locate_value = hdr.messages[3].replace.locate;
                order_value = hdr.messages[3].replace.order;
                shares_value = hdr.messages[3].replace.shares;
                price_value = hdr.messages[3].replace.price;
                replace_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[3].trade.isValid()) {
                size = 32w46;
                kind_value = hdr.messages[3].trade.kind;
                locate_value = hdr.messages[3].trade.locate;
                order_value = hdr.messages[3].trade.order;
                side_value = hdr.messages[3].trade.side;
                stock_value = hdr.messages[3].trade.stock;
                shares_value = hdr.messages[3].trade.shares;
                price_value = hdr.messages[3].trade.price;
                trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[3].other.isValid()) {
                size = (2 + (bit<32>)hdr.messages[3].other.length);
                kind_value = hdr.messages[3].other.kind;
                locate_value = hdr.messages[3].other.locate;
                other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
            }
            seen = seen + size;
            if (full == 0) {
                meta.subscription.state = 0;
                target = 0;
                validity.apply();
                if (meta.subscription.state[31:24] == 2) {
                    if (!order_exact_1.apply().hit) { order_rest_1.apply(); }
                }
                if (meta.subscription.state[31:24] == 3) {
                    if (!side_exact_2.apply().hit) { side_rest_2.apply(); }
                }
                if (meta.subscription.state[31:24] == 4) {
                    if (!attribution_exact_3.apply().hit) { attribution_rest_3.apply(); }
                }
                if (meta.subscription.state[31:24] == 5) {
                    if (!printable_exact_4.apply().hit) { printable_rest_4.apply(); }
                }
                if (meta.subscription.state[31:24] == 6) {
                    if (!shares_range_5.apply().hit) { shares_rest_5.apply(); }
                }
                if (meta.subscription.state[31:24] == 7) {
                    if (!stock_exact_6.apply().hit) { stock_rest_6.apply(); }
                }
                if (meta.subscription.state[31:24] == 8) {
                    if (!price_range_7.apply().hit) { price_rest_7.apply(); }
                }
                if (meta.subscription.state[31:24] == 9) {
                    if (!kind_exact_8.apply().hit) { kind_rest_8.apply(); }
                }
                if (meta.subscription.state[31:24] == 10) {
                    if (!locate_exact_9.apply().hit) { locate_rest_9.apply(); }
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
                hdr.messages[3].executed.setInvalid();
                hdr.messages[3].executed_with_price.setInvalid();
                hdr.messages[3].cancel.setInvalid();
                hdr.messages[3].delete.setInvalid();
                hdr.messages[3].replace.setInvalid();
                hdr.messages[3].trade.setInvalid();
                hdr.messages[3].other.setInvalid();
            } else {
                done = done + 1;
                if (target == 0) {
                    removed = removed + size;
                    hdr.messages[3].add_order.setInvalid();
                    hdr.messages[3].attributed.setInvalid();
                    hdr.messages[3].executed.setInvalid();
                    hdr.messages[3].executed_with_price.setInvalid();
                    hdr.messages[3].cancel.setInvalid();
                    hdr.messages[3].delete.setInvalid();
                    hdr.messages[3].replace.setInvalid();
                    hdr.messages[3].trade.setInvalid();
                    hdr.messages[3].other.setInvalid();
                } else {
                    run = target;
                    kept = kept + 1;
                }
            }
        }

        if (hdr.messages[4].add_order.isValid() || hdr.messages[4].attributed.isValid() || hdr.messages[4].executed.isValid() || hdr.messages[4].executed_with_price.isValid() || hdr.messages[4].cancel.isValid() || hdr.messages[4].delete.isValid() || hdr.messages[4].replace.isValid() || hdr.messages[4].trade.isValid() || hdr.messages[4].other.isValid()) {
            kind_value = 0;
            locate_value = 0;
            order_value = 0;
            side_value = 0;
            stock_value = 0;
            attribution_value = 0;
            printable_value = 0;
            shares_value = 0;
            price_value = 0;
            add_order_valid = 0;
            attributed_valid = 0;
            executed_valid = 0;
            executed_with_price_valid = 0;
            cancel_valid = 0;
            delete_valid = 0;
            replace_valid = 0;
            trade_valid = 0;
            other_valid = 0;
            add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 0;
            add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 0;
            add_order_or_attributed_or_trade_valid = 0;
            add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 0;
            add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 0;
            if (hdr.messages[4].add_order.isValid()) {
                size = 32w38;
                kind_value = hdr.messages[4].add_order.kind;
                locate_value = hdr.messages[4].add_order.locate;
                order_value = hdr.messages[4].add_order.order;
                side_value = hdr.messages[4].add_order.side;
                stock_value = hdr.messages[4].add_order.stock;
                shares_value = hdr.messages[4].add_order.shares;
                price_value = hdr.messages[4].add_order.price;
                add_order_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[4].attributed.isValid()) {
                size = 32w42;
                kind_value = hdr.messages[4].attributed.kind;
                locate_value = hdr.messages[4].attributed.locate;
                order_value = hdr.messages[4].attributed.order;
                side_value = hdr.messages[4].attributed.side;
                stock_value = hdr.messages[4].attributed.stock;
                attribution_value = hdr.messages[4].attributed.attribution;
                shares_value = hdr.messages[4].attributed.shares;
                price_value = hdr.messages[4].attributed.price;
                attributed_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[4].executed.isValid()) {
                size = 32w33;
                kind_value = hdr.messages[4].executed.kind;
                locate_value = hdr.messages[4].executed.locate;
                order_value = hdr.messages[4].executed.order;
                shares_value = hdr.messages[4].executed.shares;
                executed_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[4].executed_with_price.isValid()) {
                size = 32w38;
                kind_value = hdr.messages[4].executed_with_price.kind;
                locate_value = hdr.messages[4].executed_with_price.locate;
                order_value = hdr.messages[4].executed_with_price.order;
                printable_value = hdr.messages[4].executed_with_price.printable;
                shares_value = hdr.messages[4].executed_with_price.shares;
                price_value = hdr.messages[4].executed_with_price.price;
                executed_with_price_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[4].cancel.isValid()) {
                size = 32w25;
                kind_value = hdr.messages[4].cancel.kind;
                locate_value = hdr.messages[4].cancel.locate;
                order_value = hdr.messages[4].cancel.order;
                shares_value = hdr.messages[4].cancel.shares;
                cancel_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[4].delete.isValid()) {
                size = 32w21;
                kind_value = hdr.messages[4].delete.kind;
                locate_value = hdr.messages[4].delete.locate;
                order_value = hdr.messages[4].delete.order;
                delete_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[4].replace.isValid()) {
                size = 32w37;
                kind_value = hdr.messages[4].replace.kind;
                locate_value = hdr.messages[4].replace.locate;
                order_value = hdr.messages[4].replace.order;
                shares_value = hdr.messages[4].replace.shares;
                price_value = hdr.messages[4].replace.price;
                replace_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[4].trade.isValid()) {
                size = 32w46;
                kind_value = hdr.messages[4].trade.kind;
                locate_value = hdr.messages[4].trade.locate;
                order_value = hdr.messages[4].trade.order;
                side_value = hdr.messages[4].trade.side;
                stock_value = hdr.messages[4].trade.stock;
                shares_value = hdr.messages[4].trade.shares;
                price_value = hdr.messages[4].trade.price;
                trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[4].other.isValid()) {
                size = (2 + (bit<32>)hdr.messages[4].other.length);
                kind_value = hdr.messages[4].other.kind;
                locate_value = hdr.messages[4].other.locate;
                other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
            }
            seen = seen + size;
            if (full == 0) {
                meta.subscription.state = 0;
                target = 0;
                validity.apply();
                if (meta.subscription.state[31:24] == 2) {
                    if (!order_exact_1.apply().hit) { order_rest_1.apply(); }
                }
                if (meta.subscription.state[31:24] == 3) {
                    if (!side_exact_2.apply().hit) { side_rest_2.apply(); }
                }
                if (meta.subscription.state[31:24] == 4) {
                    if (!attribution_exact_3.apply().hit) { attribution_rest_3.apply(); }
                }
                if (meta.subscription.state[31:24] == 5) {
                    if (!printable_exact_4.apply().hit) { printable_rest_4.apply(); }
                }
                if (meta.subscription.state[31:24] == 6) {
                    if (!shares_range_5.apply().hit) { shares_rest_5.apply(); }
                }
                if (meta.subscription.state[31:24] == 7) {
                    if (!stock_exact_6.apply().hit) { stock_rest_6.apply(); }
                }
                if (meta.subscription.state[31:24] == 8) {
                    if (!price_range_7.apply().hit) { price_rest_7.apply(); }
                }
                if (meta.subscription.state[31:24] == 9) {
                    if (!kind_exact_8.apply().hit) { kind_rest_8.apply(); }
                }
                if (meta.subscription.state[31:24] == 10) {
                    if (!locate_exact_9.apply().hit) { locate_rest_9.apply(); }
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
                hdr.messages[4].executed.setInvalid();
                hdr.messages[4].executed_with_price.setInvalid();
                hdr.messages[4].cancel.setInvalid();
                hdr.messages[4].delete.setInvalid();
                hdr.messages[4].replace.setInvalid();
                hdr.messages[4].trade.setInvalid();
                hdr.messages[4].other.setInvalid();
            } else {
                done = done + 1;
                if (target == 0) {
                    removed = removed + size;
                    hdr.messages[4].add_order.setInvalid();
                    hdr.messages[4].attributed.setInvalid();
                    hdr.messages[4].executed.setInvalid();
                    hdr.messages[4].executed_with_price.setInvalid();
                    hdr.messages[4].cancel.setInvalid();
                    hdr.messages[4].delete.setInvalid();
                    hdr.messages[4].replace.setInvalid();
                    hdr.messages[4].trade.setInvalid();
                    hdr.messages[4].other.setInvalid();
                } else {
                    run = target;
                    kept = kept + 1;
                }
            }
        }

        if (hdr.messages[5].add_order.isValid() || hdr.messages[5].attributed.isValid() || hdr.messages[5].executed.isValid() || hdr.messages[5].executed_with_price.isValid() || hdr.messages[5].cancel.isValid() || hdr.messages[5].delete.isValid() || hdr.messages[5].replace.isValid() || hdr.messages[5].trade.isValid() || hdr.messages[5].other.isValid()) {
            kind_value = 0;
            locate_value = 0;
            order_value = 0;
            side_value = 0;
            stock_value = 0;
            attribution_value = 0;
            printable_value = 0;
            shares_value = 0;
            price_value = 0;
            add_order_valid = 0;
            attributed_valid = 0;
            executed_valid = 0;
            executed_with_price_valid = 0;
            cancel_valid = 0;
            delete_valid = 0;
            replace_valid = 0;
            trade_valid = 0;
            other_valid = 0;
            add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 0;
            add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 0;
            add_order_or_attributed_or_trade_valid = 0;
            add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 0;
            add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 0;
            if (hdr.messages[5].add_order.isValid()) {
                size = 32w38;
                kind_value = hdr.messages[5].add_order.kind;
                locate_value = hdr.messages[5].add_order.locate;
                order_value = hdr.messages[5].add_order.order;
                side_value = hdr.messages[5].add_order.side;
                stock_value = hdr.messages[5].add_order.stock;
                shares_value = hdr.messages[5].add_order.shares;
                price_value = hdr.messages[5].add_order.price;
                add_order_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[5].attributed.isValid()) {
                size = 32w42;
                kind_value = hdr.messages[5].attributed.kind;
                locate_value = hdr.messages[5].attributed.locate;
                order_value = hdr.messages[5].attributed.order;
                side_value = hdr.messages[5].attributed.side;
                stock_value = hdr.messages[5].attributed.stock;
                attribution_value = hdr.messages[5].attributed.attribution;
                shares_value = hdr.messages[5].attributed.shares;
                price_value = hdr.messages[5].attributed.price;
                attributed_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[5].executed.isValid()) {
                size = 32w33;
                kind_value = hdr.messages[5].executed.kind;
                locate_value = hdr.messages[5].executed.locate;
                order_value = hdr.messages[5].executed.order;
                shares_value = hdr.messages[5].executed.shares;
                executed_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[5].executed_with_price.isValid()) {
                size = 32w38;
                kind_value = hdr.messages[5].executed_with_price.kind;
                locate_value = hdr.messages[5].executed_with_price.locate;
                order_value = hdr.messages[5].executed_with_price.order;
                printable_value = hdr.messages[5].executed_with_price.printable;
                shares_value = hdr.messages[5].executed_with_price.shares;
                price_value = hdr.messages[5].executed_with_price.price;
                executed_with_price_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[5].cancel.isValid()) {
                size = 32w25;
                kind_value = hdr.messages[5].cancel.kind;
                locate_value = hdr.messages[5].cancel.locate;
                order_value = hdr.messages[5].cancel.order;
                shares_value = hdr.messages[5].cancel.shares;
                cancel_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[5].delete.isValid()) {
                size = 32w21;
                kind_value = hdr.messages[5].delete.kind;
                locate_value = hdr.messages[5].delete.locate;
                order_value = hdr.messages[5].delete.order;
                delete_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[5].replace.isValid()) {
                size = 32w37;
                kind_value = hdr.messages[5].replace.kind;
                locate_value = hdr.messages[5].replace.locate;
                order_value = hdr.messages[5].replace.order;
                shares_value = hdr.messages[5].replace.shares;
                price_value = hdr.messages[5].replace.price;
                replace_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[5].trade.isValid()) {
                size = 32w46;
                kind_value = hdr.messages[5].trade.kind;
                locate_value = hdr.messages[5].trade.locate;
                order_value = hdr.messages[5].trade.order;
                side_value = hdr.messages[5].trade.side;
                stock_value = hdr.messages[5].trade.stock;
                shares_value = hdr.messages[5].trade.shares;
                price_value = hdr.messages[5].trade.price;
                trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[5].other.isValid()) {
                size = (2 + (bit<32>)hdr.messages[5].other.length);
                kind_value = hdr.messages[5].other.kind;
                locate_value = hdr.messages[5].other.locate;
                other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
            }
            seen = seen + size;
            if (full == 0) {
                meta.subscription.state = 0;
                target = 0;
                validity.apply();
                if (meta.subscription.state[31:24] == 2) {
                    if (!order_exact_1.apply().hit) { order_rest_1.apply(); }
                }
                if (meta.subscription.state[31:24] == 3) {
                    if (!side_exact_2.apply().hit) { side_rest_2.apply(); }
                }
                if (meta.subscription.state[31:24] == 4) {
                    if (!attribution_exact_3.apply().hit) { attribution_rest_3.apply(); }
                }
                if (meta.subscription.state[31:24] == 5) {
                    if (!printable_exact_4.apply().hit) { printable_rest_4.apply(); }
                }
                if (meta.subscription.state[31:24] == 6) {
                    if (!shares_range_5.apply().hit) { shares_rest_5.apply(); }
                }
                if (meta.subscription.state[31:24] == 7) {
                    if (!stock_exact_6.apply().hit) { stock_rest_6.apply(); }
                }
                if (meta.subscription.state[31:24] == 8) {
                    if (!price_range_7.apply().hit) { price_rest_7.apply(); }
                }
                if (meta.subscription.state[31:24] == 9) {
                    if (!kind_exact_8.apply().hit) { kind_rest_8.apply(); }
                }
                if (meta.subscription.state[31:24] == 10) {
                    if (!locate_exact_9.apply().hit) { locate_rest_9.apply(); }
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
                hdr.messages[5].executed.setInvalid();
                hdr.messages[5].executed_with_price.setInvalid();
                hdr.messages[5].cancel.setInvalid();
                hdr.messages[5].delete.setInvalid();
                hdr.messages[5].replace.setInvalid();
                hdr.messages[5].trade.setInvalid();
                hdr.messages[5].other.setInvalid();
            } else {
                done = done + 1;
                if (target == 0) {
                    removed = removed + size;
                    hdr.messages[5].add_order.setInvalid();
                    hdr.messages[5].attributed.setInvalid();
                    hdr.messages[5].executed.setInvalid();
                    hdr.messages[5].executed_with_price.setInvalid();
                    hdr.messages[5].cancel.setInvalid();
                    hdr.messages[5].delete.setInvalid();
                    hdr.messages[5].replace.setInvalid();
                    hdr.messages[5].trade.setInvalid();
                    hdr.messages[5].other.setInvalid();
                } else {
                    run = target;
                    kept = kept + 1;
                }
            }
        }

        if (hdr.messages[6].add_order.isValid() || hdr.messages[6].attributed.isValid() || hdr.messages[6].executed.isValid() || hdr.messages[6].executed_with_price.isValid() || hdr.messages[6].cancel.isValid() || hdr.messages[6].delete.isValid() || hdr.messages[6].replace.isValid() || hdr.messages[6].trade.isValid() || hdr.messages[6].other.isValid()) {
            kind_value = 0;
            locate_value = 0;
            order_value = 0;
            side_value = 0;
            stock_value = 0;
            attribution_value = 0;
            printable_value = 0;
            shares_value = 0;
            price_value = 0;
            add_order_valid = 0;
            attributed_valid = 0;
            executed_valid = 0;
            executed_with_price_valid = 0;
            cancel_valid = 0;
            delete_valid = 0;
            replace_valid = 0;
            trade_valid = 0;
            other_valid = 0;
            add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 0;
            add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 0;
            add_order_or_attributed_or_trade_valid = 0;
            add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 0;
            add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 0;
            if (hdr.messages[6].add_order.isValid()) {
                size = 32w38;
                kind_value = hdr.messages[6].add_order.kind;
                locate_value = hdr.messages[6].add_order.locate;
                order_value = hdr.messages[6].add_order.order;
                side_value = hdr.messages[6].add_order.side;
                stock_value = hdr.messages[6].add_order.stock;
                shares_value = hdr.messages[6].add_order.shares;
                price_value = hdr.messages[6].add_order.price;
                add_order_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[6].attributed.isValid()) {
                size = 32w42;
                kind_value = hdr.messages[6].attributed.kind;
                locate_value = hdr.messages[6].attributed.locate;
                order_value = hdr.messages[6].attributed.order;
                side_value = hdr.messages[6].attributed.side;
                stock_value = hdr.messages[6].attributed.stock;
                attribution_value = hdr.messages[6].attributed.attribution;
                shares_value = hdr.messages[6].attributed.shares;
                price_value = hdr.messages[6].attributed.price;
                attributed_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[6].executed.isValid()) {
                size = 32w33;
                kind_value = hdr.messages[6].executed.kind;
                locate_value = hdr.messages[6].executed.locate;
                order_value = hdr.messages[6].executed.order;
                shares_value = hdr.messages[6].executed.shares;
                executed_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[6].executed_with_price.isValid()) {
                size = 32w38;
                kind_value = hdr.messages[6].executed_with_price.kind;
                locate_value = hdr.messages[6].executed_with_price.locate;
                order_value = hdr.messages[6].executed_with_price.order;
                printable_value = hdr.messages[6].executed_with_price.printable;
                shares_value = hdr.messages[6].executed_with_price.shares;
                price_value = hdr.messages[6].executed_with_price.price;
                executed_with_price_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[6].cancel.isValid()) {
                size = 32w25;
                kind_value = hdr.messages[6].cancel.kind;
                locate_value = hdr.messages[6].cancel.locate;
                order_value = hdr.messages[6].cancel.order;
                shares_value = hdr.messages[6].cancel.shares;
                cancel_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[6].delete.isValid()) {
                size = 32w21;
                kind_value = hdr.messages[6].delete.kind;
                locate_value = hdr.messages[6].delete.locate;
                order_value = hdr.messages[6].delete.order;
                delete_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[6].replace.isValid()) {
                size = 32w37;
                kind_value = hdr.messages[6].replace.kind;
                locate_value = hdr.messages[6].replace.locate;
                order_value = hdr.messages[6].replace.order;
                shares_value = hdr.messages[6].replace.shares;
                price_value = hdr.messages[6].replace.price;
                replace_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[6].trade.isValid()) {
                size = 32w46;
                kind_value = hdr.messages[6].trade.kind;
                locate_value = hdr.messages[6].trade.locate;
                order_value = hdr.messages[6].trade.order;
                side_value = hdr.messages[6].trade.side;
                stock_value = hdr.messages[6].trade.stock;
                shares_value = hdr.messages[6].trade.shares;
                price_value = hdr.messages[6].trade.price;
                trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[6].other.isValid()) {
                size = (2 + (bit<32>)hdr.messages[6].other.length);
                kind_value = hdr.messages[6].other.kind;
                locate_value = hdr.messages[6].other.locate;
                other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
            }
            seen = seen + size;
            if (full == 0) {
                meta.subscription.state = 0;
                target = 0;
                validity.apply();
                if (meta.subscription.state[31:24] == 2) {
                    if (!order_exact_1.apply().hit) { order_rest_1.apply(); }
                }
                if (meta.subscription.state[31:24] == 3) {
                    if (!side_exact_2.apply().hit) { side_rest_2.apply(); }
                }
                if (meta.subscription.state[31:24] == 4) {
                    if (!attribution_exact_3.apply().hit) { attribution_rest_3.apply(); }
                }
                if (meta.subscription.state[31:24] == 5) {
                    if (!printable_exact_4.apply().hit) { printable_rest_4.apply(); }
                }
                if (meta.subscription.state[31:24] == 6) {
                    if (!shares_range_5.apply().hit) { shares_rest_5.apply(); }
                }
                if (meta.subscription.state[31:24] == 7) {
                    if (!stock_exact_6.apply().hit) { stock_rest_6.apply(); }
                }
                if (meta.subscription.state[31:24] == 8) {
                    if (!price_range_7.apply().hit) { price_rest_7.apply(); }
                }
                if (meta.subscription.state[31:24] == 9) {
                    if (!kind_exact_8.apply().hit) { kind_rest_8.apply(); }
                }
                if (meta.subscription.state[31:24] == 10) {
                    if (!locate_exact_9.apply().hit) { locate_rest_9.apply(); }
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
                hdr.messages[6].executed.setInvalid();
                hdr.messages[6].executed_with_price.setInvalid();
                hdr.messages[6].cancel.setInvalid();
                hdr.messages[6].delete.setInvalid();
                hdr.messages[6].replace.setInvalid();
                hdr.messages[6].trade.setInvalid();
                hdr.messages[6].other.setInvalid();
            } else {
                done = done + 1;
                if (target == 0) {
                    removed = removed + size;
                    hdr.messages[6].add_order.setInvalid();
                    hdr.messages[6].attributed.setInvalid();
                    hdr.messages[6].executed.setInvalid();
                    hdr.messages[6].executed_with_price.setInvalid();
                    hdr.messages[6].cancel.setInvalid();
                    hdr.messages[6].delete.setInvalid();
                    hdr.messages[6].replace.setInvalid();
                    hdr.messages[6].trade.setInvalid();
                    hdr.messages[6].other.setInvalid();
                } else {
                    run = target;
                    kept = kept + 1;
                }
            }
        }

        if (hdr.messages[7].add_order.isValid() || hdr.messages[7].attributed.isValid() || hdr.messages[7].executed.isValid() || hdr.messages[7].executed_with_price.isValid() || hdr.messages[7].cancel.isValid() || hdr.messages[7].delete.isValid() || hdr.messages[7].replace.isValid() || hdr.messages[7].trade.isValid() || hdr.messages[7].other.isValid()) {
            kind_value = 0;
            locate_value = 0;
            order_value = 0;
            side_value = 0;
            stock_value = 0;
            attribution_value = 0;
            printable_value = 0;
            shares_value = 0;
            price_value = 0;
            add_order_valid = 0;
            attributed_valid = 0;
            executed_valid = 0;
            executed_with_price_valid = 0;
            cancel_valid = 0;
            delete_valid = 0;
            replace_valid = 0;
            trade_valid = 0;
            other_valid = 0;
            add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 0;
            add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 0;
            add_order_or_attributed_or_trade_valid = 0;
            add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 0;
            add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 0;
            if (hdr.messages[7].add_order.isValid()) {
                size = 32w38;
                kind_value = hdr.messages[7].add_order.kind;
                locate_value = hdr.messages[7].add_order.locate;
                order_value = hdr.messages[7].add_order.order;
                side_value = hdr.messages[7].add_order.side;
                stock_value = hdr.messages[7].add_order.stock;
                shares_value = hdr.messages[7].add_order.shares;
                price_value = hdr.messages[7].add_order.price;
                add_order_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[7].attributed.isValid()) {
                size = 32w42;
                kind_value = hdr.messages[7].attributed.kind;
                locate_value = hdr.messages[7].attributed.locate;
                order_value = hdr.messages[7].attributed.order;
                side_value = hdr.messages[7].attributed.side;
                stock_value = hdr.messages[7].attributed.stock;
                attribution_value = hdr.messages[7].attributed.attribution;
                shares_value = hdr.messages[7].attributed.shares;
                price_value = hdr.messages[7].attributed.price;
                attributed_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[7].executed.isValid()) {
                size = 32w33;
                kind_value = hdr.messages[7].executed.kind;
                locate_value = hdr.messages[7].executed.locate;
                order_value = hdr.messages[7].executed.order;
                shares_value = hdr.messages[7].executed.shares;
                executed_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[7].executed_with_price.isValid()) {
                size = 32w38;
                kind_value = hdr.messages[7].executed_with_price.kind;
                locate_value = hdr.messages[7].executed_with_price.locate;
                order_value = hdr.messages[7].executed_with_price.order;
                printable_value = hdr.messages[7].executed_with_price.printable;
                shares_value = hdr.messages[7].executed_with_price.shares;
                price_value = hdr.messages[7].executed_with_price.price;
                executed_with_price_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[7].cancel.isValid()) {
                size = 32w25;
                kind_value = hdr.messages[7].cancel.kind;
                locate_value = hdr.messages[7].cancel.locate;
                order_value = hdr.messages[7].cancel.order;
                shares_value = hdr.messages[7].cancel.shares;
                cancel_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[7].delete.isValid()) {
                size = 32w21;
                kind_value = hdr.messages[7].delete.kind;
                locate_value = hdr.messages[7].delete.locate;
                order_value = hdr.messages[7].delete.order;
                delete_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[7].replace.isValid()) {
                size = 32w37;
                kind_value = hdr.messages[7].replace.kind;
                locate_value = hdr.messages[7].replace.locate;
                order_value = hdr.messages[7].replace.order;
                shares_value = hdr.messages[7].replace.shares;
                price_value = hdr.messages[7].replace.price;
                replace_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[7].trade.isValid()) {
                size = 32w46;
                kind_value = hdr.messages[7].trade.kind;
                locate_value = hdr.messages[7].trade.locate;
                order_value = hdr.messages[7].trade.order;
                side_value = hdr.messages[7].trade.side;
                stock_value = hdr.messages[7].trade.stock;
                shares_value = hdr.messages[7].trade.shares;
                price_value = hdr.messages[7].trade.price;
                trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[7].other.isValid()) {
                size = (2 + (bit<32>)hdr.messages[7].other.length);
                kind_value = hdr.messages[7].other.kind;
                locate_value = hdr.messages[7].other.locate;
                other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
            }
            seen = seen + size;
            if (full == 0) {
                meta.subscription.state = 0;
                target = 0;
                validity.apply();
                if (meta.subscription.state[31:24] == 2) {
                    if (!order_exact_1.apply().hit) { order_rest_1.apply(); }
                }
                if (meta.subscription.state[31:24] == 3) {
                    if (!side_exact_2.apply().hit) { side_rest_2.apply(); }
                }
                if (meta.subscription.state[31:24] == 4) {
                    if (!attribution_exact_3.apply().hit) { attribution_rest_3.apply(); }
                }
                if (meta.subscription.state[31:24] == 5) {
                    if (!printable_exact_4.apply().hit) { printable_rest_4.apply(); }
                }
                if (meta.subscription.state[31:24] == 6) {
                    if (!shares_range_5.apply().hit) { shares_rest_5.apply(); }
                }
                if (meta.subscription.state[31:24] == 7) {
                    if (!stock_exact_6.apply().hit) { stock_rest_6.apply(); }
                }
                if (meta.subscription.state[31:24] == 8) {
                    if (!price_range_7.apply().hit) { price_rest_7.apply(); }
                }
                if (meta.subscription.state[31:24] == 9) {
                    if (!kind_exact_8.apply().hit) { kind_rest_8.apply(); }
                }
                if (meta.subscription.state[31:24] == 10) {
                    if (!locate_exact_9.apply().hit) { locate_rest_9.apply(); }
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
                hdr.messages[7].executed.setInvalid();
                hdr.messages[7].executed_with_price.setInvalid();
                hdr.messages[7].cancel.setInvalid();
                hdr.messages[7].delete.setInvalid();
                hdr.messages[7].replace.setInvalid();
                hdr.messages[7].trade.setInvalid();
                hdr.messages[7].other.setInvalid();
            } else {
                done = done + 1;
                if (target == 0) {
                    removed = removed + size;
                    hdr.messages[7].add_order.setInvalid();
                    hdr.messages[7].attributed.setInvalid();
                    hdr.messages[7].executed.setInvalid();
                    hdr.messages[7].executed_with_price.setInvalid();
                    hdr.messages[7].cancel.setInvalid();
                    hdr.messages[7].delete.setInvalid();
                    hdr.messages[7].replace.setInvalid();
                    hdr.messages[7].trade.setInvalid();
                    hdr.messages[7].other.setInvalid();
                } else {
                    run = target;
                    kept = kept + 1;
                }
            }
        }

        if (hdr.messages[8].add_order.isValid() || hdr.messages[8].attributed.isValid() || hdr.messages[8].executed.isValid() || hdr.messages[8].executed_with_price.isValid() || hdr.messages[8].cancel.isValid() || hdr.messages[8].delete.isValid() || hdr.messages[8].replace.isValid() || hdr.messages[8].trade.isValid() || hdr.messages[8].other.isValid()) {
            kind_value = 0;
            locate_value = 0;
            order_value = 0;
            side_value = 0;
            stock_value = 0;
            attribution_value = 0;
            printable_value = 0;
            shares_value = 0;
            price_value = 0;
            add_order_valid = 0;
            attributed_valid = 0;
            executed_valid = 0;
            executed_with_price_valid = 0;
            cancel_valid = 0;
            delete_valid = 0;
            replace_valid = 0;
            trade_valid = 0;
            other_valid = 0;
            add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 0;
            add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 0;
            add_order_or_attributed_or_trade_valid = 0;
            add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 0;
            add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 0;
            if (hdr.messages[8].add_order.isValid()) {
                size = 32w38;
                kind_value = hdr.messages[8].add_order.kind;
                locate_value = hdr.messages[8].add_order.locate;
                order_value = hdr.messages[8].add_order.order;
                side_value = hdr.messages[8].add_order.side;
                stock_value = hdr.messages[8].add_order.stock;
                shares_value = hdr.messages[8].add_order.shares;
                price_value = hdr.messages[8].add_order.price;
                add_order_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[8].attributed.isValid()) {
                size = 32w42;
                kind_value = hdr.messages[8].attributed.kind;
                locate_value = hdr.messages[8].attributed.locate;
                order_value = hdr.messages[8].attributed.order;
                side_value = hdr.messages[8].attributed.side;
                stock_value = hdr.messages[8].attributed.stock;
                attribution_value = hdr.messages[8].attributed.attribution;
                shares_value = hdr.messages[8].attributed.shares;
                price_value = hdr.messages[8].attributed.price;
                attributed_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[8].executed.isValid()) {
                size = 32w33;
                kind_value = hdr.messages[8].executed.kind;
                locate_value = hdr.messages[8].executed.locate;
                order_value = hdr.messages[8].executed.order;
                shares_value = hdr.messages[8].executed.shares;
                executed_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[8].executed_with_price.isValid()) {
                size = 32w38;
                kind_value = hdr.messages[8].executed_with_price.kind;
                locate_value = hdr.messages[8].executed_with_price.locate;
                order_value = hdr.messages[8].executed_with_price.order;
                printable_value = hdr.messages[8].executed_with_price.printable;
                shares_value = hdr.messages[8].executed_with_price.shares;
                price_value = hdr.messages[8].executed_with_price.price;
                executed_with_price_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[8].cancel.isValid()) {
                size = 32w25;
                kind_value = hdr.messages[8].cancel.kind;
                locate_value = hdr.messages[8].cancel.locate;
                order_value = hdr.messages[8].cancel.order;
                shares_value = hdr.messages[8].cancel.shares;
                cancel_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[8].delete.isValid()) {
                size = 32w21;
                kind_value = hdr.messages[8].delete.kind;
                locate_value = hdr.messages[8].delete.locate;
                order_value = hdr.messages[8].delete.order;
                delete_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[8].replace.isValid()) {
                size = 32w37;
                kind_value = hdr.messages[8].replace.kind;
                locate_value = hdr.messages[8].replace.locate;
                order_value = hdr.messages[8].replace.order;
                shares_value = hdr.messages[8].replace.shares;
                price_value = hdr.messages[8].replace.price;
                replace_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[8].trade.isValid()) {
                size = 32w46;
                kind_value = hdr.messages[8].trade.kind;
                locate_value = hdr.messages[8].trade.locate;
                order_value = hdr.messages[8].trade.order;
                side_value = hdr.messages[8].trade.side;
                stock_value = hdr.messages[8].trade.stock;
                shares_value = hdr.messages[8].trade.shares;
                price_value = hdr.messages[8].trade.price;
                trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[8].other.isValid()) {
                size = (2 + (bit<32>)hdr.messages[8].other.length);
                kind_value = hdr.messages[8].other.kind;
                locate_value = hdr.messages[8].other.locate;
                other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
            }
            seen = seen + size;
            if (full == 0) {
                meta.subscription.state = 0;
                target = 0;
                validity.apply();
                if (meta.subscription.state[31:24] == 2) {
                    if (!order_exact_1.apply().hit) { order_rest_1.apply(); }
                }
                if (meta.subscription.state[31:24] == 3) {
                    if (!side_exact_2.apply().hit) { side_rest_2.apply(); }
                }
                if (meta.subscription.state[31:24] == 4) {
                    if (!attribution_exact_3.apply().hit) { attribution_rest_3.apply(); }
                }
                if (meta.subscription.state[31:24] == 5) {
                    if (!printable_exact_4.apply().hit) { printable_rest_4.apply(); }
                }
                if (meta.subscription.state[31:24] == 6) {
                    if (!shares_range_5.apply().hit) { shares_rest_5.apply(); }
                }
                if (meta.subscription.state[31:24] == 7) {
                    if (!stock_exact_6.apply().hit) { stock_rest_6.apply(); }
                }
                if (meta.subscription.state[31:24] == 8) {
                    if (!price_range_7.apply().hit) { price_rest_7.apply(); }
                }
                if (meta.subscription.state[31:24] == 9) {
                    if (!kind_exact_8.apply().hit) { kind_rest_8.apply(); }
                }
                if (meta.subscription.state[31:24] == 10) {
                    if (!locate_exact_9.apply().hit) { locate_rest_9.apply(); }
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
                hdr.messages[8].executed.setInvalid();
                hdr.messages[8].executed_with_price.setInvalid();
                hdr.messages[8].cancel.setInvalid();
                hdr.messages[8].delete.setInvalid();
                hdr.messages[8].replace.setInvalid();
                hdr.messages[8].trade.setInvalid();
                hdr.messages[8].other.setInvalid();
            } else {
                done = done + 1;
                if (target == 0) {
                    removed = removed + size;
                    hdr.messages[8].add_order.setInvalid();
                    hdr.messages[8].attributed.setInvalid();
                    hdr.messages[8].executed.setInvalid();
                    hdr.messages[8].executed_with_price.setInvalid();
                    hdr.messages[8].cancel.setInvalid();
                    hdr.messages[8].delete.setInvalid();
                    hdr.messages[8].replace.setInvalid();
                    hdr.messages[8].trade.setInvalid();
                    hdr.messages[8].other.setInvalid();
                } else {
                    run = target;
                    kept = kept + 1;
                }
            }
        }

        if (hdr.messages[9].add_order.isValid() || hdr.messages[9].attributed.isValid() || hdr.messages[9].executed.isValid() || hdr.messages[9].executed_with_price.isValid() || hdr.messages[9].cancel.isValid() || hdr.messages[9].delete.isValid() || hdr.messages[9].replace.isValid() || hdr.messages[9].trade.isValid() || hdr.messages[9].other.isValid()) {
            kind_value = 0;
            locate_value = 0;
            order_value = 0;
            side_value = 0;
            stock_value = 0;
            attribution_value = 0;
            printable_value = 0;
            shares_value = 0;
            price_value = 0;
            add_order_valid = 0;
            attributed_valid = 0;
            executed_valid = 0;
            executed_with_price_valid = 0;
            cancel_valid = 0;
            delete_valid = 0;
            replace_valid = 0;
            trade_valid = 0;
            other_valid = 0;
            add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 0;
            add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 0;
            add_order_or_attributed_or_trade_valid = 0;
            add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 0;
            add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 0;
            if (hdr.messages[9].add_order.isValid()) {
                size = 32w38;
                kind_value = hdr.messages[9].add_order.kind;
                locate_value = hdr.messages[9].add_order.locate;
                order_value = hdr.messages[9].add_order.order;
                side_value = hdr.messages[9].add_order.side;
                stock_value = hdr.messages[9].add_order.stock;
                shares_value = hdr.messages[9].add_order.shares;
                price_value = hdr.messages[9].add_order.price;
                add_order_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[9].attributed.isValid()) {
                size = 32w42;
                kind_value = hdr.messages[9].attributed.kind;
                locate_value = hdr.messages[9].attributed.locate;
                order_value = hdr.messages[9].attributed.order;
                side_value = hdr.messages[9].attributed.side;
                stock_value = hdr.messages[9].attributed.stock;
                attribution_value = hdr.messages[9].attributed.attribution;
                shares_value = hdr.messages[9].attributed.shares;
                price_value = hdr.messages[9].attributed.price;
                attributed_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[9].executed.isValid()) {
                size = 32w33;
                kind_value = hdr.messages[9].executed.kind;
                locate_value = hdr.messages[9].executed.locate;
                order_value = hdr.messages[9].executed.order;
                shares_value = hdr.messages[9].executed.shares;
                executed_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[9].executed_with_price.isValid()) {
                size = 32w38;
                kind_value = hdr.messages[9].executed_with_price.kind;
                locate_value = hdr.messages[9].executed_with_price.locate;
                order_value = hdr.messages[9].executed_with_price.order;
                printable_value = hdr.messages[9].executed_with_price.printable;
                shares_value = hdr.messages[9].executed_with_price.shares;
                price_value = hdr.messages[9].executed_with_price.price;
                executed_with_price_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[9].cancel.isValid()) {
                size = 32w25;
                kind_value = hdr.messages[9].cancel.kind;
                locate_value = hdr.messages[9].cancel.locate;
                order_value = hdr.messages[9].cancel.order;
                shares_value = hdr.messages[9].cancel.shares;
                cancel_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[9].delete.isValid()) {
                size = 32w21;
                kind_value = hdr.messages[9].delete.kind;
                locate_value = hdr.messages[9].delete.locate;
                order_value = hdr.messages[9].delete.order;
                delete_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[9].replace.isValid()) {
                size = 32w37;
                kind_value = hdr.messages[9].replace.kind;
                locate_value = hdr.messages[9].replace.locate;
                order_value = hdr.messages[9].replace.order;
                shares_value = hdr.messages[9].replace.shares;
                price_value = hdr.messages[9].replace.price;
                replace_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[9].trade.isValid()) {
                size = 32w46;
                kind_value = hdr.messages[9].trade.kind;
                locate_value = hdr.messages[9].trade.locate;
                order_value = hdr.messages[9].trade.order;
                side_value = hdr.messages[9].trade.side;
                stock_value = hdr.messages[9].trade.stock;
                shares_value = hdr.messages[9].trade.shares;
                price_value = hdr.messages[9].trade.price;
                trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[9].other.isValid()) {
                size = (2 + (bit<32>)hdr.messages[9].other.length);
                kind_value = hdr.messages[9].other.kind;
                locate_value = hdr.messages[9].other.locate;
                other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
            }
            seen = seen + size;
            if (full == 0) {
                meta.subscription.state = 0;
                target = 0;
                validity.apply();
                if (meta.subscription.state[31:24] == 2) {
                    if (!order_exact_1.apply().hit) { order_rest_1.apply(); }
                }
                if (meta.subscription.state[31:24] == 3) {
                    if (!side_exact_2.apply().hit) { side_rest_2.apply(); }
                }
                if (meta.subscription.state[31:24] == 4) {
                    if (!attribution_exact_3.apply().hit) { attribution_rest_3.apply(); }
                }
                if (meta.subscription.state[31:24] == 5) {
                    if (!printable_exact_4.apply().hit) { printable_rest_4.apply(); }
                }
                if (meta.subscription.state[31:24] == 6) {
                    if (!shares_range_5.apply().hit) { shares_rest_5.apply(); }
                }
                if (meta.subscription.state[31:24] == 7) {
                    if (!stock_exact_6.apply().hit) { stock_rest_6.apply(); }
                }
                if (meta.subscription.state[31:24] == 8) {
                    if (!price_range_7.apply().hit) { price_rest_7.apply(); }
                }
                if (meta.subscription.state[31:24] == 9) {
                    if (!kind_exact_8.apply().hit) { kind_rest_8.apply(); }
                }
                if (meta.subscription.state[31:24] == 10) {
                    if (!locate_exact_9.apply().hit) { locate_rest_9.apply(); }
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
                hdr.messages[9].executed.setInvalid();
                hdr.messages[9].executed_with_price.setInvalid();
                hdr.messages[9].cancel.setInvalid();
                hdr.messages[9].delete.setInvalid();
                hdr.messages[9].replace.setInvalid();
                hdr.messages[9].trade.setInvalid();
                hdr.messages[9].other.setInvalid();
            } else {
                done = done + 1;
                if (target == 0) {
                    removed = removed + size;
                    hdr.messages[9].add_order.setInvalid();
                    hdr.messages[9].attributed.setInvalid();
                    hdr.messages[9].executed.setInvalid();
                    hdr.messages[9].executed_with_price.setInvalid();
                    hdr.messages[9].cancel.setInvalid();
                    hdr.messages[9].delete.setInvalid();
                    hdr.messages[9].replace.setInvalid();
                    hdr.messages[9].trade.setInvalid();
                    hdr.messages[9].other.setInvalid();
                } else {
                    run = target;
                    kept = kept + 1;
                }
            }
        }

        if (hdr.messages[10].add_order.isValid() || hdr.messages[10].attributed.isValid() || hdr.messages[10].executed.isValid() || hdr.messages[10].executed_with_price.isValid() || hdr.messages[10].cancel.isValid() || hdr.messages[10].delete.isValid() || hdr.messages[10].replace.isValid() || hdr.messages[10].trade.isValid() || hdr.messages[10].other.isValid()) {
            kind_value = 0;
            locate_value = 0;
            order_value = 0;
            side_value = 0;
            stock_value = 0;
            attribution_value = 0;
            printable_value = 0;
            shares_value = 0;
            price_value = 0;
            add_order_valid = 0;
            attributed_valid = 0;
            executed_valid = 0;
            executed_with_price_valid = 0;
            cancel_valid = 0;
            delete_valid = 0;
            replace_valid = 0;
            trade_valid = 0;
            other_valid = 0;
            add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 0;
            add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 0;
            add_order_or_attributed_or_trade_valid = 0;
            add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 0;
            add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 0;
            if (hdr.messages[10].add_order.isValid()) {
                size = 32w38;
                kind_value = hdr.messages[10].add_order.kind;
                locate_value = hdr.messages[10].add_order.locate;
                order_value = hdr.messages[10].add_order.order;
                side_value = hdr.messages[10].add_order.side;
                stock_value = hdr.messages[10].add_order.stock;
                shares_value = hdr.messages[10].add_order.shares;
                price_value = hdr.messages[10].add_order.price;
                add_order_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[10].attributed.isValid()) {
                size = 32w42;
                kind_value = hdr.messages[10].attributed.kind;
                locate_value = hdr.messages[10].attributed.locate;
                order_value = hdr.messages[10].attributed.order;
                side_value = hdr.messages[10].attributed.side;
                stock_value = hdr.messages[10].attributed.stock;
                attribution_value = hdr.messages[10].attributed.attribution;
                shares_value = hdr.messages[10].attributed.shares;
                price_value = hdr.messages[10].attributed.price;
                attributed_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[10].executed.isValid()) {
                size = 32w33;
                kind_value = hdr.messages[10].executed.kind;
                locate_value = hdr.messages[10].executed.locate;
                order_value = hdr.messages[10].executed.order;
                shares_value = hdr.messages[10].executed.shares;
                executed_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[10].executed_with_price.isValid()) {
                size = 32w38;
                kind_value = hdr.messages[10].executed_with_price.kind;
                locate_value = hdr.messages[10].executed_with_price.locate;
                order_value = hdr.messages[10].executed_with_price.order;
                printable_value = hdr.messages[10].executed_with_price.printable;
                shares_value = hdr.messages[10].executed_with_price.shares;
                price_value = hdr.messages[10].executed_with_price.price;
                executed_with_price_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[10].cancel.isValid()) {
                size = 32w25;
                kind_value = hdr.messages[10].cancel.kind;
                locate_value = hdr.messages[10].cancel.locate;
                order_value = hdr.messages[10].cancel.order;
                shares_value = hdr.messages[10].cancel.shares;
                cancel_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[10].delete.isValid()) {
                size = 32w21;
                kind_value = hdr.messages[10].delete.kind;
                locate_value = hdr.messages[10].delete.locate;
                order_value = hdr.messages[10].delete.order;
                delete_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[10].replace.isValid()) {
                size = 32w37;
                kind_value = hdr.messages[10].replace.kind;
                locate_value = hdr.messages[10].replace.locate;
                order_value = hdr.messages[10].replace.order;
                shares_value = hdr.messages[10].replace.shares;
                price_value = hdr.messages[10].replace.price;
                replace_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[10].trade.isValid()) {
                size = 32w46;
                kind_value = hdr.messages[10].trade.kind;
                locate_value = hdr.messages[10].trade.locate;
                order_value = hdr.messages[10].trade.order;
                side_value = hdr.messages[10].trade.side;
                stock_value = hdr.messages[10].trade.stock;
                shares_value = hdr.messages[10].trade.shares;
                price_value = hdr.messages[10].trade.price;
                trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[10].other.isValid()) {
                size = (2 + (bit<32>)hdr.messages[10].other.length);
                kind_value = hdr.messages[10].other.kind;
                locate_value = hdr.messages[10].other.locate;
                other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
            }
            seen = seen + size;
            if (full == 0) {
                meta.subscription.state = 0;
                target = 0;
                validity.apply();
                if (meta.subscription.state[31:24] == 2) {
                    if (!order_exact_1.apply().hit) { order_rest_1.apply(); }
                }
                if (meta.subscription.state[31:24] == 3) {
                    if (!side_exact_2.apply().hit) { side_rest_2.apply(); }
                }
                if (meta.subscription.state[31:24] == 4) {
                    if (!attribution_exact_3.apply().hit) { attribution_rest_3.apply(); }
                }
                if (meta.subscription.state[31:24] == 5) {
                    if (!printable_exact_4.apply().hit) { printable_rest_4.apply(); }
                }
                if (meta.subscription.state[31:24] == 6) {
                    if (!shares_range_5.apply().hit) { shares_rest_5.apply(); }
                }
                if (meta.subscription.state[31:24] == 7) {
                    if (!stock_exact_6.apply().hit) { stock_rest_6.apply(); }
                }
                if (meta.subscription.state[31:24] == 8) {
                    if (!price_range_7.apply().hit) { price_rest_7.apply(); }
                }
                if (meta.subscription.state[31:24] == 9) {
                    if (!kind_exact_8.apply().hit) { kind_rest_8.apply(); }
                }
                if (meta.subscription.state[31:24] == 10) {
                    if (!locate_exact_9.apply().hit) { locate_rest_9.apply(); }
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
                hdr.messages[10].executed.setInvalid();
                hdr.messages[10].executed_with_price.setInvalid();
                hdr.messages[10].cancel.setInvalid();
                hdr.messages[10].delete.setInvalid();
                hdr.messages[10].replace.setInvalid();
                hdr.messages[10].trade.setInvalid();
                hdr.messages[10].other.setInvalid();
            } else {
                done = done + 1;
                if (target == 0) {
                    removed = removed + size;
                    hdr.messages[10].add_order.setInvalid();
                    hdr.messages[10].attributed.setInvalid();
                    hdr.messages[10].executed.setInvalid();
                    hdr.messages[10].executed_with_price.setInvalid();
                    hdr.messages[10].cancel.setInvalid();
                    hdr.messages[10].delete.setInvalid();
                    hdr.messages[10].replace.setInvalid();
                    hdr.messages[10].trade.setInvalid();
                    hdr.messages[10].other.setInvalid();
                } else {
                    run = target;
                    kept = kept + 1;
                }
            }
        }

        if (hdr.messages[11].add_order.isValid() || hdr.messages[11].attributed.isValid() || hdr.messages[11].executed.isValid() || hdr.messages[11].executed_with_price.isValid() || hdr.messages[11].cancel.isValid() || hdr.messages[11].delete.isValid() || hdr.messages[11].replace.isValid() || hdr.messages[11].trade.isValid() || hdr.messages[11].other.isValid()) {
            kind_value = 0;
            locate_value = 0;
            order_value = 0;
            side_value = 0;
            stock_value = 0;
            attribution_value = 0;
            printable_value = 0;
            shares_value = 0;
            price_value = 0;
            add_order_valid = 0;
            attributed_valid = 0;
            executed_valid = 0;
            executed_with_price_valid = 0;
            cancel_valid = 0;
            delete_valid = 0;
            replace_valid = 0;
            trade_valid = 0;
            other_valid = 0;
            add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 0;
            add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 0;
            add_order_or_attributed_or_trade_valid = 0;
            add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 0;
            add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 0;
            if (hdr.messages[11].add_order.isValid()) {
                size = 32w38;
                kind_value = hdr.messages[11].add_order.kind;
                locate_value = hdr.messages[11].add_order.locate;
                order_value = hdr.messages[11].add_order.order;
                side_value = hdr.messages[11].add_order.side;
                stock_value = hdr.messages[11].add_order.stock;
                shares_value = hdr.messages[11].add_order.shares;
                price_value = hdr.messages[11].add_order.price;
                add_order_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[11].attributed.isValid()) {
                size = 32w42;
                kind_value = hdr.messages[11].attributed.kind;
                locate_value = hdr.messages[11].attributed.locate;
                order_value = hdr.messages[11].attributed.order;
                side_value = hdr.messages[11].attributed.side;
                stock_value = hdr.messages[11].attributed.stock;
                attribution_value = hdr.messages[11].attributed.attribution;
                shares_value = hdr.messages[11].attributed.shares;
                price_value = hdr.messages[11].attributed.price;
                attributed_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[11].executed.isValid()) {
                size = 32w33;
                kind_value = hdr.messages[11].executed.kind;
                locate_value = hdr.messages[11].executed.locate;
                order_value = hdr.messages[11].executed.order;
                shares_value = hdr.messages[11].executed.shares;
                executed_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[11].executed_with_price.isValid()) {
                size = 32w38;
                kind_value = hdr.messages[11].executed_with_price.kind;
                locate_value = hdr.messages[11].executed_with_price.locate;
                order_value = hdr.messages[11].executed_with_price.order;
                printable_value = hdr.messages[11].executed_with_price.printable;
                shares_value = hdr.messages[11].executed_with_price.shares;
                price_value = hdr.messages[11].executed_with_price.price;
                executed_with_price_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[11].cancel.isValid()) {
                size = 32w25;
                kind_value = hdr.messages[11].cancel.kind;
                locate_value = hdr.messages[11].cancel.locate;
                order_value = hdr.messages[11].cancel.order;
                shares_value = hdr.messages[11].cancel.shares;
                cancel_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[11].delete.isValid()) {
                size = 32w21;
                kind_value = hdr.messages[11].delete.kind;
                locate_value = hdr.messages[11].delete.locate;
                order_value = hdr.messages[11].delete.order;
                delete_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[11].replace.isValid()) {
                size = 32w37;
                kind_value = hdr.messages[11].replace.kind;
                locate_value = hdr.messages[11].replace.locate;
                order_value = hdr.messages[11].replace.order;
                shares_value = hdr.messages[11].replace.shares;
                price_value = hdr.messages[11].replace.price;
                replace_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[11].trade.isValid()) {
                size = 32w46;
                kind_value = hdr.messages[11].trade.kind;
                locate_value = hdr.messages[11].trade.locate;
                order_value = hdr.messages[11].trade.order;
                side_value = hdr.messages[11].trade.side;
                stock_value = hdr.messages[11].trade.stock;
                shares_value = hdr.messages[11].trade.shares;
                price_value = hdr.messages[11].trade.price;
                trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_trade_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_replace_or_trade_valid = 1;
                add_order_or_attributed_or_executed_with_price_or_replace_or_trade_valid = 1;
            } else if (hdr.messages[11].other.isValid()) {
                size = (2 + (bit<32>)hdr.messages[11].other.length);
                kind_value = hdr.messages[11].other.kind;
                locate_value = hdr.messages[11].other.locate;
                other_valid = 1;
                add_order_or_attributed_or_executed_or_executed_with_price_or_cancel_or_delete_or_replace_or_trade_or_other_valid = 1;
            }
            seen = seen + size;
            if (full == 0) {
                meta.subscription.state = 0;
                target = 0;
                validity.apply();
                if (meta.subscription.state[31:24] == 2) {
                    if (!order_exact_1.apply().hit) { order_rest_1.apply(); }
                }
                if (meta.subscription.state[31:24] == 3) {
                    if (!side_exact_2.apply().hit) { side_rest_2.apply(); }
                }
                if (meta.subscription.state[31:24] == 4) {
                    if (!attribution_exact_3.apply().hit) { attribution_rest_3.apply(); }
                }
                if (meta.subscription.state[31:24] == 5) {
                    if (!printable_exact_4.apply().hit) { printable_rest_4.apply(); }
                }
                if (meta.subscription.state[31:24] == 6) {
                    if (!shares_range_5.apply().hit) { shares_rest_5.apply(); }
                }
                if (meta.subscription.state[31:24] == 7) {
                    if (!stock_exact_6.apply().hit) { stock_rest_6.apply(); }
                }
                if (meta.subscription.state[31:24] == 8) {
                    if (!price_range_7.apply().hit) { price_rest_7.apply(); }
                }
                if (meta.subscription.state[31:24] == 9) {
                    if (!kind_exact_8.apply().hit) { kind_rest_8.apply(); }
                }
                if (meta.subscription.state[31:24] == 10) {
                    if (!locate_exact_9.apply().hit) { locate_rest_9.apply(); }
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
                hdr.messages[11].executed.setInvalid();
                hdr.messages[11].executed_with_price.setInvalid();
                hdr.messages[11].cancel.setInvalid();
                hdr.messages[11].delete.setInvalid();
                hdr.messages[11].replace.setInvalid();
                hdr.messages[11].trade.setInvalid();
                hdr.messages[11].other.setInvalid();
            } else {
                done = done + 1;
                if (target == 0) {
                    removed = removed + size;
                    hdr.messages[11].add_order.setInvalid();
                    hdr.messages[11].attributed.setInvalid();
                    hdr.messages[11].executed.setInvalid();
                    hdr.messages[11].executed_with_price.setInvalid();
                    hdr.messages[11].cancel.setInvalid();
                    hdr.messages[11].delete.setInvalid();
                    hdr.messages[11].replace.setInvalid();
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
            if (run == 0 && meta.subscription.passes < 64) {
                meta.subscription.around = 1;
                meta.subscription.passes = meta.subscription.passes + 1;
                hdr.mold.count = hdr.mold.count - (bit<16>)done;
                hdr.mold.sequence = hdr.mold.sequence + (bit<64>)done;
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
                standard_metadata.egress_spec = 510;
                return;
            }
            if (meta.subscription.passes > 62) {
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
            // Nothing leaves of what is behind the stack: neither messages nor what is behind them.
            meta.subscription.keep = seen - removed;
            if (hdr.ethernet.isValid()) {
                meta.subscription.keep = meta.subscription.keep + 32w14;
            }
            if (hdr.ipv4.isValid()) {
                meta.subscription.keep = meta.subscription.keep + 32w20;
            }
            if (hdr.udp.isValid()) {
                meta.subscription.keep = meta.subscription.keep + 32w8;
            }
            if (hdr.mold.isValid()) {
                meta.subscription.keep = meta.subscription.keep + 32w20;
            }
            removed = removed + promised - before;
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
    register<bit<64>>(32768) delivered;    // messages that each port was given of each stream
    register<bit<64>>(32768) opened;       // messages that it was shown to miss
    register<bit<64>>(32768) numbered;     // in which session of the stream

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
                } else if (hdr.messages[0].executed.isValid()) {
                    removed = removed + 32w33;
                    hdr.messages[0].executed.setInvalid();
                } else if (hdr.messages[0].executed_with_price.isValid()) {
                    removed = removed + 32w38;
                    hdr.messages[0].executed_with_price.setInvalid();
                } else if (hdr.messages[0].cancel.isValid()) {
                    removed = removed + 32w25;
                    hdr.messages[0].cancel.setInvalid();
                } else if (hdr.messages[0].delete.isValid()) {
                    removed = removed + 32w21;
                    hdr.messages[0].delete.setInvalid();
                } else if (hdr.messages[0].replace.isValid()) {
                    removed = removed + 32w37;
                    hdr.messages[0].replace.setInvalid();
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
                } else if (hdr.messages[1].executed.isValid()) {
                    removed = removed + 32w33;
                    hdr.messages[1].executed.setInvalid();
                } else if (hdr.messages[1].executed_with_price.isValid()) {
                    removed = removed + 32w38;
                    hdr.messages[1].executed_with_price.setInvalid();
                } else if (hdr.messages[1].cancel.isValid()) {
                    removed = removed + 32w25;
                    hdr.messages[1].cancel.setInvalid();
                } else if (hdr.messages[1].delete.isValid()) {
                    removed = removed + 32w21;
                    hdr.messages[1].delete.setInvalid();
                } else if (hdr.messages[1].replace.isValid()) {
                    removed = removed + 32w37;
                    hdr.messages[1].replace.setInvalid();
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
                } else if (hdr.messages[2].executed.isValid()) {
                    removed = removed + 32w33;
                    hdr.messages[2].executed.setInvalid();
                } else if (hdr.messages[2].executed_with_price.isValid()) {
                    removed = removed + 32w38;
                    hdr.messages[2].executed_with_price.setInvalid();
                } else if (hdr.messages[2].cancel.isValid()) {
                    removed = removed + 32w25;
                    hdr.messages[2].cancel.setInvalid();
                } else if (hdr.messages[2].delete.isValid()) {
                    removed = removed + 32w21;
                    hdr.messages[2].delete.setInvalid();
                } else if (hdr.messages[2].replace.isValid()) {
                    removed = removed + 32w37;
                    hdr.messages[2].replace.setInvalid();
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
                } else if (hdr.messages[3].executed.isValid()) {
                    removed = removed + 32w33;
                    hdr.messages[3].executed.setInvalid();
                } else if (hdr.messages[3].executed_with_price.isValid()) {
                    removed = removed + 32w38;
                    hdr.messages[3].executed_with_price.setInvalid();
                } else if (hdr.messages[3].cancel.isValid()) {
                    removed = removed + 32w25;
                    hdr.messages[3].cancel.setInvalid();
                } else if (hdr.messages[3].delete.isValid()) {
                    removed = removed + 32w21;
                    hdr.messages[3].delete.setInvalid();
                } else if (hdr.messages[3].replace.isValid()) {
                    removed = removed + 32w37;
                    hdr.messages[3].replace.setInvalid();
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
                } else if (hdr.messages[4].executed.isValid()) {
                    removed = removed + 32w33;
                    hdr.messages[4].executed.setInvalid();
                } else if (hdr.messages[4].executed_with_price.isValid()) {
                    removed = removed + 32w38;
                    hdr.messages[4].executed_with_price.setInvalid();
                } else if (hdr.messages[4].cancel.isValid()) {
                    removed = removed + 32w25;
                    hdr.messages[4].cancel.setInvalid();
                } else if (hdr.messages[4].delete.isValid()) {
                    removed = removed + 32w21;
                    hdr.messages[4].delete.setInvalid();
                } else if (hdr.messages[4].replace.isValid()) {
                    removed = removed + 32w37;
                    hdr.messages[4].replace.setInvalid();
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
                } else if (hdr.messages[5].executed.isValid()) {
                    removed = removed + 32w33;
                    hdr.messages[5].executed.setInvalid();
                } else if (hdr.messages[5].executed_with_price.isValid()) {
                    removed = removed + 32w38;
                    hdr.messages[5].executed_with_price.setInvalid();
                } else if (hdr.messages[5].cancel.isValid()) {
                    removed = removed + 32w25;
                    hdr.messages[5].cancel.setInvalid();
                } else if (hdr.messages[5].delete.isValid()) {
                    removed = removed + 32w21;
                    hdr.messages[5].delete.setInvalid();
                } else if (hdr.messages[5].replace.isValid()) {
                    removed = removed + 32w37;
                    hdr.messages[5].replace.setInvalid();
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
                } else if (hdr.messages[6].executed.isValid()) {
                    removed = removed + 32w33;
                    hdr.messages[6].executed.setInvalid();
                } else if (hdr.messages[6].executed_with_price.isValid()) {
                    removed = removed + 32w38;
                    hdr.messages[6].executed_with_price.setInvalid();
                } else if (hdr.messages[6].cancel.isValid()) {
                    removed = removed + 32w25;
                    hdr.messages[6].cancel.setInvalid();
                } else if (hdr.messages[6].delete.isValid()) {
                    removed = removed + 32w21;
                    hdr.messages[6].delete.setInvalid();
                } else if (hdr.messages[6].replace.isValid()) {
                    removed = removed + 32w37;
                    hdr.messages[6].replace.setInvalid();
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
                } else if (hdr.messages[7].executed.isValid()) {
                    removed = removed + 32w33;
                    hdr.messages[7].executed.setInvalid();
                } else if (hdr.messages[7].executed_with_price.isValid()) {
                    removed = removed + 32w38;
                    hdr.messages[7].executed_with_price.setInvalid();
                } else if (hdr.messages[7].cancel.isValid()) {
                    removed = removed + 32w25;
                    hdr.messages[7].cancel.setInvalid();
                } else if (hdr.messages[7].delete.isValid()) {
                    removed = removed + 32w21;
                    hdr.messages[7].delete.setInvalid();
                } else if (hdr.messages[7].replace.isValid()) {
                    removed = removed + 32w37;
                    hdr.messages[7].replace.setInvalid();
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
                } else if (hdr.messages[8].executed.isValid()) {
                    removed = removed + 32w33;
                    hdr.messages[8].executed.setInvalid();
                } else if (hdr.messages[8].executed_with_price.isValid()) {
                    removed = removed + 32w38;
                    hdr.messages[8].executed_with_price.setInvalid();
                } else if (hdr.messages[8].cancel.isValid()) {
                    removed = removed + 32w25;
                    hdr.messages[8].cancel.setInvalid();
                } else if (hdr.messages[8].delete.isValid()) {
                    removed = removed + 32w21;
                    hdr.messages[8].delete.setInvalid();
                } else if (hdr.messages[8].replace.isValid()) {
                    removed = removed + 32w37;
                    hdr.messages[8].replace.setInvalid();
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
                } else if (hdr.messages[9].executed.isValid()) {
                    removed = removed + 32w33;
                    hdr.messages[9].executed.setInvalid();
                } else if (hdr.messages[9].executed_with_price.isValid()) {
                    removed = removed + 32w38;
                    hdr.messages[9].executed_with_price.setInvalid();
                } else if (hdr.messages[9].cancel.isValid()) {
                    removed = removed + 32w25;
                    hdr.messages[9].cancel.setInvalid();
                } else if (hdr.messages[9].delete.isValid()) {
                    removed = removed + 32w21;
                    hdr.messages[9].delete.setInvalid();
                } else if (hdr.messages[9].replace.isValid()) {
                    removed = removed + 32w37;
                    hdr.messages[9].replace.setInvalid();
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
                } else if (hdr.messages[10].executed.isValid()) {
                    removed = removed + 32w33;
                    hdr.messages[10].executed.setInvalid();
                } else if (hdr.messages[10].executed_with_price.isValid()) {
                    removed = removed + 32w38;
                    hdr.messages[10].executed_with_price.setInvalid();
                } else if (hdr.messages[10].cancel.isValid()) {
                    removed = removed + 32w25;
                    hdr.messages[10].cancel.setInvalid();
                } else if (hdr.messages[10].delete.isValid()) {
                    removed = removed + 32w21;
                    hdr.messages[10].delete.setInvalid();
                } else if (hdr.messages[10].replace.isValid()) {
                    removed = removed + 32w37;
                    hdr.messages[10].replace.setInvalid();
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
                } else if (hdr.messages[11].executed.isValid()) {
                    removed = removed + 32w33;
                    hdr.messages[11].executed.setInvalid();
                } else if (hdr.messages[11].executed_with_price.isValid()) {
                    removed = removed + 32w38;
                    hdr.messages[11].executed_with_price.setInvalid();
                } else if (hdr.messages[11].cancel.isValid()) {
                    removed = removed + 32w25;
                    hdr.messages[11].cancel.setInvalid();
                } else if (hdr.messages[11].delete.isValid()) {
                    removed = removed + 32w21;
                    hdr.messages[11].delete.setInvalid();
                } else if (hdr.messages[11].replace.isValid()) {
                    removed = removed + 32w37;
                    hdr.messages[11].replace.setInvalid();
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
            meta.subscription.passes = meta.subscription.passes + 2;
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
            if (meta.subscription.around == 1) {
                recirculate_preserving_field_list(1);
            } else {
                if (hdr.mold.isValid()) {
                    bit<32> at_port = (meta.subscription.stream << 9) | (bit<32>)standard_metadata.egress_port;
                    bit<64> more = (hdr.mold.count == 65535 ? 64w0 : (bit<64>)hdr.mold.count);
                    bit<64> given;
                    bit<64> gap;
                    bit<64> mine;
                    @atomic {
                        delivered.read(given, at_port);
                        opened.read(gap, at_port);
                        numbered.read(mine, at_port);
                        if (mine != meta.subscription.turn) {
                            given = 0;
                            gap = 0;
                        }
                        if (meta.subscription.missed > gap) {
                            gap = meta.subscription.missed;
                        }
                        // What is left of a session whose place another has by now counts for nobody.
                        if (mine <= meta.subscription.turn) {
                            numbered.write(at_port, meta.subscription.turn);
                            opened.write(at_port, gap);
                            delivered.write(at_port, given + more);
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
}

control SubscriptionsVerify(inout headers_t hdr, inout metadata_t meta) { apply {} }

control SubscriptionsCompute(inout headers_t hdr, inout metadata_t meta) { apply {} }

control SubscriptionsDeparser(packet_out packet, in headers_t hdr) {
    apply { packet.emit(hdr); }
}

V1Switch(FeedParser(), SubscriptionsVerify(), Subscriptions(), SubscriptionsEgress(), SubscriptionsCompute(), SubscriptionsDeparser()) main;
