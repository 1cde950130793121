//! Runs `triplane completions`.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::Cli;
use crate::output::{Failure, Output};

/// Prints the completion script for a shell. Names of tables, actions and other objects come from the switch that runs.
pub fn run(shell: Shell, output: &Output) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "triplane", &mut script);
    let live = match shell {
        Shell::Bash => include_str!("completions/live.bash"),
        Shell::Zsh => include_str!("completions/live.zsh"),
        Shell::Fish => include_str!("completions/live.fish"),
        _ => "",
    };
    output.print(&(String::from_utf8_lossy(&script) + live))
}
