//! Parses and opens the command line's port specifications, `--port 1=eth1`.

use std::path::PathBuf;
use std::str::FromStr;

use crate::{AfPacketPort, PcapPort, Port, PortError, TapPort, XdpSettings, xdp};

/// Maximum length of an interface name (Linux, `IFNAMSIZ` without the terminating zero).
const MAX_INTERFACE_NAME: usize = 15;

/// One port of the switch and its driver.
///
/// ```text
/// 1=eth1                the interface eth1, through AF_PACKET: the machine's own stack still sees incoming frames
/// 1=af_packet:eth1      the same, in full
/// 1=xdp:eth1            the interface eth1, through AF_XDP: faster and exclusive; else through AF_PACKET
/// 1=xdp:eth1,copy       the same, with settings: copy, generic, busy_poll=MICROSECONDS
/// 1=kernel:eth1         the same, and what the program can do in the kernel is done there: see docs/kernel.md
/// 1=kernel:eth1,gpl     the same for a program with a GPL-compatible licence: it sees stripped VLAN tags
/// 1=tap:p4tap           a TAP device created for this run
/// 1=in.pcap:out.pcap    frames from one capture file into another; either may be empty: 1=in.pcap: or 1=:out.pcap
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortSpec {
    /// Port number in programs and table entries.
    pub number: u16,
    /// Driver.
    pub kind: PortKind,
}

/// The driver of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortKind {
    /// A network interface, through a packet socket.
    AfPacket {
        /// Interface name.
        interface: String,
    },
    /// A network interface, through AF_XDP sockets, or through a packet socket where AF_XDP is not available.
    Xdp {
        /// Interface name.
        interface: String,
        /// Settings of the driver.
        settings: XdpSettings,
    },
    /// A TAP device, created when the port is opened.
    Tap {
        /// Name of the device.
        interface: String,
    },
    /// Capture files.
    Pcap {
        /// File from which frames are read.
        input: Option<PathBuf>,
        /// File to which frames are written.
        output: Option<PathBuf>,
    },
}

/// The reason why a port specification cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// There is no `=`.
    #[error("`{text}` is not a port: write NUMBER=INTERFACE{example}")]
    NoNumber {
        /// The given text.
        text: String,
        /// The end of the sentence: the probable meaning.
        example: String,
    },
    /// The part before `=` is not a port number.
    #[error("`{number}` is not a port number in `{text}`: ports are numbered 0 to {max}")]
    Number {
        /// The whole specification.
        text: String,
        /// Its part before `=`.
        number: String,
        /// Maximum port number.
        max: u16,
    },
    /// The part behind `=` is empty.
    #[error("port {number} has no value: write {number}=eth1, {number}=tap:NAME or {number}=IN.pcap:OUT.pcap")]
    Empty {
        /// The port.
        number: u16,
    },
    /// One file without a colon.
    #[error("is `{file}` read or written? write {number}={file}: to read from it, {number}=:{file} to write to it")]
    OneFile {
        /// The port.
        number: u16,
        /// The file.
        file: String,
    },
    /// More than two files.
    #[error(
        "`{text}` has more than one colon: a port has one input file and one output file, {number}=IN.pcap:OUT.pcap"
    )]
    ManyFiles {
        /// The port.
        number: u16,
        /// The part after `=`.
        text: String,
    },
    /// Not the name of any interface.
    #[error("`{name}` is not a valid interface name: names have 1 to 15 characters, without spaces and slashes")]
    InterfaceName {
        /// The name.
        name: String,
    },
    /// A setting that AF_XDP ports do not have.
    #[error("unknown AF_XDP setting `{setting}`: expected copy, generic or busy_poll=MICROSECONDS")]
    XdpSetting {
        /// The given setting.
        setting: String,
    },
    /// A setting that `kernel:` ports do not have.
    #[error("unknown setting `{setting}` of a kernel: port: expected copy, gpl or busy_poll=MICROSECONDS")]
    KernelSetting {
        /// The given setting.
        setting: String,
    },
    /// A driver that does not exist.
    #[error(
        "unknown driver `{driver}`: expected kernel:INTERFACE, xdp:INTERFACE, af_packet:INTERFACE, tap:NAME or \
         pcap:IN.pcap:OUT.pcap"
    )]
    Driver {
        /// The driver's name.
        driver: String,
    },
    /// Two ports have one number.
    #[error("port {number} is given twice, as `{first}` and as `{second}`")]
    Twice {
        /// The port.
        number: u16,
        /// The earlier specification.
        first: String,
        /// The later one.
        second: String,
    },
}

