//! Routes: servers of unequal size, replicas, growth, shrinking, busy links.

use std::collections::BTreeSet;

use elastic::cell::CellForm;
use elastic::layout::{LayoutKind, TableLayout};
use elastic::routes::{
    CopyId, LinkMeter, MemoryServer, RouteFault, RouteMap, RouteRefusal, ServerId, UnmeteredLinks, target_arcs,
};
use rng::SplitMix64;

fn layout(cells: u32) -> TableLayout {
    TableLayout::new(LayoutKind::Windows { cells: 4 }, CellForm::new(2, 3), 1, cells)
}

fn servers(bytes: &[u64]) -> Vec<MemoryServer> {
    let numbered = bytes.iter().enumerate();
    numbered.map(|(id, bytes)| MemoryServer { id: ServerId(id as u16), base: 0, bytes: *bytes }).collect()
}

#[test]
fn each_replica_covers_the_circle_once_and_no_server_holds_a_home_twice() {
    let mut random = SplitMix64::new(1);
    for _ in 0..300 {
        let layout = layout(24 + random.below(200) as u32);
        let count = 1 + random.below(6);
        let sizes: Vec<u64> = (0..count).map(|_| 100_000 + random.below(2_000_000)).collect();
        let replicas = 1 + random.below(4) as u32;
        let targets = target_arcs(&layout, replicas, &servers(&sizes)).expect("there is room");
        let replicas = replicas.min(count as u32);
        for home in 0..layout.cells() {
            let holders: Vec<_> = targets.iter().filter(|target| layout.serves(target.arc, home)).collect();
            assert_eq!(holders.len(), replicas as usize);
            assert_eq!(holders.iter().map(|target| target.server).collect::<BTreeSet<_>>().len(), replicas as usize);
        }
    }
}

#[test]
fn shares_follow_the_memory() {
    let targets = target_arcs(&layout(1200), 1, &servers(&[1_000_000, 2_000_000, 3_000_000])).expect("there is room");
    let shares: Vec<u32> = targets.iter().map(|target| target.arc.cells).collect();
    assert_eq!(shares, [200, 400, 600]);
    let targets = target_arcs(&layout(1200), 2, &servers(&[1_000_000, 1_000_000, 9_000_000])).expect("there is room");
    let first: Vec<u32> = targets.iter().filter(|target| target.replica == 0).map(|target| target.arc.cells).collect();
    assert_eq!(first, [300, 300, 600], "no server gets more than half of each of two replicas");
}

#[test]
fn too_little_memory_and_duplicates_are_refused() {
    let mut map = RouteMap::new(layout(1200), 1, 1);
    let fault = map.set_servers(&servers(&[1000])).unwrap_err();
    assert_eq!(fault, RouteFault::TooSmall { server: ServerId(0), needed: 1203 * 24, available: 1000 });
    assert_eq!(
        fault.to_string(),
        "memory server 0 lends 1000 bytes, and its share of the table takes 28872: lend more, or add servers"
    );
    let twice = [servers(&[100_000]), servers(&[100_000])].concat();
    assert_eq!(map.set_servers(&twice), Err(RouteFault::Duplicate(ServerId(0))));
}

fn filling(map: &RouteMap) -> Option<CopyId> {
    map.copies().find(|copy| !copy.is_live).map(|copy| copy.id)
}

/// Fills every copy at once.
fn fill(map: &mut RouteMap) {
    while let Some(id) = filling(map) {
        map.set_live(id);
    }
}

fn served(map: &RouteMap, layout: &TableLayout) -> usize {
    (0..layout.cells()).filter(|home| map.route(*home, &[], &mut UnmeteredLinks).is_ok()).count()
}

/// Checks that no two copies share memory, and none exceeds its server.
fn check_memory(map: &RouteMap, layout: &TableLayout, lent: &[MemoryServer]) {
    let copies: Vec<_> = map.copies().collect();
    for (at, copy) in copies.iter().enumerate() {
        let end = copy.base + layout.copy_bytes(copy.arc.cells);
        assert!(lent.iter().all(|server| server.id != copy.server || end <= server.bytes));
        for other in copies[..at].iter().filter(|other| other.server == copy.server) {
            let other_end = other.base + layout.copy_bytes(other.arc.cells);
            assert!(end <= other.base || other_end <= copy.base, "{copy:?} {other:?}");
        }
    }
}

