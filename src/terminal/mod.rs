//! The terminal front end: what a person sees, and how a person answers.
//!
//! It takes part in a run like anybody else: [`Screen`] is an Observer, [`Person`] an Approver, and no line of the
//! loop knows of them. One file, one idea:
//!
//! ```text
//! sanitize.rs  foreign text made safe to show          lines.rs   standard input as lines, with an eye on Cancel
//! console.rs   the one place that writes               person.rs  asks before a call runs
//! spinner.rs   the thread that shows that time passes  step.rs    waits for Enter before each request and call
//! screen.rs    events in words                         prompt.rs  the line editor of a talk
//! folding.rs   long results and calls in few lines     wire.rs    requests and streams as they travel
//! ```
//!
//! Left out on purpose: rendering Markdown (the text a model writes is readable as it is, and half-rendered text
//! that streams is not), full-screen drawing (scrolling back must show all that happened), and themes.

mod console;
mod folding;
mod lines;
mod person;
mod prompt;
mod sanitize;
mod screen;
mod spinner;
mod step;
mod wire;

pub use console::{Answers, Console, Ink, Paint, Stdout};
pub use lines::{Line, Lines, SharedLines};
pub use person::Person;
pub use prompt::{Entry, Prompt, slash};
pub use sanitize::sanitize;
pub use screen::{Ended, Screen, Volume};
pub use step::Step;
pub use wire::wire_printer;
