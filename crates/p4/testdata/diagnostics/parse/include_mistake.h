header from_include {
    bit<8> f
}
