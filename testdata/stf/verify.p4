/* verify ends parsing with an error of the program's own; the packet goes on with the headers it has. */
#include <core.p4>
#include <v1model.p4>

error { BadVersion, BadLength }

header h_t { bit<4> version; bit<4> length; }
header p_t { bit<8> value; }
struct headers { h_t h; p_t p; }
struct metadata { }

#include "common/empty.p4"

parser MyParser(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.h);
        verify(hdr.h.version == 4, error.BadVersion);
        verify(hdr.h.length > 2 && hdr.h.length < 9, error.BadLength);
        packet.extract(hdr.p);
        transition accept;
    }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 1;
        if (std.parser_error == error.BadVersion) {
            std.egress_spec = 2;
        } else if (std.parser_error == error.BadLength) {
            std.egress_spec = 3;
        } else if (std.parser_error == error.PacketTooShort) {
            std.egress_spec = 4;
        }
        hdr.h.version = hdr.p.isValid() ? 4w1 : 0;
    }
}

control MyDeparser(packet_out packet, in headers hdr) {
    apply { packet.emit(hdr); }
}

V1Switch(MyParser(), NoVerify(), MyIngress(), NoEgress(), NoCompute(), MyDeparser()) main;
