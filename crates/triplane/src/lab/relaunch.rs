//! Builds the command lines of the hidden subcommands that are the processes of a live network.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::ValueEnum;
use lab_live::{ProcessArguments, ProcessRole};

use super::args::{LiveArgs, RunArgs};

/// The arguments of a network's processes: the options of the command that started it.
#[derive(Clone, Debug)]
pub struct ChildArguments {
    live: LiveArgs,
    scenario: Option<PathBuf>,
    json: bool,
}

impl ChildArguments {
    /// Returns the arguments of the processes of a network.
    pub fn network(live: &LiveArgs) -> ChildArguments {
        ChildArguments { live: live.clone(), scenario: None, json: false }
    }

    /// Returns the arguments of the processes of a network and of the one that plays a scenario on it.
    pub fn scenario(args: &RunArgs) -> ChildArguments {
        ChildArguments { live: args.up.live.clone(), scenario: args.scenario.clone(), json: args.json }
    }

    /// Appends the options of the network and its file.
    fn append_network(&self, words: &mut Vec<OsString>) {
        let LiveArgs { topology, seed, interpret, kernel, isolate, p4runtime } = &self.live;
        if let Some(seed) = seed {
            words.push(option("--seed", &seed.to_string()));
        }
        if let Some(program) = &topology.program {
            words.push(option("--program", program));
        }
        words.extend(topology.include.iter().map(|directory| option("--include", directory)));
        words.extend(topology.define.iter().map(|define| option("--define", define)));
        if *interpret {
            words.push("--interpret".into());
        }
        if let Some(mode) = kernel.and_then(|mode| mode.to_possible_value()) {
            words.push(option("--kernel", mode.get_name()));
        }
        if *isolate {
            words.push("--isolate".into());
        }
        if let Some(address) = p4runtime {
            words.push(option("--p4runtime", &address.to_string()));
        }
        words.extend(["--".into(), (&topology.topology).into()]);
    }
}

/// Returns an option and its value as one word, since a value may begin with `-`.
fn option(name: &str, value: &(impl AsRef<OsStr> + ?Sized)) -> OsString {
    let mut word = OsString::from(name);
    word.push("=");
    word.push(value);
    word
}

