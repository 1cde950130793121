//! Checks the workspace against the list of layers in ARCHITECTURE.md: the same crates, the same edges, pointing down
//! only; no threads, clocks and sockets below layer 3; and no options of the command in libraries.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::sources::{CLOCKS, LIVE, first_named, lines_that_name, rust_files, without_tests};

type Edges = BTreeMap<String, Vec<String>>;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().and_then(Path::parent).expect("crates/triplane is two levels deep")
}

/// Parses the `layers` block of ARCHITECTURE.md: crate to layer, and crate to its imports.
fn documented() -> (BTreeMap<String, u32>, Edges) {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let block = text.split("```layers\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a `layers` block");
    let mut layers = BTreeMap::new();
    let mut edges = Edges::new();
    for line in block.lines() {
        let (left, right) = line.split_once("->").expect("`layer crate -> imports`");
        let (layer, name) = left.trim().split_once(' ').expect("`layer crate`");
        let name = name.trim().to_owned();
        layers.insert(name.clone(), layer.parse().expect("a layer is a number"));
        edges.insert(name, right.split_whitespace().map(str::to_owned).collect());
    }
    (layers, edges)
}

/// Returns the ordinary dependencies between the workspace's crates; those of tests may cross layers.
fn actual() -> Edges {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(root())
        .output()
        .expect("cargo metadata runs");
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    let member = |name: &str| packages.iter().any(|package| package["name"] == name);
    let mut edges = Edges::new();
    for package in packages {
        let imports = package["dependencies"].as_array().expect("dependencies").iter();
        let mut imports: Vec<String> = imports
            .filter(|dependency| dependency["kind"].is_null())
            .filter_map(|dependency| dependency["name"].as_str())
            .filter(|name| member(name))
            .map(str::to_owned)
            .collect();
        imports.sort();
        edges.insert(package["name"].as_str().expect("a name").to_owned(), imports);
    }
    edges
}

#[test]
fn the_workspace_is_as_documented() {
    let (_, documented) = documented();
    let actual = actual();
    for (name, imports) in &actual {
        let listed = documented.get(name);
        assert_eq!(Some(imports), listed, "imports of `{name}`: left is the workspace, right is ARCHITECTURE.md");
    }
    for name in documented.keys() {
        assert!(actual.contains_key(name), "ARCHITECTURE.md lists `{name}`, which is not in the workspace");
    }
}

#[test]
fn imports_never_point_up() {
    let (layers, edges) = documented();
    for (name, imports) in &edges {
        for import in imports {
            assert!(layers[import] <= layers[name], "`{name}` (layer {}) imports `{import}` above it", layers[name]);
        }
    }
}

/// Waits below layer 3, by file and names: the lock of `@atomic` blocks spins, and then yields its processor.
const ALLOWED_WAITS: [(&str, [&str; 2]); 1] =
    [("crates/engine/src/objects/exclusive.rs", ["thread::yield_now", "spin_loop"])];

#[test]
fn layers_2_to_0_start_no_threads_read_no_clocks_and_open_no_sockets() {
    let names = [&LIVE[..], &CLOCKS].concat();
    let (layers, _) = documented();
    // A development dependency: its ports and locks are those of tests.
    let pure = layers.iter().filter(|(name, layer)| **layer < 3 && *name != "testing");
    let mut places = Vec::new();
    let mut allowed = 0;
    for (name, layer) in pure {
        for (path, text) in rust_files(&root().join("crates").join(name).join("src")) {
            let file = path.strip_prefix(root()).expect("a file of the workspace");
            if file.iter().any(|part| part == "tests" || part == "tests.rs") {
                continue;
            }
            for (line, name) in lines_that_name(without_tests(&text), &names) {
                if ALLOWED_WAITS.iter().any(|(at, names)| file == Path::new(at) && names.contains(&name)) {
                    allowed += 1;
                } else {
                    places.push(format!("{}:{line}: {name} in layer {layer}", file.display()));
                }
            }
        }
    }
    assert!(places.is_empty(), "these belong into a crate of layer 3:\n  {}", places.join("\n  "));
    assert!(allowed >= ALLOWED_WAITS.len(), "an exception is not needed any more, or no source was read");
}

#[test]
fn a_clock_is_found_outside_tests() {
    assert_eq!(first_named("let now = Instant::now();", &CLOCKS), Some("Instant::now"));
    assert_eq!(first_named("pub fn step(&mut self, now: Instant) // Instant::now", &CLOCKS), None);
    let text =
        "use std::time::Instant;\nfn f() { Instant::now(); }\n\n#[cfg(test)]\nmod tests {\n    Instant::now();\n}\n";
    assert_eq!(lines_that_name(without_tests(text), &CLOCKS), [(2, "Instant::now")]);
}

/// Files below layer 4 that name options: of `setcap` and `unshare`; of `triplane lab`; those that a generated program
/// records about itself; and of etcd.
const ALLOWED_OPTIONS: [&str; 5] = [
    "crates/ports/src/error.rs",
    "crates/lab_live/src/error.rs",
    "crates/lab_live/src/traffic/unsupported.rs",
    "crates/subscribe_p4/src/write/mod.rs",
    "crates/testing/src/etcd.rs",
];

