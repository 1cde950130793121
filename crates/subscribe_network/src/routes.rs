//! Routes of messages, and the rules at each switch.

use std::collections::{BTreeMap, BTreeSet};

use diagnostics::Span;
use subscribe::{Condition, Rule, RuleAction};

use crate::network::{HostId, LinkEnd, Network, NetworkError, SwitchId};
use crate::weaken::{UnsupportedRule, destination_hosts, over_approximated};
use crate::{delivery_check, layers, tree};

/// RoutingTopology of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoutingTopology {
    /// This number of layers, with hosts below the lowest.
    Layers(u32),
    /// A tree with this switch as the root.
    Tree(SwitchId),
}

/// Messages that switches forward up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Upward {
    /// Messages that a host above wants.
    #[default]
    Exact,
    /// All messages.
    Everything,
}

/// The ports of one switch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SwitchPorts {
    /// Port for messages to hosts above.
    pub up: Option<u32>,
    /// Ports on which messages from above may arrive.
    pub above: Vec<u32>,
    /// Hosts below each port; the sets are disjoint.
    pub below: BTreeMap<u32, BTreeSet<HostId>>,
}

/// The routes of messages through a network; see the [crate documentation](crate).
#[derive(Clone, Debug)]
pub struct Routes {
    topology: RoutingTopology,
    switches: Vec<SwitchPorts>,
    /// For each switch, the port towards each host below it.
    down: Vec<BTreeMap<HostId, u32>>,
    /// For each switch, the ports that lead to hosts.
    local: Vec<BTreeSet<u32>>,
}

impl Routes {
    /// Creates layered routes if the network has layers, and a tree otherwise.
    ///
    /// # Errors
    /// [`NetworkError`]: a host has two links, or cannot be reached from the switch of another host.
    pub fn new(network: &Network) -> Result<Routes, NetworkError> {
        let hosts = network.hosts()?;
        if let Some(switches) = layers::routes(network, &hosts)
            && delivery_check::check(network, &switches, &hosts).is_ok()
        {
            let links = network.distances(hosts.values().map(|(switch, _)| *switch));
            let layers = links.into_iter().flatten().max().map_or(0, |most| most + 1);
            return Ok(Routes::of(network, RoutingTopology::Layers(layers), switches));
        }
        match tree::middle(network) {
            Some(root) => Routes::tree(network, root),
            None => Ok(Routes::of(network, RoutingTopology::Layers(0), Vec::new())),
        }
    }

    /// Creates a tree below `root` in any network.
    ///
    /// # Errors
    /// [`NetworkError`]: as for [`Routes::new`], or there is no such switch.
    pub fn tree(network: &Network, root: SwitchId) -> Result<Routes, NetworkError> {
        if root.0 >= network.switches.len() {
            return Err(NetworkError::NoRoot(root));
        }
        let hosts = network.hosts()?;
        let switches = tree::routes(network, root);
        delivery_check::check(network, &switches, &hosts)?;
        Ok(Routes::of(network, RoutingTopology::Tree(root), switches))
    }

    fn of(network: &Network, topology: RoutingTopology, switches: Vec<SwitchPorts>) -> Routes {
        let down = |at: &SwitchPorts| {
            let each = at.below.iter().flat_map(|(port, hosts)| hosts.iter().map(|host| (*host, *port)));
            each.collect()
        };
        let local = |ports: &BTreeMap<u32, LinkEnd>| {
            ports.iter().filter(|(_, far)| matches!(far, LinkEnd::Host(_))).map(|(port, _)| *port).collect()
        };
        Routes {
            topology,
            down: switches.iter().map(down).collect(),
            local: network.switches.iter().map(local).collect(),
            switches,
        }
    }

    /// Returns the topology.
    pub fn topology(&self) -> RoutingTopology {
        self.topology
    }

