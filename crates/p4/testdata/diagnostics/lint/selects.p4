#include <core.p4>

enum bit<2> small { a = 0, b = 1, c = 2, d = 3 }
enum plain { one, two }
struct meta { bool yes; bit<2> two; bit<16> wide; small s; plain p; int<2> i; }

parser P(packet_in packet, inout meta m)(bit<16> limit) {
    value_set<bit<16>>(4) known;
    state start { transition select(m.wide) { 0x800: yes; 0x806: yes; } }
    state yes { transition select(m.yes) { true: two; false: two; } }
    state two { transition select(m.two, m.yes) { (0 &&& 2, _): enums; (2 .. 3, true): enums; (_, false): enums; } }
    state enums { transition select(m.s) { small.a: plains; small.b: plains; small.c: plains; small.d: plains; } }
    state plains { transition select(m.p) { plain.one: signed; plain.two: signed; } }
    state signed { transition select(m.i) { -2: sets; -1: sets; 0: sets; 1: sets; } }
    state sets { transition select(m.wide) { known: partly; } }
    state partly { transition select(m.two, m.yes) { (0, _): accept; (1 .. 3, true): accept; } }
}
parser PT(packet_in packet, inout meta m);
package top(PT p);
top(P(4)) main;
