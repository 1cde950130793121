/* Egress has tables, state and exits of its own; it knows the port and what ingress left in the metadata. */
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> op; bit<8> value; bit<8> after; }
struct headers { h_t h; }
struct metadata { bit<8> note; }

parser MyParser(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.h);
        transition accept;
    }
}

control NoVerify(inout headers hdr, inout metadata meta) { apply { } }
control NoCompute(inout headers hdr, inout metadata meta) { apply { } }

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        meta.note = hdr.h.op + 1;
        std.egress_spec = (bit<9>) hdr.h.op;
        if (hdr.h.op == 3) {
            // Leaves ingress, not the switch.
            exit;
        }
        meta.note = meta.note + 1;
    }
}

control MyEgress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    action rewrite(bit<8> value) { hdr.h.value = value; }
    action leave() { exit; }
    table by_port {
        key = {
            std.egress_port: exact;
            meta.note: exact;
        }
        actions = { rewrite; leave; NoAction; }
        default_action = NoAction;
    }
    apply {
        by_port.apply();
        hdr.h.after = 1;
    }
}

control MyDeparser(packet_out packet, in headers hdr) {
    apply { packet.emit(hdr); }
}

V1Switch(MyParser(), NoVerify(), MyIngress(), MyEgress(), NoCompute(), MyDeparser()) main;
