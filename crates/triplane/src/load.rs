//! Loads programs and entries from files.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, anyhow};
use clap::{Args, ValueHint};
use compiler::{Architecture, CompiledProgram, ProgramFile, Source};
use diagnostics::{Diagnostic, Diagnostics, SourceMap, Span};
use p4runtime_server::Pipeline;
use switch::SwitchControl;

use crate::output::{Failure, Output};

/// The architecture of every program.
pub const ARCHITECTURE: &dyn Architecture = &v1model::V1Model;

/// Maximum size of a program's source, in bytes.
const MAX_PROGRAM_BYTES: u64 = 16 << 20;

/// Name and text of the program of a switch that waits for its controller to set one: it drops every packet.
pub const PLACEHOLDER: (&str, &str) = ("builtin:nothing", include_str!("nothing.p4"));

/// A program and how to read it.
#[derive(Args, Debug, Clone)]
pub struct ProgramArgs {
    /// The P4_16 program, as source or as compiled by `triplane build`.
    #[arg(value_name = "PROG.p4", value_hint = ValueHint::FilePath)]
    pub program: PathBuf,

    /// Also search this directory for included files; may be repeated. `core.p4` and `v1model.p4` are built in.
    #[arg(short = 'I', long = "include", value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub include: Vec<PathBuf>,

    /// Define a preprocessor macro: NAME or NAME=VALUE.
    #[arg(short = 'D', long = "define", value_name = "NAME[=VALUE]")]
    pub define: Vec<String>,

    /// Disable a kind of warning; the message shows the kind in brackets.
    #[arg(short = 'A', long = "allow", value_name = "KIND")]
    pub allow: Vec<String>,
}

/// A program, as P4 source or as a program file, and everything that the compiler found in it.
pub struct Loader {
    /// Every file that was read.
    pub map: SourceMap,
    /// The findings so far.
    pub diagnostics: Diagnostics,
    input: Input,
    bytes: Vec<u8>,
}

/// A source without errors.
pub enum Checked {
    /// A program that can run.
    Program(Box<CompiledProgram>),
    /// A source that cannot run.
    Other(NotRunnable),
}

/// A source without errors that cannot run.
pub enum NotRunnable {
    /// A source without `main`, for programs to include.
    Library,
    /// A format of messages for subscriptions.
    Format,
    /// A source without any text.
    Empty,
    /// A program whose `main` is an instance of this package, which is one of another architecture.
    Foreign(String),
}

/// The two forms that programs come in.
enum Input {
    Text(SourceText),
    File(String, Box<ProgramFile>),
}

/// P4 source and the environment in which it is preprocessed.
#[derive(Clone)]
struct SourceText {
    name: String,
    text: String,
    defines: Vec<(String, String)>,
    include_dirs: Vec<PathBuf>,
}

impl SourceText {
    fn source(&self) -> Source<'_> {
        let source = Source::new(&self.name, &self.text);
        Source { defines: &self.defines, include_dirs: &self.include_dirs, ..source }
    }
}

impl Loader {
    /// Reads the program's file.
    pub fn open(args: &ProgramArgs) -> Result<Loader, Failure> {
        let bytes = read_bytes(&args.program, MAX_PROGRAM_BYTES.max(compiler::MAX_FILE_BYTES))?;
        let name = args.program.display().to_string();
        let input = if compiler::is_program_file(&bytes) {
            Input::File(name, Box::new(parse_file(args, &bytes)?))
        } else if args.program.extension().is_some_and(|extension| extension == "tpl") {
            let what = if bytes.is_empty() { "is empty" } else { "is not a compiled program, despite its extension" };
            return Err(Failure::Input(format!("{name} {what}; rebuild it from its P4 source with `triplane build`")));
        } else {
            let define = |text: &String| match text.split_once('=') {
                Some((name, value)) => (name.to_owned(), value.to_owned()),
                None => (text.clone(), "1".to_owned()),
            };
            Input::Text(SourceText {
                name,
                text: read_source(&args.program, &bytes)?,
                defines: args.define.iter().map(define).collect(),
                include_dirs: args.include.clone(),
            })
        };
        let mut diagnostics = Diagnostics::new();
        for code in &args.allow {
            crate::warning_kinds::check(code).map_err(Failure::Usage)?;
            diagnostics.silence(code);
        }
        Ok(Loader { map: SourceMap::new(), diagnostics, input, bytes })
    }

