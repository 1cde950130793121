//! Identifies network namespaces: by a number that the kernel never gives to another one.
//!
//! The inode number of a namespace is not enough. The kernel reuses it as soon as the namespace is gone, so it
//! identifies a namespace only while that is held open.

use std::fs::File;
use std::io::{self, Read};
use std::net::UdpSocket;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

use super::{Namespace, NamespaceError};
use crate::socket::get_option;

impl Namespace {
    /// Opens the network namespace of a process.
    ///
    /// # Errors
    /// Returns an error if the process has ended or belongs to another user.
    pub fn of_process(process: u32) -> Result<Namespace, NamespaceError> {
        let file = File::open(format!("/proc/{process}/ns/net"));
        let file = file.map_err(|source| NamespaceError::Refused { what: "opening a network namespace", source })?;
        Ok(Namespace { name: format!("of process {process}"), file })
    }

    /// Returns the inode number, which no other namespace has while this one is open.
    ///
    /// # Errors
    /// Returns an error if the kernel cannot describe the open file.
    pub fn number(&self) -> Result<u64, NamespaceError> {
        let metadata = self.file.metadata().map_err(self.failed("reading its number".to_owned()))?;
        Ok(metadata.ino())
    }

    /// Returns the cookie (`SO_NETNS_COOKIE`), which no other namespace gets until the machine restarts.
    ///
    /// # Errors
    /// Returns an error if the kernel is older than 5.14 or does not let this process enter the namespace.
    pub fn cookie(&self) -> Result<u64, NamespaceError> {
        let read = || {
            let socket = OwnedFd::from(UdpSocket::bind("0.0.0.0:0")?);
            get_option(&socket, libc::SOL_SOCKET, libc::SO_NETNS_COOKIE, 0)
        };
        let owner = self.owner().map_err(self.failed("opening its user namespace".to_owned()))?;
        let cookie = match owner {
            None => self.enter(read)?,
            Some(owner) => cookie_in_child(&owner, &self.file),
        };
        cookie.map_err(self.failed("reading its cookie".to_owned()))
    }

    /// Opens the user namespace that owns it; `None` if this process is in that one.
    fn owner(&self) -> io::Result<Option<File>> {
        // SAFETY: the descriptor is open, and this request (ioctl_ns(2)) has no argument.
        let descriptor = unsafe { libc::ioctl(self.file.as_raw_fd(), libc::NS_GET_USERNS) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just opened and has no other owner.
        let owner = File::from(unsafe { OwnedFd::from_raw_fd(descriptor) });
        let (own, its) = (std::fs::metadata("/proc/self/ns/user")?, owner.metadata()?);
        Ok(((own.dev(), own.ino()) != (its.dev(), its.ino())).then_some(owner))
    }
}

/// Reads the cookie of a namespace from within its user namespace. A child process enters, since a process with several
/// threads cannot, and no process can leave again.
fn cookie_in_child(user: &File, network: &File) -> io::Result<u64> {
    let (mut reader, writer) = io::pipe()?;
    let (user, network, answer) = (user.as_raw_fd(), network.as_raw_fd(), writer.as_raw_fd());
    // SAFETY: the child makes system calls only, with descriptors that stay open and a buffer on its stack: it
    // allocates nothing, takes no lock and returns nowhere.
    let child = unsafe {
        let child = libc::fork();
        if child == 0 {
            let (mut cookie, mut len) = (0u64, size_of::<u64>() as libc::socklen_t);
            let is_inside =
                libc::setns(user, libc::CLONE_NEWUSER) == 0 && libc::setns(network, libc::CLONE_NEWNET) == 0;
            let socket = if is_inside { libc::socket(libc::AF_INET, libc::SOCK_DGRAM, 0) } else { -1 };
            let option = (libc::SOL_SOCKET, libc::SO_NETNS_COOKIE);
            let is_read = socket >= 0
                && libc::getsockopt(socket, option.0, option.1, (&raw mut cookie).cast(), &raw mut len) == 0;
            let error = if is_read { 0 } else { *libc::__errno_location() };
            let result = [cookie, error as u64];
            libc::write(answer, result.as_ptr().cast(), size_of_val(&result));
            libc::_exit(0);
        }
        child
    };
    if child < 0 {
        return Err(io::Error::last_os_error());
    }
    drop(writer);
    let mut result = [0; 16];
    let read = reader.read_exact(&mut result);
    // SAFETY: the child is this function's, and its status may be ignored.
    while unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) } < 0
        && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
    {}
    read?;
    let [cookie, error] = [0, 8].map(|at| u64::from_ne_bytes(std::array::from_fn(|byte| result[at + byte])));
    if error == 0 { Ok(cookie) } else { Err(io::Error::from_raw_os_error(error as i32)) }
}
