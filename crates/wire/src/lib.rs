//! Packet formats: the bytes on a wire and what they mean.
//!
//! Each format has a module with the same two types: a *view*, `Packet<T>`, which lays named fields over bytes that
//! were checked to be long enough, and a *meaning*, `Repr`, a plain struct that is `parse`d from a view and `emit`ted
//! into one. [`checksum`] has the Internet checksum, [`offload`] finishes what a network stack left to a network card
//! (partial checksums, over-long TCP segments), [`describe`] says in one line what a frame is, and [`pcap`] reads and
//! writes capture files.
//!
//! No input makes anything here panic: a view is only made of bytes that hold its fixed fields and whose length
//! fields stay inside. The crate does no input or output of its own: capture files are read from whatever
//! [`std::io::Read`] it is handed. It knows nothing of P4, of ports or of clocks.

#![forbid(unsafe_code)]

pub mod checksum;
pub mod offload;
pub mod pcap;
