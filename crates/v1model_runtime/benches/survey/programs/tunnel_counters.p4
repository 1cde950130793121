// The tutorials' P4Runtime exercise: a tunnel with counters at both ends.
#include "common.p4"

header tunnel_h { bit<16> protocol; bit<16> id; }
struct headers_t { ethernet_h ethernet; tunnel_h tunnel; ipv4_h ipv4; }
VERIFIES(Verify, headers_t)
UPDATES(Update, headers_t)
EMITS(Emit, headers_t)

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            0x1212: tunnel;
            0x800: ipv4;
            default: accept;
        }
    }
    state tunnel {
        packet.extract(hdr.tunnel);
        transition select(hdr.tunnel.protocol) {
            0x800: ipv4;
            default: accept;
        }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
}

control MainIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    counter(1024, CounterType.packets_and_bytes) entered;
    counter(1024, CounterType.packets_and_bytes) left;
    action drop() { mark_to_drop(standard); }
    action forward(bit<48> mac, bit<9> port) {
        standard.egress_spec = port;
        hdr.ethernet.src = hdr.ethernet.dst;
        hdr.ethernet.dst = mac;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
    }
    action enter(bit<16> id) {
        hdr.tunnel.setValid();
        hdr.tunnel.id = id;
        hdr.tunnel.protocol = hdr.ethernet.type;
        hdr.ethernet.type = 0x1212;
        entered.count((bit<32>) hdr.tunnel.id);
    }
    action pass(bit<9> port) { standard.egress_spec = port; }
    action leave(bit<48> mac, bit<9> port) {
        standard.egress_spec = port;
        hdr.ethernet.dst = mac;
        hdr.ethernet.type = hdr.tunnel.protocol;
        left.count((bit<32>) hdr.tunnel.id);
        hdr.tunnel.setInvalid();
    }
    table routes {
        key = { hdr.ipv4.dst: lpm; }
        actions = { forward; enter; drop; }
        default_action = drop();
    }
    table tunnels {
        key = { hdr.tunnel.id: exact; }
        actions = { pass; leave; drop; }
        default_action = drop();
    }
    apply {
        if (hdr.ipv4.isValid() && !hdr.tunnel.isValid()) { routes.apply(); }
        if (hdr.tunnel.isValid()) { tunnels.apply(); }
    }
}

control MainEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply {} }

IPV4_SWITCH
