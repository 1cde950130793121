//! Delivery of messages over whole networks, compared with the rules of each host.

use std::collections::BTreeSet;

use crate::shapes;
use diagnostics::{Diagnostics, SourceMap, Span};
use rng::SplitMix64;
use subscribe::{Condition, FieldDeclaration, Match, MessageFormat, NoIncludes, Rule, Subject, ValueKind, parse};
use subscribe_network::{
    HostId, LinkEnd, Network, NetworkError, Routes, RoutingTopology, SwitchId, UnsupportedRule, Upward,
};

fn format() -> MessageFormat {
    let mut format = MessageFormat::new();
    for name in ["a", "b"] {
        let field = FieldDeclaration {
            name: name.to_owned(),
            width: 3,
            kind: ValueKind::Unsigned,
            matching: Match::Any,
            header: None,
        };
        format.field(field).expect("new");
    }
    format.counter(subscribe::Counter { name: "seen".to_owned(), width: 3, window: None }).expect("new");
    let mark = subscribe::ActionDeclaration { name: "mark".to_owned(), parameters: Vec::new() };
    format.action(mark).expect("new");
    format
}

fn rules(text: &str) -> Vec<Rule> {
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let rules = parse(&mut map, "rules", text.to_owned(), &format(), &mut NoIncludes, &mut diagnostics);
    assert!(!diagnostics.has_errors(), "{text}: {diagnostics:?}");
    rules
}

fn random_rules(rng: &mut SplitMix64, hosts: usize, with_state: bool) -> Vec<Rule> {
    let mut text = String::new();
    for _ in 0..rng.below(2 * hosts as u64) {
        let mut test = || match rng.below(if with_state { 4 } else { 3 }) {
            0 => format!("a == {}", rng.below(8)),
            1 => format!("b > {}", rng.below(8)),
            2 => format!("not a in 2..{}", 2 + rng.below(6)),
            _ => format!("{}count() > {}", ["", "not "][rng.below(2) as usize], rng.below(8)),
        };
        let (one, other) = (test(), test());
        let word = ["and", "or"][rng.below(2) as usize];
        let to: BTreeSet<u64> = (0..1 + rng.below(3)).map(|_| rng.below(hosts as u64)).collect();
        let to: Vec<String> = to.iter().map(u64::to_string).collect();
        text += &format!("{one} {word} {other}: fwd({})\n", to.join(", "));
    }
    rules(&text)
}

/// A message, and the value that its aggregates have at every switch.
struct Message {
    fields: [u128; 2],
    aggregate: u128,
}

impl Message {
    fn wants(&self, condition: &Condition) -> bool {
        let value = |subject| match subject {
            Subject::Field(id) => Some(self.fields[usize::from(id.0)]),
            _ => Some(self.aggregate),
        };
        condition.holds(&|_| true, &value)
    }

    fn targets(&self, rules: &[Rule]) -> BTreeSet<u32> {
        let wanted = rules.iter().filter(|rule| self.wants(&rule.condition));
        let ports = wanted.flat_map(|rule| &rule.actions).flat_map(|action| match action {
            subscribe::RuleAction::Forward(ports) => ports.clone(),
            other => panic!("{other:?}"),
        });
        ports.collect()
    }
}

/// Returns the hosts that a message reaches, with repetitions, and the number of links that it uses.
fn delivered(
    network: &Network,
    routes: &Routes,
    all: &[Vec<Rule>],
    message: &Message,
    from: HostId,
) -> (Vec<u32>, usize) {
    let (switch, port) = network.hosts().expect("one connection each")[&from];
    let (mut going, mut reached, mut links) = (vec![(switch, port)], Vec::new(), 0);
    while let Some((switch, from)) = going.pop() {
        links += 1;
        assert!(links < 1000, "a message goes round");
        let apart = routes.split_horizon(switch);
        for port in message.targets(&all[switch.0]).into_iter().filter(|port| !apart.contains(&(from, *port))) {
            match network.switches[switch.0][&port] {
                LinkEnd::Host(host) => reached.push(host.0),
                LinkEnd::Switch(other, its_port) => going.push((other, its_port)),
            }
        }
    }
    reached.sort_unstable();
    (reached, links)
}

