//! Runs `triplane subscribe network`: compiles hosts' rules into entries for every switch between them.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;

use anyhow::Context;
use diagnostics::{Diagnostics, SourceMap, Span};
use lab::{End, Entries, Node, SwitchProgram, Topology};
use subscribe::Rule;
use subscribe_network::{HostId, LinkEnd, Network, NetworkError, Routes, RoutingTopology, SwitchId};
use subscribe_p4::entries::{Installer, Update};

use super::args::{NetworkArgs, Upward};
use super::load::Loaded;
use super::replication::options_for;
use super::report::counted;
use super::{deliver, deliver_with, document, order};
use crate::output::{Failure, Output};

/// Name of the program in the output directory, which also holds the entries of each switch.
const PROGRAM: &str = "switch.p4";

/// The sizes of a switch's configuration.
struct Made {
    rules: usize,
    entries: usize,
    groups: usize,
}

pub fn network(args: &NetworkArgs, output: &Output) -> Result<(), Failure> {
    let mut topology = read(&args.lab, output)?;
    let graph = graph(&topology);
    let ways = ways(args, &topology, &graph)?;
    let mut loaded = Loaded::format(&args.rules.format, output)?;
    if loaded.format.messages.as_ref().is_some_and(|messages| messages.arbitrate().is_some()) {
        let message = "a network cannot arbitrate: each switch gives messages new numbers, which the next one would \
                       compare with those of its own feed. Leave out `arbitrate`, and arbitrate in front of the network";
        return Err(Failure::Input(message.to_owned()));
    }
    let names = topology.hosts.iter().enumerate().map(|(at, host)| (host.name.clone(), at as u32));
    loaded.rules.format.port_names = names.collect();
    let rules = loaded.parse(&args.rules.rules, output)?;
    // All switches run one program.
    loaded.choose_order(&rules);
    let upward = match args.upward {
        Upward::Exact => subscribe_network::Upward::Exact,
        Upward::Everything => subscribe_network::Upward::Everything,
    };
    let mut unfit = Diagnostics::new();
    for rule in &rules {
        if let Err(wrong) = ways.rule(SwitchId(0), rule, upward) {
            unfit.push(wrong.diagnostic());
        }
    }
    loaded.print_findings(&unfit, output)?;

    std::fs::create_dir_all(&args.output)
        .with_context(|| format!("cannot create the directory {}", args.output.display()))?;
    let ports = (0..topology.switches.len()).flat_map(|switch| topology.ports(switch)).map(|(port, _)| port);
    let options = subscribe_p4::ProgramOptions {
        split_horizon: true,
        forwards_hosts: true,
        ..options_for(&args.shape, ports, v1model::CPU_PORT)
    };
    deliver(&loaded.program(&options), Some(&args.output.join(PROGRAM)), output)?;
    let mut made = Vec::new();
    for at in 0..topology.switches.len() {
        let own = ways.rules(SwitchId(at), &rules, upward).expect("each rule was tried");
        let rules = own.len();
        let mut apart = Installer::split_horizon(&ways.split_horizon(SwitchId(at)));
        if loaded.format.can_forward_hosts() {
            apart.extend(hosts(&topology, &ways, SwitchId(at)));
        }
        let (updates, entries, groups) = entries(&loaded, own, apart, &options, output)?;
        let name = format!("{}.json", topology.switches[at].name);
        deliver_with(Some(&args.output.join(&name)), output, |out| document::write(&updates, out))?;
        let switch = &mut topology.switches[at];
        switch.program = SwitchProgram::File(PROGRAM.to_owned(), Span::default());
        switch.entries = Entries::File(name, Span::default());
        made.push(Made { rules, entries, groups });
    }
    deliver(&lab::emit(&topology), Some(&args.output.join("lab.toml")), output)?;
    report(&topology, &ways, rules.len(), &made, output)?;
    output.note(&order::describe_order(&loaded));
    output.note(&format!("written to {}; run its lab.toml with `triplane lab sim` or `lab up`", args.output.display()));
    Ok(())
}

/// Reads a topology. On failure the findings have been printed.
fn read(path: &Path, output: &Output) -> Result<Topology, Failure> {
    let text = crate::load::read(path, lab::read::MAX_BYTES as u64)?;
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let file = map.add(&path.display().to_string(), text.as_str());
    let topology = lab::read::read(file, &text, v1model::MAX_PORT.into(), &mut diagnostics);
    output.diagnostics(&map, &diagnostics);
    match topology {
        Some(topology) if !diagnostics.has_errors() && !topology.switches.is_empty() => Ok(topology),
        Some(_) if !diagnostics.has_errors() => Err(Failure::Input(format!("{} has no switches", path.display()))),
        _ => Err(Failure::Input(format!("{} is not a valid topology", path.display()))),
    }
}

