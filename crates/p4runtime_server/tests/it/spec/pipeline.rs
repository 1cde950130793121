//! Chapters 7, 14, 15 and 17: setting and getting pipelines, capabilities.

use crate::spec::rig::*;
use compiler::{CompiledProgram, ProgramFile};
use p4runtime_proto::v1;

fn request(action: Action, config: Option<v1::ForwardingPipelineConfig>) -> v1::SetForwardingPipelineConfigRequest {
    v1::SetForwardingPipelineConfigRequest {
        device_id: DEVICE,
        election_id: Some(uint128(1)),
        action: action.into(),
        config,
        ..Default::default()
    }
}

#[track_caller]
fn fails(result: Result<(), Failed>) -> Code {
    result.expect_err("this fails").code
}

/// Another program: the table of [`EVERY`] that has another name, and one that is the same.
fn other() -> String {
    EVERY.replace("keyless_t", "bare_t")
}

/// One in which an entry of `exact_t` has no place.
fn narrower() -> String {
    EVERY.replace(
        "hdr.data.a: exact; }\n        actions = { forward; drop; pair",
        "hdr.data.d: exact; }\n        actions = { forward; drop; pair",
    )
}

/// 14 An unknown device is NOT_FOUND, before anything else is looked at.
/// 14 An unknown role is NOT_FOUND.
#[test]
fn unknown_devices_and_roles_are_not_found() {
    let rig = Rig::new();
    let with = |device_id, role: &str| v1::SetForwardingPipelineConfigRequest {
        device_id,
        role: role.to_owned(),
        election_id: Some(uint128(99)),
        ..request(Action::VerifyAndCommit, None)
    };
    assert_eq!(fails(rig.set_as(with(DEVICE + 1, ""))), Code::NotFound);
    assert_eq!(fails(rig.set_as(with(DEVICE, "nobody"))), Code::NotFound);
}

/// 14 Only the primary sets the pipeline: PERMISSION_DENIED.
#[test]
fn only_the_primary_sets_the_pipeline() {
    let rig = Rig::new();
    for election_id in [None, Some(uint128(0)), Some(uint128(2))] {
        let request = v1::SetForwardingPipelineConfigRequest {
            election_id,
            ..request(Action::VerifyAndCommit, Some(config(EVERY)))
        };
        assert_eq!(fails(rig.set_as(request)), Code::PermissionDenied);
    }
}

/// 14 No action is INVALID_ARGUMENT.
#[test]
fn an_action_has_to_be_named() {
    let rig = Rig::new();
    assert_eq!(fails(rig.set(Action::Unspecified, Some(config(EVERY)))), Code::InvalidArgument);
}

/// 14 VERIFY, VERIFY_AND_SAVE, VERIFY_AND_COMMIT and RECONCILE_AND_COMMIT need a config: INVALID_ARGUMENT.
#[test]
fn what_verifies_needs_a_config() {
    let rig = Rig::new();
    for action in [Action::Verify, Action::VerifyAndSave, Action::VerifyAndCommit, Action::ReconcileAndCommit] {
        assert_eq!(fails(rig.set(action, None)), Code::InvalidArgument, "{action:?}");
    }
}

/// 14 A config that cannot be realized is INVALID_ARGUMENT, and nothing changes.
#[test]
fn a_program_with_mistakes_is_refused_and_changes_nothing() {
    let rig = Rig::new();
    let table = entry(&rig.info, "exact_t").exact(1, 1).does(call(&rig.info, "forward", &[2]));
    rig.insert(table.clone()).unwrap();
    for action in [Action::Verify, Action::VerifyAndSave, Action::VerifyAndCommit, Action::ReconcileAndCommit] {
        let wrong = EVERY.replace("meta.special = 1;", "meta.x = 1;");
        let failed = rig.set(action, Some(config(&wrong))).unwrap_err();
        assert_eq!(failed.code, Code::InvalidArgument);
        assert!(failed.message.contains('x'), "{}", failed.message);
    }
    assert_eq!(rig.entries(entry(&rig.info, "exact_t")), [table]);
    assert_eq!(rig.get().p4_device_config, EVERY.as_bytes());
}

