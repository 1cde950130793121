control c(inout bit<8> x) {
    action a(bit<8> v) { x = v; }
    table t {
        key { x : exact; x exact; x : ; x : lpm @name("y"); }
        actions = { a; NoAction() };
        const default_action = a(1;
        const size: 4;
        const entries = {
            1: a(2);
            priority = 3: (2): a(3)
            4 &&& 5 a(4);
            const priority = (1 + 1): 5: a(4);
            _: a(5) @name("z");
        }
    }
    apply { }
}
