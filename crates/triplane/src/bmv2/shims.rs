//! Runs `triplane shims`: makes the links under whose names the command stands in for other tools.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::Tool;
use crate::cli::ShimsArgs;
use crate::output::{Failure, Output};

/// A link that is to be made.
enum Link {
    /// Nothing has its name.
    New,
    /// A link to another copy of this command has its name.
    Replaced,
    /// It is there already.
    There,
}

/// Makes the links. Nothing is changed if a name belongs to another file.
pub fn run(args: &ShimsArgs, output: &Output) -> Result<(), Failure> {
    let directory = &args.directory;
    let command = std::env::current_exe().context("cannot find the path of this executable")?;
    fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))?;
    let mut links = Vec::new();
    for tool in Tool::ALL {
        let path = directory.join(tool.name());
        links.push((link_at(&path, &command)?, path));
    }
    let mut lines = String::new();
    for (link, path) in links {
        let what = match link {
            Link::There => "kept",
            Link::New => "made",
            Link::Replaced => "replaced",
        };
        make(&link, &path, &command)?;
        lines += &format!("{what} {} -> {}\n", path.display(), command.display());
    }
    output.print(&lines)?;
    let shown = directory.canonicalize().unwrap_or_else(|_| directory.clone());
    output.note(&format!("to use them: export PATH={}:$PATH", shown.display()));
    Ok(())
}

/// Returns what is to be done for a link.
fn link_at(path: &Path, command: &Path) -> Result<Link, Failure> {
    match fs::read_link(path) {
        Ok(target) if target == command => Ok(Link::There),
        Ok(target) if target.file_name() == command.file_name() => Ok(Link::Replaced),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Link::New),
        _ => Err(Failure::Usage(format!(
            "{} exists and is not a link to triplane; nothing was changed: remove it, or use another directory",
            path.display()
        ))),
    }
}

fn make(link: &Link, path: &PathBuf, command: &Path) -> Result<(), Failure> {
    let refused = || format!("cannot create {}", path.display());
    if matches!(link, Link::Replaced) {
        fs::remove_file(path).with_context(refused)?;
    }
    if !matches!(link, Link::There) {
        symlink(command, path).with_context(refused)?;
    }
    Ok(())
}
