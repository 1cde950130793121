//! Checks the workspace against the list of layers in ARCHITECTURE.md: the same crates, the same edges, pointing down
//! only.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

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

#[test]
fn only_some_crates_may_use_unsafe() {
    // Machine code and its callees; sockets and rings; prefetching and SIMD.
    const ALLOWED: [&str; 3] = ["jit", "ports", "tables"];
    for entry in std::fs::read_dir(root().join("crates")).expect("crates/") {
        let path = entry.expect("an entry").path();
        let manifest = std::fs::read_to_string(path.join("Cargo.toml")).expect("Cargo.toml");
        let inherits = manifest.contains("[lints]\nworkspace = true");
        assert!(
            inherits || ALLOWED.iter().any(|name| path.ends_with(name)),
            "{} does not inherit the workspace's lints",
            path.display()
        );
    }
}

#[test]
fn crates_that_packets_pass_are_fully_optimized() {
    // `triplane` instantiates the packet loop of `runtime` for the switch of `v1model`.
    const PASSED: [&str; 10] =
        ["bits", "engine", "jit", "ports", "runtime", "switch", "tables", "triplane", "v1model", "wire"];
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).expect("Cargo.toml");
    let release = manifest.split("[profile.release.package]\n").nth(1).expect("exceptions of the release profile");
    for line in release.lines().take_while(|line| !line.starts_with('[')) {
        let name = line.split([' ', '.', '=']).next().unwrap_or_default();
        assert!(!PASSED.contains(&name), "packets pass `{name}`, which a release builds with another profile: {line}");
    }
}
