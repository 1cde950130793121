//! `examples/fast-routes`: a packet adds a route to the switches that it passes.

use crate::support::{Directory, root, run, triplane};

/// Runs the example with another access of programs, and returns the frames that left `s2` and `s3` towards `s4`.
fn frames(access: &str) -> [u64; 2] {
    let (directory, example) = (Directory::new(), root().join("examples/fast-routes"));
    let files = ["s1.json", "s2.json", "s3.json", "s4.json", "route.tpp", "scenario.toml"];
    for name in files {
        directory.write(name, std::fs::read_to_string(example.join(name)).expect("the example has it"));
    }
    let text = |name: &str| std::fs::read_to_string(example.join(name)).expect("the example has it");
    directory.write("router.p4", text("router.p4").replace("../common/packet.p4", "packet.p4"));
    let common = std::fs::read_to_string(root().join("examples/common/packet.p4")).expect("it is there");
    directory.write("packet.p4", common);
    let lab = directory.write("lab.toml", text("lab.toml").replace("\"write-registers\"", access));
    let scenario = directory.path("scenario.toml");
    let results = run(&mut triplane(&["lab", "sim", &lab, "--scenario", &scenario, "--json"])).json();
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
    let [upper, lower] = frames("\"write-registers\"");
    // A datagram each millisecond. The address of `h3` is asked for first, which takes 8 ms, and then the packet passes
    // `s1`, which is 1 ms away.
    assert!((1_005..=1_012).contains(&upper) && upper + lower > 1_990, "{upper} and {lower} frames");
    // Words of applications are no registers.
    let [upper, lower] = frames("\"write\"");
    assert!(upper > 1_985 && lower < 5, "{upper} and {lower} frames");
}

#[test]
fn a_program_may_name_the_registers_that_all_switches_have() {
    let example = root().join("examples/fast-routes");
    let arguments = |lab: &str| {
        let scenario = example.join("scenario.toml").display().to_string();
        triplane(&["lab", "sim", lab, "--scenario", &scenario])
    };
    let (directory, text) = (Directory::new(), std::fs::read_to_string(example.join("lab.toml")).expect("it is there"));
    let here = |text: String| {
        let text = text.replace("router.p4", &example.join("router.p4").display().to_string());
        (1..=4).fold(text, |text, number| {
            let name = format!("s{number}.json");
            text.replace(&format!("\"{name}\""), &format!("{:?}", example.join(&name).display().to_string()))
        })
    };
    run(&mut arguments(&directory.write("lab.toml", here(text.clone())))).ok();
    // One of the switches has another program.
    let other = text.replace("[switches.s2]\nentries = \"s2.json\"", "[switches.s2]\nprogram = \"builtin:router\"");
    let done = run(&mut arguments(&directory.write("other.toml", here(other))));
    assert!(
        done.code == Some(1) && done.stderr.contains("the program has no register `RouteIngress.ports`"),
        "{done:?}"
    );
}
