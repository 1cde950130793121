//! Over which links messages go, and what rules become at each switch.

use std::collections::{BTreeMap, BTreeSet};

use diagnostics::Span;
use subscribe::{Action, Condition, Rule};

use crate::network::{Far, HostId, Network, NetworkError, SwitchId};
use crate::remote::{Unfit, fit, over_approximated};
use crate::{layers, tree, walk};

/// How a network's switches are arranged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// In so many layers, hosts below the lowest.
    Layers(u32),
    /// As a tree below this switch.
    Tree(SwitchId),
}

/// What switches pass up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Upward {
    /// What a host above wants.
    #[default]
    Exact,
    /// All messages.
    Everything,
}

/// The ports of one switch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct At {
    /// The port that messages to hosts above take.
    pub up: Option<u32>,
    /// The ports that messages from above may come in on.
    pub above: Vec<u32>,
    /// The hosts below each port; different ports have different hosts.
    pub below: BTreeMap<u32, BTreeSet<HostId>>,
}

/// The ways of messages through a network; see the [crate's page](crate).
#[derive(Clone, Debug)]
pub struct Ways {
    shape: Shape,
    switches: Vec<At>,
    /// The port towards each host, where it is below; one list a switch.
    down: Vec<BTreeMap<HostId, u32>>,
    /// Ports that lead to hosts, of each switch.
    local: Vec<BTreeSet<u32>>,
}

impl Ways {
    /// Layers if the network has them, a tree otherwise.
    ///
    /// # Errors
    /// [`NetworkError`]: a host has two connections, or cannot be reached from every other's switch.
    pub fn new(network: &Network) -> Result<Ways, NetworkError> {
        let hosts = network.hosts()?;
        if let Some(switches) = layers::ways(network, &hosts)
            && walk::check(network, &switches, &hosts).is_ok()
        {
            let links = network.distances(hosts.values().map(|(switch, _)| *switch));
            let layers = links.into_iter().flatten().max().map_or(0, |most| most + 1);
            return Ok(Ways::of(network, Shape::Layers(layers), switches));
        }
        match tree::middle(network) {
            Some(root) => Ways::tree(network, root),
            None => Ok(Ways::of(network, Shape::Layers(0), Vec::new())),
        }
    }

    /// A tree below `root`, whatever the network.
    ///
    /// # Errors
    /// [`NetworkError`]: as [`Ways::new`], or there is no such switch.
    pub fn tree(network: &Network, root: SwitchId) -> Result<Ways, NetworkError> {
        if root.0 >= network.switches.len() {
            return Err(NetworkError::NoRoot(root));
        }
        let hosts = network.hosts()?;
        let switches = tree::ways(network, root);
        walk::check(network, &switches, &hosts)?;
        Ok(Ways::of(network, Shape::Tree(root), switches))
    }

    fn of(network: &Network, shape: Shape, switches: Vec<At>) -> Ways {
        let down = |at: &At| {
            let each = at.below.iter().flat_map(|(port, hosts)| hosts.iter().map(|host| (*host, *port)));
            each.collect()
        };
        let local = |ports: &BTreeMap<u32, Far>| {
            ports.iter().filter(|(_, far)| matches!(far, Far::Host(_))).map(|(port, _)| *port).collect()
        };
        Ways {
            shape,
            down: switches.iter().map(down).collect(),
            local: network.switches.iter().map(local).collect(),
            switches,
        }
    }

    /// How the switches are arranged.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The port on which messages leave a switch towards a host; `None` for a host that is not in the network.
    pub fn port(&self, switch: SwitchId, host: HostId) -> Option<u32> {
        self.down[switch.0].get(&host).copied().or(self.switches[switch.0].up)
    }

    /// Whether a host is in the network.
    pub fn has(&self, host: HostId) -> bool {
        self.down.iter().any(|down| down.contains_key(&host))
    }

    /// Pairs of a switch's ports: what came in on the first does not leave by the second.
    pub fn split_horizon(&self, switch: SwitchId) -> Vec<(u32, u32)> {
        let at = &self.switches[switch.0];
        let used: BTreeSet<u32> = at.below.keys().chain(&at.above).copied().collect();
        let mut pairs: BTreeSet<(u32, u32)> = used.iter().map(|port| (*port, *port)).collect();
        pairs.extend(at.above.iter().flat_map(|from| at.up.map(|to| (*from, to))));
        pairs.into_iter().collect()
    }

    /// A rule that delivers to hosts, as one that delivers to a switch's ports; `None` if the switch has nothing to do with
    /// it. What [`Ways::rule_upward`] gives comes in addition, once.
    ///
    /// # Errors
    /// [`Unfit`]: the rule does something else than delivering, speaks of counters, or names a host that is not there.
    pub fn rule(&self, switch: SwitchId, rule: &Rule, upward: Upward) -> Result<Vec<Rule>, Unfit> {
        let hosts = fit(rule)?;
        let (mut here, mut further) = (BTreeSet::new(), BTreeSet::new());
        for host in hosts {
            match self.down[switch.0].get(&host) {
                Some(port) if self.local[switch.0].contains(port) => here.insert(*port),
                Some(port) => further.insert(*port),
                None if !self.has(host) => return Err(Unfit::NoHost { host, span: rule.span }),
                None if upward == Upward::Everything => false,
                None => self.switches[switch.0].up.is_some_and(|port| further.insert(port)),
            };
        }
        if rule.aggregates.is_empty() {
            here.append(&mut further);
        }
        let of = |ports: BTreeSet<u32>, condition: Condition, aggregates: &[subscribe::Aggregate]| {
            let actions = vec![Action::Forward(ports.into_iter().collect())];
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

    /// The rule that passes everything up, if that is wanted and there is anything above.
    pub fn rule_upward(&self, switch: SwitchId, upward: Upward) -> Option<Rule> {
        let up = self.switches[switch.0].up.filter(|_| upward == Upward::Everything)?;
        Some(Rule {
            name: Some("everything goes up".into()),
            span: Span::default(),
            condition: Condition::Always,
            actions: vec![Action::Forward(vec![up])],
            aggregates: Vec::new(),
        })
    }

    /// All rules of a switch.
    ///
    /// # Errors
    /// As [`Ways::rule`].
    pub fn rules(&self, switch: SwitchId, rules: &[Rule], upward: Upward) -> Result<Vec<Rule>, Unfit> {
        let mut all: Vec<Rule> = self.rule_upward(switch, upward).into_iter().collect();
        for rule in rules {
            all.extend(self.rule(switch, rule, upward)?);
        }
        Ok(all)
    }
}
