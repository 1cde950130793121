//! Programs whose own `v1model.p4` has ports of other widths.

use std::sync::Arc;

use compiler::Source;
use diagnostics::{Diagnostics, SourceMap};
use stf::{PacketPath, RunOptions};
use v1model::{Config, LoadError, V1Model};

/// Returns a program with ports of `width` bits, which sends packets where a table or their first two bytes say.
fn program(width: u32) -> Arc<ir::Program> {
    let architecture = v1model::description::INCLUDES[0].1.replace("bit<9>", &format!("bit<{width}>"));
    let text = format!(
        "{architecture}
         header h_t {{ bit<16> port; }}
         struct headers {{ h_t h; }}
         struct metadata {{ }}
         parser P(packet_in p, out headers h, inout metadata m, inout standard_metadata_t s) {{
             state start {{ p.extract(h.h); transition accept; }}
         }}
         control V(inout headers h, inout metadata m) {{ apply {{ }} }}
         control I(inout headers h, inout metadata m, inout standard_metadata_t s) {{
             action forward(bit<{width}> port) {{ s.egress_spec = port; }}
             action copy(bit<16> group) {{ s.mcast_grp = group; }}
             action drop() {{ mark_to_drop(s); }}
             table t {{
                 key = {{ h.h.port : exact; s.ingress_port : ternary; }}
                 actions = {{ forward; copy; drop; NoAction; }}
                 default_action = NoAction;
             }}
             apply {{ s.egress_spec = (bit<{width}>) h.h.port; t.apply(); }}
         }}
         control E(inout headers h, inout metadata m, inout standard_metadata_t s) {{
             apply {{ if (s.egress_port == 7) {{ mark_to_drop(s); }} }}
         }}
         control D(packet_out p, in headers h) {{ apply {{ p.emit(h); }} }}
         V1Switch(P(), V(), I(), E(), V(), D()) main;"
    );
    Arc::new(compiler::expect_program(&Source::without_files("wide.p4", &text), &V1Model).ir)
}

/// Runs a script on every path. Returns the report of the first that fails, or the errors in the script.
fn run(width: u32, script: &str) -> Result<(), String> {
    let program = program(width);
    let (mut map, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let file = map.add("wide.stf", script);
    let script = stf::parse(&map, file, &mut diagnostics);
    let test = script.and_then(|script| stf::bind(&script, &program, &mut diagnostics));
    let test = test.ok_or_else(|| diagnostics.render(&map, false))?;
    for path in [PacketPath::Traced, PacketPath::HandedOver, PacketPath::InPlace] {
        let report = test.run(&program, &RunOptions { path, ..RunOptions::default() }).expect("a v1model program");
        if !report.passed() {
            return Err(format!("{path:?}: {}", report.render(&map)));
        }
    }
    Ok(())
}

#[test]
fn ports_of_16_bits_are_ports_wherever_they_are_named() {
    let script = "
        no_packet
        add t h.port:1 forward(1000)
        add t h.port:2 s.ingress_port:0xfffe forward(511)
        add t h.port:3 drop()
        add t h.port:4 copy(9)
        mc_mgrp_create 9
        mc_node_create 5 40000:600 512
        mc_node_associate 9 0
        packet 0 0001
        expect 1000 0001$
        packet 65534 0002
        expect 511 0002$
        packet 1000 0003
        packet 1000 0004
        expect 40000 0004$
        expect 512 0004$
        packet 0 fffe
        expect 65534 fffe$
        # all ones mean drop, and so does mark_to_drop in egress
        packet 0 ffff
        packet 0 0007
        port_down 40000
        packet 0 0004
        expect 600 0004$
        expect 512 0004$
        # a port that the script names nowhere else does not exist
        packet 0 0300";
    assert_eq!(run(16, script), Ok(()));
}

#[test]
fn ports_of_8_bits_end_at_254() {
    assert_eq!(run(8, "no_packet\npacket 1 00fe\nexpect 254 00fe$\npacket 1 00ff\npacket 1 0007"), Ok(()));
    let error = run(8, "packet 255 0001").unwrap_err();
    assert!(error.contains("ports are numbered 0 to 254"), "{error}");
}

#[test]
fn a_switch_has_no_port_that_its_program_cannot_name() {
    let config = Config::with_ports(600);
    assert_eq!(config.check_ports(&program(9)), Err(LoadError::PortWidth { port: 511, max: 510 }));
    assert_eq!(config.check_ports(&program(16)), Ok(()));
    assert_eq!([9, 16, 32].map(|width| v1model::max_port(&program(width))), [510, 65534, 65534]);
    let wide = v1model::Switch::new(program(48), Config::default());
    assert!(matches!(wide.map(drop), Err(LoadError::WidePort(48))));
}