/// 14 The errors of a program that has many fill the message, and continue in the details.
#[test]
fn many_mistakes_are_reported_in_the_message_and_the_details() {
    let rig = Rig::new();
    let statements: String = (0..40).map(|at| format!("meta.wrong_{at} = {at};\n")).collect();
    let wrong = EVERY.replace("meta.special = 1;", &statements);
    let failed = rig.set(Action::Verify, Some(config(&wrong))).unwrap_err();
    assert_eq!(failed.code, Code::InvalidArgument);
    let [rest] = &failed.errors[..] else { panic!("{failed:?}") };
    let status = failed.status.as_ref().unwrap();
    assert_eq!((status.code, &status.message), (Code::InvalidArgument as i32, &failed.message));
    let text = failed.message.clone() + &rest.message;
    let named = (0..40).take_while(|at| text.contains(&format!("wrong_{at}"))).count();
    let in_message = (0..40).take_while(|at| failed.message.contains(&format!("wrong_{at}"))).count();
    assert!(in_message > 4 && named > in_message, "{in_message}, {named}: {text}");
}

/// 14 A program that exceeds a limit of the compiler's nesting is INVALID_ARGUMENT, as any mistake in it is.
#[test]
fn deep_nesting_is_a_mistake_of_the_program() {
    const DEEP: usize = 100_000;
    let rig = Rig::new();
    let unterminated = "#if 1\n".repeat(DEEP);
    let condition = format!("#if {}1{}\n#endif\n", "(".repeat(DEEP), ")".repeat(DEEP));
    let program_is_missing = unterminated.clone() + &"#endif\n".repeat(DEEP);
    for (source, error) in
        [(unterminated, "unterminated-conditional"), (condition, "bad-condition"), (program_is_missing, "no-main")]
    {
        let failed = rig.set(Action::Verify, Some(config(&source))).unwrap_err();
        assert_eq!(failed.code, Code::InvalidArgument);
        assert!(failed.message.contains(&format!("error[{error}]")), "{}", failed.message);
    }
}

/// 14 A program that includes a file is refused, and the message names a form that includes none.
#[test]
fn a_program_that_includes_a_file_is_refused_with_the_remedy() {
    let rig = Rig::new();
    let failed = rig.set(Action::Verify, Some(config("#include \"/etc/hosts\"\n"))).unwrap_err();
    assert_eq!(failed.code, Code::InvalidArgument);
    for part in ["cannot find the included file `/etc/hosts`", "triplane build"] {
        assert!(failed.message.contains(part), "{}", failed.message);
    }
    assert!(!failed.message.contains("`-I`"), "{}", failed.message);
}

/// 14 VERIFY changes nothing.
#[test]
fn verify_changes_nothing() {
    let rig = Rig::new();
    let table = entry(&rig.info, "exact_t").exact(1, 1).does(call(&rig.info, "forward", &[2]));
    rig.insert(table.clone()).unwrap();
    rig.set(Action::Verify, Some(config(&other()))).unwrap();
    assert_eq!(rig.get().p4_device_config, EVERY.as_bytes());
    assert_eq!(rig.entries(entry(&rig.info, "exact_t")), [table]);
    assert_eq!(rig.through(1, &data(1, 0, 0, 0, 0)), Some(2));
    assert_eq!(fails(rig.set(Action::Commit, None)), Code::NotFound);
}

/// 14 VERIFY_AND_COMMIT clears the forwarding state.
#[test]
fn verify_and_commit_clears_what_was_written() {
    let rig = Rig::new();
    rig.insert(entry(&rig.info, "exact_t").exact(1, 1).does(call(&rig.info, "forward", &[2]))).unwrap();
    rig.set(Action::VerifyAndCommit, Some(config(EVERY))).unwrap();
    assert_eq!(rig.entries(entry(&rig.info, "exact_t")), []);
    assert_ne!(rig.through(1, &data(1, 0, 0, 0, 0)), Some(2));
}

