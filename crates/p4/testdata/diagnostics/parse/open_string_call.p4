// The string swallows `)`, `;` and `}`: nothing is said of these.
control c(inout bit<8> x) {
    apply {
        if (x == 1) { log("hello); }
        x = 1
    }
}