    /// Returns a loader of a program that is not in a file.
    pub fn builtin(name: &str, text: &str) -> Loader {
        Loader::of_text(SourceText {
            name: name.to_owned(),
            text: text.to_owned(),
            defines: Vec::new(),
            include_dirs: Vec::new(),
        })
    }

    /// Returns a loader of a program that was generated from this one. Its name, macros and directories are the same.
    pub fn made(&self, text: String) -> Loader {
        let mut made = match &self.input {
            Input::Text(source) => Loader::of_text(SourceText { text, ..source.clone() }),
            Input::File(name, _) => Loader::builtin(name, &text),
        };
        made.diagnostics.silence("unused");
        made
    }

    fn of_text(source: SourceText) -> Loader {
        let bytes = source.text.as_bytes().to_vec();
        Loader { map: SourceMap::new(), diagnostics: Diagnostics::new(), input: Input::Text(source), bytes }
    }

    /// Returns the content of the program's file.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether the program is a program file, which has no source.
    pub fn is_compiled(&self) -> bool {
        matches!(self.input, Input::File(..))
    }

    /// Returns the tokens after the preprocessor.
    pub fn tokens(&mut self) -> Vec<p4::lex::Token> {
        match &self.input {
            Input::Text(text) => compiler::tokenize(&text.source(), ARCHITECTURE, &mut self.map, &mut self.diagnostics),
            Input::File(..) => {
                self.require_source();
                Vec::new()
            }
        }
    }

    /// Reports that only a P4 source has the requested form.
    fn require_source(&mut self) {
        let Input::File(name, _) = &self.input else { return };
        let message = "this program is compiled; this output requires its P4 source";
        let file = self.map.add(name, "a compiled program");
        self.diagnostics.push(Diagnostic::error("compiled", Span::new(file, 0, 0), message));
    }

    /// Returns the checked program; `None` if an error was reported.
    pub fn typed(&mut self) -> Option<p4::typed::Program> {
        match &self.input {
            Input::Text(text) => compiler::check(&text.source(), ARCHITECTURE, &mut self.map, &mut self.diagnostics),
            Input::File(..) => {
                self.require_source();
                None
            }
        }
    }

    /// Returns the program as pipeline IR, whether or not it is valid otherwise; `None` if there is none.
    pub fn ir(&mut self) -> Option<ir::Program> {
        match &self.input {
            Input::Text(text) => compiler::lower(&text.source(), ARCHITECTURE, &mut self.map, &mut self.diagnostics),
            Input::File(_, file) => Some(file.program.ir.clone()),
        }
    }

    /// Compiles the program; `None` if an error was reported.
    pub fn compile(&mut self) -> Option<CompiledProgram> {
        match &self.input {
            Input::Text(text) => {
                let compiled = compiler::compile(&text.source(), ARCHITECTURE, &mut self.map, &mut self.diagnostics);
                if compiled.is_none() && is_message_format(&self.bytes) {
                    self.diagnostics.set_help("no-main", |_| Some(FORMAT_HELP.to_owned()));
                }
                compiled
            }
            Input::File(_, file) => {
                compiler::check_restrictions(&file.program.p4info, &mut self.map, &mut self.diagnostics);
                (!self.diagnostics.has_errors()).then(|| file.program.clone())
            }
        }
    }