/// 14 VERIFY_AND_SAVE leaves the data plane as it is, and reads and writes are about the saved config.
/// 14 COMMIT realizes the saved config with what was written since.
#[test]
fn a_saved_config_is_written_to_and_committed_later() {
    let rig = Rig::new();
    rig.insert(entry(&rig.info, "exact_t").exact(1, 1).does(call(&rig.info, "forward", &[2]))).unwrap();
    rig.set(Action::VerifyAndSave, Some(config(&other()))).unwrap();
    assert_eq!(rig.through(1, &data(1, 0, 0, 0, 0)), Some(2), "the old program goes on");
    let info = rig.get().p4info.unwrap();
    assert!(info.tables.iter().any(|table| table.preamble.as_ref().unwrap().name == "I.bare_t"));
    assert_eq!(rig.entries(entry(&info, "exact_t")), []);
    let new = entry(&info, "exact_t").exact(1, 1).does(call(&info, "forward", &[3]));
    rig.insert(new.clone()).unwrap();
    assert_eq!(rig.through(1, &data(1, 0, 0, 0, 0)), Some(2), "the old program still goes on");
    rig.set(Action::Commit, None).unwrap();
    assert_eq!(rig.entries(entry(&info, "exact_t")), [new]);
    assert_eq!(rig.through(1, &data(1, 0, 0, 0, 0)), Some(3));
}

/// 14 COMMIT without a saved config is NOT_FOUND.
/// 14 A saved config is committed once.
#[test]
fn there_is_nothing_to_commit_unless_something_was_saved() {
    let rig = Rig::new();
    assert_eq!(fails(rig.set(Action::Commit, None)), Code::NotFound);
    rig.set(Action::VerifyAndSave, Some(config(EVERY))).unwrap();
    rig.set(Action::Commit, None).unwrap();
    assert_eq!(fails(rig.set(Action::Commit, None)), Code::NotFound);
}

/// 14 COMMIT with a config is INVALID_ARGUMENT.
#[test]
fn commit_takes_no_config() {
    let rig = Rig::new();
    rig.set(Action::VerifyAndSave, Some(config(EVERY))).unwrap();
    assert_eq!(fails(rig.set(Action::Commit, Some(config(EVERY)))), Code::InvalidArgument);
}

/// 14 RECONCILE_AND_COMMIT keeps the forwarding state.
#[test]
fn reconcile_keeps_entries() {
    let rig = Rig::new();
    let table = entry(&rig.info, "exact_t").exact(1, 1).does(call(&rig.info, "forward", &[2]));
    rig.insert(table.clone()).unwrap();
    rig.set(Action::ReconcileAndCommit, Some(config(&other()))).unwrap();
    assert_eq!(rig.entries(entry(&rig.info, "exact_t")), [table]);
    assert_eq!(rig.through(1, &data(1, 0, 0, 0, 0)), Some(2));
}

/// 14 RECONCILE_AND_COMMIT with a config that the state does not fit is INVALID_ARGUMENT, and nothing changes.
#[test]
fn reconcile_refuses_what_entries_do_not_fit() {
    let rig = Rig::new();
    let table = entry(&rig.info, "exact_t").exact(1, 0x1234).does(call(&rig.info, "forward", &[2]));
    rig.insert(table.clone()).unwrap();
    assert_eq!(fails(rig.set(Action::ReconcileAndCommit, Some(config(&narrower())))), Code::InvalidArgument);
    assert_eq!(rig.entries(entry(&rig.info, "exact_t")), [table]);
    assert_eq!(rig.through(1, &data(0x1234, 0, 0, 0, 0)), Some(2));
}

