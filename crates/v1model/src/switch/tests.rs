//! Frames in, frames out, with a program that executes the operation in a frame's first byte and reports in a trailer
//! header what egress saw. `probe` builds it; each test is a sequence of frames.

mod atomic;
mod idle;
mod image;
mod in_place;
mod probe;
mod story;
mod takeover;
mod traced;
mod workers;
