//! The peers: a bare UDP echo, and a relay that does only the work for a frame that a write needs. Both block when
//! there is nothing to do, like the stores and the switch.

use std::error::Error;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::Duration;

use ports::{Frame, Port, XdpPort, XdpSettings, wait};

/// First argument of an echo: its address follows, and the address that gets the datagrams if it is not the sender's.
pub const ECHO: &str = "udp-echo";

/// First argument of a relay: its address, that of the echo and the length of datagrams follow.
pub const RELAY: &str = "relay";

fn argument<T: std::str::FromStr>(at: usize) -> Result<T, String> {
    std::env::args().nth(at).and_then(|text| text.parse().ok()).ok_or(format!("argument {at} is missing"))
}

/// Returns every datagram, unchanged, to its sender or to the next address.
pub fn echo() -> Result<(), Box<dyn Error>> {
    let socket = UdpSocket::bind(argument::<SocketAddr>(2)?)?;
    let next: Option<SocketAddr> = argument(3).ok();
    let mut buffer = [0; 2048];
    eprintln!("ready");
    loop {
        let (length, from) = socket.recv_from(&mut buffer)?;
        socket.send_to(&buffer[..length], next.unwrap_or(from))?;
    }
}

/// Sends a datagram to the echo for each frame of port r1, and the frame back by its port when the datagram returns.
pub fn relay() -> Result<(), Box<dyn Error>> {
    let (socket, to) = (UdpSocket::bind(argument::<SocketAddr>(2)?)?, argument::<SocketAddr>(3)?);
    socket.set_nonblocking(true)?;
    let (datagram, mut buffer) = (vec![0; argument(4)?], [0; 2048]);
    let mut port = XdpPort::open("r1", XdpSettings::default())?;
    let mut descriptors = vec![socket.as_raw_fd()];
    descriptors.extend(port.poll_fd());
    let (mut received, mut held): (Vec<Frame>, Vec<Vec<u8>>) = (Vec::new(), Vec::new());
    eprintln!("ready");
    loop {
        let count = port.receive_frames(&mut received, 32)?;
        for frame in received.drain(..) {
            held.push(frame.to_vec());
            socket.send_to(&datagram, to)?;
        }
        let mut returned = 0;
        while socket.recv_from(&mut buffer).is_ok() {
            returned += 1;
        }
        for frame in held.drain(..returned.min(held.len())) {
            port.send(&frame)?;
        }
        if returned > 0 {
            port.flush()?;
        } else if count == 0 {
            wait(&descriptors, Duration::from_millis(100))?;
        }
    }
}