/// 14 RECONCILE_AND_COMMIT writes rates of meters again, by the meter's id.
/// 14 It has counters and registers go on, by name.
#[test]
fn reconcile_goes_by_ids_for_what_was_written_and_by_names_for_what_was_counted() {
    let rig = Rig::new();
    let config_of = |cir| v1::MeterConfig { cir, cburst: 1, pir: 9, pburst: 1, eburst: 0 };
    let meter = |index, config| v1::MeterEntry {
        meter_id: id(&rig.info, "metered"),
        index: Some(v1::Index { index }),
        config,
        counter_data: None,
    };
    let rates = || {
        let read = (0..2).flat_map(|index| rig.read(meter(index, None)));
        let config = |entity: v1::Entity| match entity.entity {
            Some(v1::entity::Entity::MeterEntry(entry)) => entry.config.map(|config| config.cir),
            other => panic!("no meter: {other:?}"),
        };
        read.map(config).collect::<Vec<_>>()
    };
    rig.modify(meter(1, Some(config_of(5)))).unwrap();
    assert_eq!(rig.through(1, &data(1, 7, 0, 0, 0xe1)), Some(1));
    let memory = || {
        let index = Some(v1::Index { index: 1 });
        let counter = v1::CounterEntry { counter_id: id(&rig.info, "counted"), index, data: None };
        let register = v1::RegisterEntry { register_id: id(&rig.info, "remembered"), index, data: None };
        (rig.read(counter), rig.read(register))
    };
    let before = memory();

    // Another name under the same id is the same to a controller, and another id is another meter, whatever its name.
    let renamed = |id: u32, name: &str| {
        let declared = format!("@id({id}) @name(\"{name}\")\n    meter(4, MeterType.packets) metered;");
        config(&EVERY.replace("meter(4, MeterType.packets) metered;", &declared))
    };
    let same_id = id(&rig.info, "metered");
    rig.set(Action::ReconcileAndCommit, Some(renamed(same_id, "other"))).unwrap();
    assert_eq!(rates(), [None, Some(5)]);
    assert_eq!(memory(), before);
    assert_eq!(fails(rig.set(Action::ReconcileAndCommit, Some(renamed(same_id ^ 1, "other")))), Code::InvalidArgument);
    assert_eq!(rates(), [None, Some(5)]);

    // Rates that have no place keep the program out.
    let smaller = |size: u32| {
        EVERY.replace("meter(4, MeterType.packets) metered;", &format!("meter({size}, MeterType.packets) metered;"))
    };
    assert_eq!(fails(rig.set(Action::ReconcileAndCommit, Some(config(&smaller(1))))), Code::InvalidArgument);
    rig.set(Action::ReconcileAndCommit, Some(config(&smaller(2)))).unwrap();
    assert_eq!(rates(), [None, Some(5)]);
}

/// 14 What the program initially has (entries, default actions) is there after a commit.
#[test]
fn a_committed_program_has_its_initial_entries() {
    let rig = Rig::new();
    assert_eq!(rig.entries(entry(&rig.info, "pre_t")).len(), 2);
    assert_eq!(rig.entries(entry(&rig.info, "const_t")).len(), 3);
}

/// 7 A program may come in Triplane's compiled form, with what it says of its entries, and comes back as it was sent.
/// 7 One that is damaged, or is described otherwise, is refused in words.
#[test]
fn a_compiled_program_is_taken() {
    let rig = Rig::new();
    let compiled = |source: &str| {
        let (ir, info) = compile(source).expect("the program is right");
        let (made_by, source) = ("a test".to_owned(), "every.p4".to_owned());
        let program = CompiledProgram { ir, p4info: info.clone() };
        let bytes = ProgramFile { made_by, source, program }.emit().expect("it is small");
        v1::ForwardingPipelineConfig { p4info: Some(info), p4_device_config: bytes, cookie: None }
    };
    let sent = compiled(&other());
    rig.set(Action::VerifyAndCommit, Some(sent.clone())).unwrap();
    assert_eq!(rig.get(), sent);
    let info = sent.p4info.clone().unwrap();
    rig.insert(entry(&info, "exact_t").exact(1, 1).does(call(&info, "forward", &[3]))).unwrap();
    assert_eq!(rig.through(1, &data(1, 0, 0, 0, 0)), Some(3));
    let constants = rig.entries(entry(&info, "pre_t")).iter().filter(|entry| entry.is_const).count();
    assert_eq!(constants, 1, "the program's own entries keep their marks");

    let refused = |config: v1::ForwardingPipelineConfig, said: &str| {
        let failed = rig.set(Action::VerifyAndCommit, Some(config)).unwrap_err();
        assert_eq!(failed.code, Code::InvalidArgument, "{}", failed.message);
        assert!(failed.message.contains(said), "{}", failed.message);
    };
    let mut damaged = sent.clone();
    *damaged.p4_device_config.last_mut().expect("it has bytes") ^= 1;
    refused(damaged, "its checksum does not match");
    refused(v1::ForwardingPipelineConfig { p4info: Some(rig.info.clone()), ..sent.clone() }, "does not describe");
    assert_eq!(rig.get(), sent);
}

