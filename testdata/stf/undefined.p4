/* What the language leaves open has a fixed result here: zeros for what was never written, fields of invalid headers
 * as last written. */
#include "common/bench.p4"

control MyIngress(INGRESS_PARAMS) {
    apply {
        std.egress_spec = 1;
        bit<8> never;
        hdr.h.a = never;
        data_t other;
        hdr.h.b = other.a;
        other.setInvalid();
        other.c = 0x55;
        hdr.h.c = other.isValid() ? 8w0xff : 0;
    }
}

BENCH(MyIngress);
