/* setValid, setInvalid, isValid, minSizeInBytes and its kin; an emitted header is a valid one. */
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> value; }
header wide_t { bit<4> a; bit<20> b; varbit<32> rest; }
struct headers { h_t first; h_t second; h_t third; wide_t wide; }
struct metadata { }

#include "common/empty.p4"

parser MyParser(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.first);
        packet.extract(hdr.second);
        transition accept;
    }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 1;
        if (hdr.first.isValid() && !hdr.third.isValid()) {
            hdr.third.setValid();
            hdr.third.value = (bit<8>) hdr.wide.minSizeInBytes() << 4;
            hdr.third.value = hdr.third.value + (bit<8>) hdr.first.minSizeInBits();
        }
        if (hdr.second.value == 0x22) {
            hdr.second.setInvalid();
        }
        // A field of an invalid header takes nothing along.
        hdr.wide.a = 15;
    }
}

control MyDeparser(packet_out packet, in headers hdr) {
    apply {
        packet.emit(hdr.third);
        packet.emit(hdr.second);
        packet.emit(hdr.first);
        packet.emit(hdr.wide);
        if (hdr.first.value == 1) {
            packet.emit(hdr.first);
        }
    }
}

V1Switch(MyParser(), NoVerify(), MyIngress(), NoEgress(), NoCompute(), MyDeparser()) main;
