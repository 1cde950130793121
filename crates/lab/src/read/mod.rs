//! Topology files: TOML of the project's own, and the `topology.json` of the public P4 tutorials.
//!
//! Every mistake is reported at its place, all of them in one run, before anything is created.

mod check;
pub(crate) mod document;
pub(crate) mod field;
mod toml;
mod tutorial;

use diagnostics::{Diagnostics, FileId};

pub use check::check;
pub(crate) use toml::UNLIMITED;

use crate::Topology;

/// The largest topology file that is read, in bytes.
pub const MAX_BYTES: usize = 8 << 20;

/// Which of the two formats a text is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `lab.toml`.
    Toml,
    /// `topology.json` of the tutorials.
    Tutorial,
}

impl Format {
    /// The format of a text: a JSON document begins with a brace, TOML never does.
    pub fn of(text: &str) -> Format {
        if text.trim_start().starts_with('{') { Format::Tutorial } else { Format::Toml }
    }
}

/// Reads a topology, which is [`check`]ed too. `None` if there was an error.
pub fn read(file: FileId, text: &str, diagnostics: &mut Diagnostics) -> Option<Topology> {
    let topology = read_partly(file, text, diagnostics);
    (!diagnostics.has_errors()).then_some(topology)
}

/// Reads what can be read of a topology, for those who look for more mistakes where there are some: nothing but single
/// hosts, switches and links of it is to be believed if there was an error.
pub fn read_partly(file: FileId, text: &str, diagnostics: &mut Diagnostics) -> Topology {
    let topology = match Format::of(text) {
        Format::Toml => toml::read(file, text, diagnostics),
        Format::Tutorial => tutorial::read(file, text, diagnostics),
    };
    check(&topology, diagnostics);
    topology
}

/// The Ethernet address of a host that has none of its own: locally administered, its number in the last bytes.
fn default_mac(host: usize) -> wire::ethernet::Address {
    let [.., a, b, c] = (host as u32 + 1).to_be_bytes();
    wire::ethernet::Address([0x02, 0x00, 0x00, a, b, c])
}

#[cfg(test)]
mod hostile;
#[cfg(test)]
mod tests;
