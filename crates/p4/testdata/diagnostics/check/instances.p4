#include <core.p4>

parser P<H>(packet_in b, out H h);
control C<H>(inout H h);
package Arch<H>(P<H> p, C<H> c);
extern Abstract {
    Abstract();
    abstract bit<8> f(in bit<8> x);
}
struct a_t { bit<8> x; }
struct b_t { bit<8> x; }

parser MyP(packet_in b, out a_t h) { state start { transition accept; } }
control MyC(inout a_t h) {
    Abstract() none;
    Abstract() wrong = { bit<8> f(in bit<16> x) { return 1; } };
    Abstract() more = { bit<8> f(in bit<8> x) { return this.f(x); } bit<8> g() { return 2; } };
    MyP() parser_in_control;
    packet_in() no_constructor;
    a_t() no_instance;
    apply { Abstract() late = { bit<8> f(in bit<8> x) { return 1; } }; }
}
control OtherC(inout b_t h) { apply { } }
control Again(inout a_t h) { Again() again; apply { again.apply(h); } }
MyC() top_level;
Arch(MyP(), OtherC()) mismatched;
Arch(MyP()) short;
Arch(MyC(), MyP()) swapped;
Abstract() main = { bit<8> f(in bit<8> x) { return x; } };