/// 7 A P4Info that is not the program's, or none, is refused.
#[test]
fn a_p4info_of_another_program_is_refused() {
    let rig = Rig::new();
    let mut wrong = rig.info.clone();
    wrong.tables[0].match_fields[0].bitwidth = 17;
    let config = v1::ForwardingPipelineConfig { p4info: Some(wrong), ..config(EVERY) };
    assert_eq!(fails(rig.set(Action::VerifyAndCommit, Some(config))), Code::InvalidArgument);
    // Its table has another size: what a controller counts on would not be there.
    let mut larger = rig.info.clone();
    larger.tables[0].size += 1;
    let config = v1::ForwardingPipelineConfig { p4info: Some(larger), ..crate::spec::rig::config(EVERY) };
    assert_eq!(fails(rig.set(Action::VerifyAndCommit, Some(config))), Code::InvalidArgument);
    // The message distinguishes other objects from other ids.
    let mut lacking = rig.info.clone();
    lacking.registers.pop();
    let mut numbered = rig.info.clone();
    numbered.registers[0].preamble.as_mut().unwrap().id ^= 1;
    for (p4info, said) in [(lacking, "it lacks the register"), (numbered, "the objects of the program under other ids")]
    {
        let config = v1::ForwardingPipelineConfig { p4info: Some(p4info), ..crate::spec::rig::config(EVERY) };
        let failed = rig.set(Action::Verify, Some(config)).unwrap_err();
        assert!(failed.code == Code::InvalidArgument && failed.message.contains(said), "{}", failed.message);
    }
    let missing = v1::ForwardingPipelineConfig { p4info: None, ..crate::spec::rig::config(EVERY) };
    assert_eq!(fails(rig.set(Action::VerifyAndCommit, Some(missing))), Code::InvalidArgument);
}

/// 7 A compiled form of another target (BMv2's JSON) is refused in a sentence that says so.
#[test]
fn a_bmv2_json_is_refused() {
    let rig = Rig::new();
    let json = r#"{ "header_types" : [], "pipelines" : [], "__meta__" : { "version" : [2, 23] } }"#;
    let failed = rig.set(Action::VerifyAndCommit, Some(config(json))).unwrap_err();
    assert_eq!(failed.code, Code::InvalidArgument);
    assert!(failed.message.contains("BMv2"), "{}", failed.message);
}

/// 7 A program may come wrapped as controllers for BMv2 wrap what they send, and comes back as it was sent.
#[test]
fn a_wrapped_program_is_taken() {
    let rig = Rig::new();
    let plain = config(EVERY);
    // p4.tmp.P4DeviceConfig: `reassign` and `device_data`.
    let mut wrapped = vec![0x08, 0x01, 0x1a];
    p4runtime_proto::prost::encoding::encode_varint(plain.p4_device_config.len() as u64, &mut wrapped);
    wrapped.extend(&plain.p4_device_config);
    let sent = v1::ForwardingPipelineConfig { p4_device_config: wrapped, ..plain };
    rig.set(Action::VerifyAndCommit, Some(sent.clone())).unwrap();
    assert_eq!(rig.get(), sent);
}

