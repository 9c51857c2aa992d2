//! Standard error, shared by a live view and everything else that is said: a line of a log never lands in the middle of
//! the view.

use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

use indicatif::ProgressBar;

/// The view that is on the terminal now.
static VIEW: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// A view on the terminal, until dropped.
pub struct View(());

impl View {
    /// Shows it; one at a time.
    pub fn show(bar: ProgressBar) -> Self {
        *VIEW.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar);
        Self(())
    }
}

impl Drop for View {
    fn drop(&mut self) {
        *VIEW.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Says a line to people, above the view if there is one. Work goes on where nobody hears it.
pub fn tell(line: &str) {
    let _ = aside(|| writeln!(io::stderr().lock(), "{line}"));
}

/// [`tell`]s what `format!` makes of its arguments.
macro_rules! say {
    ($($words:tt)*) => {
        $crate::live::tell(&format!($($words)*))
    };
}
pub(crate) use say;

/// Does something while the view is away.
fn aside<T>(write: impl FnOnce() -> T) -> T {
    let view = VIEW.lock().unwrap_or_else(PoisonError::into_inner).clone();
    match view {
        Some(bar) => bar.suspend(write),
        None => write(),
    }
}

/// Where log lines go.
#[derive(Clone, Copy, Debug)]
pub struct Lines;

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        aside(|| io::stderr().lock().write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use indicatif::{ProgressDrawTarget, ProgressStyle, TermLike};

    use super::*;

    /// A terminal that notes whether it was drawn on since it was cleared.
    #[derive(Clone, Debug, Default)]
    struct Term(Arc<Mutex<bool>>);

    impl Term {
        fn shows(&self) -> bool {
            *self.0.lock().unwrap()
        }

        fn now(&self, shows: bool) -> io::Result<()> {
            *self.0.lock().unwrap() = shows;
            Ok(())
        }
    }

    impl TermLike for Term {
        fn width(&self) -> u16 {
            80
        }

        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(text)
        }

        fn write_str(&self, text: &str) -> io::Result<()> {
            if text.contains("learning") { self.now(true) } else { Ok(()) }
        }

        fn clear_line(&self) -> io::Result<()> {
            self.now(false)
        }

        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_view_is_away_while_something_is_said() {
        let term = Term::default();
        let bar = ProgressBar::with_draw_target(Some(2), ProgressDrawTarget::term_like(Box::new(term.clone())));
        bar.set_style(ProgressStyle::with_template("{msg}").unwrap());
        let view = View::show(bar.clone());
        bar.set_message("learning");
        bar.tick();
        assert!(term.shows());
        assert!(!aside(|| term.shows()), "away");
        assert!(term.shows(), "drawn again");
        drop(view);
        assert!(aside(|| term.shows()), "nothing is put away any more");
    }
}
