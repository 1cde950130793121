const bit<32> UNIT = 8;

header option_t {
    bit<8> size;
    @length((bit<32>) size * UNIT)
    varbit<256> data;
}

header late_t {
    @length(size)
    varbit<256> data;
    bit<32> size;
}

header misspelled_t {
    bit<32> length_of_data;
    @length(lenght_of_data)
    varbit<256> data;
}

header unknown_t {
    @length(nowhere.inside)
    varbit<256> data;
}
