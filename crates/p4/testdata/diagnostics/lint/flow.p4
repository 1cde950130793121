#include <core.p4>

header eth_t { bit<16> kind; }
header ip_t { bit<8> ttl; bit<8> proto; }
struct headers { eth_t eth; ip_t ip; }
struct meta { bit<8> a; bit<8> b; }

parser P(packet_in packet, out headers hdr, out meta m, out bit<8> forgotten) {
    state start {
        packet.extract(hdr.eth);
        m.a = hdr.ip.ttl;
        transition select(hdr.eth.kind) {
            0x0800: ip;
            0x0800: accept;
            0x0700 &&& 0xff00: ip;
            0x0701: accept;
            0x10 .. 0x20: ip;
            0x12 .. 0x1f: accept;
            default: accept;
        }
    }
    state ip {
        packet.extract(hdr.ip);
        m.a = hdr.ip.ttl;
        transition accept;
    }
}

control C(inout headers hdr, inout meta m) {
    bit<8> ready;
    action prepare() { ready = 1; }
    action idle() { }
    table maybe {
        key = { m.a: exact; }
        actions = { prepare; idle; }
        default_action = idle();
    }
    table always {
        key = { m.b: exact; }
        actions = { prepare; }
        default_action = prepare();
    }
    apply {
        bit<8> x;
        bit<8> y;
        bit<8> z;
        m.a = x;
        m.b = x;
        if (m.a > 7) { y = 1; }
        m.a = y;
        for (bit<8> i in 1 .. 3) { if (i == 2) { z = i; break; } z = 0; }
        m.b = z;
        if (!hdr.ip.isValid()) {
            hdr.ip.ttl = 1;
            m.a = hdr.ip.proto;
            hdr.ip.setValid();
            hdr.ip.ttl = 64;
        } else if (hdr.ip.isValid() && hdr.ip.ttl == 0) {
            hdr.ip.setInvalid();
            return;
        }
        m.b = hdr.ip.ttl;
        maybe.apply();
        m.a = ready;
        always.apply();
        m.b = ready;
    }
}

parser Ps(packet_in packet, out headers hdr, out meta m, out bit<8> forgotten);
control Cs(inout headers hdr, inout meta m);
package top(Ps p, Cs c);
top(P(), C()) main;
