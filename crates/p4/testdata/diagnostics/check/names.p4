#include <core.p4>

header ethernet_t { bit<48> dst; bit<48> src; bit<16> kind; }
struct headers_t { ethernet_t ethernet; }
enum bit<8> Kind { Data = 0, Control = 1 }

const bit<8> EARLY = LATE;
const bit<8> LATE = 1;

control c(inout headers_t hdr) {
    bit<8> counter = 0;
    bit<16> counter = 0;
    action drop() {}
    apply {
        hdr.ethernet.kin = 1;
        hdr.etherent.kind = 1;
        Kind k = Kind.Controll;
        error e = error.NoMach;
        conter = 1;
        hdr.ethernet.isvalid();
        counter = drop;
        ethernet_t = hdr.ethernet;
        int<8> hdr = 1;
    }
}
control Late(inout bit<8> x) {
    table first { actions = { behind; } default_action = behind(); }
    action calls() { behind(); later_table.apply(); }
    action behind() { }
    table later_table { actions = { behind; } }
    apply { first.apply(); calls(); afterwards = 1; }
}
enum Twice { a }
control Twice(inout bit<8> x) { apply { Twice.apply(x); Twice y = Twice.a; } }
