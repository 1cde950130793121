//! From file names to programs and entries.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, anyhow};
use compiler::Compiled;
use diagnostics::{Diagnostic, Diagnostics, SourceMap, Span};
use lower::Architecture;
use p4::Options;
use p4runtime_proto::config::P4Info;

use crate::cli::ProgramArgs;
use crate::output::{Failure, Output};

/// The largest program file that is read, in bytes.
const MAX_PROGRAM_BYTES: u64 = 16 << 20;

/// The largest certificate or key file, in bytes.
const MAX_PEM_BYTES: u64 = 1 << 20;

/// A program, as P4 source or in its compiled form, how to read it, and what was found on the way.
pub struct Loader {
    /// Every file that was read.
    pub map: SourceMap,
    /// What was found so far.
    pub diagnostics: Diagnostics,
    /// How the front end is to read.
    pub options: Options,
    name: String,
    text: String,
    /// What was in the file, if that is a compiled program; there is no text then.
    compiled: Option<Box<Compiled>>,
    bytes: Vec<u8>,
}

impl Loader {
    /// Reads the program's file.
    pub fn open(args: &ProgramArgs) -> Result<Loader, Failure> {
        let bytes = read_bytes(&args.program, MAX_PROGRAM_BYTES.max(compiler::MAX_FILE_BYTES))?;
        let (text, compiled) = match compiler::is_compiled(&bytes) {
            true => (String::new(), Some(Box::new(read_compiled(args, &bytes)?))),
            false if args.program.extension().is_some_and(|extension| extension == "tpl") => {
                let what =
                    if bytes.is_empty() { "is empty" } else { "is no compiled program, although its name says so" };
                let path = args.program.display();
                return Err(Failure::Input(format!(
                    "{path} {what}; build it again from its P4 source: `triplane build`"
                )));
            }
            false => (read_source(&args.program, &bytes)?, None),
        };
        let define = |text: &String| match text.split_once('=') {
            Some((name, value)) => (name.to_owned(), value.to_owned()),
            None => (text.clone(), "1".to_owned()),
        };
        let options = Options {
            defines: args.define.iter().map(define).collect(),
            include_dirs: args.include.clone(),
            builtin: v1model::description::V1Model.includes().to_vec(),
        };
        let mut diagnostics = Diagnostics::new();
        for code in &args.allow {
            crate::kinds::check(code).map_err(Failure::Usage)?;
            diagnostics.silence(code);
        }
        let name = args.program.display().to_string();
        Ok(Loader { map: SourceMap::new(), diagnostics, options, name, text, compiled, bytes })
    }

    /// Reads a program's file, with nothing defined and nowhere else to look for included files.
    pub fn open_path(path: &Path) -> Result<Loader, Failure> {
        let args = ProgramArgs { program: path.to_owned(), include: Vec::new(), define: Vec::new(), allow: Vec::new() };
        Loader::open(&args)
    }

    /// A program that is not in a file.
    pub fn builtin(name: &str, text: &str) -> Loader {
        let builtin = v1model::description::V1Model.includes().to_vec();
        let options = Options { defines: Vec::new(), include_dirs: Vec::new(), builtin };
        Loader {
            map: SourceMap::new(),
            diagnostics: Diagnostics::new(),
            options,
            name: name.to_owned(),
            text: text.to_owned(),
            compiled: None,
            bytes: text.as_bytes().to_vec(),
        }
    }

    /// A program that was made of this one: it is read in the same way, from the same place.
    pub fn made(&self, text: String) -> Loader {
        let mut diagnostics = Diagnostics::new();
        diagnostics.silence("unused");
        Loader {
            map: SourceMap::new(),
            diagnostics,
            options: self.options.clone(),
            name: self.name.clone(),
            bytes: text.as_bytes().to_vec(),
            text,
            compiled: None,
        }
    }

    /// The content of the program's file.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether the program came in its compiled form, which has no source.
    pub fn is_compiled(&self) -> bool {
        self.compiled.is_some()
    }

    /// Its tokens behind the preprocessor.
    pub fn tokens(&mut self) -> Vec<p4::lex::Token> {
        if self.is_compiled() {
            self.needs_source();
            return Vec::new();
        }
        p4::tokenize(&mut self.map, &self.name, &self.text, &self.options, &p4::DiskLoader, &mut self.diagnostics)
    }

