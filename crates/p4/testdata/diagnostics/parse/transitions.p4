parser p(packet_in b, out bit<8> x) {
    state start {
        b.advance(8);
        select(x) { 1: accept; default: next }
    }
    state next {
        accept;
    }
    state third {
        transition accept;
        x = 1;
    }
    state fourth {
        transition select(x, 1) {
            (1, 2): accept
            3 &&& : reject;
            (_, default): accept;
        }
    }
    state fifth {
        switch (x) { 1: { } }
        if (x == 1) { return; }
        transition
    }
}
