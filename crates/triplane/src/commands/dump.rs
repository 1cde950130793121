//! Runs `triplane dump`: prints the intermediate forms of a program.

use crate::cli::DumpArgs;
use crate::load::Loader;
use crate::output::{Failure, Output};
use crate::types;

/// Dumps.
pub fn run(args: &DumpArgs, output: &Output) -> Result<(), Failure> {
    let mut loader = Loader::open(&args.program)?;
    if loader.is_compiled() && !args.what.ir {
        let shown = args.program.program.display();
        return Err(Failure::Usage(format!(
            "{shown} is a compiled program: --tokens and --types require the P4 source; only --ir is available"
        )));
    }
    let text = if args.what.tokens {
        let tokens = loader.tokens();
        let mut text = String::new();
        for token in &tokens {
            text.push_str(&format!("{:<24} {token}\n", loader.map.position(token.span).to_string()));
        }
        Some(text)
    } else if args.what.types {
        loader.typed().map(|program| types::print(&program))
    } else {
        loader.ir().map(|program| program.to_string())
    };
    loader.report(output)?;
    output.print(&text.unwrap_or_default())
}