/// 12 A write before any pipeline was set is FAILED_PRECONDITION.
/// 13 A read before any pipeline was set is FAILED_PRECONDITION.
#[test]
fn without_a_pipeline_nothing_is_read_or_written() {
    let rig = Rig::bare();
    let _primary = rig.session(Some(1));
    assert_eq!(rig.write(Vec::new()).unwrap_err().code, Code::FailedPrecondition);
    assert_eq!(rig.read_all(vec![v1::TableEntry::default().entity()]).unwrap_err().code, Code::FailedPrecondition);
}

/// 15 Without a pipeline the answer has no config.
#[test]
fn without_a_pipeline_there_is_no_config() {
    assert_eq!(Rig::bare().get_as(DEVICE, ResponseType::All).unwrap(), None);
}

/// 15 An unknown device is NOT_FOUND.
#[test]
fn getting_the_pipeline_of_an_unknown_device_is_not_found() {
    let rig = Rig::new();
    assert_eq!(rig.get_as(DEVICE + 1, ResponseType::All).unwrap_err().code, Code::NotFound);
}

/// 15 The response has exactly what is requested: ALL, COOKIE_ONLY, P4INFO_AND_COOKIE, DEVICE_CONFIG_AND_COOKIE.
/// 15 The cookie comes back as it was sent.
/// 15 The device config comes back as it was sent.
#[test]
fn the_answer_has_what_is_asked_for() {
    let rig = Rig::new();
    let cookie = Some(v1::forwarding_pipeline_config::Cookie { cookie: 0x0123_4567_89ab_cdef });
    let sent = v1::ForwardingPipelineConfig { cookie, ..config(EVERY) };
    rig.set(Action::VerifyAndCommit, Some(sent.clone())).unwrap();
    let get = |kind| rig.get_as(DEVICE, kind).unwrap().unwrap();
    let nothing = v1::ForwardingPipelineConfig { cookie, ..Default::default() };
    assert_eq!(get(ResponseType::All), sent);
    assert_eq!(get(ResponseType::CookieOnly), nothing);
    let info = v1::ForwardingPipelineConfig { p4info: sent.p4info.clone(), ..nothing.clone() };
    assert_eq!(get(ResponseType::P4infoAndCookie), info);
    let device = v1::ForwardingPipelineConfig { p4_device_config: sent.p4_device_config, ..nothing };
    assert_eq!(get(ResponseType::DeviceConfigAndCookie), device);
}

/// 7 A config without a cookie comes back without one, and one with the cookie 0 with it.
#[test]
fn no_cookie_and_the_cookie_zero_differ() {
    let rig = Rig::new();
    assert_eq!(rig.get().cookie, None);
    let cookie = Some(v1::forwarding_pipeline_config::Cookie { cookie: 0 });
    rig.set(Action::VerifyAndCommit, Some(v1::ForwardingPipelineConfig { cookie, ..config(EVERY) })).unwrap();
    assert_eq!(rig.get().cookie, cookie);
}

/// 17 The version of the API is reported, as a semantic version.
#[test]
fn the_api_version_is_reported() {
    let rig = Rig::bare();
    let mut client = rig.client();
    let answer = rig.runtime.block_on(client.capabilities(v1::CapabilitiesRequest::default())).unwrap().into_inner();
    assert_eq!(answer.p4runtime_api_version, "1.5.0");
}

/// 17 Capabilities of an unknown device are NOT_FOUND.
#[test]
fn capabilities_of_an_unknown_device_are_not_found() {
    let rig = Rig::bare();
    let mut client = rig.client();
    let ask = |device_id| v1::CapabilitiesRequest { device_id };
    let known = rig.runtime.block_on(client.capabilities(ask(DEVICE)));
    assert!(known.is_ok());
    let unknown = rig.runtime.block_on(client.capabilities(ask(DEVICE + 1))).unwrap_err();
    assert_eq!(unknown.code(), tonic::Code::NotFound);
}
