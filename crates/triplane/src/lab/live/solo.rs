//! A process that runs one switch of a network: `lab up --isolate`.
//!
//! It lives in the holder's namespaces, finds its ports there by their names, and does what the holder says over a
//! socket of its own. Standard output is a pair of sockets whose other end the holder has; when that is closed, by
//! whatever end the holder came to, this process ends too.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Instant;

use anyhow::{Context, anyhow};
use serde_json::Value;
use v1model::Executor;

use super::super::args::SoloArgs;
use super::super::network::{Live, Network, Wanted};
use super::controlled::Door;
use super::protocol::Request;
use super::room::Room;
use super::socket::{self, Reply};
use super::station::{Order, Station};
use super::wires;
use crate::output::{Failure, Output};

/// What the process says when its switch runs.
pub const READY: &str = "ready";

/// Runs a switch until the holder is gone or says that it is enough.
pub fn solo(args: &SoloArgs, output: &Output) -> Result<(), Failure> {
    let holder = std::io::stdout().as_fd().try_clone_to_owned().context("there is no holder")?;
    let mut holder = UnixStream::from(holder);
    let mut life = holder.try_clone().context("cannot share a socket")?;
    std::thread::spawn(move || {
        // Nothing is ever said: this waits for the holder's end.
        let _ = life.read(&mut [0]);
        std::process::exit(0);
    });
    let live = &args.hold.live;
    let executor = if live.interpret { Executor::Interpreter } else { Executor::Auto };
    let wanted = Wanted { executor, live: Some(Live { p4runtime: live.p4runtime, only: Some(&args.switch) }) };
    let network = Arc::new(Network::load_for(&live.topology, &wanted, output)?);
    let switches = &network.topology.switches;
    let at = switches.iter().position(|switch| switch.name == args.switch);
    let at = at.ok_or_else(|| Failure::Usage(format!("there is no switch `{}`", args.switch)))?;
    let seed = live.seed();
    let door = match network.endpoints[at] {
        Some(served) => {
            let listener = std::io::stdin().as_fd().try_clone_to_owned().context("there is no socket to serve")?;
            Some(Door::new(TcpListener::from(listener), Arc::clone(&network), at, seed, served))
        }
        None => None,
    };
    let start = Instant::now();
    let places = wires::places(&network.topology, at, seed)?;
    let (orders, told) = channel();
    let making = Arc::clone(&network);
    let station = Station::new(Box::new(move || making.switch(at, seed)), door, places, told, start);
    let thread = std::thread::Builder::new().name(args.switch.clone()).spawn(move || station.run());
    let thread = thread.context("cannot start a switch")?;
    let listener = socket::listen(&Room::switch_socket(&args.hold.name, at))?;
    holder.write_all(format!("{READY}\n").as_bytes()).context("the holder is gone")?;
    socket::serve(&listener, || thread.is_finished(), |request, stream| answer(request, stream, &orders, start))?;
    // It may have ended already.
    let _ = orders.send(Order::Stop);
    thread.join().map_err(|_| anyhow!("the switch ended by itself; this is a bug").into())
}

fn answer(request: &Request, stream: &UnixStream, orders: &Sender<Order>, start: Instant) -> Reply {
    let done = match *request {
        Request::Port { port, up } => socket::carried_out(orders, |done| Order::Link { port, up, done }),
        Request::Slow { port, by_ns } => socket::carried_out(orders, |done| Order::Slow { port, by_ns, done }),
        Request::CapturePort { port } => {
            let orders = orders.clone();
            let Ok(stream) = stream.try_clone() else { return Reply::Elsewhere };
            std::thread::spawn(move || socket::capture(&orders, port, start, stream));
            return Reply::Elsewhere;
        }
        Request::Status => {
            let (to, answer) = channel();
            let asked = orders.send(Order::Status(to)).is_ok();
            let status = asked.then(|| answer.recv_timeout(socket::PATIENCE).ok()).flatten();
            let status = status.and_then(|status| serde_json::to_value(status).ok());
            return Reply::Answer(status.ok_or_else(|| "the switch does not answer".to_owned()));
        }
        _ => return Reply::Answer(Err("that is the holder's".to_owned())),
    };
    Reply::Answer(done.map(|()| Value::Null))
}
