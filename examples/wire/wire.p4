// The smallest useful program: frames from port 1 leave by port 2, and the reverse.
#include <v1model.p4>

struct none {}

parser P(packet_in packet, out none hdr, inout none meta, inout standard_metadata_t sm) { state start { transition accept; } }
control Unchecked(inout none hdr, inout none meta) { apply {} }
control Cross(inout none hdr, inout none meta, inout standard_metadata_t sm) { apply { sm.egress_spec = 3 - sm.ingress_port; } }
control Out(inout none hdr, inout none meta, inout standard_metadata_t sm) { apply {} }
control D(packet_out packet, in none hdr) { apply {} }
V1Switch(P(), Unchecked(), Cross(), Out(), Unchecked(), D()) main;
