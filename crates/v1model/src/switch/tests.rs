//! Frames in, frames out, against a program that does what the first byte of a frame says and reports in a trailer
//! header what egress saw. `probe` builds it; each test reads as a story of frames.

mod atomic;
mod idle;
mod image;
mod in_place;
mod probe;
mod story;
mod traced;
mod workers;
