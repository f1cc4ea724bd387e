//! The terminal front end: what a person sees, and how a person answers.
//!
//! It takes part in a run like anybody else: [`Screen`] is an Observer, [`Person`] an Approver, and no line of the
//! loop knows of them. One file, one idea:
//!
//! ```text
//! writing   console.rs   the one place that writes       sanitize.rs  foreign text made safe to show
//!           ink.rs       colours, and when there are any spinner.rs   the thread that shows that time passes
//! watching  screen.rs    events in words                 folding.rs   long results and calls in few lines
//!           outcome.rs   what came of a call              ending.rs    how a task ended
//!           wire.rs      requests and streams as they travel
//! reading   lines.rs     standard input as lines         person.rs    asks before a call runs
//!           prompt.rs    the line editor of a talk       step.rs      waits for Enter before requests and calls
//! ```
//!
//! Left out on purpose: rendering Markdown (the text a model writes is readable as it is, and half-rendered text
//! that streams is not), full-screen drawing (scrolling back must show all that happened), and themes.

mod console;
mod ending;
mod folding;
mod ink;
mod lines;
mod outcome;
mod patient;
mod person;
mod prompt;
mod sanitize;
mod screen;
mod spinner;
mod step;
mod wire;

pub use console::{Answers, Console, Stdout, width};
pub use ending::Ended;
pub use folding::wrap_words;
pub use ink::{Ink, Paint};
pub use lines::{Line, Lines, SharedLines};
pub use patient::Patient;
pub use person::{Person, confirm};
pub use prompt::{Entry, Prompt, slash};
pub use sanitize::sanitize;
pub use screen::{Screen, Volume};
pub use step::Step;
pub use wire::wire_printer;
