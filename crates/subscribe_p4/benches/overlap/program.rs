//! The generated program in a switch, with the entries of the rules.

use std::sync::Arc;

use compiler::Source;
use diagnostics::{Diagnostics, FileId, SourceMap};
use subscribe::{ColumnLayout, CompileOptions, NoIncludes, Subscriptions};
use subscribe_p4::ProgramOptions;
use subscribe_p4::entries::{Entity, Installer, Update};
use switch::{MirrorSession, MulticastGroup};
use v1model::{Config, Executor, Switch};

use crate::checked::checked;
use crate::entry;
use crate::feed::{Feed, name};

const FORMAT: &str = include_str!("../../../../examples/market-data/orders.p4");
/// Largest port of a subscriber.
const PORTS: u32 = 200;

/// Returns a switch that delivers the feed to its subscribers, with bitmaps of ports or with multicast groups.
pub fn switch(feed: &Feed, has_bitmaps: bool) -> Switch {
    let (typed, map) = checked("orders.p4", FORMAT);
    let mut diagnostics = Diagnostics::new();
    let format = subscribe_p4::read(&typed, FileId(0), &map, &mut diagnostics).expect("a format");
    let rules = subscribe_p4::rule_format(&format).expect("names differ");
    let most = feed.wanted.iter().flatten().max().copied().unwrap_or(0);
    let options = ProgramOptions::default();
    let options = if has_bitmaps { options.with_bitmaps(most + 1) } else { options };
    let text: String = (feed.wanted.iter().enumerate().filter(|(_, ports)| !ports.is_empty()))
        .map(|(stock, ports)| {
            let ports: Vec<String> = ports.iter().map(u32::to_string).collect();
            let name = String::from_utf8_lossy(&name(stock)).trim().to_owned();
            format!("stock == \"{name}\" : fwd({})\n", ports.join(", "))
        })
        .collect();
    let mut map = SourceMap::new();
    let parsed = subscribe::parse(&mut map, "rules", text.as_str(), &rules.format, &mut NoIncludes, &mut diagnostics);
    assert!(!diagnostics.has_errors(), "{}", diagnostics.render(&map, false));
    let layout = ColumnLayout::sensible(&rules.format, &parsed);
    let compile = CompileOptions { target: options.target, ..CompileOptions::default() };
    let mut all = Subscriptions::new(rules.format.clone(), layout.clone(), compile);
    all.change(&[], parsed).expect("few rules");
    let text = subscribe_p4::program(FORMAT, &format, &rules, &layout, &options);
    let program = Arc::new(compiler::expect_program(&Source::new("program.p4", &text), &v1model::V1Model).ir);
    let config = Config { executor: Executor::Jit, ..Config::with_ports(PORTS + 1) };
    let mut switch = Switch::new(program, config).expect("a v1model program");
    let updates = Installer::new(&format, &rules, &layout, &options, v1model::CPU_PORT).install(&all.tables());
    for update in updates.expect("few groups") {
        let (Update::Insert(entity) | Update::Modify(entity)) = update else { panic!("nothing is deleted at first") };
        match entity {
            Entity::Session(id, port) => assert!(switch.set_mirror_session(id, Some(MirrorSession::to_port(port)))),
            Entity::Group(id, ports) => {
                assert!(switch.set_multicast_group(id, Some(MulticastGroup::of_ports(ports))));
            }
            Entity::Table(entry) => {
                let (table, entry) = entry::entry(switch.program(), &entry);
                switch.objects_mut().insert(table, entry).expect("the entry fits");
            }
        }
    }
    switch
}
