//! Opens the socket of `triplane run`.

use std::path::Path;

use resilient_store::RowsSocket;
use v1model_runtime::memory_socket::MemorySocket;

use crate::output::Failure;

/// The socket of a switch, which answers about its rows or about its memory servers.
pub enum SwitchSocket {
    Rows(RowsSocket),
    Memory(MemorySocket),
}

impl SwitchSocket {
    /// Listens at a path, for a switch with replicated state or with memory servers.
    pub fn open(path: &Path, has_store: bool) -> Result<SwitchSocket, Failure> {
        Ok(match has_store {
            true => SwitchSocket::Rows(RowsSocket::open(path)?),
            false => SwitchSocket::Memory(MemorySocket::open(path)?),
        })
    }

    /// Returns the socket of a switch with replicated state.
    pub fn rows(self) -> Option<RowsSocket> {
        match self {
            SwitchSocket::Rows(socket) => Some(socket),
            SwitchSocket::Memory(_) => None,
        }
    }

    /// Returns the socket of a switch with memory servers.
    pub fn memory(self) -> Option<MemorySocket> {
        match self {
            SwitchSocket::Memory(socket) => Some(socket),
            SwitchSocket::Rows(_) => None,
        }
    }
}
