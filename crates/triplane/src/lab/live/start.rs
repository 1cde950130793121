//! Starting the processes of a network: this program again, with other words.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use super::super::args::LiveArgs;
use super::room;

/// This program. The link leads to it even when the file has been replaced since.
const OWN: &str = "/proc/self/exe";

/// A command that runs this program.
pub fn own() -> Command {
    let mut command = Command::new(OWN);
    // In a user namespace it would look for them where root's are.
    command.arg0("triplane").env(room::DIRECTORY, room::directory());
    command
}

/// A command that runs `triplane lab` with one of its hidden subcommands and these words of its own, for a network.
pub fn process(subcommand: &str, name: &str, more: &[OsString], args: &LiveArgs) -> Command {
    let mut command = own();
    command.args(["lab", subcommand, "--name", name]).args(more).args(words(args));
    command
}

fn words(args: &LiveArgs) -> Vec<OsString> {
    let LiveArgs { topology, seed, interpret, isolate, p4runtime } = args;
    let mut words: Vec<OsString> = Vec::new();
    if let Some(seed) = seed {
        words.extend(["--seed".into(), seed.to_string().into()]);
    }
    if let Some(program) = &topology.program {
        words.extend(["--program".into(), program.into()]);
    }
    if *interpret {
        words.push("--interpret".into());
    }
    if *isolate {
        words.push("--isolate".into());
    }
    if let Some(address) = p4runtime {
        words.extend(["--p4runtime".into(), address.to_string().into()]);
    }
    words.extend(["--".into(), (&topology.topology).into()]);
    words
}
