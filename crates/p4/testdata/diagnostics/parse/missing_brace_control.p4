control c(inout bit<8> x) {
    apply {
        x = 1;
    }

header h_t { bit<8> f }

control d() {
    apply { }
}