/// Reduces the topology to the nodes and links that routing needs.
fn graph(topology: &Topology) -> Network {
    let far = |end: End| match end.node {
        Node::Host(at) => LinkEnd::Host(HostId(at as u32)),
        Node::Switch(at) => LinkEnd::Switch(SwitchId(at), end.port),
    };
    let ports = |switch| topology.ports(switch).into_iter().map(|(port, end)| (port, far(end)));
    Network { switches: (0..topology.switches.len()).map(|switch| BTreeMap::from_iter(ports(switch))).collect() }
}

fn ways(args: &NetworkArgs, topology: &Topology, graph: &Network) -> Result<Routes, Failure> {
    let found = match &args.root {
        None => Routes::new(graph),
        Some(name) => match topology.node(name) {
            Some(Node::Switch(at)) => Routes::tree(graph, SwitchId(at)),
            _ => return Err(Failure::Usage(format!("{} has no switch `{name}`", args.lab.display()))),
        },
    };
    let switch = |at: SwitchId| &topology.switches[at.0].name;
    let host = |id: HostId| &topology.hosts[id.0 as usize].name;
    found.map_err(|wrong| {
        Failure::Input(match wrong {
            NetworkError::Twice(id) => format!("the host `{}` has several links", host(id)),
            NetworkError::Apart(from, to) => {
                format!("messages from hosts at `{}` cannot reach the host `{}`: add a link", switch(from), host(to))
            }
            NetworkError::NoRoot(at) => format!("there is no switch {}", at.0),
        })
    })
}

/// Returns the updates by which a switch forwards packets that are not of the feed to hosts.
fn hosts(topology: &Topology, ways: &Routes, switch: SwitchId) -> Vec<Update> {
    let address = |host: &lab::Host| host.mac.0.iter().fold(0, |all, byte| all << 8 | u64::from(*byte));
    let port = |(at, host)| Some((address(host), ways.port(switch, HostId(at))?));
    let hosts: Vec<(u64, u32)> = (0..).zip(&topology.hosts).filter_map(port).collect();
    Installer::host_addresses(&hosts, &ways.flooded(switch))
}

/// Returns the updates that configure one switch, with the numbers of entries and groups.
fn entries(
    loaded: &Loaded,
    rules: Vec<Rule>,
    apart: Vec<Update>,
    options: &subscribe_p4::ProgramOptions,
    output: &Output,
) -> Result<(Vec<Update>, usize, usize), Failure> {
    let compiled = loaded.merge(rules, options, output)?;
    let mut installer = Installer::new(&loaded.format, &loaded.rules, &loaded.layout, options, v1model::CPU_PORT);
    let mut updates = installer.install(&compiled.tables).map_err(|many| Failure::Input(many.to_string()))?;
    let entries = compiled.tables.entries.len() + compiled.tables.leaves.len() + apart.len();
    updates.extend(apart);
    Ok((updates, entries, compiled.tables.groups.len()))
}

/// Reports the results: a line for each switch, or one line for all if there are many.
fn report(topology: &Topology, ways: &Routes, rules: usize, made: &[Made], output: &Output) -> Result<(), Failure> {
    /// Maximum number of switches with a line each.
    const LINES: usize = 40;
    let mut text = match ways.topology() {
        RoutingTopology::Layers(layers) => {
            format!("{} in {}", counted(made.len(), "switch", "switches"), counted(layers as usize, "layer", "layers"))
        }
        RoutingTopology::Tree(root) => {
            format!(
                "{} in a tree rooted at {}",
                counted(made.len(), "switch", "switches"),
                topology.switches[root.0].name
            )
        }
    };
    text += &format!(", {}, {}\n\n", counted(topology.hosts.len(), "host", "hosts"), counted(rules, "rule", "rules"));
    let width = topology.switches.iter().map(|switch| switch.name.len()).max().unwrap_or(0).max(6);
    // A program with bitmaps of ports has no groups.
    let has_groups = made.iter().any(|made| made.groups > 0);
    let row = |name: &str, rules: &dyn Display, entries: &dyn Display, groups: &dyn Display| {
        let groups = if has_groups { format!(" {groups:>10}") } else { String::new() };
        format!("{name:width$} {rules:>10} {entries:>10}{groups}\n")
    };
    let line = |name: &str, made: &Made| row(name, &made.rules, &made.entries, &made.groups);
    text += &row("switch", &"rules", &"entries", &"groups");
    if made.len() <= LINES {
        text.extend(topology.switches.iter().zip(made).map(|(switch, made)| line(&switch.name, made)));
    }
    let sum = |of: fn(&Made) -> usize| made.iter().map(of).sum();
    text += &line("all", &Made { rules: sum(|m| m.rules), entries: sum(|m| m.entries), groups: sum(|m| m.groups) });
    output.print(&text)
}
