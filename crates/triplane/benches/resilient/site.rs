//! A switch with its neighbours and stores, each in a network namespace. The namespaces and processes end when the
//! value is dropped.
//!
//! ```text
//! client eth0 ── r1  switch  r2 ── eth0 sink
//!                    s0 10.9.0.254 ── eth0 10.9.0.1, .2, .3 stores
//! ```

use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ports::namespace::{Namespace, NamespaceError, Offload, veth};
use resilient_store::Cluster;

use crate::process::{BenchProcess, pinned};

/// Processor of the client and the load. `taskset` binds this program to it.
pub const LOAD_PROCESSOR: &str = "0";
/// Processor of the switch.
pub const SWITCH_PROCESSOR: &str = "1";

/// The switch's address for datagrams.
pub const SWITCH_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 9, 0, 254)), 7201);

const TRIPLANE: &str = env!("CARGO_BIN_EXE_triplane");
/// Time for which a port may take to have a link.
const LINK_TIMEOUT: Duration = Duration::from_secs(2);

/// Returns the address of a store, from 1 to 3.
pub fn store_address(number: u8) -> SocketAddr {
    SocketAddr::new(IpAddr::from([10, 9, 0, number]), 7100 + u16::from(number))
}

/// The namespaces of a switch.
pub struct Site {
    pub client: Namespace,
    pub switch: Namespace,
    pub sink: Namespace,
    pub stores: Namespace,
    directory: PathBuf,
    running: Vec<BenchProcess>,
    forwarder: Option<BenchProcess>,
}

impl Site {
    /// Creates the namespaces. `directory` is created, and holds the files of the processes.
    pub fn new(directory: PathBuf) -> Result<Site, Box<dyn Error>> {
        std::fs::create_dir_all(&directory)?;
        let namespace = |name| -> Result<Namespace, NamespaceError> {
            let namespace = Namespace::new(name)?;
            namespace.disable_ipv6()?;
            namespace.set_up("lo")?;
            Ok(namespace)
        };
        let (client, switch) = (namespace("client")?, namespace("switch")?);
        let (sink, stores) = (namespace("sink")?, namespace("stores")?);
        for (host, end) in [(&client, "r1"), (&sink, "r2"), (&stores, "s0")] {
            veth(host, "eth0", &switch, end)?;
            host.set_up("eth0")?;
            switch.set_up(end)?;
            host.wait_for_link("eth0", LINK_TIMEOUT)?;
            switch.wait_for_link(end, LINK_TIMEOUT)?;
        }
        // The flood's frames have no socket buffers; r1 accepts such frames only with this offload, or with XDP.
        switch.turn_on("r1", Offload::Receive)?;
        switch.add_address("s0", SWITCH_ADDRESS.ip(), 24)?;
        for number in 1..=3 {
            stores.add_address("eth0", store_address(number).ip(), 24)?;
        }
        Ok(Site { client, switch, sink, stores, directory, running: Vec::new(), forwarder: None })
    }

    /// Returns the path of the cluster file.
    fn cluster_file(&self) -> PathBuf {
        self.directory.join("cluster.toml")
    }

    /// Starts a chain of stores on a processor, with a key. They keep their rows in memory.
    pub fn start_stores(&mut self, count: u8, lease: &str, processor: &str) -> Result<(), Box<dyn Error>> {
        let key = self.directory.join("cluster.key");
        let made = Command::new(TRIPLANE).args(["store", "key"]).arg(&key).output()?;
        if !made.status.success() {
            return Err(String::from_utf8_lossy(&made.stderr).into_owned().into());
        }
        let mut text = format!("lease = \"{lease}\"\nkey_file = \"cluster.key\"\n");
        for number in 1..=count {
            text.push_str(&format!("[stores.s{number}]\naddress = \"{}\"\n", store_address(number)));
        }
        text.push_str(&format!("[switches.s]\naddress = \"{SWITCH_ADDRESS}\"\n"));
        std::fs::write(self.cluster_file(), text)?;
        for number in 1..=count {
            let mut command = pinned(&self.stores, processor, Path::new(TRIPLANE))?;
            command.args(["store", "run", &format!("s{number}"), "--cluster"]).arg(self.cluster_file());
            command.arg("--state-dir").arg(self.directory.join(format!("s{number}")));
            self.running.push(BenchProcess::start(&mut command, "press Ctrl-C to stop")?);
        }
        Ok(())
    }

    /// Reads the cluster file.
    pub fn cluster(&self) -> Result<Cluster, Box<dyn Error>> {
        Ok(Cluster::read(&std::fs::read_to_string(self.cluster_file())?, &self.directory)?)
    }

    /// Binds the socket of the switch's address, for a process that takes its place.
    pub fn switch_socket(&self) -> Result<UdpSocket, Box<dyn Error>> {
        Ok(self.switch.enter(|| UdpSocket::bind(SWITCH_ADDRESS))??)
    }

    /// Starts `triplane run` with a program, and with the stores if there are any. Its ports are AF_XDP sockets.
    pub fn start_switch(&mut self, program: &Path, entries: Option<&str>) -> Result<(), Box<dyn Error>> {
        let mut command = pinned(&self.switch, SWITCH_PROCESSOR, Path::new(TRIPLANE))?;
        command.arg("run").arg(program).args(["--json", "--port", "1=xdp:r1", "--port", "2=xdp:r2"]);
        if let Some(entries) = entries {
            let path = self.directory.join("entries.json");
            std::fs::write(&path, entries)?;
            command.arg("--entries").arg(path);
        }
        if !self.running.is_empty() {
            command.arg("--store").arg(self.cluster_file()).args(["--switch", "s"]);
        }
        self.forwarder = Some(BenchProcess::start(&mut command, "press Ctrl-C to stop")?);
        Ok(())
    }

    /// Starts this program with arguments, in place of the stores.
    pub fn start_own_store(&mut self, arguments: &[&str]) -> Result<(), Box<dyn Error>> {
        let mut command = pinned(&self.stores, SWITCH_PROCESSOR, &std::env::current_exe()?)?;
        self.running.push(BenchProcess::start(command.args(arguments), "ready")?);
        Ok(())
    }

    /// Starts this program with arguments, in place of the switch.
    pub fn start_own_switch(&mut self, arguments: &[&str]) -> Result<(), Box<dyn Error>> {
        let mut command = pinned(&self.switch, SWITCH_PROCESSOR, &std::env::current_exe()?)?;
        self.forwarder = Some(BenchProcess::start(command.args(arguments), "ready")?);
        Ok(())
    }

    /// Returns the processor time that the switch has used.
    pub fn switch_cpu(&self) -> Option<Duration> {
        self.forwarder.as_ref()?.cpu()
    }

    /// Returns the processor time that the stores have used.
    pub fn store_cpu(&self) -> Duration {
        self.running.iter().filter_map(BenchProcess::cpu).sum()
    }

    /// Ends the switch, and returns its output.
    pub fn stop_switch(&mut self) -> Result<String, Box<dyn Error>> {
        self.forwarder.take().map_or(Ok(String::new()), BenchProcess::stop)
    }
}
