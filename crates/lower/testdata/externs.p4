// What v1model offers beside tables.
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
    counter(64, CounterType.bytes) bytes_seen;
    meter(64, MeterType.packets) pace;
    register<bit<32>>(64) memory;
    action drop() { mark_to_drop(standard_metadata); }
    apply {
        bytes_seen.count((bit<32>) hdr.h.a);
        pace.execute_meter(5, meta.colour);
        memory.read(meta.r, (bit<32>) hdr.h.a);
        memory.write((bit<32>) hdr.h.a, meta.r + 1);
        hash(meta.z, HashAlgorithm.crc16, 16w10, { hdr.h.a, hdr.h.c }, 16w100);
        hash(hdr.h.b, HashAlgorithm.crc32, 8w0, { hdr.h.c }, 32w16);
        random(meta.x, 1, 6);
        digest<flow_t>(1, { hdr.h.a, hdr.h.c });
        clone(CloneType.I2E, 5);
        clone_preserving_field_list(CloneType.I2E, (bit<32>) meta.x, 1);
        resubmit_preserving_field_list(2);
        truncate(60);
        log_msg("x {} z {}", { meta.x, meta.z });
        assert(hdr.h.isValid());
        drop();
    }
}
control E(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) { apply { recirculate_preserving_field_list(2); clone(CloneType.E2E, 5); } }
control C(inout headers hdr, inout metadata meta) { apply { update_checksum_with_payload(hdr.h.isValid(), { hdr.h.a, hdr.h.b }, hdr.h.c, HashAlgorithm.csum16); } }
control D(packet_out packet, in headers hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
