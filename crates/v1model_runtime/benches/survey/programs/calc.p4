// The tutorials' calculator: the switch answers with the result of an operation.
#include "common.p4"

header calc_h { bit<8> p; bit<8> four; bit<8> version; bit<8> op; bit<32> a; bit<32> b; bit<32> result; }
struct headers_t { ethernet_h ethernet; calc_h calc; }

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            0x1234: check;
            default: accept;
        }
    }
    state check {
        transition select(packet.lookahead<calc_h>().p, packet.lookahead<calc_h>().four) {
            (0x50, 0x34): calc;
            default: accept;
        }
    }
    state calc {
        packet.extract(hdr.calc);
        transition accept;
    }
}

control Nothing(inout headers_t hdr, inout metadata_t meta) { apply {} }
EMITS(Emit, headers_t)

control MainIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action answer(bit<32> result) {
        bit<48> mac = hdr.ethernet.dst;
        hdr.ethernet.dst = hdr.ethernet.src;
        hdr.ethernet.src = mac;
        hdr.calc.result = result;
        standard.egress_spec = standard.ingress_port;
    }
    action add() { answer(hdr.calc.a + hdr.calc.b); }
    action subtract() { answer(hdr.calc.a - hdr.calc.b); }
    action and() { answer(hdr.calc.a & hdr.calc.b); }
    action or() { answer(hdr.calc.a | hdr.calc.b); }
    action xor() { answer(hdr.calc.a ^ hdr.calc.b); }
    action drop() { mark_to_drop(standard); }
    table operations {
        key = { hdr.calc.op: exact; }
        actions = { add; subtract; and; or; xor; drop; }
        const default_action = drop();
        const entries = {
            0x2b: add();
            0x2d: subtract();
            0x26: and();
            0x7c: or();
            0x5e: xor();
        }
    }
    apply {
        if (hdr.calc.isValid()) { operations.apply(); } else { drop(); }
    }
}

control MainEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply {} }

V1Switch(P(), Nothing(), MainIngress(), MainEgress(), Nothing(), Emit()) main;
