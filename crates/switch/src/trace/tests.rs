//! Traces of small programs.

use diagnostics::{Diagnostics, SourceMap};
use engine::{Interpreter, Now, Objects, PacketState};
use ir::Program;

use super::{PassKind, PassOutcome, Recorder, Trace, Tracer};
use crate::{DropReason, Frame, Time};

const PROGRAM: &str = r#"program test
errors { NoError PacketTooShort NoMatch StackOutOfBounds HeaderTooShort ParserTimeout ParserInvalidArgument }
header_type tag_t { vid: 12  rest: 4 }
header_type opts_t { len: 8  data: varbit 320 }
header hdr.tag[0]: tag_t
header hdr.tag[1]: tag_t
header hdr.opts: opts_t
stack hdr.tag: 2 from hdr.tag[0] next hdr.tag.$next
metadata hdr.tag.$next: 32
metadata meta.colour: 2
metadata meta.seen: 16
metadata meta.parser_error: 32
metadata meta.hash: 32
metadata "$hidden": 8
argument set.value: 16
register MyC.last: 16 size 4
counter MyC.all: packets size 4
meter MyC.rate: bytes size 4
digest learn { ip: 32  port: 16 }
action set(value: set.value) body set
table MyC.t {  ; t.p4:30:5
  key hdr.tag[0].vid: ternary 12 = hdr.tag[0].vid
  key meta.seen: range 16 = meta.seen
  action set
  default set(0x1:16)
  entry 0x10:12 &&& 0xff0:12, 0x0:16 .. 0x9:16 priority 7 -> set(0x2:16)
}
field_list 1 { slot meta.seen }
role ingress: MyC
role parser: MyP

parser MyP {
  state start:
    extract hdr.tag[hdr.tag.$next]
    hdr.tag.$next = hdr.tag.$next + 0x1:32
    advance 0x4:32
    advance 0x4:32
    extract hdr.opts varbit zext(hdr.opts.len, 32) + 0x10:32
    select hdr.opts.len, meta.seen {  ; t.p4:9:1
      0x1:8, _ -> end
      0x2:8, _ -> never
    }
  state never:
    reject
  block end:
    return
}

control MyC {
  block start:
    apply MyC.t  ; t.p4:40:1
    read MyC.last[0x1:32] -> meta.seen
    write MyC.last[0x1:32] = 0x99:16
    count MyC.all[0x3:32]
    execute_meter MyC.rate[0x2:32] -> meta.colour
    compute crc32(hdr.tag[0].vid, hdr.tag[0].rest) -> meta.hash
    meta.parser_error = 0x1:32
    "$hidden" = 0x1:8
    copy hdr.tag[1] = hdr.tag[0]
    set_invalid hdr.tag[0]
    clone ingress session 0x5:32 keep 1
    digest learn(0xa000001:32, 0x50:16)
    log "seen {}", meta.seen
    emit hdr.tag[1]
    branch meta.seen < 0x5:16 -> low else high  ; t.p4:50:1
  block low:
    switch hdr.opts.len {  ; t.p4:51:1
      0x1:8 -> high
      default -> high
    }
  block high:
    return
}

action_body set {
  block start:
    meta.seen = set.value  ; t.p4:20:9
    return
}
"#;

fn program() -> Program {
    let mut map = SourceMap::new();
    let file = map.add("test.ir", PROGRAM);
    let mut diagnostics = Diagnostics::new();
    let program = ir::parse(&map, file, &mut diagnostics);
    let program = program.unwrap_or_else(|| panic!("{}", diagnostics.render(&map, false)));
    ir::validate(&program).expect("the program is valid");
    program
}

/// Runs the parser and the control on a frame, as an architecture would.
fn trace(data: &[u8]) -> Trace {
    let program = program();
    let mut objects = Objects::new(&program);
    let mut state = PacketState::new(&program, data.to_vec());
    let mut tracer = Tracer::new(Time::ZERO, &Frame::new(1, data));
    let pass = tracer.begin(None, PassKind::Received, data.len());
    for role in ["parser", "ingress"] {
        let body = program.blocks[role];
        tracer.section(pass, role, &program, body, &state);
        Interpreter::run(&program, &mut objects, body, &mut state, Now::default(), &mut tracer);
        if role == "parser" {
            tracer.parsed(pass, &program, &state);
        }
    }
    tracer.note(pass, || "the architecture has a word".into());
    tracer.sent(pass, 2, false, &state.finish(), &program, &state);
    tracer.finish()
}

