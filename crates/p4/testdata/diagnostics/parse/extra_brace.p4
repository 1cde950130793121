control c(inout bit<8> x) {
    apply {
        if (x == 1) {
            x = 2; }
        }
        x = 3;
        x = x +;
    }
}
control d() {
    apply { x == 1; }
}
