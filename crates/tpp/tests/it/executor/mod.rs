//! The executor: stories of single requests, and random requests over networks that lose, copy, delay and damage.

mod network;
mod random;
mod source;
mod stories;
