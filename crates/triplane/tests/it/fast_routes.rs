//! `examples/fast-routes`: a packet adds a route to the switches that it passes.

use crate::support::{Directory, Done, root, run, triplane};

/// Simulates the example with a change of its lab, and with another program of the packet if one is given.
fn simulate(from: &str, to: &str, program: Option<&str>) -> Done {
    let (directory, example) = (Directory::new(), root().join("examples/fast-routes"));
    let text = |name: &str| std::fs::read_to_string(example.join(name)).expect("the example has it");
    let lab = text("lab.toml");
    assert!(lab.contains(from), "the lab has {from}");
    // Other files stay where they are.
    let names = ["router.p4", "s1.json", "s2.json", "s3.json", "s4.json"];
    let lab = names.iter().fold(lab.replace(from, to), |lab, name| {
        lab.replace(&format!("{name:?}"), &format!("{:?}", example.join(name).display().to_string()))
    });
    let lab = directory.write("lab.toml", lab);
    directory.write("route.tpp", program.map_or_else(|| text("route.tpp"), str::to_owned));
    let expected = if program.is_some() { "\n[[expect]]" } else { "no part" };
    let scenario = text("scenario.toml").split(expected).next().expect("a part").to_owned();
    let scenario = directory.write("scenario.toml", scenario);
    run(&mut triplane(&["lab", "sim", &lab, "--scenario", &scenario, "--json"]))
}

/// Returns the frames that `s2` and `s3` sent to `s4`. No datagram may be lost.
fn frames(done: &Done) -> [u64; 2] {
    let results = done.json();
    let data = &results["pairs"][0];
    assert_eq!((&data["from"], &data["to"], &data["sent"]), (&"h1".into(), &"h2".into(), &data["received"]));
    let links = results["links"].as_array().expect("a list");
    ["s2:2", "s3:2"].map(|port| {
        let link = links.iter().find(|link| link["from"] == port).unwrap_or_else(|| panic!("{port} in {results:#}"));
        link["carried"].as_u64().expect("a number")
    })
}

#[test]
fn a_packet_adds_a_route_to_the_switches_that_it_passes_and_nothing_is_lost() {
    let done = simulate("\"write-registers\"", "\"write-registers\"", None).ok();
    let [upper, lower] = frames(&done);
    // A datagram each millisecond. The address of `h3` is asked for first, which takes 8 ms, and then the packet passes
    // `s1`, which is 1 ms away.
    assert!((1_005..=1_012).contains(&upper) && upper + lower > 1_990, "{upper} and {lower} frames");
    // Words of applications are no registers.
    let done = simulate("\"write-registers\"", "\"write\"", None);
    let [upper, lower] = frames(&done);
    assert!(done.code != Some(0) && upper > 1_985 && lower < 5, "{upper} and {lower} frames");
}

#[test]
fn a_program_may_name_the_registers_that_all_switches_have() {
    let program = "PUSH [Register:RouteIngress.ports[1]]\n";
    let results = simulate("\"write-registers\"", "\"read\"", Some(program)).ok().json();
    let update = results["traffic"].as_array().expect("a list").iter().find(|of| of["minion"].is_object());
    assert_eq!(
        update.expect("it carries a program")["minion"]["words"][0],
        "Register:RouteIngress.ports[1]",
        "{results:#}"
    );
    // One of the switches has another program.
    let other = "[switches.s2]\nprogram = \"builtin:router\"";
    let done = simulate("[switches.s2]\nentries = \"s2.json\"", other, None);
    assert!(
        done.code == Some(1) && done.stderr.contains("the program has no register `RouteIngress.ports`"),
        "{done:?}"
    );
}