    /// Compiles the program if its `main` is one for v1model. A library, or a program for another architecture, is only
    /// checked. `None` if an error was reported.
    pub fn compile_or_check(&mut self) -> Option<Checked> {
        if self.is_compiled() {
            return self.compile().map(|compiled| Checked::Program(Box::new(compiled)));
        }
        let typed = self.typed()?;
        if compiler::is_for(&typed, ARCHITECTURE) {
            let compiled = compiler::compile_checked(&typed, ARCHITECTURE, &mut self.map, &mut self.diagnostics)?;
            return Some(Checked::Program(Box::new(compiled)));
        }
        Some(Checked::Other(match typed.main.map(|main| &typed.instances[main].ty) {
            Some(p4::typed::Type::Package(id)) => NotRunnable::Foreign(typed.packages[*id].name.to_string()),
            _ if self.bytes.trim_ascii().is_empty() => NotRunnable::Empty,
            _ if is_message_format(&self.bytes) => NotRunnable::Format,
            _ => NotRunnable::Library,
        }))
    }

    /// Compiles the program, prints the findings, and returns the pipeline IR, ready to run.
    pub fn program(&mut self, output: &Output) -> Result<Arc<ir::Program>, Failure> {
        let compiled = self.compile();
        self.report(output)?;
        let compiled =
            compiled.ok_or_else(|| anyhow!("the compiler returned neither a program nor an error; this is a bug"))?;
        Ok(Arc::new(compiled.ir))
    }

    /// Returns the program as a pipeline, as if a controller had sent it. Findings have been printed when this returns.
    pub fn pipeline(&mut self, output: &Output) -> Result<Pipeline, Failure> {
        let compiled = self.compile();
        self.report(output)?;
        let compiled =
            compiled.ok_or_else(|| anyhow!("the compiler returned neither a program nor an error; this is a bug"))?;
        compiler::check_names(&compiled.p4info).map_err(Failure::Input)?;
        Ok(Pipeline::new(Arc::new(compiled.ir), compiled.p4info, self.bytes().to_vec()))
    }

    /// Reads an entries file, holds it against the switch's program and gives the switch what it asks for. Findings
    /// have been printed when this returns.
    pub fn apply(&mut self, path: &Path, switch: &mut dyn SwitchControl, output: &Output) -> Result<(), Failure> {
        let name = path.display().to_string();
        let text = || read(path, entries_file::MAX_FILE_BYTES);
        // A pipe cannot be read twice.
        let is_file = |about: std::fs::Metadata| about.is_file() && about.len() <= entries_file::MAX_FILE_BYTES;
        if std::fs::metadata(path).is_ok_and(is_file) {
            let input = File::open(path).with_context(|| format!("cannot read {name}"))?;
            let file = self.map.add(&name, "");
            self.diagnostics = Diagnostics::new();
            let (map, diagnostics) = (&mut self.map, &mut self.diagnostics);
            if crate::entries::apply_stream(map, file, input, text, switch, diagnostics)? {
                let result = self.report(output);
                self.map.set_text(file, "");
                return result;
            }
        }
        self.apply_text(&name, &text()?, switch, output)
    }

    /// The same with the text of an entries file.
    pub fn apply_text(
        &mut self,
        name: &str,
        text: &str,
        switch: &mut dyn SwitchControl,
        output: &Output,
    ) -> Result<(), Failure> {
        self.diagnostics = Diagnostics::new();
        self.fill(name, text, switch);
        self.report(output)
    }

    /// The same, and the findings are added to those of the program.
    pub fn fill(&mut self, name: &str, text: &str, switch: &mut dyn SwitchControl) {
        let file = self.map.add(name, text);
        let program = switch.program().clone();
        if let Some(entries) = crate::entries::parse(&self.map, file, &program, &mut self.diagnostics) {
            entries_file::apply(switch, &entries, &mut self.diagnostics);
        }
    }

    /// Prints what was found; an error if any finding is one.
    pub fn report(&self, output: &Output) -> Result<(), Failure> {
        output.diagnostics(&self.map, &self.diagnostics);
        match self.summary() {
            Some(summary) => Err(Failure::Input(summary)),
            None => Ok(()),
        }
    }

    /// `3 errors`, if there are any.
    pub fn summary(&self) -> Option<String> {
        Some(self.diagnostics.error_count()).filter(|count| *count > 0).map(mistakes)
    }
}

