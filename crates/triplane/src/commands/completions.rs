//! `triplane completions`

use clap::CommandFactory;

use crate::cli::Cli;
use crate::output::{Failure, Output};

/// Prints the completion script for a shell.
pub fn run(shell: clap_complete::Shell, output: &Output) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "triplane", &mut script);
    output.print(&String::from_utf8_lossy(&script))
}
