action a(inout bit<8> x) {
    else x = 1;
    for (bit<8> i = 0; i < 4; i = i + 1) { x += i }
    for (i in 1 .. ) x = 1;
    for (bit<8> i = 0, i < 4; i += 1) { }
    switch (x) { case 1: { } default: x = 1; }
    @name("x") x = 1;
    if (x == 1) bit<8> y;
    if x == 1 { x = 2; }
    x |+|= ;
    return x = 1;
    transition accept;
}
control habits(inout bit<8> x) {
    apply {
        while (x < 3) { x = x + 1; }
        do { x = 1; } while (x < 2);
        if x == 1 { x = 2; } else if x == 3 { x = 4; } else { x = 5; }
        switch x { 1: { } }
    }
}
