//! Compiles the packet loops of [`runtime`] and [`lab_live`] for the switch of [`v1model`].
//!
//! The loops are generic over the switch, so the compiler translates them in the crate that names the switch. This
//! crate is that place. It is small and fully optimized; the command, which calls it, is large and not optimized. The
//! measurements of `triplane bench` ([`mod@bench`]) are here for the same reason.
//!
//! Each function here only calls its generic counterpart, which has the documentation of arguments, errors and panics.
//! A wrapper around the switch adds its own functions. Exceptions are [`kernel`], which knows the programs of
//! `v1model`, and [`memory_socket`], a hook of one wrapper with its protocol.
//!
//! The compiler generates the methods of a trait object in the crate that creates it. So hooks of a run ([`hooks`])
//! and the switches of a simulation ([`simulated`]) become trait objects here, too.

pub mod bench;
pub mod hooks;
pub mod kernel;
pub mod memory_socket;
pub mod simulated;

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use elastic_switch::ElasticSwitch;
use lab_live::{DaemonConnection, DaemonSettings, LabError, LiveNetwork, ProcessArguments};
use resilient_switch::{InBandSwitch, ResilientSwitch};
use runtime::{RunConfig, RunHandle, RunReport};
use switch::EitherSwitch;
use v1model::Switch;

/// A switch of a live lab: in the network of its stores, or with tables in the memory of servers.
pub type LiveSwitch<S> = EitherSwitch<InBandSwitch<S>, ElasticSwitch<S>>;

/// Forwards in real time: [`RunConfig::run_live`].
///
/// # Errors
/// If the process can open no more descriptors for the wakers of its workers.
pub fn run_live(config: RunConfig<Switch>, stop: &AtomicBool) -> io::Result<RunReport<Switch>> {
    config.run_live(stop)
}

/// Forwards in real time with replicated state: [`RunConfig::run_live`].
///
/// # Errors
/// As [`run_live`].
pub fn run_resilient(
    config: RunConfig<ResilientSwitch<Switch>>,
    stop: &AtomicBool,
) -> io::Result<RunReport<ResilientSwitch<Switch>>> {
    config.run_live(stop)
}

/// Forwards in real time with tables in the memory of servers: [`RunConfig::run_live`].
///
/// # Errors
/// As [`run_live`].
pub fn run_elastic(
    config: RunConfig<ElasticSwitch<Switch>>,
    stop: &AtomicBool,
) -> io::Result<RunReport<ElasticSwitch<Switch>>> {
    config.run_live(stop)
}

/// Forwards in real time in a thread of its own: [`RunConfig::spawn_live`].
///
/// # Errors
/// If the process can start no more threads.
pub fn spawn_live(config: RunConfig<Switch>, name: &str) -> io::Result<RunHandle<Switch>> {
    config.spawn_live(name)
}

/// Runs capture files to their end: [`RunConfig::run_offline`].
pub fn run_offline(config: RunConfig<Switch>) -> RunReport<Switch> {
    config.run_offline()
}

/// Runs the daemon of a live lab: [`lab_live::run_daemon`].
///
/// # Errors
/// If the network cannot be created.
pub fn run_lab_daemon(
    network: Arc<dyn LiveNetwork<Switch = LiveSwitch<Switch>>>,
    settings: &DaemonSettings,
    arguments: Arc<dyn ProcessArguments>,
    starter: &mut dyn Write,
) -> Result<(), LabError> {
    lab_live::run_daemon(network, settings, arguments, starter)
}

/// Runs a switch of a live lab in this process: [`lab_live::switch_main`].
///
/// # Errors
/// If the switch cannot start.
pub fn run_lab_switch(
    daemon: DaemonConnection,
    network: Arc<dyn LiveNetwork<Switch = LiveSwitch<Switch>>>,
    lab: &str,
    switch: &str,
    seed: u64,
) -> Result<(), LabError> {
    lab_live::switch_main(daemon, network, lab, switch, seed)
}
