/* Sends a packet by the port in its first two bytes; 511 drops, and a table may send it elsewhere. */
#include <core.p4>
#include <v1model.p4>

header h_t { bit<16> port; }
struct headers { h_t h; }
struct metadata { }

parser MyParser(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.h);
        transition accept;
    }
}

control NoVerify(inout headers hdr, inout metadata meta) { apply { } }
control NoCompute(inout headers hdr, inout metadata meta) { apply { } }

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    register<bit<16>>(4) last;
    counter(4, CounterType.packets) seen;
    action send(bit<9> port) { std.egress_spec = port; }
    action drop() { mark_to_drop(std); }
    table exact_one {
        key = { hdr.h.port: exact; }
        actions = { send; drop; NoAction; }
        default_action = NoAction;
    }
    table masked {
        key = { hdr.h.port: ternary; std.ingress_port: exact; }
        actions = { send; drop; NoAction; }
        default_action = NoAction;
    }
    apply {
        std.egress_spec = (bit<9>) hdr.h.port;
        last.write(0, hdr.h.port);
        seen.count(0);
        exact_one.apply();
        masked.apply();
    }
}

control NoEgress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) { apply { } }

control MyDeparser(packet_out packet, in headers hdr) {
    apply { packet.emit(hdr); }
}

V1Switch(MyParser(), NoVerify(), MyIngress(), NoEgress(), NoCompute(), MyDeparser()) main;
