//! Stands in for `p4c` and `p4c-bm2-ss`: compiles a program to the JSON form of a program file.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use clap::{Args, Command, FromArgMatches};
use compiler::ProgramFile;
use p4runtime_proto::MessageFormat;

use super::options::{self, Ignored, Refused, Takes};
use super::{Refusal, Tool};
use crate::commands::build::write_whole;
use crate::load::{Loader, ProgramArgs};
use crate::output::{Failure, Output};

/// Options without a meaning here.
const IGNORED: &[Ignored] = &[
    Ignored { name: "v", takes: Takes::Nothing },
    Ignored { name: "debug", takes: Takes::Nothing },
    Ignored { name: "g", takes: Takes::Nothing },
    Ignored { name: "c", takes: Takes::Nothing },
    Ignored { name: "compile", takes: Takes::Nothing },
    Ignored { name: "S", takes: Takes::Nothing },
    Ignored { name: "T", takes: Takes::Value },
    Ignored { name: "W", takes: Takes::Value },
    Ignored { name: "Wdisable", takes: Takes::Optional },
    Ignored { name: "Werror", takes: Takes::Optional },
    Ignored { name: "Wwarn", takes: Takes::Optional },
    Ignored { name: "Winfo", takes: Takes::Optional },
    Ignored { name: "maxErrorCount", takes: Takes::Value },
    Ignored { name: "ndebug", takes: Takes::Nothing },
    Ignored { name: "parser-inline-opt", takes: Takes::Nothing },
    Ignored { name: "loopsUnroll", takes: Takes::Nothing },
    Ignored { name: "emit-externs", takes: Takes::Nothing },
    Ignored { name: "nocpp", takes: Takes::Nothing },
    Ignored { name: "testJson", takes: Takes::Nothing },
    Ignored { name: "metrics", takes: Takes::Value },
    Ignored { name: "top4", takes: Takes::Value },
    Ignored { name: "excludeFrontendPasses", takes: Takes::Value },
    Ignored { name: "excludeMidendPasses", takes: Takes::Value },
];

const TPL: &str = "`triplane dump` prints other forms of a program";

/// Options whose effect would be missed.
const REFUSED: &[Refused] = &[
    Refused { name: "E", takes: Takes::Nothing, why: "`triplane dump --tokens` prints the preprocessed program" },
    Refused { name: "toJSON", takes: Takes::Value, why: TPL },
    Refused { name: "fromJSON", takes: Takes::Value, why: TPL },
    Refused { name: "pp", takes: Takes::Value, why: TPL },
    Refused { name: "dump", takes: Takes::Value, why: TPL },
    Refused {
        name: "p4runtime-entries-file",
        takes: Takes::Value,
        why: "constant entries are in the switch when it starts, and P4Runtime reads them",
    },
    Refused {
        name: "p4runtime-entries-files",
        takes: Takes::Value,
        why: "constant entries are in the switch when it starts, and P4Runtime reads them",
    },
    Refused { name: "disable-annotations", takes: Takes::Optional, why: "remove the annotations from the program" },
];

/// The options of p4c and p4c-bm2-ss that have an effect.
#[derive(Args, Debug)]
struct CompileArgs {
    /// The program.
    #[arg(value_name = "PROG.p4", required_unless_present = "version")]
    program: Option<PathBuf>,

    /// p4c: the directory for PROG.json, by default the current one. p4c-bm2-ss: the file to write, by default none.
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,

    /// Also search this directory for included files; may be repeated.
    #[arg(short = 'I', value_name = "DIR")]
    include: Vec<PathBuf>,

    /// Define a preprocessor macro; may be repeated.
    #[arg(short = 'D', value_name = "NAME[=VALUE]")]
    define: Vec<String>,

    /// Do not define this macro; may be repeated.
    #[arg(short = 'U', value_name = "NAME")]
    undefine: Vec<String>,

    /// The target: bmv2.
    #[arg(short = 'b', long, value_name = "TARGET", default_value = "bmv2")]
    target: String,

    /// The architecture: v1model.
    #[arg(short = 'a', long, value_name = "ARCH", default_value = "v1model")]
    arch: String,

    /// The version of the language: p4-16.
    #[arg(short = 'x', long, visible_alias = "p4v", value_name = "VERSION", default_value = "p4-16")]
    std: String,

    /// Write P4Info to these files: as text, JSON or binary if a name ends in .txtpb or .txt, in .json or in .bin.
    #[arg(long, value_name = "FILE[,FILE...]", value_delimiter = ',')]
    p4runtime_files: Vec<PathBuf>,

    /// Write P4Info to this file, in the format of --p4runtime-format.
    #[arg(long, value_name = "FILE")]
    p4runtime_file: Option<PathBuf>,

    /// Format of --p4runtime-file.
    #[arg(long, value_name = "FORMAT", default_value = "binary")]
    p4runtime_format: InfoFormat,

    /// Print the version.
    #[arg(short = 'V', long)]
    version: bool,
}

/// The format of P4Info.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum InfoFormat {
    /// Protobuf's wire format.
    Binary,
    /// Protobuf's JSON.
    Json,
    /// Protobuf's text format.
    Text,
}

