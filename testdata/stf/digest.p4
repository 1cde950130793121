/* Values for the control plane, as a list, by name and as a structure. */
#include "common/bench.p4"

struct learn_t {
    bit<8> a;
    bit<16> x;
}
struct other_t {
    bit<9> port;
    bool flag;
}

control MyIngress(INGRESS_PARAMS) {
    apply {
        std.egress_spec = 1;
        learn_t learn = { hdr.h.a, hdr.h.x };
        if (hdr.h.op == 1) {
            digest<learn_t>(1, learn);
            // Taken when the digest is asked for.
            learn.a = 0;
        } else if (hdr.h.op == 2) {
            digest<other_t>(1, { flag = true, port = std.ingress_port });
        }
        mark_to_drop(std);
    }
}

BENCH(MyIngress);
