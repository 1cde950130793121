//! A network of namespaces: `triplane lab up` and what is done with it then.
//!
//! ```text
//!  lab up ──starts──> holder: namespaces, links, a thread for each switch ──socket──< lab status, fail, link, pcap, …
//!                       ├ holds the hosts' namespaces open ──/proc/PID/fd──< lab exec, lab shell
//!                       └ with --isolate, instead of the threads: solo, a process for each switch
//! ```
//!
//! Namespaces have no names and live as long as the holder, so that nothing is left behind when it ends, however it
//! ends. Links are veth pairs; what they do to frames (rate, delay, loss, queue) happens here, where frames leave a
//! switch and where they come from a host, by the same code that simulated links have.

mod answering;
mod asking;
mod cell;
mod controlled;
mod holder;
mod hosts;
mod lane;
mod play;
mod process;
mod protocol;
mod residents;
mod room;
mod socket;
mod solo;
mod start;
mod station;
mod up;
mod wires;

use std::io::{IsTerminal, Write};
use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::Context;

use super::args::{DownArgs, LinkArgs, LinkState, NameArgs, NodeArgs, PcapArgs};
use super::report;
use crate::output::{Failure, Output};
use asking::ask;
use protocol::Request;
use room::Room;

pub use holder::{allowed, hold};
pub use play::{play, run};
pub use solo::solo;
pub use up::up;

/// `triplane lab down`: ends the network.
pub fn down(args: &DownArgs, output: &Output) -> Result<(), Failure> {
    let names = match (args.all, &args.lab) {
        (true, _) => Room::names()?,
        // One that crashed left a directory, perhaps programs on its hosts.
        (false, Some(name)) if Room::names()?.contains(name) => vec![name.clone()],
        (false, None) if Room::all()?.is_empty() && !Room::crashed()?.is_empty() => Room::crashed()?,
        (false, name) => vec![Room::choose(name.as_deref())?.name],
    };
    for name in names {
        match Room::find(&name)? {
            Some(room) => {
                room.end()?;
                output.print(&format!("lab {name}: down\n"))?;
            }
            None => {
                Room::sweep(&name)?;
                output.print(&format!("lab {name}: had crashed; what was left of it is gone\n"))?;
            }
        }
    }
    Ok(())
}

/// `triplane lab exec` and `triplane lab shell`: becomes the command, within a host.
pub fn exec(lab: &NameArgs, host: &str, command: &[String]) -> Result<(), Failure> {
    let room = Room::choose(lab.lab.as_deref())?;
    let Some(descriptor) = room.hosts.get(host) else {
        let hosts: Vec<&str> = room.hosts.keys().map(String::as_str).collect();
        return Err(Failure::Usage(format!("there is no host `{host}`; there are {}", hosts.join(", "))));
    };
    ports::namespace::join(room.holder.pid, *descriptor).map_err(anyhow::Error::from)?;
    let shell = std::env::var("SHELL").unwrap_or_else(|_| "/bin/sh".to_owned());
    let words = if command.is_empty() { vec![shell] } else { command.to_vec() };
    let prompt = format!("{host}@{}$ ", room.name);
    let error = Command::new(&words[0])
        .args(&words[1..])
        .env("PS1", prompt)
        .env("TRIPLANE_HOST", host)
        .env(residents::VARIABLE, room.token())
        .exec();
    Err(anyhow::Error::from(error).context(format!("cannot run `{}`", words[0])).into())
}

/// `triplane lab status`.
pub fn status(args: &NameArgs, json: bool, output: &Output) -> Result<(), Failure> {
    let room = Room::choose(args.lab.as_deref())?;
    let status = ask(&room, &Request::Status)?;
    output.print(&if json { format!("{status:#}\n") } else { report::status(&room.name, &status) })
}

/// `triplane lab fail` and `triplane lab heal`.
pub fn fail(args: &NodeArgs, failed: bool, output: &Output) -> Result<(), Failure> {
    let room = Room::choose(args.lab.lab.as_deref())?;
    let changed = ask(&room, &Request::Fail { switch: args.switch.clone(), failed })? == true;
    let what = match (failed, changed) {
        (true, true) => "has crashed: its state is lost",
        (true, false) => "had crashed already",
        (false, true) => "starts again, as new",
        (false, false) => "runs already",
    };
    output.print(&format!("{} {what}\n", args.switch))
}

/// `triplane lab link`.
pub fn link(args: &LinkArgs, output: &Output) -> Result<(), Failure> {
    let room = Room::choose(args.lab.lab.as_deref())?;
    let up = args.state == LinkState::Up;
    ask(&room, &Request::Link { one: args.one.clone(), other: args.other.clone(), up })?;
    output.print(&format!("the link of {} and {} is {}\n", args.one, args.other, if up { "up" } else { "down" }))
}

/// `triplane lab pcap`: what passes a port, as a capture, until Ctrl-C.
pub fn pcap(args: &PcapArgs, output: &Output) -> Result<(), Failure> {
    let room = Room::choose(args.lab.lab.as_deref())?;
    let to_stdout = args.file.as_os_str() == "-";
    if to_stdout && std::io::stdout().is_terminal() {
        return Err(Failure::Usage("a capture is not for terminals: pipe it, or name a file".to_owned()));
    }
    let (_, mut reader) = asking::converse(&room, &Request::Capture { port: args.port.clone() })?;
    let mut sink: Box<dyn Write> = match to_stdout {
        true => Box::new(std::io::stdout().lock()),
        false => {
            let shown = args.file.display();
            Box::new(std::fs::File::create(&args.file).with_context(|| format!("cannot write {shown}"))?)
        }
    };
    output.note(&format!("capturing {}; Ctrl-C ends", args.port));
    let mut buffer = [0; 65_536];
    loop {
        let read = std::io::Read::read(&mut reader, &mut buffer).unwrap_or(0);
        if read == 0 {
            return Ok(());
        }
        let written = sink.write_all(&buffer[..read]).and_then(|()| sink.flush());
        match to_stdout {
            true => written?,
            false => written.with_context(|| format!("cannot write {}", args.file.display()))?,
        }
    }
}
