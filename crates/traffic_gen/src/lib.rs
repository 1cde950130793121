//! Generates synthetic traffic: millions of frames from one line of text.
//!
//! A [`Spec`] describes the frames (headers, number of flows, addresses and ports), and a [`Generator`] produces them.
//! [`read`] parses the text form of a specification:
//!
//! ```
//! use diagnostics::{Diagnostics, SourceMap};
//! let (mut map, mut findings) = (SourceMap::new(), Diagnostics::new());
//! let file = map.add("--traffic", "udp,size=64,flows=10000,dst=10.0.0.0/16,zipf=0.99,ports=1-4,seed=1");
//! let source = traffic_gen::read(&map, file, 510, &mut findings).expect("it is valid");
//! let traffic_gen::TrafficSource::Made(spec) = source else { panic!() };
//! let mut frame = Vec::new();
//! let port = traffic_gen::Generator::new(&spec).next(&mut frame);
//! assert_eq!(frame.len(), 64);
//! assert!((1..=4).contains(&port));
//! ```
//!
//! A *flow* is a number from 0. Everything in a frame except its size follows from the seed and its flow: frames of one
//! flow have the same addresses and ports and arrive on the same port of the switch. The sequence of flows is random,
//! either uniform or by Zipf's law. Equal specifications generate equal frames in equal order, on any machine.
//!
//! Frames are complete, from the Ethernet header to the last byte before the frame check sequence, with correct
//! checksums. The crate reads no files, no clock and no system randomness.

#![forbid(unsafe_code)]

mod choice;
mod frame;
mod generate;
mod read;
mod spec;
mod zipf;

pub use choice::Choice;
pub use generate::{Generator, TAG_LEN, tag_of};
pub use read::{KEYS, TrafficSource, read};
pub use spec::{FieldPattern, FlowField, Layer, MAX_FRAME, Size, Spec, Vary};
pub use zipf::Zipf;
