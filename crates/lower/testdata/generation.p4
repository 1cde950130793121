// The newer generation of v1model: arrays are generic in their index type. And the deprecated calls.
#define V1MODEL_VERSION 20200408
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; bit<16> c; }

struct flow_t { bit<8> a; bit<16> c; }

struct headers { h_t h; h_t g; }
struct metadata { @field_list(1) bit<8> x; @field_list(1, 2) bit<16> z; bit<32> r; bit<2> colour; bool t; }

parser P(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.h); transition accept; }
}
control V(inout headers hdr, inout metadata meta) { apply { verify_checksum(true, { hdr.h.a, hdr.h.b }, hdr.h.c, HashAlgorithm.csum16); } }
control I(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) {
    counter<bit<8>>(64, CounterType.bytes) bytes_seen;
    meter<bit<16>>(64, MeterType.packets) pace;
    register<flow_t, bit<8>>(64) memory;
    Checksum16() sum;
    action drop() { mark_to_drop(standard_metadata); }
    apply {
        bytes_seen.count(hdr.h.a);
        pace.execute_meter(hdr.h.c, meta.colour);
        flow_t flow;
        memory.read(flow, hdr.h.a);
        flow.c = flow.c + 1;
        memory.write(hdr.h.a, flow);
        meta.z = sum.get({ hdr.h.a, hdr.h.b });
        clone3(CloneType.I2E, 5, { meta.x, meta.r });
        resubmit({ meta.x });
        mark_to_drop();
        drop();
    }
}
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) { apply { recirculate({ meta.x, meta.r }); } }
control C(inout headers hdr, inout metadata meta) { apply { update_checksum_with_payload(hdr.h.isValid(), { hdr.h.a, hdr.h.b }, hdr.h.c, HashAlgorithm.csum16); } }
control D(packet_out packet, in headers hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