/// Compiles.
pub fn run(tool: Tool, words: &[OsString], output: &Output) -> Result<(), Refusal> {
    let command = CompileArgs::augment_args(Command::new(tool.name()))
        .about("Compiles a program for Triplane, with the options of p4c. docs/bmv2.md has the whole list.")
        .disable_version_flag(true)
        .infer_long_args(true)
        .max_term_width(100);
    let command = options::add(command, IGNORED, REFUSED);
    let matches = command.try_get_matches_from(normalized(tool, words))?;
    let args = CompileArgs::from_arg_matches(&matches)?;
    if args.version {
        return Ok(output.print(concat!("triplane ", env!("CARGO_PKG_VERSION"), "\n"))?);
    }
    options::check(&matches, REFUSED)?;
    check_target(&args)?;
    if let Some(note) = options::note(&matches, IGNORED) {
        output.note(&note);
    }
    Ok(compile(tool, &args, output)?)
}

/// Returns the words as clap reads them. What p4c passes on to its parts (`-Xp4c`, `-Xpreprocessor`) are options like
/// others. Levels of optimization and what is for parts that BMv2 does not have are left out.
fn normalized(tool: Tool, words: &[OsString]) -> Vec<OsString> {
    let mut normalized = vec![OsString::from(tool.name())];
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let Some(text) = word.to_str() else {
            normalized.push(word.clone());
            continue;
        };
        if text.strip_prefix("-O").is_some_and(|level| level.bytes().all(|byte| byte.is_ascii_digit())) {
            continue;
        }
        let (option, value) = text.split_once('=').map_or((text, None), |(option, value)| (option, Some(value)));
        match option {
            "-Xp4c" | "-Xpreprocessor" | "-Xassembler" | "-Xlinker" => {
                let value = value.or_else(|| words.next()?.to_str()).unwrap_or_default();
                if matches!(option, "-Xp4c" | "-Xpreprocessor") {
                    normalized.extend(value.split_whitespace().map(OsString::from));
                }
            }
            _ => normalized.push(word.clone()),
        }
    }
    normalized
}

/// Checks what the program is compiled for.
fn check_target(args: &CompileArgs) -> Result<(), Failure> {
    let wrong = |what: String| Err(Failure::Usage(what));
    if !args.target.starts_with("bmv2") {
        return wrong(format!("--target {} is not supported: only bmv2 is", args.target));
    }
    if args.arch != "v1model" {
        return wrong(format!("--arch {} is not supported: only v1model is", args.arch));
    }
    match args.std.trim_start_matches("p4").trim_start_matches(['-', '_']) {
        "16" => Ok(()),
        _ => wrong(format!("--std {} is not supported: only p4-16 is", args.std)),
    }
}

fn compile(tool: Tool, args: &CompileArgs, output: &Output) -> Result<(), Failure> {
    let program = args.program.clone().unwrap_or_default();
    let infos = info_files(args)?;
    let target = match (tool, &args.output) {
        (Tool::P4c, directory) => Some(in_directory(directory.as_deref().unwrap_or(Path::new(".")), &program)?),
        (_, file) => file.clone(),
    };
    let is_kept = |define: &String| !args.undefine.iter().any(|name| define.split('=').next() == Some(name));
    let define = args.define.iter().filter(|define| is_kept(define)).cloned().collect();
    let source = ProgramArgs { program: program.clone(), include: args.include.clone(), define, allow: Vec::new() };
    let mut loader = Loader::open(&source)?;
    if loader.is_compiled() {
        return Err(Failure::Input(format!("{} is already compiled", program.display())));
    }
    let compiled = loader.compile();
    loader.report(output)?;
    let compiled =
        compiled.ok_or_else(|| anyhow!("the compiler returned neither a program nor an error; this is a bug"))?;
    if !infos.is_empty() {
        compiler::check_names(&compiled.p4info).map_err(Failure::Input)?;
    }
    for (path, format) in infos {
        write_whole(&path, &format.write(&compiled.p4info))?;
    }
    let Some(target) = target else { return Ok(()) };
    let file = ProgramFile::new(&program.display().to_string(), compiled);
    let bytes = file
        .emit_json()
        .map_err(|why| Failure::Input(format!("{} is too large to build: {why}", program.display())))?;
    write_whole(&target, &bytes)
}

/// Returns the path of `PROG.json` in a directory, which is created.
fn in_directory(directory: &Path, program: &Path) -> Result<PathBuf, Failure> {
    std::fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))?;
    let stem = program.file_stem().unwrap_or_default();
    let mut name = stem.to_owned();
    name.push(".json");
    Ok(directory.join(name))
}

/// Returns the files of P4Info with their formats.
fn info_files(args: &CompileArgs) -> Result<Vec<(PathBuf, MessageFormat)>, Failure> {
    let by_name = |path: &PathBuf| match path.extension().and_then(|extension| extension.to_str()) {
        Some("txtpb" | "txt") => Ok((path.clone(), MessageFormat::Text)),
        Some("json") => Ok((path.clone(), MessageFormat::Json)),
        Some("bin") => Ok((path.clone(), MessageFormat::Binary)),
        _ => Err(Failure::Usage(format!(
            "the format of {} is not known: a file of --p4runtime-files ends in .txtpb, .txt, .json or .bin",
            path.display()
        ))),
    };
    let mut files = args.p4runtime_files.iter().map(by_name).collect::<Result<Vec<_>, _>>()?;
    let format = match args.p4runtime_format {
        InfoFormat::Binary => MessageFormat::Binary,
        InfoFormat::Json => MessageFormat::Json,
        InfoFormat::Text => MessageFormat::Text,
    };
    files.extend(args.p4runtime_file.clone().map(|path| (path, format)));
    Ok(files)
}
