// The quote is missing behind `drop`; every other one has its counterpart.
control c(inout bit<8> x) {
    @name("drop) action drop() { }
    @name("pass") action pass() { }
    @name("t") table t { actions = { pass; } }
    apply {
        log("one");
    }
}