fn each_host_gets_what_it_asked_for(network: &Network, with_state: bool) {
    let hosts = network.hosts().expect("one connection each");
    let routes = Routes::new(network).expect("the network is connected");
    let mut rng = SplitMix64::new(hosts.len() as u64);
    let mut deliveries = 0;
    for round in 0..40 {
        let upward = [Upward::Exact, Upward::Everything][round % 2];
        let rules = random_rules(&mut rng, hosts.len(), with_state);
        let at = |switch| routes.rules(SwitchId(switch), &rules, upward).expect("rules for hosts");
        let all: Vec<Vec<Rule>> = (0..network.switches.len()).map(at).collect();
        for _ in 0..30 {
            let mut number = || u128::from(rng.below(8));
            let message = Message { fields: [number(), number()], aggregate: number() };
            let from = HostId(rng.below(hosts.len() as u64) as u32);
            let wanted: Vec<u32> = message.targets(&rules).into_iter().filter(|host| *host != from.0).collect();
            let (reached, links) = delivered(network, &routes, &all, &message, from);
            assert_eq!(reached, wanted, "round {round}");
            if wanted.is_empty() && upward == Upward::Exact && !with_state {
                assert_eq!(links, 1, "what nobody wants goes nowhere");
            }
            deliveries += reached.len();
        }
    }
    assert!(deliveries > 100, "{deliveries}");
}

#[test]
fn in_fat_trees_and_leaf_spines() {
    for (network, layers) in [(shapes::fat_tree(4), 3), (shapes::leaf_spine(3, 2, 3), 2), (shapes::star(4), 1)] {
        assert_eq!(Routes::new(&network).expect("connected").topology(), RoutingTopology::Layers(layers));
        each_host_gets_what_it_asked_for(&network, false);
        each_host_gets_what_it_asked_for(&network, true);
    }
}

#[test]
fn in_networks_of_no_such_shape() {
    let mut rng = SplitMix64::new(1);
    let random: Vec<Network> = (0..6).map(|_| shapes::random(&mut rng, 9)).collect();
    for network in [shapes::line(5), shapes::ring(6)].iter().chain(&random) {
        assert!(matches!(Routes::new(network).expect("connected").topology(), RoutingTopology::Tree(_)));
        each_host_gets_what_it_asked_for(network, false);
    }
}

#[test]
fn below_any_root() {
    let network = shapes::fat_tree(4);
    for root in 0..network.switches.len() {
        assert_eq!(
            Routes::tree(&network, SwitchId(root)).expect("connected").topology(),
            RoutingTopology::Tree(SwitchId(root))
        );
    }
    assert_eq!(Routes::tree(&network, SwitchId(20)).err(), Some(NetworkError::NoRoot(SwitchId(20))));
}

#[test]
fn the_load_of_lower_switches_spreads_over_upper_ones() {
    let network = shapes::fat_tree(4);
    let routes = Routes::new(&network).expect("connected");
    // The two edges of the first pod use different aggregation switches for the host of another pod.
    let ports: BTreeSet<_> = (0..2).map(|edge| routes.port(SwitchId(edge), HostId(15))).collect();
    assert_eq!(ports.len(), 2, "{ports:?}");
}

#[test]
fn a_network_without_all_ways_is_refused() {
    let mut two = shapes::star(2);
    two.switches.extend(shapes::star(1).switches);
    two.switches[1].insert(0, LinkEnd::Host(HostId(9)));
    assert!(matches!(Routes::new(&two), Err(NetworkError::Apart(_, _))), "{:?}", Routes::new(&two));
    two.switches[1].insert(0, LinkEnd::Host(HostId(1)));
    assert_eq!(Routes::new(&two).err(), Some(NetworkError::Twice(HostId(1))));
    assert!(Routes::new(&Network::default()).is_ok());
}

#[test]
fn rules_of_one_switch_are_no_rules_of_a_network() {
    let routes = Routes::new(&shapes::star(2)).expect("connected");
    let unfit = |text: &str| routes.rule(SwitchId(0), &rules(text)[0], Upward::Exact).expect_err(text);
    assert!(matches!(unfit("a == 1: fwd(1); mark()"), UnsupportedRule::Action { .. }));
    assert!(matches!(unfit("a == 1: to_controller"), UnsupportedRule::Action { .. }));
    assert!(
        matches!(unfit("not (a == 1 or seen > 2): fwd(1)"), UnsupportedRule::Counter { span } if span != Span::default())
    );
    assert!(matches!(unfit("a == 1: fwd(7)"), UnsupportedRule::NoHost { host: HostId(7), .. }));
}
