/* Annotations of every form change nothing where nobody asks for them. */
#include "common/bench.p4"

@pragma once_upon a time
@mine("text") @yours[1, "two", true] @theirs[key = 5, other = "x"] @anything(a {b} [c] (d) ; , 5)
struct unused_t {
    @field @also() bit<8> value;
}

@pragma_like
control MyIngress(INGRESS_PARAMS) {
    @brief("sets a value") @id(7)
    action set(@doc bit<8> value) { hdr.h.c = value; }
    @hidden @id(0x1234)
    table t {
        key = { hdr.h.a: exact @format("hex") @name("a"); }
        actions = { @tableonly set; @defaultonly NoAction; }
        default_action = NoAction;
        size = 4;
    }
    apply {
        std.egress_spec = 1;
        @inner {
            t.apply();
        }
        if (hdr.h.c == 9) @unlikely {
            hdr.h.x = 1;
        }
    }
}

@package_annotation
BENCH(MyIngress);
