//! Runs `triplane subscribe serve`: the service that keeps a switch at the rules of a file and of its clients.

use std::time::{Duration, SystemTime};

use anyhow::anyhow;
use subscribe::ColumnLayout;
use subscribe_service::{ServiceEvent, Settings, StartError, SubscriptionProgram, WrittenProgram};

use super::args::ServeArgs;
use super::remedy;
use crate::authorize;
use crate::load::Loader;
use crate::output::{Failure, Output};
use crate::privileges;
use crate::signals::StopSignals;
use crate::subscribe::load::Loaded;
use crate::subscribe::replication::options_without_rules;
use crate::subscribe::report::digits;

/// Serves until a signal ends it.
pub fn serve(args: &ServeArgs, output: &Output) -> Result<(), Failure> {
    let mut loaded = Loaded::format(&args.format, output)?;
    loaded.rules.format.controller_port = Some(args.cpu_port);
    let options = options_without_rules(&args.shape, &loaded);
    loaded.limit_ports(&options);
    let name = format!("the program of {}", args.format.format.display());
    let mut loader = Loader::builtin(&name, &loaded.program(&options));
    let compiled = loader.compile();
    loader.report(output)?;
    let compiled = compiled.ok_or_else(|| anyhow!("the generated program does not compile; this is a bug"))?;
    let written =
        WrittenProgram { text: loaded.program(&options), layout: loaded.layout.clone(), info: compiled.p4info };
    let Loaded { format, rules, is_forced, memory_limit, text: source, .. } = loaded;
    let write = move |of: &SubscriptionProgram, layout: &ColumnLayout| {
        let text = subscribe_p4::program(&source, &of.format, &of.rules, layout, &of.options);
        let compiled = Loader::builtin(&name, &text).compile().expect("a valid program is valid in any order");
        WrittenProgram { layout: layout.clone(), text, info: compiled.p4info }
    };
    let write = Box::new(write);
    let program = SubscriptionProgram {
        format,
        rules,
        options,
        written,
        is_forced,
        limits: memory_limit.limits(),
        first_generation: seconds_since_1970(),
        write,
        cpu_port: args.cpu_port,
    };
    let settings = Settings {
        kept: args.keep.clone(),
        device_id: args.switch.device_id,
        election_id: args.switch.election_id,
        keep_program: args.switch.keep_program,
        remedy: remedy::of_switch,
        max_rules: args.max_rules,
        policy: authorize::users(args.authorize.as_deref(), &args.tls_ca, output)?.map(|users| users.policy),
        tls: crate::control::tls([&args.tls_cert, &args.tls_key, &args.tls_ca])?,
        kept_access: Some(privileges::client_access(&args.switch.addr)),
        ..Settings::new(args.rules.clone(), args.switch.server_options().target()?)
    };
    let signals = StopSignals::new()?;
    let waiter = signals.handle();
    let event_output = *output;
    let rules = args.rules.display().to_string();
    let report = move |event| event_output.note(&describe(&event, &rules));
    let started = subscribe_service::bind(args.listen)
        .and_then(|bound| subscribe_service::start(program, settings, bound, report, move || waiter.close()));
    let running = started.map_err(|error| match error {
        StartError::Rules(why) => {
            output.note(&format!("{}{}", why.to_string().trim_end(), remedy::of_rules(&why)));
            Failure::Input("the service has no valid rules to start with".to_owned())
        }
        error => Failure::Environment(error.into()),
    })?;
    privileges::note(running.restriction(), args.show_privileges, output);
    let address = running.address();
    output.note(&match (&args.tls_ca, &args.tls_cert, address.ip().is_loopback()) {
        (Some(authority), ..) => {
            let clients = match &args.authorize {
                Some(file) => format!("users of {}", file.display()),
                None => format!("clients with a certificate signed by {}", authority.display()),
            };
            format!("subscriptions on {address}, over TLS, for {clients}")
        }
        (None, Some(_), true) => format!("subscriptions on {address}, over TLS, reachable from this machine only"),
        (None, Some(_), false) => {
            format!(
                "subscriptions on {address}, over TLS: without --tls-ca, any client that reaches this address can \
                 change rules"
            )
        }
        (None, None, true) => format!("subscriptions on {address}, without TLS, reachable from this machine only"),
        (None, None, false) => {
            format!("subscriptions on {address}, without TLS: any client that reaches this address can change rules")
        }
    });
    if !signals.wait() {
        // A supervisor may restart the command.
        return Err(anyhow!("the service stopped because of a bug; the switch keeps its current rules").into());
    }
    output.note("stopped; the switch keeps its current rules");
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
            let how = if *atomic { "atomic changes" } else { "step-by-step changes" };
            format!("the switch applies {}: {program}{}, {how}", many(*rules, "rule"), many(*writes, "write"))
        }
        ServiceEvent::OtherOrder { entries, better: (names, better) } => {
            let order = format!("`--order {}`", names.join(","));
            let [now, fewer] = [*entries, *better].map(|count| digits(count as u64));
            let comparison = if better * 2 < *entries {
                format!(", where another order would take {fewer} (restart with {order} to load it)")
            } else {
                String::new()
            };
            format!("keeping the switch's program and its field order: {now} entries{comparison}")
        }
        ServiceEvent::Away(why) => format!("{why}{}", remedy::of_switch(why)),
        ServiceEvent::Reloaded(0, 0, _) => format!("{rules} is valid again and unchanged"),
        ServiceEvent::Reloaded(come, go, writes) => {
            format!("{rules}: {} added, {go} removed, {}", many(*come, "rule"), many(*writes, "write"))
        }
        ServiceEvent::Mistakes(why) => {
            format!("{}\n{rules} is ignored; the previous rules stay in effect", why.trim_end())
        }
        ServiceEvent::Warnings(warnings) => warnings.trim_end().to_owned(),
        ServiceEvent::Added(added) => format!("added: rule {}", ids(added)),
        ServiceEvent::Removed(removed) => format!("removed: rule {}", ids(removed)),
    }
}

/// Returns the time in seconds since 1970, as it fits 32 bits until 2106.
fn seconds_since_1970() -> u32 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    u32::try_from(now.as_secs()).unwrap_or(u32::MAX)
}
