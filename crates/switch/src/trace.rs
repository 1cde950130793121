//! What happened to one packet, step by step, as a value that can be read, printed and serialised.
