control c(inout bit<8> x) {
    action a() {
        x = 1;
        if (x == 1) {
            x = 2;
    action b() { x = 3 }
    table t { actions = { a; b; } }
    apply { t.apply() }
}
control d() { apply { } }
