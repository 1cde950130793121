/* Extern objects with the type of their index as a parameter, as later versions of the architecture have them; control
 * types and packages with type parameters, given and inferred. */
#define V1MODEL_VERSION 20200408
#include "common/bench.p4"

control Step<T>(inout T value, in T by);

control Add(inout bit<8> value, in bit<8> by)(bit<8> more) {
    apply { value = value + by + more; }
}

control MyIngress(INGRESS_PARAMS) {
    register<bit<16>, bit<4>>(16) last;
    register<bit<32>, bit<8>>(4) counts;
    counter<bit<4>>(16, CounterType.packets) seen;
    meter<bit<4>>(16, MeterType.packets) rates;
    Add(3) add;
    PortId_t out_port = 1;
    apply {
        std.egress_spec = out_port;
        bit<4> index = hdr.h.a[3:0];
        last.read(hdr.h.y, index);
        last.write(index, hdr.h.x);
        bit<32> count;
        counts.read(count, 8w2);
        count = count + 1;
        counts.write(8w2, count);
        hdr.h.r = count;
        seen.count(index);
        rates.execute_meter(index, hdr.h.c);
        add.apply(hdr.h.b, 1);
#if V1MODEL_VERSION >= 20200408
        hdr.h.op = (bit<8>) (__v1model_version - 20200400);
#endif
    }
}

V1Switch<headers, metadata>(BenchParser(), NoVerify(), MyIngress(), NoEgress(), NoCompute(), BenchDeparser()) main;
