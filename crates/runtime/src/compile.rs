//! Compiles a switch's program in a thread of its own while the switch interprets packets.
//!
//! ```text
//!   loop:    poll: take the job ─> … batches, interpreted … ─> poll: install ─> … batches, machine code …
//!                       └─> thread: compile, wake the loop ───────┘
//! ```
//!
//! There is at most one such thread. A job of a program that has been replaced is cancelled, and its code, if it is
//! there already, is not installed: the switch refuses the code of another program.

use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::{Duration, Instant};

use switch::{CompileJob, CompiledCode, PacketSwitch, Takeover};

use crate::hook::{Hook, HookContext};
use crate::waker::Waker;

/// Called when a compilation has ended, with its effect on the switch and the time since its switch was there.
pub type TakeoverCallback = Box<dyn FnMut(&Takeover, Duration) + Send>;

/// The hook that takes the compile jobs of a switch and installs their code. It must come after hooks that replace the
/// program.
pub struct CompileHook {
    waker: Waker,
    running: Option<Compilation>,
    /// The job that starts when the cancelled one has ended, and the time at which it was taken.
    next: Option<(CompileJob, Instant)>,
    on_takeover: TakeoverCallback,
}

/// A compilation in its thread.
struct Compilation {
    code: Receiver<CompiledCode>,
    is_cancelled: Arc<AtomicBool>,
    began: Instant,
}

impl CompileHook {
    /// Returns a hook without a job.
    ///
    /// # Errors
    /// If the process can open no more descriptors.
    pub fn new(on_takeover: TakeoverCallback) -> io::Result<CompileHook> {
        let waker = Waker::new()?;
        waker.arm();
        Ok(CompileHook { waker, running: None, next: None, on_takeover })
    }

    /// Compiles in a thread that ends by itself: a run that ends does not wait for it.
    fn start(&mut self, job: CompileJob, began: Instant) {
        let (sender, code) = channel();
        let is_cancelled = Arc::new(AtomicBool::new(false));
        let (cancel, waker) = (Arc::clone(&is_cancelled), self.waker.clone());
        let thread = std::thread::Builder::new().name("compile".to_owned()).spawn(move || {
            // Wakes the loop after a panic as well, when the channel is closed.
            let _wake = WakeOnDrop(waker);
            let sender = sender;
            // Nobody receives it if the run is over.
            _ = sender.send(job.run(&cancel));
        });
        match thread {
            Ok(_) => self.running = Some(Compilation { code, is_cancelled, began }),
            Err(error) => {
                let reason = format!("cannot start a thread to compile the program: {error}");
                (self.on_takeover)(&Takeover::Interpreted(reason), began.elapsed());
            }
        }
    }

    /// Ends the compilation if its thread has. Returns its code, unless it was cancelled, and its start.
    fn finished(&mut self) -> Option<(Option<CompiledCode>, Instant)> {
        let running = self.running.as_ref()?;
        let code = match running.code.try_recv() {
            Ok(code) => Some(code),
            Err(TryRecvError::Disconnected) => None,
            Err(TryRecvError::Empty) => return None,
        };
        let Compilation { is_cancelled, began, .. } = self.running.take()?;
        Some((code.filter(|_| !is_cancelled.load(Ordering::Relaxed)), began))
    }
}

struct WakeOnDrop(Waker);

impl Drop for WakeOnDrop {
    fn drop(&mut self) {
        self.0.wake();
    }
}

impl Drop for CompileHook {
    fn drop(&mut self) {
        if let Some(running) = &self.running {
            running.is_cancelled.store(true, Ordering::Relaxed);
        }
    }
}

impl<S: PacketSwitch> Hook<S> for CompileHook {
    fn poll(&mut self, context: &mut HookContext<'_, S>) {
        if let Some(job) = context.switch.take_compile_job() {
            match &self.running {
                Some(running) => {
                    running.is_cancelled.store(true, Ordering::Relaxed);
                    self.next = Some((job, Instant::now()));
                }
                None => self.start(job, Instant::now()),
            }
        }
        if self.running.is_none() || !self.waker.take_wake() {
            return;
        }
        let Some((code, began)) = self.finished() else { return };
        let takeover = code.map(|code| context.switch.install(code));
        match takeover {
            Some(Takeover::OtherProgram) | None => {}
            Some(takeover) => (self.on_takeover)(&takeover, began.elapsed()),
        }
        if let Some((job, began)) = self.next.take() {
            self.start(job, began);
        }
    }

    fn poll_fd(&self) -> Option<RawFd> {
        Some(self.waker.fd())
    }
}
