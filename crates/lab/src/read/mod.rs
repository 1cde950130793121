//! Reads topology files: the project's own TOML format, and the `topology.json` of the public P4 tutorials.
//!
//! Every mistake is reported with its location, all of them in one run, before anything is created.

mod check;
pub(crate) mod document;
pub(crate) mod field;
mod shim;
mod toml;
mod tutorial;

use diagnostics::{Diagnostic, Diagnostics, FileId, Span};

pub use check::check;
pub use toml::UNLIMITED;

use crate::Topology;

/// Maximum size of a topology file, in bytes.
pub const MAX_BYTES: usize = 8 << 20;

/// The format of a topology file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `lab.toml`.
    Toml,
    /// `topology.json` of the tutorials.
    Tutorial,
}

impl Format {
    /// Detects the format of a text: a JSON document begins with a brace, TOML never does.
    pub fn of(text: &str) -> Format {
        if text.trim_start().starts_with('{') { Format::Tutorial } else { Format::Toml }
    }
}

/// Reads and [`check`]s a topology. `max_port` is the largest port number of its switches, which the architecture
/// decides. Returns `None` if there was an error.
pub fn read(file: FileId, text: &str, max_port: u32, diagnostics: &mut Diagnostics) -> Option<Topology> {
    let topology = read_partly(file, text, max_port, diagnostics);
    (!diagnostics.has_errors()).then_some(topology)
}

/// Reads as much of a topology as possible, for callers that look for further mistakes after an error. If there was an
/// error, only single hosts, switches and links of the result are reliable.
pub fn read_partly(file: FileId, text: &str, max_port: u32, diagnostics: &mut Diagnostics) -> Topology {
    let errors_before = diagnostics.error_count();
    let topology = match Format::of(text) {
        Format::Toml => toml::read(file, text, max_port, diagnostics),
        Format::Tutorial => tutorial::read(file, text, max_port, diagnostics),
    };
    check(&topology, diagnostics);
    shim::check(&topology, diagnostics);
    if topology.hosts.is_empty() && topology.switches.is_empty() && diagnostics.error_count() == errors_before {
        let message = "the topology has no hosts and no switches";
        let remedy = match Format::of(text) {
            Format::Toml => {
                "add `[hosts.h1]`, `[switches.s1]` and `[[links]]`; `triplane lab new line` prints an example"
            }
            Format::Tutorial => "fill in `hosts`, `switches` and `links`",
        };
        diagnostics.push(Diagnostic::error("topology", Span::new(file, 0, 0), message).help(remedy));
    }
    topology
}

/// The default Ethernet address of a host: locally administered, with its number in the last bytes.
fn default_mac(host: usize) -> wire::ethernet::Address {
    let [.., a, b, c] = (host as u32 + 1).to_be_bytes();
    wire::ethernet::Address([0x02, 0x00, 0x00, a, b, c])
}

#[cfg(test)]
mod hostile;
#[cfg(test)]
mod tests;
