foo
struct s { bit<8> f; }
;
}
}
control c();
x = 1;
y = 2;
V1Switch(P(), C());
bit<8> f(in bit<8> x);
import "core.p4";
control d() { apply { } }
