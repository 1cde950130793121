//! Runs `triplane demo`: a small network, real traffic, and a report on it; then a market data feed and its
//! subscribers.

use crate::cli::DemoArgs;
use crate::demo::{self, DemoReport};
use crate::output::{Failure, Output};

/// Demonstrates.
pub fn run(args: &DemoArgs, output: &Output) -> Result<(), Failure> {
    // A user namespace has to be entered before anything starts a thread, so the network comes first of all.
    let network = if args.offline {
        Err("--offline was given".to_owned())
    } else {
        demo::Network::new().map_err(|error| error.to_string())
    };
    let offline = network.as_ref().err().cloned();
    let account: DemoReport = match network {
        Ok(network) => demo::live(network, output)?,
        Err(reason) => demo::offline(&reason, output)?,
    };
    if !args.json {
        output.print(&account.render(output))?;
    }
    let second = match offline {
        None => demo::market::live(output)?,
        Some(reason) => demo::market::offline(&reason, output)?,
    };
    if args.json {
        let mut both = account.to_json();
        both["market"] = second.to_json();
        output.print(&format!("{both:#}\n"))?;
    } else {
        output.print(&second.render(output))?;
    }
    match account.shortcoming().or_else(|| second.shortcoming()) {
        None => Ok(()),
        Some(text) => Err(anyhow::anyhow!("the demo failed: {text}").into()),
    }
}