impl FromStr for PortSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        PortSpec::parse(text, u16::MAX)
    }
}

impl PortSpec {
    /// Parses a specification whose port number is at most `max_port`.
    ///
    /// # Errors
    /// Returns the first error.
    pub fn parse(text: &str, max_port: u16) -> Result<PortSpec, SpecError> {
        let Some((number, rest)) = text.split_once('=') else {
            let example = match text.split_once('@') {
                Some((number, interface)) => format!(", here {number}={interface}"),
                None => ", for example 1=eth1".to_owned(),
            };
            return Err(SpecError::NoNumber { text: text.to_owned(), example });
        };
        let wrong = || SpecError::Number { text: text.to_owned(), number: number.to_owned(), max: max_port };
        let digits = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
        let number: u16 = if digits { number.parse().map_err(|_| wrong())? } else { return Err(wrong()) };
        if number > max_port {
            return Err(wrong());
        }
        Ok(PortSpec { number, kind: kind(number, rest)? })
    }
}

fn kind(number: u16, text: &str) -> Result<PortKind, SpecError> {
    if text.is_empty() || text == ":" {
        return Err(SpecError::Empty { number });
    }
    match text.split_once(':') {
        None if looks_like_file(text) => Err(SpecError::OneFile { number, file: text.to_owned() }),
        None => Ok(PortKind::AfPacket { interface: interface(text)? }),
        Some(("af_packet", name)) => Ok(PortKind::AfPacket { interface: interface(name)? }),
        Some(("xdp" | "af_xdp", text)) => xdp_kind(text, false),
        Some(("kernel", text)) => xdp_kind(text, true),
        Some(("tap", name)) => Ok(PortKind::Tap { interface: interface(name)? }),
        Some(("pcap", files)) => match files.split_once(':') {
            Some((input, output)) => self::files(number, input, output),
            None if files.is_empty() => Err(SpecError::Empty { number }),
            None => Err(SpecError::OneFile { number, file: files.to_owned() }),
        },
        Some((driver @ ("dpdk" | "tun" | "veth" | "netmap"), _)) => {
            Err(SpecError::Driver { driver: driver.to_owned() })
        }
        Some((input, output)) => files(number, input, output),
    }
}

fn xdp_kind(text: &str, in_kernel: bool) -> Result<PortKind, SpecError> {
    let mut parts = text.split(',');
    let interface = interface(parts.next().unwrap_or_default())?;
    let mut settings = XdpSettings { in_kernel, ..XdpSettings::default() };
    for setting in parts {
        let unknown = || match in_kernel {
            true => SpecError::KernelSetting { setting: setting.to_owned() },
            false => SpecError::XdpSetting { setting: setting.to_owned() },
        };
        match setting.split_once('=') {
            None if setting == "copy" => settings.copy = true,
            None if setting == "generic" && !in_kernel => settings.generic = true,
            None if setting == "gpl" && in_kernel => settings.is_gpl = true,
            Some(("busy_poll", us)) => settings.busy_poll_us = Some(us.parse().map_err(|_| unknown())?),
            _ => return Err(unknown()),
        }
    }
    Ok(PortKind::Xdp { interface, settings })
}

fn files(number: u16, input: &str, output: &str) -> Result<PortKind, SpecError> {
    if output.contains(':') {
        return Err(SpecError::ManyFiles { number, text: format!("{input}:{output}") });
    }
    if input.is_empty() && output.is_empty() {
        return Err(SpecError::Empty { number });
    }
    let path = |name: &str| (!name.is_empty()).then(|| PathBuf::from(name));
    Ok(PortKind::Pcap { input: path(input), output: path(output) })
}

