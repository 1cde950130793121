//! Prepares the traffic of a benchmark: a spec, a capture, or traffic derived from the entries.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

use ::traffic_gen::{Generator, Spec, TrafficSource};
use anyhow::Context;
use diagnostics::{Diagnostics, SourceMap};
use wire::pcap;

use super::derive;
use crate::output::{Failure, Output};

/// Maximum number of bytes that are kept of a capture.
const MAX_BYTES: usize = 256 << 20;

/// The source of a benchmark's frames.
#[derive(Clone, Debug)]
pub enum Traffic {
    /// Generated frames.
    Made {
        /// The spec of the frames.
        spec: Box<Spec>,
        /// The tables whose entries the frames match, if the traffic was derived from the entries.
        tables: Vec<(String, usize)>,
    },
    /// The frames of a capture.
    Replayed {
        /// The capture's name.
        path: String,
        /// The frames.
        frames: Arc<[Vec<u8>]>,
        /// The ports on which the frames arrive.
        ports: Vec<u32>,
    },
}

impl Traffic {
    /// Parses the value of `--traffic`: a capture file's name, or a spec. Findings have been printed when this returns.
    pub fn read(text: &str, output: &Output) -> Result<Traffic, Failure> {
        if Path::new(text).is_dir() {
            return Err(Failure::Usage(format!(
                "{text} is a directory; --traffic takes a capture file or a specification (see --help)"
            )));
        }
        let given = if Path::new(text).is_file() {
            TrafficSource::Capture { path: text.to_owned(), ports: vec![1] }
        } else {
            let (mut map, mut findings) = (SourceMap::new(), Diagnostics::new());
            let file = map.add("--traffic", text);
            let given = ::traffic_gen::read(&map, file, v1model::MAX_PORT.into(), &mut findings);
            output.diagnostics(&map, &findings);
            given.ok_or_else(|| Failure::Usage("invalid --traffic; see --help for its syntax".to_owned()))?
        };
        match given {
            TrafficSource::Made(spec) => Ok(Traffic::Made { spec: Box::new(spec), tables: Vec::new() }),
            TrafficSource::Capture { path, ports } => {
                let frames = capture(&path, output)?.into();
                Ok(Traffic::Replayed { path, frames, ports })
            }
        }
    }

    /// Derives the traffic from a program's entries.
    pub fn derived(switch: &v1model::Switch) -> Result<Traffic, Failure> {
        let derived = derive::derive(switch.program(), switch.objects()).ok_or_else(|| {
            let why = "cannot derive traffic: no ingress table keyed on Ethernet, IP, UDP or TCP fields has entries";
            let what = "specify the frames with --traffic: a specification such as udp,flows=1000,dst=10.0.0.0/16, or \
                        a capture";
            Failure::Usage(format!("{why}; {what}"))
        })?;
        Ok(Traffic::Made { spec: Box::new(derived.spec), tables: derived.tables })
    }

    /// Returns an endless generator of frames.
    pub fn generator(&self) -> Generator {
        match self {
            Traffic::Made { spec, .. } => Generator::new(spec),
            Traffic::Replayed { frames, ports, .. } => Generator::replay(frames.clone(), ports.clone()),
        }
    }
}

impl std::fmt::Display for Traffic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Traffic::Made { spec, tables } if tables.is_empty() => write!(f, "{spec}"),
            Traffic::Made { spec, tables } => {
                let entries = |count: &usize| if *count == 1 { "entry" } else { "entries" };
                let named = tables.iter().map(|(name, count)| format!("the {count} {} of {name}", entries(count)));
                write!(f, "{spec}, to match {}", named.collect::<Vec<_>>().join(" and "))
            }
            Traffic::Replayed { path, frames, ports } => {
                let frames = if frames.len() == 1 { "1 frame".into() } else { format!("{} frames", frames.len()) };
                let list = ports.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
                write!(
                    f,
                    "{frames} of {path}, repeated, received on port{} {list}",
                    if ports.len() == 1 { "" } else { "s" }
                )
            }
        }
    }
}

/// Reads the frames of a capture. A note says if some of them were cut when they were captured.
fn capture(path: &str, output: &Output) -> Result<Vec<Vec<u8>>, Failure> {
    let wrong = |error: pcap::PcapError| Failure::Input(format!("{path}: {error}"));
    let file = File::open(path).with_context(|| format!("cannot read {path}"))?;
    let mut reader = pcap::Reader::new(BufReader::new(file)).map_err(wrong)?;
    let (mut frames, mut bytes, mut cut) = (Vec::new(), 0, 0);
    while let Some(captured) = reader.read().map_err(wrong)? {
        bytes += captured.data.len() + size_of::<Vec<u8>>();
        if bytes > MAX_BYTES {
            let most = MAX_BYTES >> 20;
            return Err(Failure::Input(format!(
                "{path} has more than {most} MiB of frames; use a capture with fewer packets"
            )));
        }
        cut += usize::from(captured.is_truncated());
        frames.push(captured.data);
    }
    if cut > 0 {
        let of = frames.len();
        output.note(&format!("{path}: {cut} of {of} frames were truncated when captured; they are sent truncated"));
    }
    if frames.is_empty() { Err(Failure::Input(format!("{path} contains no packets"))) } else { Ok(frames) }
}
