//! Labelled texts: what an encoder learns to tell apart.
//!
//! Every row of the CSV holds a text and, in its second column, its class as any text. A first row that says `text` and
//! `label` is a header. Classes are numbered in the order of their names, or as the head of a trained model has them. A
//! fifth of the rows, drawn by a seed, is held out.

use tensorlink_num::Tensor;
use tensorlink_types::TensorType;

use super::text::MAX_CHARACTERS;
use super::{Census, DataError, Dataset, MAX_CSV, MAX_ROWS, classes, dialect, hold_out};
use crate::compile::TrainingSet;
use crate::step::build::ceil_log2;

/// Tokens of a vocabulary of characters that are none: what stands for nothing, and what begins a text. They are
/// its first.
pub const SPECIAL: [&str; 2] = ["[PAD]", "[CLS]"];
/// The first of them.
pub const PADDING: u32 = 0;
/// The second.
const BEGINNING: u32 = 1;
/// What a header says.
const HEADER: [&str; 2] = ["text", "label"];

/// Texts and the class of each.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LabelledTexts {
    /// The texts in order.
    pub texts: Vec<String>,
    /// Class of each.
    pub labels: Vec<u32>,
    /// Names of the classes, by their numbers.
    pub classes: Vec<String>,
}

/// Texts in tokens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TokenTexts {
    /// The tokens of each text.
    pub ids: Vec<Vec<u32>>,
    /// How many different ones there can be.
    pub vocabulary: u32,
    /// The one that follows a text shorter than its row.
    pub padding: u32,
}

impl LabelledTexts {
    /// Reads CSV.
    ///
    /// # Errors
    /// A [`DataError`] that names the row and what to do about it.
    pub fn parse(csv: &[u8]) -> Result<Self, DataError> {
        if csv.len() > MAX_CSV {
            return Err(DataError::TooLarge { what: "bytes", actual: csv.len(), limit: MAX_CSV });
        }
        std::str::from_utf8(csv).map_err(|error| DataError::NotUtf8(error.valid_up_to()))?;
        let (mut texts, mut names) = (Vec::new(), Vec::new());
        for (index, record) in (0usize..).zip(dialect::records(csv, b',')) {
            let (row, record) = record?;
            let mut fields = record.iter();
            let (Some(text), Some(name), None) = (fields.next(), fields.next(), fields.next()) else {
                return Err(DataError::TextColumns { row, columns: record.len() });
            };
            if index == 0 && HEADER.iter().zip([text, name]).all(|(due, field)| field.eq_ignore_ascii_case(due)) {
                continue;
            }
            if text.is_empty() {
                return Err(DataError::NoText { row });
            }
            if name.is_empty() {
                return Err(DataError::NoClass { row });
            }
            texts.push(text.to_owned());
            names.push(name.to_owned());
            if texts.len() > MAX_ROWS {
                return Err(DataError::TooLarge { what: "rows", actual: texts.len(), limit: MAX_ROWS });
            }
        }
        if texts.len() < 2 {
            return Err(DataError::TooFewRows(texts.len()));
        }
        let (labels, classes) = classes(names)?;
        Ok(Self { texts, labels, classes })
    }

    /// What they hold.
    pub fn census(&self) -> Census {
        Census::of(&self.labels, &self.classes, 1)
    }

    /// The same with its classes numbered as a head has them, which may know more.
    ///
    /// # Errors
    /// [`DataError::UnknownClass`].
    pub fn numbered(self, known: &[String]) -> Result<Self, DataError> {
        let number = |class: &String| {
            let place = known.iter().position(|known| known == class).and_then(|place| u32::try_from(place).ok());
            place.ok_or_else(|| DataError::UnknownClass { class: class.clone(), known: known.join(", ") })
        };
        let numbers = self.classes.iter().map(number).collect::<Result<Vec<u32>, _>>()?;
        let labels = self.labels.iter().filter_map(|label| numbers.get(*label as usize).copied()).collect();
        Ok(Self { labels, classes: known.to_vec(), ..self })
    }

