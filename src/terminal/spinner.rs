//! The spinner: a thread that shows that time passes while the model thinks.
//!
//! It is the only thing that writes beside the loop, so whoever wants to write stops it first: dropping it ends the
//! thread, waits for it, and leaves the line empty. It shares one number with the loop, the bytes that came so far.

use super::folding::counted;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const FRAMES: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// Nothing is drawn before this: a quick reply should not flicker.
const PATIENCE: Duration = Duration::from_millis(200);

/// Back to the first column, and the line emptied.
pub const ERASE: &str = "\r\x1b[K";

/// Bytes of English or code that make about one token.
pub const BYTES_A_TOKEN: usize = 4;

/// A spinner at work; ends when dropped.
pub struct Spinner {
    bytes: Arc<AtomicUsize>,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Spinner {
    /// Starts to spin on `out`, every `tick`.
    pub fn start(out: Box<dyn Write + Send>, tick: Duration) -> Spinner {
        let (stop, stopped) = channel();
        let bytes = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&bytes);
        // No thread, no spinner: it is an ornament.
        let thread = std::thread::Builder::new().spawn(move || spin(out, tick, &counted, &stopped)).ok();
        Spinner { bytes, stop: Some(stop), thread }
    }

    /// So many more bytes have come.
    pub fn count(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic in there has been reported by the thread itself, and costs nothing else.
            let _ = thread.join();
        }
    }
}

fn spin(mut out: Box<dyn Write + Send>, tick: Duration, bytes: &AtomicUsize, stopped: &Receiver<()>) {
    let started = Instant::now();
    let mut frames = FRAMES.iter().cycle();
    let mut wait = PATIENCE;
    while stopped.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
        wait = tick;
        let frame = frames.next().unwrap_or(&'·');
        let line = label(*frame, started.elapsed(), bytes.load(Ordering::Relaxed));
        let _ = write!(out, "{ERASE}{line}").and_then(|()| out.flush());
    }
    if wait == tick {
        let _ = write!(out, "{ERASE}").and_then(|()| out.flush());
    }
}

/// `⠋ 12 s · ~340 tokens`
fn label(frame: char, time: Duration, bytes: usize) -> String {
    let tokens = bytes / BYTES_A_TOKEN;
    let counted = if tokens == 0 { String::new() } else { format!(" · ~{}", counted(tokens, "token")) };
    format!("{frame} {} s{counted}", time.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);
    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn it_leaves_an_empty_line_and_nothing_at_all_after_a_quick_reply() {
        let (quick, slow) = (Shared::default(), Shared::default());
        drop(Spinner::start(Box::new(quick.clone()), Duration::from_millis(10)));
        assert_eq!(*quick.0.lock().unwrap(), b"");
        let spinner = Spinner::start(Box::new(slow.clone()), Duration::from_millis(10));
        std::thread::sleep(PATIENCE + Duration::from_millis(100));
        drop(spinner);
        let text = String::from_utf8(slow.0.lock().unwrap().clone()).unwrap();
        assert!(text.starts_with("\r\x1b[K⠋ 0 s") && text.ends_with(ERASE), "{text:?}");
    }

    #[test]
    fn the_label_counts_whole_seconds_and_about_tokens() {
        assert_eq!(label('⠋', Duration::from_millis(12_900), 1360), "⠋ 12 s · ~340 tokens");
        assert_eq!(label('⠋', Duration::ZERO, 3), "⠋ 0 s");
    }
}
