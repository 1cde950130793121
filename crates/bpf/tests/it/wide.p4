#include <core.p4>
#include <v1model.p4>

header odd_t {
    bit<4>   kind;
    bit<64>  word;
    bit<100> hundred;
    bit<8>   last;
}

header ipv6_t {
    bit<4>   version;
    bit<8>   traffic;
    bit<20>  flow;
    bit<16>  length;
    bit<8>   next;
    bit<8>   hops;
    bit<128> source;
    bit<128> target;
}

header result_t {
    bit<8>  route;
    bit<8>  host;
    bit<8>  rule;
    bit<8>  mixed;
    bit<8>  fixed;
    bit<8>  parsed;
    bit<16> sum;
    bit<32> hash;
}

struct headers_t {
    odd_t    odd;
    ipv6_t   ip;
    result_t result;
}

struct metadata_t {
    bit<128> ahead;
    bit<128> next_hop;
    bit<8>   parsed;
}

parser MyParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.odd);
        meta.ahead = packet.lookahead<bit<128>>();
        packet.extract(hdr.ip);
        transition select(hdr.ip.target, hdr.ip.next, hdr.odd.word) {
            (0x20010db8000000000000000000000000 &&& 0xffffffff000000000000000000000000, _, _): documentation;
            (0x1, 17, _): loopback;
            (_, _, 0x8000000000000001): odd;
            default: others;
        }
    }
    state documentation { meta.parsed = 1; transition rest; }
    state loopback { meta.parsed = 2; transition rest; }
    state odd { meta.parsed = 3; transition rest; }
    state others { meta.parsed = 4; transition rest; }
    state rest {
        packet.extract(hdr.result);
        transition accept;
    }
}

control MyVerify(inout headers_t hdr, inout metadata_t meta) { apply { } }

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    direct_counter(CounterType.packets) route_hits;

    action route(bit<8> value, bit<128> next_hop) { hdr.result.route = value; meta.next_hop = next_hop; }
    action host(bit<8> value, bit<100> mark) { hdr.result.host = value; hdr.odd.hundred = hdr.odd.hundred ^ mark; }
    action rule(bit<8> value) { hdr.result.rule = value; }
    action mixed(bit<8> value) { hdr.result.mixed = value; }
    action fixed(bit<8> value, bit<128> add) { hdr.result.fixed = value; hdr.ip.source = hdr.ip.source + add; }

    table routes {
        key = { hdr.ip.target: lpm; }
        actions = { route; NoAction; }
        default_action = NoAction();
        counters = route_hits;
        size = 200;
    }
    table hosts {
        key = { hdr.ip.source: exact; hdr.ip.next: exact; hdr.odd.hundred: exact; }
        actions = { host; }
        default_action = host(0, 0xf000000000000000000000001);
        size = 200;
    }
    table rules {
        key = { hdr.ip.source: ternary; hdr.ip.target: optional; hdr.ip.flow: range; }
        actions = { rule; NoAction; }
        default_action = NoAction();
    }
    table mixes {
        key = { hdr.ip.next: exact; hdr.ip.source ++ hdr.odd.word: lpm @name("both"); }
        actions = { mixed; NoAction; }
        default_action = NoAction();
    }
    table constants {
        key = { hdr.ip.target: lpm; }
        actions = { fixed; }
        default_action = fixed(9, 1);
        const entries = {
            0x20010db8000000000000000000000000 &&& 0xffffffff000000000000000000000000: fixed(1, 0xffffffffffffffff);
            0x20010db8000000000000000000000000 &&& 0xffffffffffff00000000000000000000: fixed(2, 2);
            0x20010db8000000010000000000000000 &&& 0xffffffffffffffffffffffff00000000: fixed(3, 3);
            0x20010db8000000010000000000000000 &&& 0xffffffffffffffffffff000000000000: fixed(4, 4);
            0x00000000000000000000000000000000 &&& 0x80000000000000000000000000000000: fixed(5, 5);
        }
    }
    apply {
        standard.egress_spec = 3;
        hdr.result.parsed = meta.parsed;
        routes.apply();
        hosts.apply();
        rules.apply();
        mixes.apply();
        constants.apply();
        if (hdr.ip.source <= hdr.ip.target && meta.ahead != hdr.ip.source) {
            bit<128> swapped = hdr.ip.source;
            hdr.ip.source = hdr.ip.target;
            hdr.ip.target = swapped;
        } else if ((int<128>) hdr.ip.source < (int<128>) hdr.ip.target) {
            hdr.ip.source = hdr.ip.source - hdr.ip.target;
        } else {
            hdr.ip.target = hdr.ip.target[63:0] ++ hdr.ip.target[127:64];
        }
        if (meta.next_hop != 0) {
            hdr.ip.target[127:60] = meta.next_hop[67:0];
        }
        hdr.odd.word = hdr.odd.word + hdr.odd.hundred[90:27];
        bit<128> shifted = (meta.ahead << 3) | (meta.ahead >> 125);
        hash(hdr.result.hash, HashAlgorithm.crc32, 32w0, { hdr.ip.source, shifted, hdr.odd.hundred }, 32w0xffffffff);
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply { } }

control MyCompute(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(true, { hdr.ip.source, hdr.ip.target, hdr.odd.word, hdr.odd.hundred, 4w0 }, hdr.result.sum,
                        HashAlgorithm.csum16);
    }
}

control MyDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.odd);
        packet.emit(hdr.ip);
        packet.emit(hdr.result);
    }
}

V1Switch(MyParser(), MyVerify(), MyIngress(), MyEgress(), MyCompute(), MyDeparser()) main;
