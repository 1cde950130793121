use super::*;
use v1::stream_message_response::Update;

fn update(role: &str, election: Option<u64>) -> v1::MasterArbitrationUpdate {
    v1::MasterArbitrationUpdate {
        device_id: 1,
        role: (!role.is_empty()).then(|| v1::Role { name: role.to_owned(), ..Default::default() }),
        election_id: election.map(|low| v1::Uint128 { high: 0, low }),
        status: None,
    }
}

/// Applies an update and renders the messages that it causes, one per line: `stream: election status`.
fn story(arbitration: &mut Arbitration, stream: u64, election: Option<u64>) -> Vec<String> {
    let mut outbox = Outbox::new();
    match arbitration.update(StreamId(stream), &update("", election), &mut outbox) {
        Ok(()) => messages(&outbox),
        Err(refusal) => vec![format!("{stream}: closed {:?}", refusal.code)],
    }
}

fn messages(outbox: &Outbox) -> Vec<String> {
    let line = |(stream, message): &(StreamId, v1::StreamMessageResponse)| {
        let Some(Update::Arbitration(update)) = &message.update else { panic!("only arbitration is sent here") };
        let code = match update.status.as_ref().unwrap().code {
            0 => "OK",
            5 => "NOT_FOUND",
            6 => "ALREADY_EXISTS",
            other => panic!("code {other}"),
        };
        let election = update.election_id.as_ref().map_or("none".to_owned(), |id| id.low.to_string());
        format!("{}: {election} {code}", stream.0)
    };
    outbox.iter().map(line).collect()
}

fn ended(arbitration: &mut Arbitration, stream: u64) -> Vec<String> {
    let mut outbox = Outbox::new();
    arbitration.end(StreamId(stream), &mut outbox);
    messages(&outbox)
}

fn admit(arbitration: &mut Arbitration, election: u64) -> Result<Admission, Code> {
    arbitration.admit(1, 0, "", Some(&v1::Uint128 { high: 0, low: election })).map_err(|refusal| refusal.code)
}

#[test]
fn the_highest_election_id_is_primary_and_nobody_inherits() {
    let mut a = Arbitration::new(1, 16);
    assert_eq!(story(&mut a, 1, None), ["1: none NOT_FOUND"]);
    assert_eq!(story(&mut a, 2, Some(5)), ["1: 5 ALREADY_EXISTS", "2: 5 OK"]);
    assert_eq!(story(&mut a, 3, Some(4)), ["3: 5 ALREADY_EXISTS"]);
    assert_eq!(
        story(&mut a, 4, Some(9)),
        ["1: 9 ALREADY_EXISTS", "2: 9 ALREADY_EXISTS", "3: 9 ALREADY_EXISTS", "4: 9 OK"]
    );
    assert_eq!(admit(&mut a, 5).unwrap_err(), Code::PermissionDenied);
    assert_eq!(ended(&mut a, 4), ["1: 9 NOT_FOUND", "2: 9 NOT_FOUND", "3: 9 NOT_FOUND"]);
    // The election id of a primary that has gone can no longer write, and lower ids are not promoted.
    assert_eq!(admit(&mut a, 9).unwrap_err(), Code::PermissionDenied);
    assert_eq!(story(&mut a, 2, Some(8)), ["2: 9 NOT_FOUND"]);
    assert_eq!(story(&mut a, 2, Some(9)), ["1: 9 ALREADY_EXISTS", "2: 9 OK", "3: 9 ALREADY_EXISTS"]);
    assert!(admit(&mut a, 9).is_ok());
}

#[test]
fn a_primary_steps_down_with_a_lower_id() {
    let mut a = Arbitration::new(1, 16);
    story(&mut a, 1, Some(7));
    story(&mut a, 2, Some(3));
    assert_eq!(story(&mut a, 1, Some(2)), ["1: 7 NOT_FOUND", "2: 7 NOT_FOUND"]);
    assert_eq!(story(&mut a, 1, None), ["1: 7 NOT_FOUND"]);
    assert_eq!(story(&mut a, 1, Some(7)), ["1: 7 OK", "2: 7 ALREADY_EXISTS"]);
}

#[test]
fn an_id_of_another_live_controller_closes_the_stream() {
    let mut a = Arbitration::new(1, 16);
    story(&mut a, 1, Some(7));
    assert_eq!(story(&mut a, 2, Some(7)), ["2: closed InvalidArgument"]);
    story(&mut a, 3, Some(6));
    assert_eq!(story(&mut a, 3, Some(7)), ["3: closed InvalidArgument"]);
    // A controller may repeat its own id, and an id of zero is an id.
    assert_eq!(story(&mut a, 1, Some(7)), ["1: 7 OK", "3: 7 ALREADY_EXISTS"]);
    let mut b = Arbitration::new(1, 16);
    assert_eq!(story(&mut b, 1, Some(0)), ["1: 0 OK"]);
}