fn looks_like_file(text: &str) -> bool {
    text.contains('/') || [".pcap", ".pcapng", ".cap"].iter().any(|end| text.ends_with(end))
}

fn interface(name: &str) -> Result<String, SpecError> {
    let allowed = |b: u8| !b.is_ascii_whitespace() && !matches!(b, 0 | b'/' | b':');
    let fits = !name.is_empty() && name.len() <= MAX_INTERFACE_NAME && name != "." && name != "..";
    if !fits || !name.bytes().all(allowed) {
        return Err(SpecError::InterfaceName { name: name.to_owned() });
    }
    Ok(name.to_owned())
}

impl PortSpec {
    /// Parses several specifications with port numbers up to `max_port` and rejects duplicate numbers.
    ///
    /// # Errors
    /// Returns the first error.
    pub fn parse_all<S: AsRef<str>>(texts: &[S], max_port: u16) -> Result<Vec<PortSpec>, SpecError> {
        let mut specs: Vec<PortSpec> = Vec::with_capacity(texts.len());
        for text in texts {
            let spec = PortSpec::parse(text.as_ref(), max_port)?;
            if let Some(at) = specs.iter().position(|earlier| earlier.number == spec.number) {
                let (first, second) = (texts[at].as_ref().to_owned(), text.as_ref().to_owned());
                return Err(SpecError::Twice { number: spec.number, first, second });
            }
            specs.push(spec);
        }
        Ok(specs)
    }

    /// Opens the driver.
    ///
    /// # Errors
    /// Returns an error if the interface or file does not exist, is not Ethernet, or this process may not use it.
    pub fn open(&self) -> Result<Box<dyn Port>, PortError> {
        Self::open_all(std::slice::from_ref(self)).map(|mut ports| ports.remove(0))
    }

    /// Opens the drivers of a run, in order. AF_XDP ports among them share one frame memory where their devices can.
    /// Where AF_XDP is not available, the interface is opened through AF_PACKET instead, and its [`Port::note`] gives
    /// the reason.
    ///
    /// # Errors
    /// Returns the error of the first port that cannot be opened.
    pub fn open_all(specs: &[PortSpec]) -> Result<Vec<Box<dyn Port>>, PortError> {
        let opened = Self::open_for_workers(specs, 1)?;
        Ok(opened.into_iter().map(|mut drivers| drivers.remove(0)).collect())
    }

    /// Opens the drivers of a run with several workers, in order. Each port has either one driver per worker, or one
    /// driver for all. The kernel distributes AF_PACKET frames by flow. AF_XDP frames are distributed by the
    /// interface's receive queues, if there are at least as many as workers.
    ///
    /// # Errors
    /// Returns the error of the first port that cannot be opened.
    pub fn open_for_workers(specs: &[PortSpec], workers: usize) -> Result<Vec<Vec<Box<dyn Port>>>, PortError> {
        let interfaces: Vec<_> = specs.iter().filter_map(PortSpec::xdp).collect();
        let mut opened = xdp::open_all(&interfaces).into_iter();
        let open = |spec: &PortSpec| match &spec.kind {
            PortKind::Pcap { input, output } => {
                PcapPort::open(input.as_deref(), output.as_deref()).map(|port| boxed([port]))
            }
            PortKind::AfPacket { interface } => AfPacketPort::open_fanout(interface, workers).map(boxed),
            PortKind::Tap { interface } => TapPort::open(interface).map(|port| boxed([port])),
            PortKind::Xdp { interface, .. } => match opened.next().expect("one for each") {
                Ok(port) if port.senders().min(port.queues()) >= workers => port.split(workers).map(boxed),
                Ok(port) => Ok(boxed([port])),
                Err(PortError::NoXdp { why, .. }) => {
                    let note = format!("`{interface}` uses AF_PACKET instead of AF_XDP: {why}");
                    let mut note = Some(note);
                    let noted = |port: AfPacketPort| match note.take() {
                        Some(note) => port.with_note(note),
                        None => port,
                    };
                    Ok(boxed(AfPacketPort::open_fanout(interface, workers)?.into_iter().map(noted)))
                }
                Err(error) => Err(error),
            },
        };
        specs.iter().map(open).collect()
    }