    /// Returns the port of a switch towards a host; `None` for a host that is not in the network.
    pub fn port(&self, switch: SwitchId, host: HostId) -> Option<u32> {
        self.down[switch.0].get(&host).copied().or(self.switches[switch.0].up)
    }

    /// Returns the ports of a switch on which a message for all hosts leaves, whichever port it came in on:
    /// [`Routes::split_horizon`] removes the others.
    pub fn flooded(&self, switch: SwitchId) -> Vec<u32> {
        let at = &self.switches[switch.0];
        at.below.keys().copied().chain(at.up).collect()
    }

    /// Whether a host is in the network.
    pub fn has(&self, host: HostId) -> bool {
        self.down.iter().any(|down| down.contains_key(&host))
    }

    /// Returns pairs of a switch's ports: messages from the first must not leave by the second.
    pub fn split_horizon(&self, switch: SwitchId) -> Vec<(u32, u32)> {
        let at = &self.switches[switch.0];
        let used: BTreeSet<u32> = at.below.keys().chain(&at.above).copied().collect();
        let mut pairs: BTreeSet<(u32, u32)> = used.iter().map(|port| (*port, *port)).collect();
        pairs.extend(at.above.iter().flat_map(|from| at.up.map(|to| (*from, to))));
        pairs.into_iter().collect()
    }

    /// Converts a rule that delivers to hosts to one that delivers to a switch's ports; `None` if the rule does not
    /// concern the switch. The rule of [`Routes::rule_upward`] is added separately, once.
    ///
    /// # Errors
    /// [`UnsupportedRule`]: the rule has other actions, tests counters, or names an unknown host.
    pub fn rule(&self, switch: SwitchId, rule: &Rule, upward: Upward) -> Result<Vec<Rule>, UnsupportedRule> {
        let hosts = destination_hosts(rule)?;
        let (mut here, mut further) = (BTreeSet::new(), BTreeSet::new());
        for host in hosts {
            match self.down[switch.0].get(&host) {
                Some(port) if self.local[switch.0].contains(port) => here.insert(*port),
                Some(port) => further.insert(*port),
                None if !self.has(host) => return Err(UnsupportedRule::NoHost { host, span: rule.span }),
                None if upward == Upward::Everything => false,
                None => self.switches[switch.0].up.is_some_and(|port| further.insert(port)),
            };
        }
        if rule.aggregates.is_empty() {
            here.append(&mut further);
        }
        let of = |ports: BTreeSet<u32>, condition: Condition, aggregates: &[subscribe::Aggregate]| {
            let actions = vec![RuleAction::Forward(ports.into_iter().collect())];
            let (name, aggregates) = (rule.name.clone(), aggregates.to_vec());
            Rule { name, span: rule.span, condition, actions, aggregates }
        };
        let mut rules = Vec::new();
        if !here.is_empty() {
            rules.push(of(here, rule.condition.clone(), &rule.aggregates));
        }
        if !further.is_empty() {
            rules.push(of(further, over_approximated(&rule.condition), &[]));
        }
        Ok(rules)
    }

    /// Returns the rule that forwards everything up, if `upward` asks for it and there is a switch above.
    pub fn rule_upward(&self, switch: SwitchId, upward: Upward) -> Option<Rule> {
        let up = self.switches[switch.0].up.filter(|_| upward == Upward::Everything)?;
        Some(Rule {
            name: Some("everything goes up".into()),
            span: Span::default(),
            condition: Condition::Always,
            actions: vec![RuleAction::Forward(vec![up])],
            aggregates: Vec::new(),
        })
    }

    /// Returns all rules of a switch.
    ///
    /// # Errors
    /// As for [`Routes::rule`].
    pub fn rules(&self, switch: SwitchId, rules: &[Rule], upward: Upward) -> Result<Vec<Rule>, UnsupportedRule> {
        let mut all: Vec<Rule> = self.rule_upward(switch, upward).into_iter().collect();
        for rule in rules {
            all.extend(self.rule(switch, rule, upward)?);
        }
        Ok(all)
    }
}
