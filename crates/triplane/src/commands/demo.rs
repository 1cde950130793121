//! `triplane demo`: a small network, real traffic, and an account of it.

use crate::cli::DemoArgs;
use crate::demo::{self, Account};
use crate::output::{Failure, Output};

/// Demonstrates.
pub fn run(args: &DemoArgs, output: &Output) -> Result<(), Failure> {
    // A user namespace has to be entered before anything starts a thread, so the network comes first of all.
    let network = if args.offline { Err("--offline was given".to_owned()) } else { demo::Network::new() };
    let account: Account = match network {
        Ok(network) => demo::live(network, output)?,
        Err(reason) => demo::offline(&reason, output)?,
    };
    output.print(&if args.json { account.to_json() } else { account.render(output) })?;
    match account.shortcoming() {
        None => Ok(()),
        Some(text) => Err(anyhow::anyhow!("the demo did not go as it should: {text}").into()),
    }
}
