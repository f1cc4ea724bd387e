//! A deadline for what cannot look at a clock.
//!
//! A read blocks in the kernel, and ureq's own time limits are either per read (a keep-alive comment resets them for
//! ever) or for the whole answer (which kills long healthy ones). So one thread waits for a deadline that the reader
//! moves with every event; when it passes, the thread closes the connection under the read.
//!
//! The whole state is one number: the deadline, or one of two marks. A compare-and-swap decides whether the dog bit or
//! was called off first, so the reader always knows.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// The reader is through; nothing will happen.
const OFF: u64 = u64::MAX;
/// The deadline passed and the connection was closed.
const BIT: u64 = u64::MAX - 1;

/// Watches one answer.
pub struct Watchdog {
    /// ms after `start`, or a mark.
    deadline: Arc<AtomicU64>,
    start: Instant,
    thread: Option<Thread>,
}

impl Watchdog {
    /// Calls `bite` once if `ms` pass before the deadline is moved or the dog is dropped.
    pub fn new(ms: u64, bite: impl FnOnce() + Send + 'static) -> Watchdog {
        let (deadline, start) = (Arc::new(AtomicU64::new(ms.min(BIT - 1))), Instant::now());
        let watched = Arc::clone(&deadline);
        let thread = std::thread::Builder::new().name("watchdog".into()).spawn(move || {
            if wait(&watched, start) {
                bite();
            }
        });
        // Without a thread (none can be had) there is only ureq's limit per read; the answer is still worth reading.
        Watchdog { deadline, start, thread: thread.ok().map(|handle| handle.thread().clone()) }
    }

    /// Moves the deadline to `ms` from now.
    pub fn within(&self, ms: u64) {
        let new = self.now().saturating_add(ms).min(BIT - 1);
        let old = self.deadline.load(Ordering::SeqCst);
        let moved = old < BIT && self.deadline.compare_exchange(old, new, Ordering::SeqCst, Ordering::SeqCst).is_ok();
        if moved && new < old {
            self.wake(); // it sleeps until the old one
        }
    }

    /// Whether the deadline passed.
    pub fn has_bitten(&self) -> bool {
        self.deadline.load(Ordering::SeqCst) == BIT
    }

    /// Calls the dog off; tells whether it was too late.
    pub fn call_off(self) -> bool {
        self.deadline.swap(OFF, Ordering::SeqCst) == BIT
    }

    fn now(&self) -> u64 {
        self.start.elapsed().as_millis() as u64
    }

    fn wake(&self) {
        if let Some(thread) = &self.thread {
            thread.unpark();
        }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.deadline.store(OFF, Ordering::SeqCst);
        self.wake();
    }
}

/// Sleeps until the deadline passes (true) or there is none any more (false).
fn wait(deadline: &AtomicU64, start: Instant) -> bool {
    loop {
        let at = deadline.load(Ordering::SeqCst);
        if at == OFF {
            return false;
        }
        let left = Duration::from_millis(at).saturating_sub(start.elapsed());
        if !left.is_zero() {
            std::thread::park_timeout(left);
        } else if deadline.compare_exchange(at, BIT, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
            return true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn it_bites_when_nothing_moves_the_deadline() {
        let (bite, bitten) = mpsc::channel();
        let dog = Watchdog::new(10_000, move || bite.send(()).unwrap());
        dog.within(10); // nearer than before: the sleeper is woken
        assert_eq!(bitten.recv_timeout(Duration::from_secs(5)), Ok(()));
        assert!(dog.has_bitten());
        dog.within(10);
        assert!(dog.has_bitten());
    }

    #[test]
    fn called_off_it_never_bites_and_its_thread_ends() {
        let (bite, bitten) = mpsc::channel::<()>();
        let dog = Watchdog::new(50, move || bite.send(()).unwrap_or_default());
        dog.within(60_000);
        std::thread::sleep(Duration::from_millis(100));
        assert!(!dog.has_bitten());
        drop(dog);
        assert_eq!(bitten.recv_timeout(Duration::from_secs(5)), Err(mpsc::RecvTimeoutError::Disconnected));
    }
}