/// What to do with a format of messages, which is not a program.
pub const FORMAT_HELP: &str = "this is a format of messages for `triplane subscribe`: generate a program and entries with \
                           `triplane subscribe compile FORMAT RULES -o entries.json --program switch.p4`, and run these";

/// Whether a text declares fields of messages for subscriptions.
fn is_message_format(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    ["@query_field", "@pragma query_field"].iter().any(|annotation| text.contains(annotation))
}

/// Parses a program file. Options of the preprocessor have no meaning for it.
fn parse_file(args: &ProgramArgs, bytes: &[u8]) -> Result<ProgramFile, Failure> {
    let shown = args.program.display();
    if !args.include.is_empty() || !args.define.is_empty() {
        return Err(Failure::Usage(format!("{shown} is a compiled program; -I and -D apply to P4 source only")));
    }
    ProgramFile::parse(bytes).map_err(|why| Failure::Input(format!("{shown} {why}")))
}

/// A program's source.
fn read_source(path: &Path, bytes: &[u8]) -> Result<String, Failure> {
    let shown = path.display();
    if bytes.len() as u64 > MAX_PROGRAM_BYTES {
        return Err(too_long(path, MAX_PROGRAM_BYTES));
    }
    let text = to_text(path, bytes)?;
    if text.trim_start().starts_with('{') && text.contains("\"header_types\"") {
        return Err(Failure::Input(format!(
            "{shown} is a JSON file for BMv2; Triplane compiles programs itself: use the P4 source or the output of \
             `triplane build`"
        )));
    }
    Ok(text)
}

/// The text of a file of at most `limit` bytes.
pub fn read(path: &Path, limit: u64) -> Result<String, Failure> {
    to_text(path, &read_bytes(path, limit)?)
}

fn too_long(path: &Path, limit: u64) -> Failure {
    anyhow!("{} is larger than the limit of {limit} bytes", path.display()).into()
}

/// Returns the final sentence of a command that found mistakes, which have been printed.
pub fn mistakes(count: usize) -> String {
    let found = if count == 1 { "1 error".to_owned() } else { format!("{count} errors") };
    found + " found; nothing was run"
}

/// Reads the text of a file. A pipe or a device is refused, since it may have no end and the command would wait
/// forever.
pub fn read_regular(path: &Path, limit: u64) -> Result<String, Failure> {
    expect_regular(path)?;
    read(path, limit)
}

/// Opens a file to read, but nothing that has no end of its own.
pub fn open_regular(path: &Path) -> Result<File, Failure> {
    expect_regular(path)?;
    Ok(File::open(path).with_context(|| format!("cannot read {}", path.display()))?)
}

/// Refuses what is not a regular file, and may have no end of its own.
pub fn expect_regular(path: &Path) -> Result<(), Failure> {
    let about = std::fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?;
    if about.is_dir() {
        return Err(is_directory(path));
    }
    if about.is_file() {
        Ok(())
    } else {
        Err(anyhow!("{} is not a regular file; copy its content to one", path.display()).into())
    }
}

fn is_directory(path: &Path) -> Failure {
    anyhow!("{} is a directory; expected a file", path.display()).into()
}

/// Returns the content of a file of at most `limit` bytes.
pub fn read_bytes(path: &Path, limit: u64) -> Result<Vec<u8>, Failure> {
    let shown = path.display();
    if path.is_dir() {
        return Err(is_directory(path));
    }
    let file = File::open(path).with_context(|| format!("cannot read {shown}"))?;
    // The size that the system reports is not a limit: devices and pipes report 0 and may have no end.
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes).with_context(|| format!("cannot read {shown}"))?;
    if bytes.len() as u64 > limit {
        return Err(too_long(path, limit));
    }
    Ok(bytes)
}

fn to_text(path: &Path, bytes: &[u8]) -> Result<String, Failure> {
    // Editors on other systems put a byte order mark in front of UTF-8.
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    String::from_utf8(text.to_vec()).map_err(|_| Failure::Input(format!("{} is not text (UTF-8)", path.display())))
}
