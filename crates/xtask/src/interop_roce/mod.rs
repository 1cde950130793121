//! Runs `cargo xtask interop-roce`: tests packets against scapy, and connections against the soft RoCE of Linux.

mod initramfs;
mod scapy;
mod soft_roce;
mod virtual_machine;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

/// The output of `cargo xtask interop-roce --help` below the first line.
pub const HELP: &str = "\
Usage: cargo xtask interop-roce [--only scapy|linux] [--frames N] [--seed N] [--kernel DIR]

scapy: scapy parses N frames of RoCEv2 that this project makes, over IPv4 and IPv6, with every opcode of the reliable
connection, and this project parses N frames of scapy. Both must find the same fields and the same integrity check.

linux: boots Debian's kernel in QEMU and connects its soft RoCE (rdma_rxe) with the responder, and with the requester.
READs, WRITEs and atomic operations of many sizes, over IPv4 and IPv6, with and without loss, duplicates and
reordering, must complete, and the memory of both ends must have the same bytes.

Needs, for scapy, Python 3 with `venv`, and the first time the network. For linux: qemu-system-x86, gcc,
libibverbs-dev, ibverbs-providers, iproute2 and busybox-static of Debian, and the first time the network to download
its kernel. No privileges are needed: the machine is emulated, and its network card is a socket of this process.

Options:
  --only NAME    Only `scapy` or only `linux`
  --frames N     Number of frames in each direction, with scapy [default: 2000]
  --seed N       Seed of the frames, and of losses [default: 1]
  --kernel DIR   Root of the kernel's files (boot/vmlinuz-*, lib/modules) [default: Debian's package, downloaded]

Environment:
  TRIPLANE_NO_SKIP=1   Fail instead of skipping if something that is needed is missing.
";

struct InteropOptions {
    only: Option<String>,
    frames: u64,
    seed: u64,
    kernel: Option<PathBuf>,
}

impl InteropOptions {
    fn parse(arguments: &[String]) -> Result<InteropOptions> {
        let mut options = InteropOptions { only: None, frames: 2000, seed: 1, kernel: None };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let mut value = || rest.next().with_context(|| format!("{argument} requires a value"));
            let number = |value: &String| -> Result<u64> {
                value.parse().with_context(|| format!("{argument} requires a number, not `{value}`"))
            };
            match argument.as_str() {
                "--only" => options.only = Some(value()?.clone()),
                "--frames" => options.frames = number(value()?)?,
                "--seed" => options.seed = number(value()?)?,
                "--kernel" => options.kernel = Some(PathBuf::from(value()?)),
                _ => bail!("there is no option `{argument}`; see `cargo xtask interop-roce --help`"),
            }
        }
        match options.only.as_deref() {
            None | Some("scapy" | "linux") => Ok(options),
            Some(other) => bail!("--only is `scapy` or `linux`, not `{other}`"),
        }
    }

    fn has(&self, name: &str) -> bool {
        self.only.as_deref().is_none_or(|only| only == name)
    }
}

/// Runs the comparisons. Returns false if any fails.
pub fn run(arguments: &[String]) -> Result<bool> {
    let options = InteropOptions::parse(arguments)?;
    let mut is_good = true;
    if options.has("scapy") {
        is_good &= scapy::compare(options.frames, options.seed)?;
    }
    if options.has("linux") {
        is_good &= match virtual_machine::missing_package() {
            None => soft_roce::check(&virtual_machine::Files::prepare(options.kernel.as_deref())?, options.seed)?,
            Some(package) => crate::skip(&format!("soft RoCE of Linux: install {package}")),
        };
    }
    Ok(is_good)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_checked() {
        let parse = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            InteropOptions::parse(&words).map_err(|error| error.to_string())
        };
        let options = parse(&["--only", "linux", "--seed", "7"]).expect("they are valid");
        assert!(options.has("linux") && !options.has("scapy") && options.seed == 7);
        assert!(parse(&["--only", "windows"]).is_err_and(|error| error.contains("not `windows`")));
        assert!(parse(&["--seed", "x"]).is_err_and(|error| error.contains("not `x`")));
        assert!(parse(&["--frames"]).is_err_and(|error| error.contains("requires a value")));
    }
}
