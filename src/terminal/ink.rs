//! Colours, and when there are any.
//!
//! termcolor writes them and reads `NO_COLOR` and `TERM`; whether there is a terminal at all it does not ask, so we do.

use std::borrow::Cow;
use std::io::{IsTerminal, Write};
use termcolor::{Buffer, Color, ColorChoice, ColorSpec, StandardStream, WriteColor};

/// What standard error can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    /// Colours, a spinner, a line that is drawn again: a terminal.
    Colour,
    /// Words only: not a terminal, or `NO_COLOR`, or `TERM=dumb`.
    Plain,
}

/// How a piece of text stands out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // They are what they are called.
pub enum Ink {
    Plain,
    Dim,
    Bold,
    Red,
    Green,
    Yellow,
    Blue,
    Magenta,
    Cyan,
}

impl Paint {
    /// What the process's standard error can show.
    pub fn of_stderr() -> Paint {
        let colours = std::io::stderr().is_terminal() && StandardStream::stderr(ColorChoice::Auto).supports_color();
        if colours { Paint::Colour } else { Paint::Plain }
    }

    /// Pieces of text, already made safe, as the bytes that show them.
    pub fn bytes<'a>(self, pieces: impl Iterator<Item = (Ink, Cow<'a, str>)>) -> Vec<u8> {
        let mut buffer = if self == Paint::Colour { Buffer::ansi() } else { Buffer::no_color() };
        for (ink, text) in pieces {
            // A buffer in memory cannot fail.
            let _ = paint(&mut buffer, ink, &text);
        }
        buffer.into_inner()
    }
}

fn paint(buffer: &mut Buffer, ink: Ink, text: &str) -> std::io::Result<()> {
    if ink == Ink::Plain || text.is_empty() {
        return buffer.write_all(text.as_bytes());
    }
    buffer.set_color(&spec(ink))?;
    buffer.write_all(text.as_bytes())?;
    buffer.reset()
}

fn spec(ink: Ink) -> ColorSpec {
    let mut spec = ColorSpec::new();
    let colour = match ink {
        Ink::Plain => return spec,
        Ink::Dim => return spec.set_dimmed(true).clone(),
        Ink::Bold => return spec.set_bold(true).clone(),
        Ink::Red => Color::Red,
        Ink::Green => Color::Green,
        Ink::Yellow => Color::Yellow,
        Ink::Blue => Color::Blue,
        Ink::Magenta => Color::Magenta,
        Ink::Cyan => Color::Cyan,
    };
    spec.set_fg(Some(colour)).clone()
}