impl ProcessArguments for ChildArguments {
    fn arguments(&self, role: ProcessRole<'_>) -> Vec<OsString> {
        let mut words: Vec<OsString> = vec!["lab".into()];
        match role {
            ProcessRole::PermissionCheck => {
                words.push("allowed".into());
                return words;
            }
            ProcessRole::Daemon { lab, is_bound } => {
                words.extend(["daemon".into(), option("--name", lab)]);
                words.extend(is_bound.then(|| "--bound".into()));
            }
            ProcessRole::Switch { lab, switch } => {
                words.extend(["switch".into(), option("--name", lab), option("--switch", switch)]);
            }
            // They read the cluster file, not the network.
            ProcessRole::Store { lab, store, is_durable } => {
                words.extend(["store".into(), option("--name", lab), option("--store", store)]);
                words.extend(is_durable.then(|| "--durable".into()));
                return words;
            }
            ProcessRole::Operator { lab } => {
                words.extend(["operator".into(), option("--name", lab)]);
                return words;
            }
            ProcessRole::MemoryServer { interface, address, memory } => {
                words.extend(["memory".into(), option("--port", interface), option("--address", &address.to_string())]);
                words.push(option("--memory", &memory.to_string()));
                return words;
            }
            ProcessRole::Shim { lab, host } => {
                words.extend(["shim".into(), option("--name", lab), option("--host", host)]);
            }
            ProcessRole::Traffic { lab } => {
                words.extend(["play".into(), option("--name", lab)]);
                if let Some(scenario) = &self.scenario {
                    words.push(option("--scenario", scenario));
                }
                words.extend(self.json.then(|| "--json".into()));
            }
        }
        self.append_network(&mut words);
        words
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::args::{LabArgs, LabCommand};
    use super::*;
    use crate::kernel::KernelMode;

    /// The command line of `triplane lab`, without the command.
    #[derive(Parser)]
    struct LabCommandLine {
        #[command(flatten)]
        args: LabArgs,
    }

    /// Parses the arguments of a role of the network that `triplane lab run` starts with these options.
    fn subcommand(options: &[&str], role: ProcessRole<'_>) -> LabCommand {
        let parse = |words: Vec<OsString>| match LabCommandLine::try_parse_from(words) {
            Ok(LabCommandLine { args }) => args.command,
            Err(error) => panic!("{error}"),
        };
        let run = [&["lab", "run"], options].concat().into_iter().map(OsString::from).collect();
        let LabCommand::Run(args) = parse(run) else { panic!("{options:?} are options of `lab run`") };
        parse(ChildArguments::scenario(&args).arguments(role))
    }

    #[test]
    fn every_option_of_the_network_reaches_its_processes() {
        let given = "--seed 7 --program r.p4 -I inc -I more -D N=1 --interpret --kernel require --isolate --p4runtime \
                     127.0.0.1:50100 --json --scenario s.toml -- -odd.toml";
        let given: Vec<&str> = given.split_whitespace().collect();
        let LabCommand::Daemon(daemon) = subcommand(&given, ProcessRole::Daemon { lab: "l", is_bound: true }) else {
            panic!("the daemon is `lab daemon`")
        };
        assert!(daemon.bound && daemon.name == "l" && daemon.live.isolate && daemon.live.interpret, "{daemon:?}");
        assert_eq!((daemon.live.seed, daemon.live.p4runtime), (Some(7), "127.0.0.1:50100".parse().ok()));
        assert_eq!(daemon.live.kernel, Some(KernelMode::Require));
        assert_eq!(daemon.live.topology.topology, PathBuf::from("-odd.toml"));
        assert_eq!(daemon.live.topology.program, Some(PathBuf::from("r.p4")));
        assert_eq!(daemon.live.topology.include, ["inc", "more"].map(PathBuf::from));
        assert_eq!(daemon.live.topology.define, ["N=1"]);
        let LabCommand::Switch(switch) = subcommand(&given, ProcessRole::Switch { lab: "l", switch: "s1" }) else {
            panic!("the process of a switch is `lab switch`")
        };
        assert_eq!(
            (switch.switch.as_str(), switch.daemon.name.as_str(), switch.daemon.live.seed),
            ("s1", "l", Some(7))
        );
        let LabCommand::Shim(shim) = subcommand(&given, ProcessRole::Shim { lab: "l", host: "h1" }) else {
            panic!("the process of a shim is `lab shim`")
        };
        assert_eq!((shim.host.as_str(), shim.daemon.name.as_str()), ("h1", "l"));
        assert_eq!(shim.daemon.live.topology.include, ["inc", "more"].map(PathBuf::from));
        let LabCommand::Play(traffic) = subcommand(&given, ProcessRole::Traffic { lab: "l" }) else {
            panic!("the process that plays a scenario is `lab play`")
        };
        assert!(traffic.json && traffic.up.name.as_deref() == Some("l"), "{traffic:?}");
        assert_eq!(traffic.scenario, Some(PathBuf::from("s.toml")));
        assert!(matches!(subcommand(&given, ProcessRole::PermissionCheck), LabCommand::Allowed));
        let store = ProcessRole::Store { lab: "l", store: "a", is_durable: true };
        let LabCommand::Store(store) = subcommand(&given, store) else {
            panic!("the process of a store is `lab store`")
        };
        assert_eq!((store.name.as_str(), store.store.as_str(), store.durable), ("l", "a", true));
        let LabCommand::Operator(operator) = subcommand(&given, ProcessRole::Operator { lab: "l" }) else {
            panic!("the process of the operator is `lab operator`")
        };
        assert_eq!(operator.name, "l");
        let (address, memory) = (std::net::Ipv4Addr::new(10, 9, 0, 1), "64MiB".parse().expect("a size"));
        let server = ProcessRole::MemoryServer { interface: "eth0", address, memory };
        let LabCommand::Memory(server) = subcommand(&given, server) else {
            panic!("the process of a memory server is `lab memory`")
        };
        assert_eq!((server.port.as_str(), server.address, server.memory), ("eth0", address, memory));
    }

    #[test]
    fn values_that_begin_with_a_hyphen_reach_the_processes_as_values() {
        let given = ["--program=-x.p4", "--scenario=--interpret", "--", "--isolate"];
        let LabCommand::Switch(switch) = subcommand(&given, ProcessRole::Switch { lab: "l", switch: "-s" }) else {
            panic!("the process of a switch is `lab switch`")
        };
        let live = &switch.daemon.live;
        assert_eq!((switch.switch.as_str(), live.isolate, live.interpret), ("-s", false, false));
        assert_eq!(live.topology.program, Some(PathBuf::from("-x.p4")));
        assert_eq!(live.topology.topology, PathBuf::from("--isolate"));
        let LabCommand::Play(traffic) = subcommand(&given, ProcessRole::Traffic { lab: "l" }) else {
            panic!("the process that plays a scenario is `lab play`")
        };
        assert_eq!(traffic.scenario, Some(PathBuf::from("--interpret")));
        assert!(!traffic.up.live.interpret);
    }
}