/// A library reports facts. The command knows its options, and adds the one that helps.
#[test]
fn libraries_name_no_options_of_the_command() {
    let (layers, _) = documented();
    let mut places = Vec::new();
    let mut allowed = 0;
    for (name, _) in layers.iter().filter(|(_, layer)| **layer < 4) {
        for (path, text) in rust_files(&root().join("crates").join(name).join("src")) {
            let file = path.strip_prefix(root()).expect("a file of the workspace");
            let lines = without_tests(&text).lines().enumerate();
            for (index, line) in lines.filter(|(_, line)| names_an_option(line)) {
                if ALLOWED_OPTIONS.iter().any(|at| file == Path::new(at)) {
                    allowed += 1;
                } else {
                    places.push(format!("{}:{}: {}", file.display(), index + 1, line.trim()));
                }
            }
        }
    }
    assert!(places.is_empty(), "the command's crate adds these options:\n  {}", places.join("\n  "));
    assert!(allowed > 0, "no source was read");
}

/// Whether a line other than a comment contains `--` and a lowercase letter.
fn names_an_option(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    code.match_indices("--").any(|(at, _)| code[at + 2..].starts_with(|letter: char| letter.is_ascii_lowercase()))
}

#[test]
fn options_are_found_outside_comments() {
    assert!(names_an_option(r#"    "if it uses TLS, pass --switch-tls-ca""#));
    assert!(!names_an_option("    // As with --ranges."));
    assert!(!names_an_option(r#"    "the switch holds no program -- yet""#));
}

/// Returns the paths below a folder.
fn paths(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths
}

/// The lint of `unsafe`. In two parts, so that the scan does not find this file.
const LINT: &str = concat!("unsafe", "_code");

/// Collects the source files below a folder that lower the level of [`LINT`].
fn collect_lowered(folder: &Path, files: &mut Vec<PathBuf>) {
    for path in paths(folder) {
        if path.is_dir() {
            collect_lowered(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && lowers(&std::fs::read_to_string(&path).expect("a source file"))
        {
            files.push(path);
        }
    }
}

/// Whether a source file lowers the level of [`LINT`].
fn lowers(text: &str) -> bool {
    let raises = |level: &str| text.matches(&format!("{level}({LINT})")).count();
    text.matches(LINT).count() > raises("forbid") + raises("deny")
}

#[test]
fn only_some_crates_may_use_unsafe() {
    // Machine code and its callees; sockets and rings; prefetching and SIMD.
    const ALLOWED: [&str; 3] = ["jit", "ports", "tables"];
    // An allocator that counts, around the system's.
    const EXCEPTED: &str = "crates/testing/src/allocations.rs";
    let mut crates = paths(&root().join("crates"));
    crates.push(root().join("fuzz"));
    let mut lowered = Vec::new();
    for path in crates {
        let manifest = std::fs::read_to_string(path.join("Cargo.toml")).expect("Cargo.toml");
        let inherits = manifest.contains("[lints]\nworkspace = true");
        assert!(
            inherits || ALLOWED.iter().any(|name| path.ends_with(name)),
            "{} does not inherit the workspace's lints",
            path.display()
        );
        collect_lowered(&path, &mut lowered);
    }
    assert_eq!(lowered, [root().join(EXCEPTED)], "these files allow what their crates deny");
}

#[test]
fn an_attribute_that_allows_unsafe_is_found() {
    assert!(lowers(&format!("#[allow(dead_code, {LINT})]")) && lowers(&format!("#![expect(\n    {LINT}\n)]")));
    assert!(!lowers(&format!("#![forbid({LINT})]")) && !lowers("unsafe fn call()"));
}

#[test]
fn crates_that_packets_pass_are_fully_optimized() {
    // `v1model_runtime` instantiates the packet loops for the switch of `v1model`.
    const PASSED: [&str; 11] = [
        "bits",
        "engine",
        "jit",
        "ports",
        "resilient_switch",
        "runtime",
        "switch",
        "tables",
        "v1model",
        "v1model_runtime",
        "wire",
    ];
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).expect("Cargo.toml");
    let (_, release) = manifest.split_once("[profile.release.package]\n").expect("the fully optimized crates");
    let listed: Vec<&str> = release.lines().take_while(|line| !line.starts_with('[')).collect();
    for name in PASSED {
        let line = format!("{name} = {{ opt-level = 3, codegen-units = 1 }}");
        assert!(listed.contains(&line.as_str()), "packets pass `{name}`, so Cargo.toml needs: {line}");
    }
}

#[test]
fn the_command_compiles_no_packet_loop() {
    // These are generic over the switch, so the crate that calls them compiles them.
    const LOOPS: [&str; 6] = [
        ".run_live(",
        ".run_offline(",
        ".spawn_live(",
        "lab_live::run_daemon",
        "lab_live::switch_main",
        ".step_recorded(",
    ];
    let mut places = Vec::new();
    for (path, text) in rust_files(&root().join("crates/triplane/src")) {
        for (index, line) in without_tests(&text).lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            let named = LOOPS.iter().filter(|name| code.contains(**name));
            places.extend(named.map(|name| format!("{}:{}: {name}", path.display(), index + 1)));
        }
    }
    assert!(places.is_empty(), "call these through `v1model_runtime`, which is optimized:\n  {}", places.join("\n  "));
    let sources = rust_files(&root().join("crates/v1model_runtime/src"));
    for name in LOOPS {
        assert!(
            sources.iter().any(|(_, text)| text.contains(name)),
            "`v1model_runtime` does not call `{name}`, so this test looks for a wrong name"
        );
    }
}
