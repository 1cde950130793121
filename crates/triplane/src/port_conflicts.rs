//! Finds conflicts between ports: a file that one port writes while another reads or writes it, an interface used
//! twice, or a port that is the CPU port.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ports::{PortKind, PortSpec};

/// Describes the first two ports that conflict, in a sentence. Nothing has been opened or created yet: opening an
/// output that is another port's input would empty it.
pub fn find_conflict(specs: &[PortSpec]) -> Option<String> {
    specs.iter().enumerate().find_map(|(at, one)| specs[..at].iter().find_map(|other| between(other, one)))
}

/// Describes the port that has the number of the CPU port, in a sentence.
pub fn uses_cpu_port(specs: &[PortSpec], cpu_port: u32) -> Option<String> {
    let spec = specs.iter().find(|spec| u32::from(spec.number) == cpu_port)?;
    Some(format!(
        "port {} is the CPU port: use another number, or choose another CPU port with --cpu-port",
        spec.number
    ))
}

/// Describes the first of these files that a port would overwrite with its capture, in a sentence.
pub fn overwrites<'a>(specs: &[PortSpec], files: impl IntoIterator<Item = &'a Path>) -> Option<String> {
    let outputs = specs.iter().filter_map(|spec| match &spec.kind {
        PortKind::Pcap { output: Some(output), .. } => Some((spec.number, output)),
        _ => None,
    });
    let outputs: Vec<_> = outputs.collect();
    files.into_iter().find_map(|file| {
        let (number, _) = outputs.iter().find(|(_, output)| real(output).is_some_and(|one| Some(one) == real(file)))?;
        Some(format!("port {number} would overwrite `{}`, which this run reads", file.display()))
    })
}

fn between(one: &PortSpec, other: &PortSpec) -> Option<String> {
    let (first, second) = (one.number, other.number);
    if let (Some(name), Some(same)) = (interface(&one.kind), interface(&other.kind)) {
        let sentence =
            format!("ports {first} and {second} are both `{name}`: an interface can be used as one port only");
        return (name == same).then_some(sentence);
    }
    let (PortKind::Pcap { input: in_one, output: out_one }, PortKind::Pcap { input: in_other, output: out_other }) =
        (&one.kind, &other.kind)
    else {
        return None;
    };
    let is_same = |one: &Option<PathBuf>, other: &Option<PathBuf>| match (one, other) {
        (Some(one), Some(other)) => real(one).is_some_and(|one| Some(one) == real(other)),
        _ => false,
    };
    if is_same(out_one, out_other) {
        let file = out_one.as_ref()?.display();
        return Some(format!("ports {first} and {second} both write `{file}`: use a separate file for each"));
    }
    for (reads, input, writes, output) in [(first, in_one, second, out_other), (second, in_other, first, out_one)] {
        if is_same(input, output) {
            let file = output.as_ref()?.display();
            return Some(format!("port {writes} would overwrite `{file}`, which port {reads} reads"));
        }
    }
    None
}

fn interface(kind: &PortKind) -> Option<&str> {
    match kind {
        PortKind::AfPacket { interface } | PortKind::Xdp { interface, .. } | PortKind::Tap { interface } => {
            Some(interface)
        }
        _ => None,
    }
}

/// The identity of a file.
#[derive(PartialEq)]
enum Real {
    /// An existing file, by device and inode: it may have several names.
    There(u64, u64),
    /// A file that does not exist yet, by its path.
    ToBe(PathBuf),
}

/// Returns the file that a path names; `None` if it is not a regular file: two ports may well write to `/dev/null`.
fn real(path: &Path) -> Option<Real> {
    if let Ok(there) = path.metadata() {
        return there.is_file().then(|| Real::There(there.dev(), there.ino()));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Some(Real::ToBe(folder.canonicalize().ok()?.join(path.file_name()?)))
}
