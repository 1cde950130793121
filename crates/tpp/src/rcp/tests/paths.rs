//! Fast links, idle links, long paths and paths that change.

use super::network::{GBPS, ModelFlow, ModelNetwork, assert_near, shares};
use super::*;

#[test]
fn rates_of_fast_links_are_right() {
    for gbps in [1.0, 10.0, 34.0, 35.0, 100.0, 400.0, 1600.0] {
        for fairness in [Fairness::MaxMin, Fairness::Alpha(1.0)] {
            let (capacity, flow) = (gbps * GBPS, || ModelFlow::new(fairness, &[0]));
            let mut network = ModelNetwork::new(&[capacity]);
            assert_near(&shares(&mut network, &mut [flow()], 1.5, capacity), &[1.0], 0.02);
            assert_near(&shares(&mut network, &mut [flow(), flow()], 1.0, capacity), &[0.5; 2], 0.02);
        }
    }
}

#[test]
fn more_than_4_gib_between_two_samples_are_a_load() {
    let mut link = OneLink::new();
    link.set("Link:Capacity", (400.0 * GBPS) as u64);
    let mut flow = controller(&mut link);
    let (mut now, mut offered) = (5_000_000_000, 4_294_000_000);
    let update = collect(&mut flow, link.at(now, offered, 0), now).expect("a first rate");
    link.execute(&update);
    let first = flow.rate();
    for _ in 0..3 {
        (now, offered) = (now + 200_000_000, offered + 10_000_000_000);
        let update = collect(&mut flow, link.at(now, offered, 0), now).expect("a rate");
        link.execute(&update);
        assert_eq!(flow.rate(), first, "the load is the capacity");
    }
}

#[test]
fn flows_fill_idle_paths_for_each_alpha() {
    for (alpha, links, seconds) in
        [(1.0, 20, 1.0), (0.5, 5, 1.0), (0.3, 12, 1.0), (0.2, 2, 1.0), (0.1, 2, 1.0), (0.1, 12, 2.0), (0.01, 2, 4.0)]
    {
        let path: Vec<usize> = (0..links).collect();
        let mut network = ModelNetwork::new(&vec![GBPS; links]);
        let mut flows = [ModelFlow::new(Fairness::Alpha(alpha), &path)];
        let found = shares(&mut network, &mut flows, seconds, GBPS);
        assert!((0.97..=1.03).contains(&found[0]), "α = {alpha}, {links} links: {found:?}");
    }
}

#[test]
fn flows_have_the_shares_of_small_alphas() {
    for alpha in [0.5, 0.3, 0.2, 0.1] {
        let fairness = Fairness::Alpha(alpha);
        let mut network = ModelNetwork::new(&[GBPS; 2]);
        let mut flows = [&[0, 1][..], &[0], &[1]].map(|path| ModelFlow::new(fairness, path));
        // A flow over two links has 2^(-1/α) of the rate of one over one link.
        let of_one = 1.0 / (1.0 + 2.0_f64.powf(-1.0 / alpha));
        let expected = [1.0 - of_one, of_one, of_one];
        assert_near(&shares(&mut network, &mut flows, 3.0, GBPS), &expected, 0.05);
    }
}

#[test]
fn a_link_with_room_takes_nothing_from_a_flow() {
    for alpha in [2.0, 1.0, 0.3, 0.1] {
        let mut network = ModelNetwork::new(&[GBPS, 2.0 * GBPS]);
        let mut flows = [&[0, 1][..], &[0]].map(|path| ModelFlow::new(Fairness::Alpha(alpha), path));
        assert_near(&shares(&mut network, &mut flows, 4.0, GBPS), &[0.5; 2], 0.07);
    }
}

#[test]
fn an_overloaded_link_needs_few_steps_from_its_greatest_rate() {
    // Steps of the rate alone would take about 31 and 113.
    for (alpha, most) in [(0.3, 15), (0.1, 42)] {
        let settings = RcpSettings::new(Fairness::Alpha(alpha));
        let state = |rate, load| {
            let (queued, since_s, delay_s) = (0.0, 0.01, 0.01);
            LinkState { rate, capacity: GBPS, load, queued, since_s, delay_s, path_links: 2 }
        };
        let greatest = (0..1_000).fold(GBPS, |rate, _| settings.next_rate(&state(rate, 0.0)));
        let mut rates =
            std::iter::successors(Some(greatest), |rate| Some(settings.next_rate(&state(*rate, 2.0 * GBPS))));
        let steps = rates.position(|rate| rate <= GBPS).expect("it falls");
        assert!(steps <= most, "α = {alpha}: {steps}");
    }
}

#[test]
fn a_link_that_was_idle_for_long_limits_flows_soon() {
    for alpha in [1.0, 0.3, 0.1] {
        let fairness = Fairness::Alpha(alpha);
        let mut network = ModelNetwork::new(&[GBPS; 2]);
        let mut flows = [&[0, 1][..], &[0]].map(|path| ModelFlow::new(fairness, path));
        network.run(&mut flows, 5.0);
        let mut flows: Vec<ModelFlow> = flows.into_iter().chain([ModelFlow::new(fairness, &[1])]).collect();
        let of_one = 1.0 / (1.0 + 2.0_f64.powf(-1.0 / alpha));
        assert_near(&shares(&mut network, &mut flows, 2.0, GBPS), &[1.0 - of_one, of_one, of_one], 0.1);
    }
}

