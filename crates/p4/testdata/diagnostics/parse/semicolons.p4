header h_t {
    bit<8> a
    bit<16> b;
}
const bit<8> N = 4
typedef bit<8> byte
control c(inout h_t h) {
    bit<8> x
    action a() { h.a = 1 }
    table t {
        key = { h.a : exact }
        actions = { a, NoAction; }
        size = 16
    }
    apply {
        h.a = 2
        t.apply()
        if (h.a == 1) exit
        h.b = 3 4;
        return
    }
}
