//! How names are shown: as they are spelled where they stand, or as they are given.

use std::collections::HashMap;

use datafusion::sql::sqlparser::ast::Ident;
use datafusion::sql::sqlparser::tokenizer::{Location as Place, Span};

/// Spellings by line and column.
pub(crate) type Places = HashMap<(u64, u64), String>;

/// Lines from here on stand in the texts of views.
pub(crate) const ELSEWHERE: u64 = 1 << 32;

/// The line of names that stand in no text.
const NOWHERE: u64 = 1 << 60;

/// The spellings of a query's names.
#[derive(Debug, Clone, Default)]
pub(crate) struct Spelled {
    places: Places,
    given: u64,
}

impl Spelled {
    /// Those of a text.
    pub(crate) fn new(places: Places) -> Self {
        Self { places, given: 0 }
    }

    /// Those of another text, too.
    pub(crate) fn extend(&mut self, places: &Places) {
        self.places.extend(places.iter().map(|(place, spelling)| (*place, spelling.clone())));
    }

    /// How a name is shown.
    pub(crate) fn of(&self, ident: &Ident) -> String {
        let Place { line, column } = ident.span.start;
        match self.places.get(&(line, column)) {
            Some(spelling) if line == NOWHERE || spelling.to_lowercase() == ident.value => spelling.clone(),
            _ => ident.value.clone(),
        }
    }

    /// A name for the tree that is shown as `spelling`.
    pub(crate) fn give(&mut self, name: &str, spelling: &str) -> Ident {
        self.given += 1;
        let place = Place { line: NOWHERE, column: self.given };
        self.places.insert((place.line, place.column), spelling.to_owned());
        Ident { value: name.to_owned(), quote_style: Some('`'), span: Span { start: place, end: place } }
    }

    /// Spellings with capitals by name, whatever the place.
    pub(crate) fn by_name(&self) -> HashMap<String, String> {
        let capitals = self.places.values().filter(|s| s.chars().any(char::is_uppercase));
        capitals.map(|s| (s.to_lowercase(), s.clone())).collect()
    }
}