#[test]
fn paths_have_up_to_126_switches() {
    for links in [12, 13, 22, 23, 24, 46, 47, 126] {
        let path: Vec<usize> = (0..links).collect();
        let mut network = ModelNetwork::new(&vec![GBPS; links]);
        let mut flows = [ModelFlow::new(Fairness::MaxMin, &path)];
        assert_near(&shares(&mut network, &mut flows, 0.6, GBPS), &[1.0], 0.03);
        for link in 0..links {
            let mut short = [ModelFlow::new(Fairness::MaxMin, &[link])];
            assert_near(&shares(&mut network, &mut short, 0.01, GBPS), &[1.0], 0.03);
        }
    }
    let path: Vec<usize> = (0..127).collect();
    let mut network = ModelNetwork::new(&[GBPS; 127]);
    let mut flows = [ModelFlow::new(Fairness::MaxMin, &path)];
    assert_eq!(shares(&mut network, &mut flows, 0.1, GBPS), [0.0]);
    assert!(!flows[0].controller.has_path());
}

#[test]
fn samples_of_another_path_are_dropped() {
    let number = |switch: u64, port: u64| {
        let mut link = OneLink::new();
        link.set("Switch:ID", switch);
        link.set("Link:ID", port);
        link
    };
    // Another switch with the same capacity, and another port of the same switch.
    for (mut old, mut new) in [(number(1, 1), number(2, 1)), (number(1, 1), number(1, 2))] {
        let mut flow = controller(&mut old);
        let mut now = 1_000_000_000;
        for round in 0..5 {
            now += RTT_NS;
            let update = collect(&mut flow, old.at(now, round * 1_000, 0), now).expect("a rate");
            old.execute(&update);
        }
        let rate = flow.rate();
        let mut other = controller(&mut new);
        collect(&mut other, new.at(now, 70_000, 0), now).into_iter().for_each(|update| _ = new.execute(&update));
        let stored = new.words();
        now += RTT_NS;
        assert_eq!(collect(&mut flow, new.at(now, 75_000, 0), now), None, "the counters are those of another link");
        assert!(!flow.has_path());
        assert_eq!((flow.rate(), new.words()), (rate, stored));
        // The new path has no load before its second sample.
        assert!(flow.discovered(&new.execute_all(&flow.discovery())));
        assert_eq!(collect(&mut flow, new.at(now, 75_000, 0), now), None);
        assert_eq!(flow.rate(), 125_000.0);
        now += RTT_NS;
        assert!(collect(&mut flow, new.at(now, 80_000, 0), now).is_some());
    }
}

#[test]
fn a_discovery_keeps_the_samples_of_links_that_stay() {
    let (mut stays, mut old, mut new) = (OneLink::new(), OneLink::new(), OneLink::new());
    old.set("Switch:ID", 2);
    new.set("Switch:ID", 3);
    let mut flow = RcpController::new(RcpSettings::new(Fairness::MaxMin));
    let discovered = |flow: &mut RcpController, second: &mut OneLink, stays: &mut OneLink| {
        let echoes = second.execute_all(&stays.execute_all(&flow.discovery()));
        assert!(flow.discovered(&echoes));
    };
    discovered(&mut flow, &mut old, &mut stays);
    let echoes = old.execute_all(&stays.execute_all(&flow.collection()));
    flow.collected(0, RTT_NS, &echoes);
    let has_sample = |flow: &RcpController| flow.links.iter().map(|link| link.last.is_some()).collect::<Vec<_>>();
    assert_eq!(has_sample(&flow), [true, true]);
    discovered(&mut flow, &mut old, &mut stays);
    assert_eq!(has_sample(&flow), [true, true]);
    discovered(&mut flow, &mut new, &mut stays);
    assert_eq!(has_sample(&flow), [true, false]);
}

#[test]
fn words_of_rates_are_near_and_never_none() {
    for rate in [1.0, 125_000.0, 12_500_000.0, 4_294_967_296.0] {
        assert_eq!(rate_of(rate_word(rate)), Some(rate));
    }
    for rate in [0.0, 1e-300, 3.3, 123_456_789.0, 50e9, 1e300, f64::MAX] {
        let found = rate_of(rate_word(rate)).expect("it is a rate");
        let expected = rate.clamp(1.0, f64::MAX / 2.0);
        assert!((found / expected - 1.0).abs() < 5e-7, "{rate}: {found}");
    }
    for word in [0, 1, 0x000f_ffff, 0x7ff0_0000, 0x7ff8_0000, 0x8000_0000, 0xc000_0000, u32::MAX] {
        assert_eq!(rate_of(word), None, "{word:#x}");
    }
}