#[test]
fn roles_are_apart_and_a_stream_keeps_its_own() {
    let mut a = Arbitration::new(1, 16);
    let mut outbox = Outbox::new();
    a.update(StreamId(1), &update("left", Some(1)), &mut outbox).unwrap();
    a.update(StreamId(2), &update("right", Some(1)), &mut outbox).unwrap();
    assert_eq!(messages(&outbox), ["1: 1 OK", "2: 1 OK"]);
    let Some(Update::Arbitration(sent)) = &outbox[0].1.update else { panic!() };
    assert_eq!(sent.role.as_ref().unwrap().name, "left");
    let other = a.update(StreamId(1), &update("right", Some(2)), &mut outbox).unwrap_err();
    assert_eq!(other.code, Code::FailedPrecondition);
    let id = v1::Uint128 { high: 0, low: 1 };
    assert_eq!(a.admit(1, 0, "middle", Some(&id)).unwrap_err().code, Code::NotFound);
    assert_eq!(a.admit(2, 0, "left", Some(&id)).unwrap_err().code, Code::NotFound);
    assert!(a.admit(1, 0, "left", Some(&id)).is_ok());
    assert_eq!(a.admit(1, 0, "left", None).unwrap_err().code, Code::PermissionDenied);
}

#[test]
fn devices_that_are_not_there_are_not_found_first_and_a_mistake_later() {
    let mut a = Arbitration::new(1, 16);
    let other = v1::MasterArbitrationUpdate { device_id: 2, ..update("", Some(1)) };
    let mut outbox = Outbox::new();
    assert_eq!(a.update(StreamId(1), &other, &mut outbox).unwrap_err().code, Code::NotFound);
    story(&mut a, 1, Some(1));
    assert_eq!(a.update(StreamId(1), &other, &mut outbox).unwrap_err().code, Code::FailedPrecondition);
}

#[test]
fn streams_of_a_role_are_limited() {
    let mut a = Arbitration::new(1, 2);
    story(&mut a, 1, Some(1));
    story(&mut a, 2, Some(2));
    assert_eq!(story(&mut a, 3, Some(3)), ["3: closed ResourceExhausted"]);
    ended(&mut a, 1);
    assert_eq!(story(&mut a, 3, Some(3)).last().unwrap(), "3: 3 OK");
}

#[test]
fn a_new_primary_waits_for_the_writes_of_the_old_one() {
    let mut a = Arbitration::new(1, 16);
    story(&mut a, 1, Some(1));
    let writing = admit(&mut a, 1).unwrap();
    assert_eq!(story(&mut a, 2, Some(2)), ["1: 2 ALREADY_EXISTS"]);
    assert_eq!(admit(&mut a, 1).unwrap_err(), Code::PermissionDenied);
    assert_eq!(admit(&mut a, 2).unwrap_err(), Code::PermissionDenied);
    let mut outbox = Outbox::new();
    a.done(writing, &mut outbox);
    assert_eq!(messages(&outbox), ["2: 2 OK"]);
    let writing = admit(&mut a, 2).unwrap();
    // A primary that writes does not wait for its own update.
    assert_eq!(story(&mut a, 2, Some(3)), ["1: 3 ALREADY_EXISTS", "2: 3 OK"]);
    a.done(writing, &mut outbox);
}

#[test]
fn roles_that_never_had_a_primary_keep_no_place() {
    let mut a = Arbitration::new(1, 16);
    let claim = |a: &mut Arbitration, stream: u64, role: &str, election| {
        let messages = a.update(StreamId(stream), &update(role, election), &mut Outbox::new());
        messages.map_err(|refusal| refusal.code)
    };
    for stream in 0..2_000 {
        assert_eq!(claim(&mut a, stream, &format!("role {stream}"), None), Ok(()));
        ended(&mut a, stream);
    }
    // Election ids are remembered, and so are their roles.
    for stream in 0..1_024 {
        assert_eq!(claim(&mut a, stream, &format!("role {stream}"), Some(1)), Ok(()));
        ended(&mut a, stream);
    }
    assert_eq!(claim(&mut a, 0, "one more", Some(1)), Err(Code::ResourceExhausted));
    assert_eq!(claim(&mut a, 0, "role 7", Some(2)), Ok(()));
}
