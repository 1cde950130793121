/* Everything that only a control plane can fill: a selector's members and groups, a value set, meters, a mirror
 * session over a multicast group, the parameters of a CRC. */
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; bit<8> c; bit<8> d; }
struct headers { h_t h; }
struct metadata { bit<8> got; }

parser MyParser(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    value_set<bit<8>>(4) kinds;
    state start {
        packet.extract(hdr.h);
        transition select(hdr.h.a) {
            kinds: yes;
            default: accept;
        }
    }
    state yes {
        meta.got = 1;
        transition accept;
    }
}

control NoSums(inout headers hdr, inout metadata meta) { apply {} }

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    action_selector(HashAlgorithm.identity, 16, 8) members;
    meter(4, MeterType.packets) limits;
    direct_meter<bit<8>>(MeterType.packets) each;
    action set(bit<8> value) { hdr.h.c = value; }
    table chosen {
        key = {
            hdr.h.a: exact;
            hdr.h.b: selector;
        }
        actions = { set; NoAction; }
        implementation = members;
        default_action = NoAction;
    }
    action colour() { each.read(hdr.h.d); }
    table aged {
        key = { hdr.h.a: exact; }
        actions = { colour; NoAction; }
        default_action = NoAction;
        support_timeout = true;
        meters = each;
    }
    apply {
        std.egress_spec = 1;
        chosen.apply();
        aged.apply();
        if (hdr.h.a == 9) {
            bit<16> crc;
            hash(crc, HashAlgorithm.crc16_custom, 16w0, { hdr.h.a }, 32w65536);
            hdr.h.c = crc[15:8];
            hdr.h.d = crc[7:0];
        }
        if (hdr.h.a == 5) {
            hdr.h.c = meta.got;
            limits.execute_meter(32w0, hdr.h.d);
        }
        clone(CloneType.I2E, 5);
    }
}

control MyEgress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) { apply {} }
control MyDeparser(packet_out packet, in headers hdr) { apply { packet.emit(hdr); } }

V1Switch(MyParser(), NoSums(), MyIngress(), MyEgress(), NoSums(), MyDeparser()) main;
