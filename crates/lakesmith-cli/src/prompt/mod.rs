//! `lakesmith sql` on a terminal: statements are typed, run when their semicolon comes, and remembered.
//!
//! ```text
//! terminal --editor--> statement | command --> Session::sql --> tables, errors with their place
//!             history, completion
//! ```

mod buffer;
mod complete;
mod editor;
mod history;
mod statement;

use std::time::{Duration, Instant};

use lakesmith::Cancel;

use self::complete::Completer;
use self::editor::{Editor, Typed};
use self::history::History;
use self::statement::{Input, kind_of};
use crate::exit::{self, Failure};

const HELP: &str = "\
Statements end with a semicolon and may span lines:
  OPTIMIZE delta.`/lake/events`;
  DESCRIBE HISTORY delta.`/lake/events` LIMIT 5;
  SET lakesmith.memory = 2GiB;

\\?        this help                \\timing   show how long statements take, or stop doing so
\\q        leave (or Ctrl-D)        Ctrl-C    drop what is typed, or stop the running statement only
Tab       complete a word          Up, Down  earlier statements (those that set secrets are not kept)";

/// What the prompt wants done.
pub(crate) enum Step<'a> {
    /// A line shown.
    Line(&'a str),
    /// Statements run.
    Statements(&'a str),
}

/// Reads statements until the user leaves, and gives each to `each`. A statement that fails is shown, and the next one read.
///
/// # Errors
/// Unavailable when the terminal can't be read, and what `each` fails with on a line.
pub(crate) fn read_statements(
    cancel: &Cancel,
    each: &mut dyn FnMut(Step<'_>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut history = History::open();
    let mut editor = Editor::new(Completer::new());
    let mut timing = false;
    each(Step::Line(&format!("lakesmith {}: \\? for help, \\q to leave", env!("CARGO_PKG_VERSION"))))?;
    loop {
        let text = match editor.read(&history)? {
            Typed::Text(text) => text,
            Typed::Dropped => continue,
            Typed::End => return Ok(()),
        };
        match kind_of(&text) {
            Input::Nothing => {}
            Input::Help => each(Step::Line(HELP))?,
            Input::Leave => return Ok(()),
            Input::Timing => {
                timing = !timing;
                each(Step::Line(if timing { "timing is on" } else { "timing is off" }))?;
            }
            Input::UnknownCommand => {
                each(Step::Line(&format!("there is no command {}; \\? shows them", text.trim())))?;
            }
            Input::Statements => {
                history.add(text.trim());
                // A request to stop was meant for an earlier statement.
                cancel.reset();
                let started = Instant::now();
                if let Err(failure) = each(Step::Statements(&text)) {
                    exit::failure(&failure, false);
                }
                if timing {
                    each(Step::Line(&format!("time: {}", shown(started.elapsed()))))?;
                }
            }
        }
    }
}

fn shown(elapsed: Duration) -> String {
    if elapsed < Duration::from_secs(1) {
        format!("{} ms", elapsed.as_millis())
    } else {
        format!("{:.2} s", elapsed.as_secs_f64())
    }
}
