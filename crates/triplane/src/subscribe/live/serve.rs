//! `triplane subscribe serve`: the service that keeps a switch at the rules of a file and of its clients.

use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::anyhow;
use subscribe::ColumnLayout;
use subscribe_service::{Program, ServiceEvent, Settings, StartError, WrittenProgram};

use super::args::ServeArgs;
use crate::load::Loader;
use crate::output::{Failure, Output};
use crate::subscribe::load::Loaded;
use crate::subscribe::options;
use crate::subscribe::report::digits;

/// Serves until a signal ends it.
pub fn serve(args: &ServeArgs, output: &Output) -> Result<(), Failure> {
    let mut loaded = Loaded::format(&args.format, output)?;
    loaded.rules.format.controller_port = Some(args.cpu_port);
    let options = options(Some(&args.shape));
    let name = format!("the program of {}", args.format.format.display());
    let mut loader = Loader::builtin(&name, &loaded.program(&options));
    let compiled = loader.compile();
    loader.report(output)?;
    let compiled = compiled.ok_or_else(|| anyhow!("the program that was made is none; this is a bug"))?;
    let written =
        WrittenProgram { text: loaded.program(&options), layout: loaded.layout.clone(), info: compiled.p4info };
    let Loaded { format, rules, is_forced, room, text: source, .. } = loaded;
    let write = move |of: &Program, layout: &ColumnLayout| {
        let text = subscribe_p4::program(&source, &of.format, &of.rules, layout, &of.options);
        let compiled = Loader::builtin(&name, &text).compile().expect("a valid program is valid in any order");
        WrittenProgram { layout: layout.clone(), text, info: compiled.p4info }
    };
    let write = Box::new(write);
    let program =
        Program { format, rules, options, written, is_forced, limits: room.limits(), write, cpu_port: args.cpu_port };
    let settings = Settings {
        kept: args.keep.clone(),
        device_id: args.switch.device_id,
        election_id: args.switch.election_id,
        keep_program: args.switch.keep_program,
        max_rules: args.max_rules,
        tls: crate::control::tls([&args.tls_cert, &args.tls_key, &args.tls_ca])?,
        ..Settings::new(args.rules.clone(), args.switch.dial().target()?, args.listen)
    };
    let stop = crate::signals::stop_on_signals()?;
    let told = *output;
    let rules = args.rules.display().to_string();
    let running = subscribe_service::start(program, settings, move |event| told.note(&describe(&event, &rules)));
    let running = running.map_err(|error| match error {
        StartError::Rules(why) => {
            output.note(why.trim_end());
            Failure::Input("the service has no rules to begin with".to_owned())
        }
        error => Failure::Environment(error.into()),
    })?;
    let address = running.address();
    output.note(&match (&args.tls_ca, &args.tls_cert, address.ip().is_loopback()) {
        (Some(authority), ..) => {
            format!("subscriptions on {address}, over TLS, for clients that {} has signed", authority.display())
        }
        (None, Some(_), true) => format!("subscriptions on {address}, over TLS, for this machine only"),
        (None, Some(_), false) => {
            format!(
                "subscriptions on {address}, over TLS: without --tls-ca, any client that reaches this address can change rules"
            )
        }
        (None, None, true) => format!("subscriptions on {address}, without TLS, for this machine only"),
        (None, None, false) => {
            format!("subscriptions on {address}, without TLS: any client that reaches this address can change rules")
        }
    });
    while !stop.load(Ordering::Relaxed) {
        // A supervisor may restart the command.
        if !running.is_alive() {
            let why = "the service ended by a bug; the switch goes on with the rules that it has";
            return Err(Failure::Environment(anyhow::anyhow!(why)));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    output.note("stopped; the switch goes on with the rules that it has");
    Ok(())
}

/// Describes an event in one line, or mistakes in several.
fn describe(event: &ServiceEvent, rules: &str) -> String {
    let many = |count: usize, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
    let ids = |ids: &[u64]| {
        let shown: Vec<String> = ids.iter().take(8).map(ToString::to_string).collect();
        format!("{}{}", shown.join(", "), if ids.len() > shown.len() { ", ..." } else { "" })
    };
    match event {
        ServiceEvent::Installed { rules, writes, loaded, atomic } => {
            let program = if *loaded { "program loaded, " } else { "" };
            let how = if *atomic { "changes as a whole" } else { "changes step by step" };
            format!("the switch delivers by {}: {program}{}, {how}", many(*rules, "rule"), many(*writes, "write"))
        }
        ServiceEvent::OtherOrder { entries, better: (names, better) } => {
            let order = format!("`--order {}`", names.join(","));
            let [now, fewer] = [*entries, *better].map(|count| digits(count as u64));
            match better * 2 < *entries {
                true => format!(
                    "the switch's program stays, with its order of fields: {now} entries, where another program would take \
                     {fewer} ({order} loads it)"
                ),
                false => format!("the switch's program stays, with its order of fields: {now} entries"),
            }
        }
        ServiceEvent::Away(why) => why.clone(),
        ServiceEvent::Reloaded(0, 0, _) => format!("{rules} is right again, and as it was"),
        ServiceEvent::Reloaded(come, go, writes) => {
            format!("{rules}: {} added, {go} removed, {}", many(*come, "rule"), many(*writes, "write"))
        }
        ServiceEvent::Mistakes(why) => format!("{}\n{rules} is left out; the rules from before stay", why.trim_end()),
        ServiceEvent::Warnings(warnings) => warnings.trim_end().to_owned(),
        ServiceEvent::Added(added) => format!("added: rule {}", ids(added)),
        ServiceEvent::Removed(removed) => format!("removed: rule {}", ids(removed)),
    }
}