#[test]
fn growing_and_shrinking_serve_every_home_at_each_moment() {
    let mut random = SplitMix64::new(3);
    for _ in 0..200 {
        let layout = layout(24 + random.below(100) as u32);
        let mut map = RouteMap::new(layout.clone(), 1 + random.below(3) as u32, 1);
        let room = 4 * layout.copy_bytes(layout.cells());
        let all = servers(&[0; 6].map(|_| room + random.below(room)));
        let mut members: Vec<MemoryServer> = all[..2].to_vec();
        map.set_servers(&members).expect("there is room");
        members.iter().for_each(|server| map.server_up(server.id));
        fill(&mut map);
        for _ in 0..12 {
            match random.below(2) {
                0 if members.len() > 1 => _ = members.remove(random.below(members.len() as u64) as usize),
                _ => {
                    let absent = all.iter().find(|server| !members.contains(server));
                    members.extend(absent.copied());
                }
            }
            map.set_servers(&members).expect("there is room");
            assert_eq!(served(&map, &layout), layout.cells() as usize, "before the new servers are up");
            members.iter().for_each(|server| map.server_up(server.id));
            while let Some(id) = filling(&map) {
                assert_eq!(served(&map, &layout), layout.cells() as usize);
                check_memory(&map, &layout, &all);
                map.set_live(id);
            }
            assert!(map.is_planned_live());
            assert_eq!(served(&map, &layout), layout.cells() as usize);
            assert!(map.copies().all(|copy| members.iter().any(|member| member.id == copy.server)));
        }
    }
}

#[test]
fn growth_moves_only_what_the_new_server_is_to_hold() {
    let layout = layout(1200);
    let mut map = RouteMap::new(layout.clone(), 1, 1);
    let all = servers(&[200_000, 200_000, 200_000]);
    map.set_servers(&all[..2]).expect("there is room");
    all.iter().for_each(|server| map.server_up(server.id));
    fill(&mut map);
    assert_eq!(map.ranges(), 2);
    map.set_servers(&all).expect("there is room");
    map.server_up(ServerId(2));
    let moved: u32 = map.copies().filter(|copy| !copy.is_live).map(|copy| copy.arc.cells).sum();
    assert!(moved <= 600, "{moved} of 1200 cells move; a third is the least");
    fill(&mut map);
    let cells =
        |id| -> u32 { map.copies().filter(|copy| copy.server == ServerId(id)).map(|copy| copy.arc.cells).sum() };
    assert_eq!([0, 1, 2].map(cells), [400, 400, 400]);
}

struct BusyLinks(BTreeSet<ServerId>, u32);

impl LinkMeter for BusyLinks {
    fn is_busy(&mut self, server: ServerId, bytes: u32) -> bool {
        assert_eq!(bytes, 96);
        self.1 += 1;
        self.0.contains(&server)
    }
}

#[test]
fn a_busy_link_is_avoided_and_two_busy_links_refuse_after_one_question_each() {
    let layout = layout(120);
    let mut map = RouteMap::new(layout, 2, 1);
    map.set_servers(&servers(&[100_000, 100_000])).expect("there is room");
    let mut links = BusyLinks(BTreeSet::new(), 0);
    assert_eq!(map.route(5, &[], &mut links), Err(RouteRefusal::NoServer));
    (0..2).for_each(|id| map.server_up(ServerId(id)));
    fill(&mut map);
    let first = map.route(5, &[], &mut links).expect("both are up");
    links.0.insert(first.server);
    let second = map.route(5, &[], &mut links).expect("one is free");
    assert_ne!(first.server, second.server);
    links.0.insert(second.server);
    links.1 = 0;
    assert_eq!(map.route(5, &[], &mut links), Err(RouteRefusal::LinkBusy));
    assert_eq!(links.1, 2, "one question a copy");
    links.0.clear();
    assert_eq!(map.route(5, &[first.copy, second.copy], &mut links), Err(RouteRefusal::NoServer));
}

#[test]
fn a_server_that_returns_gets_new_epochs_and_serves_only_when_it_is_filled() {
    let layout = layout(120);
    let mut map = RouteMap::new(layout.clone(), 2, 7);
    map.set_servers(&servers(&[100_000, 100_000])).expect("there is room");
    (0..2).for_each(|id| map.server_up(ServerId(id)));
    fill(&mut map);
    let before: BTreeSet<u64> = map.copies().map(|copy| copy.epoch).collect();
    let lost: Vec<CopyId> = map.server_down(ServerId(0));
    assert_eq!(lost.len(), 2);
    assert_eq!(served(&map, &layout), 120);
    map.server_up(ServerId(0));
    let new: Vec<_> = map.copies().filter(|copy| copy.server == ServerId(0)).collect();
    assert!(new.len() == 2 && new.iter().all(|copy| !copy.is_live && !before.contains(&copy.epoch)));
    map.server_down(ServerId(1));
    assert_eq!(served(&map, &layout), 0, "nothing is read before it is filled");
    fill(&mut map);
    assert_eq!(served(&map, &layout), 120);
}
