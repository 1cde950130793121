/* A bench for things that happen in a control: packets are 14 bytes of operands and results, which the parser takes
 * and the deparser puts back. A program adds its control `MyIngress` and instantiates the switch with `BENCH(MyIngress)`.
 * What is not zero in its metadata it says in METADATA before it includes this.
 *
 *     op a b c  xxxx yyyy  rrrrrrrr
 */
#include <core.p4>
#include <v1model.p4>

#ifndef METADATA
#define METADATA
#endif

header data_t {
    bit<8>  op;
    bit<8>  a;
    bit<8>  b;
    bit<8>  c;
    bit<16> x;
    bit<16> y;
    bit<32> r;
}

struct headers {
    data_t h;
}

struct metadata {
    METADATA
}

parser BenchParser(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.h);
        transition accept;
    }
}

control BenchDeparser(packet_out packet, in headers hdr) {
    apply {
        packet.emit(hdr.h);
    }
}

#include "empty.p4"

#define BENCH(INGRESS) V1Switch(BenchParser(), NoVerify(), INGRESS(), NoEgress(), NoCompute(), BenchDeparser()) main
#define INGRESS_PARAMS inout headers hdr, inout metadata meta, inout standard_metadata_t std
