heder h_t { bit<8> a; }
strct headers { h_t h; }
enmu bit<8> Kind { A = 1 }
typedf bit<9> port_t;
cosnt port_t CPU = 510;
exten void log();
parsr P(out headers hdr) {
    stat start { transition accept; }
}
contrl C(inout headers hdr)(port_t limit) {
    acton nothing() { log(); }
    tabel t { key = { hdr.h.a : exact; } actions = { nothing; } default_action = nothing(); }
    aply { t.apply(); }
}
pakage Switch(P p, C c);

// Names that are alike, but not the keyword: functions and instances of types that exist, and of one that does not.
struct action_t { bit<8> a; }
struct tables { action_t a; }
action_t actions(in action_t a) { return a; }
header_t other(in action_t a) { return a; }
control D(inout tables all) {
    tables table_;
    tables copy = all;
    apply { table_ = copy; all = table_; }
}
