control c(inout bit<8> x) {
    header h_t { bit<8> f; }
    struct s_t { h_t h; }
    x = 1;
    if (x == 2) { x = 3; }
    apply {
        action a() { x = 1; }
        table t { actions = { NoAction; } }
        x = 4;
    }
    bit<8> late;
}
table t { actions = { } }
bit<8> global = 1;
parser p() {
    action b() { }
    x = 1;
    state start { transition accept; }
}
control no_apply() {
    bit<8> y;
}