#[test]
fn every_kind_of_step_is_traced() {
    let expected = "\
0.000000s  port 1 received 8 bytes
parser MyP
  state start
    extract hdr.tag[0], 2 bytes at byte 0
      vid   18
      rest  3
    skip 4 bits
    skip 4 bits
    extract hdr.opts, 3 bytes at byte 3
      len   1
      data  43707
    select hdr.opts.len = 1, meta.seen = 0 -> accept                        t.p4:9:1
ingress MyC
  table MyC.t                                                               t.p4:40:1
    key     hdr.tag[0].vid = 18, meta.seen = 0
    hit     hdr.tag[0].vid = 16 &&& 0xff0, meta.seen = 0..9 priority 7
    action  set(value = 2)
      meta.seen = 2, was 0                                                  t.p4:20:9
  read MyC.last[1]: 0
  meta.seen = 0, was 2
  write MyC.last[1]: 153
  count MyC.all[3]
  meter MyC.rate[2]: green
  meta.colour = 0, as before
  crc32 of 2 bytes: 0xfaa552cc
  meta.hash = 0xfaa552cc, was 0x00000000
  meta.parser_error = PacketTooShort, was NoError
  hdr.tag[1] = hdr.tag[0]
  hdr.tag[0] set invalid
  request: clone to mirror session 5, keeping field list 1
  request: digest learn(ip=10.0.0.1, port=80)
  note: seen 0
  emit hdr.tag[1], 2 bytes
  if meta.seen < 0x5: yes                                                   t.p4:50:1
  switch hdr.opts.len = 1                                                   t.p4:51:1
  note: the architecture has a word
sent on port 2, 4 bytes
  hdr.tag[0]  removed
  hdr.tag[1]  added
";
    let told = trace(&[0x01, 0x23, 0x00, 0x01, 0xaa, 0xbb, 0xcc, 0xdd]).render();
    assert_eq!(told, expected);
}

#[test]
fn a_parser_without_a_case_ends_with_an_error() {
    let told = trace(&[0x01, 0x23, 0x00, 0x05, 0xaa, 0xbb, 0xcc, 0xdd, 0xee]).render();
    assert!(told.contains("select hdr.opts.len = 5, meta.seen = 0 -> no case"), "{told}");
    assert!(told.contains("error NoMatch"), "{told}");
}

#[test]
fn json_has_the_model_s_names() {
    let json = trace(&[0x01, 0x23, 0x00, 0x01, 0xaa, 0xbb, 0xcc, 0xdd]).to_json();
    let pass = &json["passes"][0];
    assert_eq!(pass["kind"], "received");
    assert_eq!(pass["outcome"]["outcome"], "sent");
    let table = &pass["sections"][1]["steps"][0];
    assert_eq!((&table["step"], &table["hit"], &table["at"]), (&"table".into(), &true.into(), &"t.p4:40:1".into()));
    assert_eq!(table["steps"][0]["new"]["value"], "0x0002");
}

#[test]
fn outcomes_are_rendered_as_sentences() {
    let told = |outcome: PassOutcome| {
        let mut tracer = Tracer::new(Time::ZERO, &Frame::new(1, []));
        let pass = tracer.begin(None, PassKind::Received, 0);
        tracer.end(pass, || outcome);
        tracer.finish().render().lines().last().unwrap_or_default().to_string()
    };
    let place = diagnostics::SourcePosition { file: "r.p4".into(), line: 8, column: 9 };
    let dropped = PassOutcome::dropped(DropReason::EgressProgram, Some(&(place, "E.drop".into())));
    assert_eq!(told(dropped), "dropped in egress by the program at r.p4:8:9 (E.drop)");
    assert_eq!(told(PassOutcome::dropped(DropReason::Runt, None)), "dropped on receipt: the frame is too short");
    let unsent = PassOutcome::dropped_at_port(DropReason::NoEgressPort, 9);
    assert_eq!(told(unsent), "dropped on sending: the switch has no such port (port 9)");
    assert_eq!(told(PassOutcome::Replicated { group: Some(3), copies: 1 }), "replicated by multicast group 3, 1 copy");
    assert_eq!(told(PassOutcome::Running), "in flight");
}
