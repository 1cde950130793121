//! Runs a server in a thread of its own.

use std::future::Future;
use std::io::Error;
use std::net::SocketAddr;
use std::thread::JoinHandle;

use tokio::net::TcpListener;
use tokio::runtime::{Handle, Runtime};
use tokio::sync::oneshot;

/// A listening socket with an executor that does not run yet. Clients can connect already, and wait in the kernel's
/// queue.
pub struct BoundServer {
    address: SocketAddr,
    listener: std::net::TcpListener,
    runtime: Runtime,
}

/// A running server. Dropping it stops the server and waits for its thread.
pub struct ServerThread {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl BoundServer {
    /// Creates an executor for a listening socket.
    ///
    /// # Errors
    /// If the socket does not listen, or the executor cannot be created.
    pub fn new(listener: std::net::TcpListener) -> Result<BoundServer, Error> {
        let address = listener.local_addr()?;
        listener.set_nonblocking(true)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(BoundServer { address, listener, runtime })
    }

    /// Returns the address of the socket. Its port is the actual one, also where any port was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns a handle with which other threads can spawn tasks on the server's executor.
    pub fn handle(&self) -> Handle {
        self.runtime.handle().clone()
    }

    /// Starts the thread. It runs until the returned value is dropped, or the server ends by itself. Tasks that are
    /// active then are dropped.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn start<F: Future<Output = ()>>(
        self,
        name: &str,
        serve: impl FnOnce(TcpListener) -> F + Send + 'static,
    ) -> Result<ServerThread, Error> {
        let BoundServer { address, listener, runtime } = self;
        let (stop, stopped) = oneshot::channel();
        let run = move || {
            runtime.block_on(async move {
                let Ok(listener) = TcpListener::from_std(listener) else { return };
                tokio::select! {
                    () = serve(listener) => {}
                    _ = stopped => {}
                }
            });
            // Active tasks are not waited for: nobody reads their answers.
            runtime.shutdown_background();
        };
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(run)?;
        Ok(ServerThread { address, stop: Some(stop), thread: Some(thread) })
    }
}

impl ServerThread {
    /// Returns the address of the server. Its port is the actual one, also where any port was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for ServerThread {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::sync::mpsc;
    use std::time::Duration;

    use tokio::io::AsyncWriteExt;

    use super::*;

    fn bound() -> BoundServer {
        BoundServer::new(std::net::TcpListener::bind("127.0.0.1:0").expect("there is a port")).expect("it listens")
    }

    /// Reports that it is dropped.
    struct Reporter(mpsc::Sender<()>);

    impl Drop for Reporter {
        fn drop(&mut self) {
            let _ = self.0.send(());
        }
    }

    #[test]
    fn a_server_serves_until_it_is_dropped() {
        let server = bound();
        let address = server.address();
        let (sender, closed) = mpsc::channel();
        let reporter = Reporter(sender);
        let greet = |listener: TcpListener| async move {
            // Variables are dropped in reverse order: the listener is closed before the report.
            let (_reporter, listener) = (reporter, listener);
            while let Ok((mut stream, _)) = listener.accept().await {
                let _ = stream.write_all(b"hello").await;
            }
        };
        let server = server.start("greeter", greet).expect("it starts");
        assert_eq!(server.address(), address);
        let mut text = String::new();
        TcpStream::connect(address).expect("it accepts").read_to_string(&mut text).expect("it answers");
        assert_eq!(text, "hello");
        assert_eq!(closed.try_recv(), Err(mpsc::TryRecvError::Empty), "it still listens");
        drop(server);
        closed.recv_timeout(Duration::from_secs(60)).expect("the socket is closed");
    }

    #[test]
    fn tasks_of_a_stopped_server_are_dropped() {
        let (sender, dropped) = mpsc::channel();
        let server = bound();
        let reporter = Reporter(sender);
        server.handle().spawn(async move {
            std::future::pending::<()>().await;
            drop(reporter);
        });
        let address = server.address();
        // The listener has to live: once it is closed, the kernel resets every client that connects.
        let never_accepts = |listener: TcpListener| async move {
            std::future::pending::<()>().await;
            drop(listener);
        };
        let server = server.start("idle", never_accepts).expect("it starts");
        TcpStream::connect(address).expect("the kernel accepts").write_all(b"x").expect("and buffers");
        drop(server);
        dropped.recv_timeout(Duration::from_secs(60)).expect("the task is gone");
    }
}
