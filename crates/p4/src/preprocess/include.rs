//! `#include`: resolves the file, and enforces limits.

use std::path::{Path, PathBuf};

use diagnostics::{Diagnostic, FileId, Span};

use super::load::is_absent;
use super::{MAX_INCLUDE_DEPTH, MAX_INCLUDES, MAX_TOTAL_BYTES, Preprocessor};

/// A resolved included file.
struct ResolvedInclude {
    file: FileId,
    directory: Option<PathBuf>,
    first_time: bool,
}

impl Preprocessor<'_> {
    /// Opens the included file `name`. A quoted name is first looked up beside the including file. Then follow the
    /// include directories of the options, then the built-in files.
    pub(super) fn include(&mut self, name: &str, quoted: bool, span: Span) {
        self.includes += 1;
        if self.files.len() > MAX_INCLUDE_DEPTH {
            let message = format!("includes are nested more than {MAX_INCLUDE_DEPTH} levels deep");
            let mut diagnostic = Diagnostic::error("include-depth", span, message)
                .help("guard the file with `#ifndef NAME`, `#define NAME` and `#endif`, or with `#pragma once`");
            if let Some(at) = self.files.last().and_then(|file| file.included_at) {
                diagnostic = diagnostic.also(at, "this file was included here");
            }
            return self.stop(diagnostic);
        }
        if self.includes > MAX_INCLUDES {
            let message = format!("more than {MAX_INCLUDES} files are included");
            return self.stop(Diagnostic::error("too-large", span, message));
        }
        let Some(found) = self.find(name, quoted, span) else { return };
        if self.once.contains(&found.file) {
            return;
        }
        self.total_bytes += self.map.file(found.file).text().len();
        if self.total_bytes > MAX_TOTAL_BYTES {
            let message = format!("the included files are larger than {} MiB in total", MAX_TOTAL_BYTES >> 20);
            return self.stop(Diagnostic::error("too-large", span, message));
        }
        self.open(found.file, found.directory, Some(span), found.first_time);
    }

    fn find(&mut self, name: &str, quoted: bool, span: Span) -> Option<ResolvedInclude> {
        if name.is_empty() {
            self.diagnostics.push(Diagnostic::error("include-not-found", span, "the file name is empty"));
            return None;
        }
        let beside = if quoted { self.files.last().and_then(|file| file.directory.clone()) } else { None };
        let directories: Vec<PathBuf> = beside.into_iter().chain(self.options.include_dirs.iter().cloned()).collect();
        for directory in &directories {
            let path = directory.join(name);
            match self.known.get(&path) {
                Some(file) => {
                    return Some(ResolvedInclude { file: *file, directory: parent(&path), first_time: false });
                }
                None => match self.loader.load(&path) {
                    Ok(text) if text.len() > super::load::MAX_FILE_BYTES => {
                        self.unreadable(&path, "it is larger than 16 MiB", span);
                        return None;
                    }
                    Ok(text) => {
                        let file = self.map.add(&path.to_string_lossy(), text);
                        let directory = parent(&path);
                        self.known.insert(path, file);
                        return Some(ResolvedInclude { file, directory, first_time: true });
                    }
                    Err(error) if is_absent(&error) => {}
                    Err(error) => {
                        self.unreadable(&path, &error.to_string(), span);
                        return None;
                    }
                },
            }
        }
        if let Some(text) = self.options.builtin(name) {
            let path = PathBuf::from(format!("<{name}>"));
            let before = self.known.get(&path).copied();
            let file = before.unwrap_or_else(|| self.map.add(&format!("<{name}>"), text));
            self.known.insert(path, file);
            return Some(ResolvedInclude { file, directory: None, first_time: before.is_none() });
        }
        let mut diagnostic =
            Diagnostic::error("include-not-found", span, format!("cannot find the included file `{name}`"));
        diagnostic = match directories.as_slice() {
            [] => diagnostic.help("pass its directory with `-I`"),
            searched => {
                let list: Vec<_> = searched.iter().map(|path| format!("`{}`", shown(path))).collect();
                diagnostic.help(format!("searched {}; pass more directories with `-I`", list.join(", ")))
            }
        };
        self.diagnostics.push(diagnostic);
        None
    }

    fn unreadable(&mut self, path: &Path, why: &str, span: Span) {
        let message = format!("cannot read the included file `{}`: {why}", path.display());
        self.diagnostics.push(Diagnostic::error("include-unreadable", span, message));
    }
}

fn parent(path: &Path) -> Option<PathBuf> {
    path.parent().map(Path::to_owned)
}

fn shown(path: &Path) -> String {
    if path.as_os_str().is_empty() { ".".to_owned() } else { path.display().to_string() }
}
