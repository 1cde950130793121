// The tutorials' multi-hop route inspection: each switch appends its number and the queue's depth.
#include "common.p4"
#define MOST_HOPS 9

header count_h { bit<16> count; }
header hop_h { bit<32> number; bit<32> depth; }
struct headers_t { ethernet_h ethernet; ipv4_h ipv4; count_h mri; hop_h[MOST_HOPS] hops; }
VERIFIES(Verify, headers_t)
UPDATES(Update, headers_t)
EMITS(Emit, headers_t)

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    bit<16> left = 0;
    state start {
        packet.extract(hdr.ethernet);
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.protocol) {
            253: mri;
            default: accept;
        }
    }
    state mri {
        packet.extract(hdr.mri);
        left = hdr.mri.count;
        transition hops;
    }
    state hops {
        transition select(left) {
            0: accept;
            default: hop;
        }
    }
    state hop {
        packet.extract(hdr.hops.next);
        left = left - 1;
        transition hops;
    }
}

control MainIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action drop() { mark_to_drop(standard); }
    action forward(bit<48> mac, bit<9> port) {
        standard.egress_spec = port;
        hdr.ethernet.src = hdr.ethernet.dst;
        hdr.ethernet.dst = mac;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
    }
    table routes {
        key = { hdr.ipv4.dst: lpm; }
        actions = { forward; drop; }
        default_action = drop();
    }
    apply {
        if (hdr.ipv4.isValid()) { routes.apply(); }
    }
}

control MainEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action number(bit<32> number) {
        hdr.mri.count = hdr.mri.count + 1;
        hdr.hops.push_front(1);
        hdr.hops[0].setValid();
        hdr.hops[0].number = number;
        hdr.hops[0].depth = (bit<32>) standard.deq_qdepth;
        hdr.ipv4.total_length = hdr.ipv4.total_length + 8;
    }
    table numbers {
        actions = { number; NoAction; }
        default_action = number(7);
    }
    apply {
        if (hdr.mri.isValid()) { numbers.apply(); }
    }
}

IPV4_SWITCH
