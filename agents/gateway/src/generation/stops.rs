//! Stop sequences in a text that comes in pieces.

/// Finds stop sequences across the borders of pieces and holds back what may become one.
#[derive(Clone, Debug)]
pub struct Stops {
    stops: Vec<String>,
    /// Text not given yet: the longest end of the text that one of the stop sequences begins with.
    held: String,
}

impl Stops {
    /// Looks for these; empty ones are not looked for.
    pub fn new(stops: Vec<String>) -> Self {
        Self { stops: stops.into_iter().filter(|stop| !stop.is_empty()).collect(), held: String::new() }
    }

    /// Takes the next text; gives what may be shown, and whether a stop sequence follows it. Nothing may be pushed
    /// after one.
    pub fn push(&mut self, text: &str) -> (String, bool) {
        self.held.push_str(text);
        if let Some(start) = self.stops.iter().filter_map(|stop| self.held.find(stop.as_str())).min() {
            let mut shown = std::mem::take(&mut self.held);
            shown.truncate(start);
            return (shown, true);
        }
        let keep = self.held.len() - self.begun();
        let held = self.held.split_off(keep);
        (std::mem::replace(&mut self.held, held), false)
    }

    /// What was held back, once the text has ended otherwise.
    pub fn rest(&mut self) -> String {
        std::mem::take(&mut self.held)
    }

    /// Bytes at the end of the text that a stop sequence begins with.
    fn begun(&self) -> usize {
        let longest = |stop: &String| {
            let most = stop.len().saturating_sub(1).min(self.held.len());
            (1..=most).rev().find(|length| self.held.as_bytes().ends_with(&stop.as_bytes()[..*length])).unwrap_or(0)
        };
        // Never within a character: texts end, and stop sequences begin, with whole ones.
        self.stops.iter().map(longest).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(stops: &[&str], pieces: &[&str]) -> (Vec<String>, bool) {
        let mut finder = Stops::new(stops.iter().map(ToString::to_string).collect());
        let mut shown = Vec::new();
        for piece in pieces {
            let (text, stopped) = finder.push(piece);
            shown.push(text);
            if stopped {
                return (shown, true);
            }
        }
        shown.push(finder.rest());
        (shown, false)
    }

    #[test]
    fn a_stop_is_found_wherever_pieces_end() {
        let text = "one END two";
        for cut in 0..text.len() {
            for next in cut..text.len() {
                let (shown, stopped) = run(&["END", "two"], &[&text[..cut], &text[cut..next], &text[next..]]);
                assert_eq!((shown.concat().as_str(), stopped), ("one ", true), "{cut} {next}");
            }
        }
    }

    #[test]
    fn only_what_may_become_a_stop_is_held_back() {
        assert_eq!(run(&["abcd"], &["xab", "y", "zabc", "abc"]), (vec!["x", "aby", "z", "abc", "abc"], false).owned());
        assert_eq!(run(&["aab"], &["a", "a", "a", "b", "c"]), (vec!["", "", "a", ""], true).owned());
        assert_eq!(run(&[], &["a", "b"]), (vec!["a", "b", ""], false).owned());
        assert_eq!(run(&[""], &["a"]), (vec!["a", ""], false).owned());
    }

    #[test]
    fn the_first_stop_in_the_text_counts_not_the_first_in_the_list() {
        assert_eq!(run(&["b", "a"], &["xaxb"]), (vec!["x"], true).owned());
    }

    #[test]
    fn characters_stay_whole() {
        assert_eq!(run(&["é!", "ü"], &["né", "e"]), (vec!["n", "ée", ""], false).owned());
        assert_eq!(run(&["日本"], &["今日", "は"]), (vec!["今", "日は", ""], false).owned());
        // The same first bytes, another character.
        assert_eq!(run(&["日本"], &["旦"]), (vec!["旦", ""], false).owned());
    }

    trait Owned {
        fn owned(self) -> (Vec<String>, bool);
    }

    impl Owned for (Vec<&str>, bool) {
        fn owned(self) -> (Vec<String>, bool) {
            (self.0.into_iter().map(str::to_owned).collect(), self.1)
        }
    }
}