    fn xdp(&self) -> Option<(&str, XdpSettings)> {
        match &self.kind {
            PortKind::Xdp { interface, settings } => Some((interface, *settings)),
            _ => None,
        }
    }
}

fn boxed<P: Port + 'static>(ports: impl IntoIterator<Item = P>) -> Vec<Box<dyn Port>> {
    ports.into_iter().map(|port| Box::new(port) as Box<dyn Port>).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let found = match PortSpec::parse(text, 510) {
            Ok(PortSpec { number, kind }) => format!("{number} {kind:?}"),
            Err(error) => error.to_string(),
        };
        assert!(found.contains(expected), "`{text}` gave\n  {found}\nwithout\n  {expected}");
    }

    #[test]
    fn every_kind_is_understood() {
        check("1=eth1", r#"1 AfPacket { interface: "eth1" }"#);
        check("0=af_packet:eth1.7", r#"0 AfPacket { interface: "eth1.7" }"#);
        check("2=xdp:eth1", r#"2 Xdp { interface: "eth1", settings: XdpSettings { generic: false, copy: false"#);
        check("2=af_xdp:eth1,copy,busy_poll=20", "copy: true, busy_poll_us: Some(20)");
        check("2=kernel:eth1,copy", "copy: true, busy_poll_us: None, in_kernel: true, is_gpl: false");
        check("2=kernel:eth1,gpl", "in_kernel: true, is_gpl: true");
        check("510=tap:p4", r#"510 Tap { interface: "p4" }"#);
        check("1=in.pcap:out.pcap", r#"Pcap { input: Some("in.pcap"), output: Some("out.pcap") }"#);
        check("1=in.pcap:", r#"Pcap { input: Some("in.pcap"), output: None }"#);
        check("1=:out=1.pcap", r#"Pcap { input: None, output: Some("out=1.pcap") }"#);
        check("1=pcap:eth1:/dev/null", r#"Pcap { input: Some("eth1"), output: Some("/dev/null") }"#);
    }

    #[test]
    fn mistakes_are_answered_with_what_to_write() {
        check("eth1", "for example 1=eth1");
        check("1@eth1", "here 1=eth1");
        check("511=eth1", "numbered 0 to 510");
        check("-1=eth1", "`-1` is not a port number");
        check("+1=eth1", "`+1` is not a port number");
        check("99999999999=eth1", "is not a port number");
        check("1=", "write 1=eth1");
        check("1=:", "write 1=eth1");
        check("1=trace.pcap", "write 1=trace.pcap: to read from it");
        check("1=a:b:c", "more than one colon");
        check("1=a-very-long-interface", "1 to 15 characters");
        check("1=tap:", "1 to 15 characters");
        check("1=dpdk:eth1", "expected kernel:INTERFACE, xdp:INTERFACE");
        check("1=kernel:eth1,generic", "setting `generic`");
        check("1=xdp:eth1,gpl", "setting `gpl`");
        check("1=xdp:", "1 to 15 characters");
        check("1=xdp:eth1,fast", "setting `fast`");
        check("1=xdp:eth1,busy_poll=soon", "expected copy, generic or busy_poll=MICROSECONDS");
    }

    #[test]
    fn a_number_is_given_once() {
        let error = PortSpec::parse_all(&["1=eth1", "2=eth2", "1=tap:x"], 510).unwrap_err().to_string();
        assert!(error.contains("port 1 is given twice") && error.contains("tap:x"), "{error}");
        assert_eq!(PortSpec::parse_all(&["1=eth1", "2=eth2"], 510).unwrap().len(), 2);
    }
}
