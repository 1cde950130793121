#include <core.p4>
#include <v1model.p4>
struct headers_t {}
struct meta_t { bit<8> a; bit<16> b; }
bit<64> f(in bit<16> x) { return (bit<64>) 64s9223; }
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { state start { transition accept; } }
control V(inout headers_t hdr, inout meta_t meta) { apply {} }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    table t { key = { f(sm.mcast_grp): exact @name("k"); } actions = { NoAction; } }
    apply { 
   switch ((7w0x52)) { 0: { switch (t.apply().action_run) { NoAction: { meta.a = 3; } } } } }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply {} }
control D(packet_out packet, in headers_t hdr) { apply { } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
