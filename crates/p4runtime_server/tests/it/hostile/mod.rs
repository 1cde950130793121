//! Clients that mean harm: what they send, hold back and do not take, and that others are served all the same.

mod answers;
mod connections;
mod messages;
mod rig;
