/* Forms that older programs use: resubmit and recirculate with lists, clone3, mark_to_drop(), Checksum16. */
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> op; bit<8> kept; bit<16> sum; }
struct headers { h_t h; }
struct metadata { bit<8> passes; }

parser MyParser(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.h);
        transition accept;
    }
}

control NoVerify(inout headers hdr, inout metadata meta) { apply { } }

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 1;
        if (hdr.h.op == 1) {
            mark_to_drop();
        }
        if (hdr.h.op == 2 && std.instance_type == 0) {
            resubmit<tuple<bit<8>>>({ meta.passes });
        }
        if (hdr.h.op == 3) {
            clone3<tuple<bit<8>>>(CloneType.I2E, 5, { meta.passes });
        }
        hdr.h.kept = (bit<8>) std.instance_type;
    }
}

control MyEgress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply { }
}

control MyCompute(inout headers hdr, inout metadata meta) {
    Checksum16() sum;
    apply {
        hdr.h.sum = sum.get({ hdr.h.op, hdr.h.kept });
    }
}

control MyDeparser(packet_out packet, in headers hdr) {
    apply { packet.emit(hdr); }
}

V1Switch(MyParser(), NoVerify(), MyIngress(), MyEgress(), MyCompute(), MyDeparser()) main;
