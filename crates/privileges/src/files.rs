//! Restricts files and connections with Landlock, as far as the kernel has it.
//!
//! The `landlock` crate is the Landlock project's own. It leaves out what the kernel does not know, so one ruleset
//! serves all kernels.

use std::fmt;
use std::io;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, LandlockStatus, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError,
    RulesetStatus, Scope, path_beneath_rules,
};

use crate::KeptAccess;

/// The version of Landlock whose restrictions are requested: files, TCP, device ioctls and scopes (Linux 6.12).
const VERSION: ABI = ABI::V6;

/// The restriction that the kernel enforces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileRestriction {
    /// Everything that was requested.
    Full,
    /// Only a part of it: this kernel has an earlier version of Landlock.
    Partial {
        /// That version.
        version: i32,
    },
    /// Nothing: the kernel has no Landlock, or it is not enabled.
    Unavailable,
}

impl fmt::Display for FileRestriction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileRestriction::Full => f.write_str("files and connections restricted by Landlock"),
            FileRestriction::Partial { version } => {
                write!(f, "files restricted by Landlock version {version}; version {} adds to it", VERSION as i32)
            }
            FileRestriction::Unavailable => f.write_str("files not restricted: this kernel has no Landlock"),
        }
    }
}

/// Restricts the calling thread.
pub fn restrict(kept: &KeptAccess) -> Result<FileRestriction, io::Error> {
    let status = enforce(kept).map_err(io::Error::other)?;
    Ok(match (status.ruleset, status.landlock) {
        (RulesetStatus::FullyEnforced, _) => FileRestriction::Full,
        (RulesetStatus::PartiallyEnforced, LandlockStatus::Available { effective_abi, .. }) => {
            FileRestriction::Partial { version: effective_abi as i32 }
        }
        _ => FileRestriction::Unavailable,
    })
}

fn enforce(kept: &KeptAccess) -> Result<landlock::RestrictionStatus, RulesetError> {
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let mut connections: BitFlags<AccessNet> = AccessNet::BindTcp.into();
    if !kept.may_connect {
        connections |= AccessNet::ConnectTcp;
    }
    // Paths that do not exist get no rule.
    Ruleset::default()
        .handle_access(AccessFs::from_all(VERSION))?
        .handle_access(connections)?
        .scope(Scope::AbstractUnixSocket | Scope::Signal)?
        .create()?
        .add_rules(path_beneath_rules(&kept.readable, read))?
        .add_rules(path_beneath_rules(&kept.writable, writing()))?
        .restrict_self()
}

/// Rights in a writable directory: regular files only, and no programs.
fn writing() -> BitFlags<AccessFs> {
    AccessFs::ReadFile
        | AccessFs::ReadDir
        | AccessFs::WriteFile
        | AccessFs::RemoveFile
        | AccessFs::MakeReg
        | AccessFs::Refer
        | AccessFs::Truncate
}
