control C(in bit<4> a) {
    apply {
        switch (a) {
            4w0: {}
        }
    }
}
control T(in bit<4> a);
package P(T t);
P(C()) main;
