struct table { bit<8> in; bit<8> key; }
action switch() { }
control c(in bit<8> out) {
    bit<8> parser = 1;
    bit<8> state = 2;
    table default { actions = { } }
    apply { }
}
