control c(inout bit<8> x) {
    apply {
        if (x = 1) { x == 2; }
        x++;
        x;
        x = (x = 2) + 1;
        switch (x = 1) { 1: { } }
    }
}
control several(inout bit<8> x) { apply { if (x = 1 && x = 2 || x = 3) { x = 4; } } }
