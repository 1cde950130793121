//! Completion of names from the running switch, requested through bash as bash does it.

use std::process::Command;

use crate::ctl::{EVERY, ROUTER, Router};
use crate::support::{Directory, run, triplane};

/// Returns the completions that bash offers for the end of a line.
fn offered(line: &str) -> Vec<String> {
    let directory = Directory::new();
    let script = directory.write("triplane.bash", run(&mut triplane(&["completions", "bash"])).ok().stdout);
    let program = env!("CARGO_BIN_EXE_triplane");
    // Readline does the same before it calls the function that `complete` has named: it cuts the line into words, also
    // at `=` and `:`, but not inside quotes.
    let ask = r#"
        source "$1"
        COMP_LINE=$2 COMP_POINT=${#2} COMP_WORDS=() COMP_WORDBREAKS=$' \t\n"\'><=;|&(:'
        word= quote=
        for (( at = 0; at < ${#COMP_LINE}; at++ )); do
            letter=${COMP_LINE:at:1}
            if [[ -n $quote ]]; then word+=$letter; [[ $letter == "$quote" ]] && quote=; continue; fi
            case $letter in
                " ") [[ -n $word ]] && COMP_WORDS+=("$word"); word= ;;
                "'") quote=$letter; word+=$letter ;;
                [=:]) [[ -n $word ]] && COMP_WORDS+=("$word"); COMP_WORDS+=("$letter"); word= ;;
                *) word+=$letter ;;
            esac
        done
        if [[ -n $word || $COMP_LINE != *[=:] ]]; then COMP_WORDS+=("$word"); fi
        COMP_WORDS[0]=$3
        COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 ))
        called=$(complete -p triplane | sed 's/.*-F \([^ ]*\).*/\1/')
        "$called" "$3" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
        printf '%s\n' "${COMPREPLY[@]}"
    "#;
    let done = run(Command::new("bash").args(["--norc", "-c", ask, "bash", &script, line, program])).ok();
    done.stdout.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// Returns the completions offered after `triplane ctl --addr ADDRESS`.
fn of(router: &Router, words: &str) -> Vec<String> {
    offered(&format!("triplane ctl --addr {} {words}", router.address()))
}

#[test]
fn tables_fields_and_actions_are_those_of_the_switch() {
    let router = Router::start(ROUTER);
    let tables = router.ctl(&["tables", "--json"]).ok().json();
    let mut names: Vec<_> = tables.as_array().unwrap().iter().map(|it| it["table"].as_str().unwrap()).collect();
    names.sort();
    assert_eq!(of(&router, "insert "), [&names[..], &["clone", "multicast"]].concat());
    assert_eq!(of(&router, "insert ipv"), ["ipv4_lpm"]);
    assert_eq!(of(&router, "entries RouterIngress.ip"), ["RouterIngress.ipv4_lpm"]);
    assert_eq!(of(&router, "insert ipv4_lpm "), ["hdr.ipv4.dst="]);
    assert_eq!(of(&router, "insert ipv4_lpm hd"), ["hdr.ipv4.dst="]);
    assert_eq!(of(&router, "modify ipv4_lpm d"), ["default"]);
    // Values cannot be completed. After a value, the quotes decide which characters the shell passes on.
    assert_eq!(of(&router, "insert ipv4_lpm dst=10.0.0.0/8 RouterIngress.f"), ["RouterIngress.forward"]);
    assert_eq!(of(&router, "insert ipv4_lpm 'dst=10.0.0.0/8 -> f"), ["dst=10.0.0.0/8 -> forward("]);
    assert_eq!(
        of(&router, "insert ipv4_lpm 'dst=10.0.0.0/8 -> forward(mac=1, "),
        ["dst=10.0.0.0/8 -> forward(mac=1, port="]
    );
    assert_eq!(of(&router, "insert ipv4_lpm 'dst=10.0.0.0/8 "), ["dst=10.0.0.0/8 -> "]);
}

#[test]
fn other_objects_are_offered_too() {
    let router = Router::start(EVERY);
    assert_eq!(of(&router, "registers "), ["I.remembered", "I.signed"]);
    assert_eq!(of(&router, "counters "), ["I.counted", "I.direct_counted"]);
    assert_eq!(of(&router, "meters I.d"), ["I.direct_metered"]);
    assert_eq!(of(&router, "profiles "), ["I.profile", "I.selector"]);
    assert_eq!(of(&router, "value-sets "), ["P.specials"]);
    assert_eq!(of(&router, "set I.m"), ["I.metered"]);
    assert_eq!(of(&router, "insert ternary_t b=1 "), ["I.drop", "I.forward", "NoAction", "hdr.data.d=", "priority="]);
}

#[test]
fn without_a_switch_the_command_line_alone_is_completed() {
    let silent = run(&mut triplane(&["ctl", "__complete", "--line", "triplane ctl --addr 127.0.0.1:1 insert "])).ok();
    assert_eq!((silent.stdout, silent.stderr), (String::new(), String::new()));
    // An address that accepts connections and never answers.
    let mute = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let line = format!("triplane ctl --addr {} insert ", mute.local_addr().unwrap());
    let silent = run(&mut triplane(&["ctl", "__complete", "--line", &line])).ok();
    assert_eq!((silent.stdout, silent.stderr), (String::new(), String::new()));
    let options = offered("triplane ctl --addr 127.0.0.1:1 insert --de");
    assert_eq!(options, ["--device-id"]);
    assert!(offered("triplane ").iter().any(|word| word == "build"));
    assert!(!offered("triplane ctl ").iter().any(|word| word.contains("__complete")), "it is nobody's to type");
}
