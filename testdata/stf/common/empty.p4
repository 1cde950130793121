/* The blocks that most of the programs here have nothing to do in. Types `headers` and `metadata` are the program's. */

control NoVerify(inout headers hdr, inout metadata meta) {
    apply { }
}

control NoEgress(inout headers hdr, inout metadata meta, inout standard_metadata_t std) {
    apply { }
}

control NoCompute(inout headers hdr, inout metadata meta) {
    apply { }
}