    /// The texts character by character, each after the token that begins it; and what the tokens are: [`SPECIAL`] ones
    /// first, then characters in the order of their code points.
    ///
    /// # Errors
    /// [`DataError::Characters`].
    pub fn characters(&self) -> Result<(TokenTexts, Vec<String>), DataError> {
        let mut characters: Vec<char> = self.texts.iter().flat_map(|text| text.chars()).collect();
        characters.sort_unstable();
        characters.dedup();
        if !(2..=MAX_CHARACTERS).contains(&characters.len()) {
            return Err(DataError::Characters(characters.len()));
        }
        let before = SPECIAL.len();
        // SAFETY of the casts: fewer than 2^17.
        let id = |character| characters.binary_search(&character).unwrap_or_default().saturating_add(before) as u32;
        let ids = |text: &String| std::iter::once(BEGINNING).chain(text.chars().map(id)).collect();
        let ids = self.texts.iter().map(ids).collect();
        let vocabulary = characters.len().saturating_add(before) as u32;
        let names = SPECIAL.iter().map(ToString::to_string).chain(characters.iter().map(char::to_string)).collect();
        Ok((TokenTexts { ids, vocabulary, padding: PADDING }, names))
    }

    /// Rows of so many tokens, longer texts cut and shorter ones followed by padding; a fifth of them, drawn by `seed`,
    /// is held out.
    ///
    /// # Errors
    /// [`DataError::NoTokens`] and [`DataError::Token`] for texts that are no rows of such tokens.
    pub fn split(&self, tokens: &TokenTexts, length: u32, seed: u64) -> Result<Dataset, DataError> {
        let TokenTexts { ids, vocabulary, padding } = tokens;
        if let Some(empty) = ids.iter().position(Vec::is_empty) {
            return Err(DataError::NoTokens { text: empty.saturating_add(1) });
        }
        let foreign = |token: &&u32| *token >= vocabulary;
        if let Some(&token) = ids.iter().flatten().chain([padding]).find(foreign) {
            return Err(DataError::Token { token, vocabulary: *vocabulary });
        }
        let bits = ceil_log2(*vocabulary).saturating_add(1).max(2);
        let set = |rows: &[usize]| {
            // SAFETY of the cast: rows are bounded on arrival.
            let count = rows.len() as u32;
            let row = |ids: &Vec<u32>| {
                let filled = ids.iter().chain(std::iter::repeat(padding)).take(length as usize);
                filled.map(|id| i64::from(*id)).collect::<Vec<_>>()
            };
            let features: Vec<i64> = rows.iter().filter_map(|index| ids.get(*index)).flat_map(row).collect();
            let labels = rows.iter().filter_map(|index| self.labels.get(*index));
            let labels: Vec<i64> = labels.map(|label| i64::from(*label)).collect();
            Ok::<_, DataError>(TrainingSet {
                features: Tensor::from_wide(TensorType::new(bits, 0, &[count, length])?, &features)?,
                labels: Tensor::from_wide(TensorType::new(16, 0, &[count])?, &labels)?,
            })
        };
        let (training, held_out) = hold_out(self.texts.len(), seed);
        Ok(Dataset {
            training: set(&training)?,
            held_out: set(&held_out)?,
            classes: self.classes.clone(),
            scales: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(csv: &str) -> Result<LabelledTexts, DataError> {
        LabelledTexts::parse(csv.as_bytes())
    }

    #[test]
    fn texts_may_hold_what_separates_them() {
        let data = parse("Text,LABEL\n\"a, b\",no\n\"two\nlines \"\"quoted\"\"\",yes\nplain , no\n").unwrap();
        assert_eq!(data.texts, ["a, b", "two\nlines \"quoted\"", "plain"]);
        assert_eq!((data.labels, data.classes), (vec![0, 1, 0], vec!["no".into(), "yes".into()]));
        // Without a header, the first row is data.
        assert_eq!(parse("texts,label\na,b\n").unwrap().texts, ["texts", "a"]);
    }

    #[test]
    fn rows_are_cut_or_filled() {
        let data = parse("ab,x\nbcab,y\nc,x\na,y\nb,y\nca,x\n").unwrap();
        let (tokens, names) = data.characters().unwrap();
        assert_eq!(names, ["[PAD]", "[CLS]", "a", "b", "c"]);
        assert_eq!(tokens.ids[..3], [vec![1, 2, 3], vec![1, 3, 4, 2, 3], vec![1, 4]]);
        let split = data.split(&tokens, 3, 7).unwrap();
        let rows = |set: &TrainingSet| -> Vec<(Vec<i64>, i64)> {
            let (ids, labels) = (set.features.mantissas().to_vec(), set.labels.mantissas().to_vec());
            ids.chunks(3).map(<[i64]>::to_vec).zip(labels).collect()
        };
        let (training, held_out) = (rows(&split.training), rows(&split.held_out));
        assert_eq!((training.len(), held_out.len()), (4, 2));
        let mut all = [training, held_out].concat();
        all.sort();
        let due = [([1, 2, 0], 1), ([1, 2, 3], 0), ([1, 3, 0], 1), ([1, 3, 4], 1), ([1, 4, 0], 0), ([1, 4, 2], 0)];
        assert_eq!(all, due.map(|(row, label)| (row.to_vec(), label)));
        assert_eq!(split.training.features.ty().bits(), 4);
        assert_ne!(data.split(&tokens, 3, 8).unwrap().held_out, split.held_out);
    }

    #[test]
    fn classes_are_those_of_a_head() {
        let known = ["sad", "glad", "bad"].map(String::from);
        let data = parse("a,glad\nb,sad\nc,glad\n").unwrap().numbered(&known).unwrap();
        assert_eq!((data.labels, data.classes), (vec![1, 0, 1], known.to_vec()));
        let refused = parse("a,glad\nb,mad\n").unwrap().numbered(&known).unwrap_err().to_string();
        assert!(refused.contains("`mad`") && refused.contains("sad, glad, bad"), "{refused}");
    }

    #[test]
    fn what_is_no_table_of_texts_is_refused() {
        assert_eq!(parse(""), Err(DataError::TooFewRows(0)));
        assert_eq!(parse("text,label\n"), Err(DataError::TooFewRows(0)));
        assert_eq!(parse("a,b\nc,d,e\n"), Err(DataError::TextColumns { row: 2, columns: 3 }));
        assert_eq!(parse("a\nb\n"), Err(DataError::TextColumns { row: 1, columns: 1 }));
        assert_eq!(parse("a,b\n\" \",c\n"), Err(DataError::NoText { row: 2 }));
        assert_eq!(parse("a,b\nc,\n"), Err(DataError::NoClass { row: 2 }));
        assert_eq!(parse("a,b\nc,b\n"), Err(DataError::OneClass("b".into())));
        assert_eq!(LabelledTexts::parse(b"a,b\n\xff,c\n"), Err(DataError::NotUtf8(4)));
        let many: String = (0..4097).map(|class| format!("a,c{class}\n")).collect();
        assert_eq!(parse(&many), Err(DataError::TooManyClasses(4097)));
        assert_eq!(parse("a,b\na,c\n").unwrap().characters().unwrap_err(), DataError::Characters(1));
    }

    #[test]
    fn tokens_are_those_of_the_model() {
        let data = parse("a,b\nc,d\n").unwrap();
        let split = |ids: Vec<Vec<u32>>, padding| data.split(&TokenTexts { ids, vocabulary: 6, padding }, 4, 1);
        assert!(split(vec![vec![1], vec![5]], 0).is_ok());
        let foreign = DataError::Token { token: 6, vocabulary: 6 };
        assert_eq!(split(vec![vec![1], vec![6]], 0), Err(foreign.clone()));
        assert_eq!(split(vec![vec![1], vec![5]], 6), Err(foreign));
        assert_eq!(split(vec![vec![1], vec![]], 0), Err(DataError::NoTokens { text: 2 }));
    }
}
