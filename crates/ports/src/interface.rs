//! Queries and configures a network interface through ioctls. The interface is looked up in the network namespace of
//! the socket, which need not be that of the calling thread.

use std::ffi::{CString, c_int, c_short};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// ARPHRD types whose frames have an Ethernet header: Ethernet itself and the loopback device.
pub(crate) const ETHERNET_TYPES: [u16; 2] = [libc::ARPHRD_ETHER, libc::ARPHRD_LOOPBACK];

/// Ethtool command: driver information.
const ETHTOOL_GDRVINFO: u32 = 0x03;
/// Ethtool command: link state.
const ETHTOOL_GLINK: u32 = 0x0a;
/// Ethtool command: numbers of queues.
const ETHTOOL_GCHANNELS: u32 = 0x3c;

/// An interface in the namespace of a socket.
pub(crate) struct Interface<'a> {
    socket: BorrowedFd<'a>,
    name: &'a str,
}

impl<'a> Interface<'a> {
    pub(crate) fn new(socket: BorrowedFd<'a>, name: &'a str) -> Self {
        Interface { socket, name }
    }

    pub(crate) fn index(&self) -> io::Result<c_int> {
        let request = self.ioctl(libc::SIOCGIFINDEX, zeroed_ifreq())?;
        // SAFETY: the kernel filled the union's member that belongs to this request.
        Ok(unsafe { request.ifr_ifru.ifru_ifindex })
    }

    /// Returns the maximum payload of a frame in bytes, excluding the Ethernet header and one VLAN tag.
    pub(crate) fn mtu(&self) -> io::Result<usize> {
        let request = self.ioctl(libc::SIOCGIFMTU, zeroed_ifreq())?;
        // SAFETY: the kernel filled the union's member that belongs to this request.
        let mtu = unsafe { request.ifr_ifru.ifru_mtu };
        Ok(usize::try_from(mtu).unwrap_or(0))
    }

    /// Sets the MTU, in bytes.
    pub(crate) fn set_mtu(&self, mtu: usize) -> io::Result<()> {
        let mut request = zeroed_ifreq();
        request.ifr_ifru.ifru_mtu = c_int::try_from(mtu).unwrap_or(c_int::MAX);
        self.ioctl(libc::SIOCSIFMTU, request).map(drop)
    }

    /// Returns the Ethernet address.
    pub(crate) fn mac(&self) -> io::Result<[u8; 6]> {
        let request = self.ioctl(libc::SIOCGIFHWADDR, zeroed_ifreq())?;
        // SAFETY: the kernel filled the union's member that belongs to this request.
        let data = unsafe { request.ifr_ifru.ifru_hwaddr.sa_data };
        Ok(std::array::from_fn(|at| data[at].cast_unsigned()))
    }

    /// Sets the address of an Ethernet interface.
    pub(crate) fn set_mac(&self, mac: [u8; 6]) -> io::Result<()> {
        let mut request = zeroed_ifreq();
        let mut data = [0; 14];
        data.iter_mut().zip(mac).for_each(|(to, from)| *to = from.cast_signed());
        request.ifr_ifru.ifru_hwaddr = libc::sockaddr { sa_family: libc::ARPHRD_ETHER, sa_data: data };
        self.ioctl(libc::SIOCSIFHWADDR, request).map(drop)
    }

    /// Returns the hardware type: an ARPHRD number.
    pub(crate) fn hardware_type(&self) -> io::Result<u16> {
        let request = self.ioctl(libc::SIOCGIFHWADDR, zeroed_ifreq())?;
        // SAFETY: the kernel filled the union's member that belongs to this request.
        Ok(unsafe { request.ifr_ifru.ifru_hwaddr.sa_family })
    }

    fn flags(&self) -> io::Result<c_short> {
        let request = self.ioctl(libc::SIOCGIFFLAGS, zeroed_ifreq())?;
        // SAFETY: the kernel filled the union's member that belongs to this request.
        Ok(unsafe { request.ifr_ifru.ifru_flags })
    }

    /// Whether the interface has carrier and is operationally up (`IFF_RUNNING`).
    pub(crate) fn has_link(&self) -> io::Result<bool> {
        // ETHTOOL_GLINK makes the kernel finish its pending work for a link that just came up.
        let connected = self.ethtool(ETHTOOL_GLINK, 0)? != 0;
        Ok(connected && self.flags()? & libc::IFF_RUNNING as c_short != 0)
    }

