#include <core.p4>

extern Counter<I> {
    Counter(bit<32> size);
    void count(in I index);
    bit<32> read(in I index, @optional in bool clear);
}
extern void log(string message);
extern T choose<T>(in T a, in T b);
struct meta_t { bit<8> x; }

bit<8> twice(in bit<8> v, in bit<8> by = 2) { return v; }
bit<8> lost(in bit<8> v) { if (v == 0) { return 1; } }
void loop(inout bit<8> v) { loop(v); }
action set(out bit<8> v, bit<8> data) { v = data; }

control sub(inout bit<8> v) { apply { v = 1; } }

control c(inout meta_t m) {
    Counter<bit<8>>(16) counter;
    Counter(16) open;
    Counter<bit<8>>() none;
    sub() s;
    apply {
        twice(1, 2, 3);
        m.x = twice(by = 1);
        m.x = twice(v = 1, v = 2);
        m.x = twice(m.x, by = 1);
        m.x = twice(v = true);
        counter.cuont(1);
        counter.count(true);
        m.x = choose(1, true);
        m.x = choose(m.x, 1);
        m.x = choose<bit<8>, bool>(1, 2);
        set(1, 2);
        set(m.x);
        s.apply(1);
        s.apply();
        sub.apply(m.x);
        verify(true, error.NoError);
        log(m.x);
        m.x();
        bit<8> e = log("x");
        return 1;
    }
}
control Counts(inout bit<8> x) {
    action none() { }
    action one(bit<8> a) { }
    apply { none(1); none(1, 2); one(1, 2); one(); }
}