    /// Reports that what is asked for is in the source alone.
    fn needs_source(&mut self) {
        let message = "this program is compiled; what is asked for is in its P4 source alone";
        let file = self.map.add(&self.name, "a compiled program");
        self.diagnostics.push(Diagnostic::error("compiled", Span::new(file, 0, 0), message));
    }

    /// The checked program; `None` if there was an error.
    pub fn typed(&mut self) -> Option<p4::typed::Program> {
        if self.is_compiled() {
            self.needs_source();
            return None;
        }
        let ast =
            p4::parse(&mut self.map, &self.name, &self.text, &self.options, &p4::DiskLoader, &mut self.diagnostics);
        // What a missing file declares would only be missed again, name by name.
        if self.diagnostics.iter().any(|finding| finding.code == "include-not-found") {
            return None;
        }
        let typed = p4::check(&ast, &self.map, &mut self.diagnostics);
        if self.diagnostics.has_errors() { None } else { typed }
    }

    /// The program as pipeline IR; `None` if there was an error.
    pub fn ir(&mut self) -> Option<ir::Program> {
        if let Some(compiled) = &self.compiled {
            return Some(compiled.program.clone());
        }
        let typed = self.typed()?;
        self.compile(&typed)
    }

    /// The program's P4Info; `None` if there was an error. What the program asks of entries is checked too.
    pub fn info(&mut self) -> Option<P4Info> {
        let info = match &self.compiled {
            Some(compiled) => compiled.info.clone(),
            None => {
                let typed = self.typed()?;
                self.describe(&typed)
            }
        };
        self.check_restrictions(&info);
        (!self.diagnostics.has_errors()).then_some(info)
    }

    /// The program as pipeline IR, with its P4Info; `None` if there was an error.
    pub fn described(&mut self) -> Option<(ir::Program, P4Info)> {
        if let Some(compiled) = &self.compiled {
            let (program, info) = (compiled.program.clone(), compiled.info.clone());
            self.check_restrictions(&info);
            return (!self.diagnostics.has_errors()).then_some((program, info));
        }
        let typed = self.typed()?;
        self.compile_and_describe(&typed)
    }

    /// The same of a checked program.
    pub fn compile_and_describe(&mut self, typed: &p4::typed::Program) -> Option<(ir::Program, P4Info)> {
        let program = self.compile(typed);
        let info = self.describe(typed);
        self.check_restrictions(&info);
        program.filter(|_| !self.diagnostics.has_errors()).map(|program| (program, info))
    }

    fn describe(&mut self, typed: &p4::typed::Program) -> P4Info {
        p4info::p4info(typed, &p4info::V1Model, &self.map, &mut self.diagnostics)
    }

    /// Finds mistakes in `@entry_restriction`, `@action_restriction` and `@refers_to`.
    fn check_restrictions(&mut self, info: &P4Info) {
        p4_constraints::Checker::new(info, &mut self.map, &mut self.diagnostics);
        p4_constraints::References::new(info, &mut self.map, &mut self.diagnostics);
    }

    /// A checked program as pipeline IR; `None` if there was an error.
    pub fn compile(&mut self, typed: &p4::typed::Program) -> Option<ir::Program> {
        lower::compile(typed, &v1model::description::V1Model, &self.map, &mut self.diagnostics)
    }

    /// The program as pipeline IR, ready to run. Findings have been printed when this returns.
    pub fn program(&mut self, output: &Output) -> Result<Arc<ir::Program>, Failure> {
        let program = self.ir();
        self.report(output)?;
        let program = program.ok_or_else(|| anyhow!("the compiler gave no program and no reason; this is a bug"))?;
        Ok(Arc::new(program))
    }

    /// Reads an entries file, holds it against the switch's program and gives the switch what it asks for. Findings
    /// have been printed when this returns.
    pub fn apply(&mut self, path: &Path, switch: &mut v1model::Switch, output: &Output) -> Result<(), Failure> {
        let text = read(path, entries_file::MAX_FILE_BYTES)?;
        self.apply_text(&path.display().to_string(), &text, switch, output)
    }

