//! Completion of names from the running switch, requested through bash as bash does it.

use std::process::Command;
use std::time::Instant;

use crate::ctl::{EVERY, ROUTER, Router};
use crate::support::{Directory, TEST_TIMEOUT, run, triplane};
use testing::port::reserved_address;

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

/// Checks the completions offered after `triplane ctl --addr ADDRESS`. A switch on a busy machine may not answer within
/// the 300 ms that completion waits, so it is asked again.
#[track_caller]
fn completes(router: &Router, words: &str, expected: &[&str]) {
    let begin = Instant::now();
    loop {
        let offered = offered(&format!("triplane ctl --addr {} {words}", router.address()));
        if offered == expected {
            return;
        }
        assert!(begin.elapsed() < TEST_TIMEOUT, "{words}: {offered:?} is offered, not {expected:?}");
    }
}

#[test]
fn tables_fields_and_actions_are_those_of_the_switch() {
    let router = Router::start(ROUTER);
    let tables = router.ctl(&["tables", "--json"]).ok().json();
    let mut names: Vec<_> = tables.as_array().unwrap().iter().map(|it| it["table"].as_str().unwrap()).collect();
    names.sort();
    completes(&router, "insert ", &[&names[..], &["clone", "multicast"]].concat());
    completes(&router, "insert ipv", &["ipv4_lpm"]);
    completes(&router, "entries RouterIngress.ip", &["RouterIngress.ipv4_lpm"]);
    completes(&router, "insert ipv4_lpm ", &["hdr.ipv4.dst="]);
    completes(&router, "insert ipv4_lpm hd", &["hdr.ipv4.dst="]);
    completes(&router, "modify ipv4_lpm d", &["default"]);
    // Values cannot be completed. After a value, the quotes decide which characters the shell passes on.
    completes(&router, "insert ipv4_lpm dst=10.0.0.0/8 RouterIngress.f", &["RouterIngress.forward"]);
    completes(&router, "insert ipv4_lpm 'dst=10.0.0.0/8 -> f", &["dst=10.0.0.0/8 -> forward("]);
    completes(
        &router,
        "insert ipv4_lpm 'dst=10.0.0.0/8 -> forward(mac=1, ",
        &["dst=10.0.0.0/8 -> forward(mac=1, port="],
    );
    completes(&router, "insert ipv4_lpm 'dst=10.0.0.0/8 ", &["dst=10.0.0.0/8 -> "]);
}

#[test]
fn other_objects_are_offered_too() {
    let router = Router::start(EVERY);
    completes(&router, "registers ", &["I.remembered", "I.signed"]);
    completes(&router, "counters ", &["I.counted", "I.direct_counted"]);
    completes(&router, "meters I.d", &["I.direct_metered"]);
    completes(&router, "profiles ", &["I.profile", "I.selector"]);
    completes(&router, "value-sets ", &["P.specials"]);
    completes(&router, "set I.m", &["I.metered"]);
    completes(&router, "insert ternary_t b=1 ", &["I.drop", "I.forward", "NoAction", "hdr.data.d=", "priority="]);
}

#[test]
fn without_a_switch_the_command_line_alone_is_completed() {
    let nobody = reserved_address();
    let line = format!("triplane ctl --addr {nobody} insert ");
    let silent = run(&mut triplane(&["ctl", "__complete", "--line", &line])).ok();
    assert_eq!((silent.stdout, silent.stderr), (String::new(), String::new()));
    // An address that accepts connections and never answers.
    let mute = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let line = format!("triplane ctl --addr {} insert ", mute.local_addr().unwrap());
    let silent = run(&mut triplane(&["ctl", "__complete", "--line", &line])).ok();
    assert_eq!((silent.stdout, silent.stderr), (String::new(), String::new()));
    let options = offered(&format!("triplane ctl --addr {nobody} insert --de"));
    assert_eq!(options, ["--device-id"]);
    assert!(offered("triplane ").iter().any(|word| word == "build"));
    assert!(!offered("triplane ctl ").iter().any(|word| word.contains("__complete")), "it is nobody's to type");
}