    /// Whether the interface is up and has carrier. One that is dormant has: its peer may send what ends that.
    pub(crate) fn has_carrier(&self) -> io::Result<bool> {
        let flags = self.flags()?;
        let needed = match self.ethtool(ETHTOOL_GLINK, 0) {
            Ok(0) => return Ok(false),
            Ok(_) => libc::IFF_UP as c_short,
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
                (libc::IFF_UP | libc::IFF_RUNNING) as c_short
            }
            Err(error) => return Err(error),
        };
        Ok(flags & needed == needed)
    }

    pub(crate) fn bring_up(&self) -> io::Result<()> {
        let mut request = zeroed_ifreq();
        request.ifr_ifru.ifru_flags = self.flags()? | libc::IFF_UP as c_short;
        self.ioctl(libc::SIOCSIFFLAGS, request).map(drop)
    }

    /// Runs one ethtool command with one input and one output value.
    pub(crate) fn ethtool(&self, command: u32, value: u32) -> io::Result<u32> {
        // The kernel's struct ethtool_value.
        #[repr(C)]
        struct EthtoolValue {
            command: u32,
            value: u32,
        }
        let mut argument = EthtoolValue { command, value };
        let mut request = zeroed_ifreq();
        request.ifr_ifru.ifru_data = (&raw mut argument).cast();
        self.ioctl(libc::SIOCETHTOOL, request)?;
        Ok(argument.value)
    }

    /// Returns the numbers of receive and transmit queues.
    pub(crate) fn queues(&self) -> (u32, u32) {
        // The kernel's struct ethtool_channels: the command ETHTOOL_GCHANNELS; the maximum numbers of receive,
        // transmit, other and combined channels; then the current numbers.
        let mut channels = [0u32; 9];
        channels[0] = ETHTOOL_GCHANNELS;
        let mut request = zeroed_ifreq();
        request.ifr_ifru.ifru_data = (&raw mut channels).cast();
        match self.ioctl(libc::SIOCETHTOOL, request) {
            Ok(_) => {
                let [receive, transmit, _, combined] = [channels[5], channels[6], channels[7], channels[8]];
                ((receive + combined).max(1), (transmit + combined).max(1))
            }
            // A driver that does not support the query has one queue.
            Err(_) => (1, 1),
        }
    }

    /// Returns the name of the driver.
    pub(crate) fn driver(&self) -> io::Result<String> {
        // The kernel's struct ethtool_drvinfo: the command ETHTOOL_GDRVINFO, then the name in 32 bytes, then more.
        let mut info = [0u32; 49];
        info[0] = ETHTOOL_GDRVINFO;
        let mut request = zeroed_ifreq();
        request.ifr_ifru.ifru_data = (&raw mut info).cast();
        self.ioctl(libc::SIOCETHTOOL, request)?;
        let name = info[1..9].iter().flat_map(|word| word.to_ne_bytes()).take_while(|byte| *byte != 0);
        Ok(name.map(char::from).collect())
    }

    fn ioctl(&self, number: libc::Ioctl, request: libc::ifreq) -> io::Result<libc::ifreq> {
        let mut request = libc::ifreq { ifr_name: name_field(self.name)?, ..request };
        // SAFETY: every request number used here takes a pointer to an `ifreq`, and `request` is one that lives through
        // the call; the caller keeps memory that it points to (ethtool) alive.
        let result = unsafe { libc::ioctl(self.socket.as_raw_fd(), number, &raw mut request) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(request) }
    }
}

/// Returns the index of an interface of the calling thread's network namespace.
///
/// # Errors
/// Returns an error if there is no such interface.
pub fn interface_index(interface: &str) -> io::Result<u32> {
    let name = CString::new(interface).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: the name is a string that lives through the call.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    if index == 0 { Err(io::Error::last_os_error()) } else { Ok(index) }
}

/// Returns how many bytes of a frame count towards the MTU: all but the Ethernet header and one VLAN tag.
pub fn payload_len(frame: &[u8]) -> usize {
    let is_tagged = matches!(frame.get(12..14), Some([0x81, 0x00] | [0x88, 0xa8]));
    frame.len().saturating_sub(if is_tagged { 18 } else { 14 })
}

/// Whether an interface with this index exists in the socket's namespace.
pub(crate) fn exists(socket: BorrowedFd<'_>, index: c_int) -> bool {
    name_of(socket, index).is_ok()
}

/// Returns the name of the interface with this index in the socket's namespace.
pub(crate) fn name_of(socket: BorrowedFd<'_>, index: c_int) -> io::Result<String> {
    let mut request = zeroed_ifreq();
    request.ifr_ifru.ifru_ifindex = index;
    // SAFETY: SIOCGIFNAME takes a pointer to an `ifreq`, and `request` is one that lives through the call.
    if unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFNAME, &raw mut request) } < 0 {
        return Err(io::Error::last_os_error());
    }
    let name = request.ifr_name.iter().take_while(|byte| **byte != 0);
    Ok(name.map(|byte| char::from(byte.cast_unsigned())).collect())
}

/// Returns a zeroed request.
pub(crate) fn zeroed_ifreq() -> libc::ifreq {
    // SAFETY: an `ifreq` is an array of characters and a union of integers, addresses and pointers, and zero bytes are
    // valid.
    unsafe { std::mem::zeroed() }
}

/// Converts a name to the form of the kernel's requests.
pub(crate) fn name_field(name: &str) -> io::Result<[libc::c_char; libc::IFNAMSIZ]> {
    let mut field = [0; libc::IFNAMSIZ];
    if name.is_empty() || name.len() >= field.len() || name.bytes().any(|b| b == 0) {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    for (to, from) in field.iter_mut().zip(name.bytes()) {
        *to = from.cast_signed();
    }
    Ok(field)
}
