// Each `{` that lacks its `}` is one finding, at that `{`; what is laid out oddly and closed is none.
parser p(packet_in packet, out bit<8> x) {
    state start {
        transition select(x) {
            1: accept;
            2: next;
    }
    state next { transition accept; }
}

control c(inout bit<8> x,
          inout bit<8> y) {
    action a() {
        if (x == 1) {
            x = 2;
    }
    table t {
        key = { x: exact;
        actions = { a; }
    }
    apply {
            if (x == 1) {
        x = 2;
        }
        if (x == 2) {
            x = 3;
        else {
            x = 4;
        }
        switch (x) {
            1: { x = 2;
            default: { x = 3; }
        }
        for (bit<8> i = 0; i < 3; i = i + 1) {
            x = i;
    }
}

control d(inout bit<8> x) {
    apply {
        x = 1;
}
package Top();
Top() main;
