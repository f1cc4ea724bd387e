//! Being told to stop: one flag that everything long looks at, and one wake-up for what cannot look.
//!
//! A signal (Ctrl-C, TERM, HUP) or the time limit *raises* the flag. Loops that poll (bash, a question, a pause
//! before a retry) see it within milliseconds. A blocked network read cannot look at a flag, so whoever blocks
//! leaves a wake-up first ([`Cancel::while_blocked`]): the raising thread calls it, and the read ends.
//!
//! Rejected: handling signals by letting system calls fail with EINTR (ureq and std retry it), and short read
//! time-outs (response headers cannot be resumed after one).

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Why a run was told to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Ctrl-C.
    Interrupt,
    /// SIGTERM.
    Terminate,
    /// SIGHUP: the terminal went away.
    Hangup,
    /// `--timeout`: the run's own time limit, no signal.
    TimeLimit,
}

const CAUSES: [Cause; 4] = [Cause::Interrupt, Cause::Terminate, Cause::Hangup, Cause::TimeLimit];

impl Cause {
    /// The number of the signal, to die by it; `None` for the time limit.
    pub fn signal(self) -> Option<i32> {
        match self {
            Cause::Interrupt => Some(2),
            Cause::Terminate => Some(15),
            Cause::Hangup => Some(1),
            Cause::TimeLimit => None,
        }
    }
}

type Wake = Box<dyn Fn() + Send>;

/// The flag. Clones are handles on the same flag, for the threads that raise it.
#[derive(Clone, Default)]
pub struct Cancel {
    /// 0, or the position of the cause in `CAUSES` plus one.
    raised: Arc<AtomicU8>,
    wake: Arc<Mutex<Option<Wake>>>,
}

impl Cancel {
    /// A flag that nobody has raised.
    pub fn new() -> Cancel {
        Cancel::default()
    }

    /// Why to stop, if anybody said so.
    pub fn cause(&self) -> Option<Cause> {
        let raised = usize::from(self.raised.load(Ordering::SeqCst));
        raised.checked_sub(1).and_then(|i| CAUSES.get(i)).copied()
    }

    /// Whether to stop.
    pub fn is_raised(&self) -> bool {
        self.cause().is_some()
    }

    /// Says stop, and wakes what is blocked. The first cause stands.
    pub fn raise(&self, cause: Cause) {
        let code = CAUSES.iter().position(|c| *c == cause).map_or(1, |i| i as u8 + 1);
        let _ = self.raised.compare_exchange(0, code, Ordering::SeqCst, Ordering::SeqCst);
        if let Some(wake) = self.lock().as_ref() {
            wake();
        }
    }

    /// Forgets a Ctrl-C that has been dealt with: while talking it stops the step, not the program.
    pub fn clear(&self) {
        self.raised.store(0, Ordering::SeqCst);
    }

    /// Leaves `wake` to be called by [`raise`](Cancel::raise) until the guard is dropped. If the flag is up already
    /// it is called at once, so nothing can fall between a look at the flag and the block.
    #[must_use = "the wake-up is taken back when the guard is dropped"]
    pub fn while_blocked(&self, wake: impl Fn() + Send + 'static) -> Blocked<'_> {
        *self.lock() = Some(Box::new(wake));
        if self.is_raised()
            && let Some(wake) = self.lock().as_ref()
        {
            wake();
        }
        Blocked(self)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Wake>> {
        self.wake.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps a wake-up in place; see [`Cancel::while_blocked`].
pub struct Blocked<'a>(&'a Cancel);

impl Drop for Blocked<'_> {
    fn drop(&mut self) {
        *self.0.lock() = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    #[test]
    fn the_first_cause_stands_until_cleared() {
        let cancel = Cancel::new();
        assert_eq!(cancel.cause(), None);
        cancel.raise(Cause::Terminate);
        cancel.raise(Cause::Interrupt);
        assert_eq!(cancel.cause(), Some(Cause::Terminate));
        cancel.clear();
        assert_eq!(cancel.cause(), None);
    }

    #[test]
    fn a_wake_up_is_called_while_blocked_and_not_after() {
        let (cancel, calls) = (Cancel::new(), Arc::new(AtomicU32::new(0)));
        let counter = Arc::clone(&calls);
        let guard = cancel.while_blocked(move || {
            counter.fetch_add(1, Ordering::SeqCst);
        });
        cancel.raise(Cause::Interrupt);
        drop(guard);
        cancel.raise(Cause::Interrupt);
        assert_eq!(calls.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn a_wake_up_left_too_late_is_called_at_once() {
        let (cancel, calls) = (Cancel::new(), Arc::new(AtomicU32::new(0)));
        cancel.raise(Cause::Interrupt);
        let counter = Arc::clone(&calls);
        let _guard = cancel.while_blocked(move || {
            counter.fetch_add(1, Ordering::SeqCst);
        });
        assert_eq!(calls.load(Ordering::SeqCst), 1);
    }
}
