//! Made-up traffic: frames by the million from one line of text.
//!
//! The central types are [`Spec`], which says what frames there are (their headers, how many flows, which addresses and
//! ports), and [`Generator`], which makes them one after the other. [`read`] reads a spec as people write it:
//!
//! ```
//! use diagnostics::{Diagnostics, SourceMap};
//! let (mut map, mut findings) = (SourceMap::new(), Diagnostics::new());
//! let file = map.add("--traffic", "udp,size=64,flows=10000,dst=10.0.0.0/16,zipf=0.99,ports=1-4,seed=1");
//! let traffic_gen::Given::Made(spec) = traffic_gen::read(&map, file, &mut findings).expect("it is right") else { panic!() };
//! let mut frame = Vec::new();
//! let port = traffic_gen::Generator::new(&spec).next(&mut frame);
//! assert_eq!(frame.len(), 64);
//! assert!((1..=4).contains(&port));
//! ```
//!
//! A *flow* is a number from 0 on, and everything about a frame but its size follows from the seed and the number of its
//! flow: frames of one flow have the same addresses and ports and come in on the same port of the switch. Which flow
//! comes next is random, each as likely as the others or by Zipf's law. The same spec makes the same frames in the same
//! order, everywhere.
//!
//! Frames are whole, from the Ethernet header to the last byte before the frame check sequence, and their checksums are
//! right. The crate reads no files, no clock and no randomness of the system.

#![forbid(unsafe_code)]

mod choice;
mod frame;
mod generate;
mod read;
mod spec;
mod zipf;

pub use choice::Choice;
pub use generate::{Generator, TAG_LEN, tag_of};
pub use read::{Given, KEYS, read};
pub use spec::{Field, Layer, MAX_FRAME, Pattern, Size, Spec, Vary};
pub use zipf::Zipf;