    /// The same with the text of an entries file.
    pub fn apply_text(
        &mut self,
        name: &str,
        text: &str,
        switch: &mut v1model::Switch,
        output: &Output,
    ) -> Result<(), Failure> {
        self.diagnostics = Diagnostics::new();
        self.fill(name, text, switch);
        self.report(output)
    }

    /// The same, and the findings are added to those of the program.
    pub fn fill(&mut self, name: &str, text: &str, switch: &mut v1model::Switch) {
        let file = self.map.add(name, text);
        let program = switch.program().clone();
        if let Some(entries) = crate::subscribe::fit::parse(&self.map, file, &program, &mut self.diagnostics) {
            crate::apply::apply(switch, &entries, &mut self.diagnostics);
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

/// A program in its compiled form. How source is to be read means nothing to it.
fn read_compiled(args: &ProgramArgs, bytes: &[u8]) -> Result<Compiled, Failure> {
    let shown = args.program.display();
    if !args.include.is_empty() || !args.define.is_empty() {
        return Err(Failure::Usage(format!("{shown} is compiled; -I and -D are for P4 source")));
    }
    Compiled::read(bytes).map_err(|why| Failure::Input(format!("{shown} {why}")))
}

/// A program's source.
fn read_source(path: &Path, bytes: &[u8]) -> Result<String, Failure> {
    let shown = path.display();
    if bytes.len() as u64 > MAX_PROGRAM_BYTES {
        return Err(too_long(path, MAX_PROGRAM_BYTES));
    }
    let text = to_text(path, bytes)?;
    match text.trim_start().starts_with('{') && text.contains("\"header_types\"") {
        true => Err(Failure::Input(format!(
            "{shown} is a JSON file for BMv2; Triplane compiles programs itself: give the P4 source, or what `triplane build` \
             made of it"
        ))),
        false => Ok(text),
    }
}

/// The text of a file of at most `limit` bytes.
pub fn read(path: &Path, limit: u64) -> Result<String, Failure> {
    to_text(path, &read_bytes(path, limit)?)
}

/// What a file in PEM form is to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pem {
    /// One or more certificates.
    Certificate,
    /// A private key.
    Key,
}

/// The text of a file in PEM form.
pub fn pem(path: &Path, what: Pem) -> Result<String, Failure> {
    let text = read(path, MAX_PEM_BYTES)?;
    let (name, mark) = match what {
        Pem::Certificate => ("certificate", "-----BEGIN CERTIFICATE-----"),
        Pem::Key => ("private key", "PRIVATE KEY-----"),
    };
    match text.contains(mark) {
        true => Ok(text),
        false => Err(Failure::Input(format!("{} has no {name} in PEM form", path.display()))),
    }
}

fn too_long(path: &Path, limit: u64) -> Failure {
    anyhow!("{} has more than {limit} bytes, which is the most that is read", path.display()).into()
}

/// The content of a file of at most `limit` bytes.
/// How a command ends that found mistakes, which have been printed.
pub fn mistakes(count: usize) -> String {
    let found = if count == 1 { "1 mistake".to_owned() } else { format!("{count} mistakes") };
    found + " found; nothing was run"
}

/// The text of a file; what has no end of its own (a pipe, a device) is refused, since nobody would know who waits.
pub fn read_regular(path: &Path, limit: u64) -> Result<String, Failure> {
    expect_regular(path)?;
    read(path, limit)
}

/// Opens a file to read, but nothing that has no end of its own.
pub fn open_regular(path: &Path) -> Result<File, Failure> {
    expect_regular(path)?;
    Ok(File::open(path).with_context(|| format!("cannot read {}", path.display()))?)
}

fn expect_regular(path: &Path) -> Result<(), Failure> {
    let about = std::fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?;
    if about.is_dir() {
        return Err(is_directory(path));
    }
    match about.is_file() {
        true => Ok(()),
        false => Err(anyhow!("{} is no regular file; write what it gives to one", path.display()).into()),
    }
}

fn is_directory(path: &Path) -> Failure {
    anyhow!("{} is a directory; name a file", path.display()).into()
}

fn read_bytes(path: &Path, limit: u64) -> Result<Vec<u8>, Failure> {
    let shown = path.display();
    if path.is_dir() {
        return Err(is_directory(path));
    }
    let file = File::open(path).with_context(|| format!("cannot read {shown}"))?;
    // The size that the system tells is no limit: devices and pipes say 0 and may have no end.
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
