//! From a statement's text to a tree that can be planned.
//!
//! ```text
//! text ─parse─> tree, names in lower case ─relations─> tables opened, views put in
//!      ─names, joins─> columns named and shown ─functions, literals─> plan
//! ```

mod change;
mod dialect;
mod forms;
mod functions;
mod joins;
mod like;
mod literals;
mod names;
mod parse;
mod pretty;
mod relations;
mod scope;
mod spelling;
mod tokens;

pub(crate) use change::{Change, Delete, Files, Insert, RowsBefore, has_subquery, table_ref};
pub(crate) use functions::translate_functions;
pub(crate) use joins::settle_columns;
pub(crate) use literals::type_literals;
pub(crate) use names::{Output, name_outputs};
pub(crate) use parse::{Explain, Kind, Parsed, parse, parse_at, parse_expression};
pub(crate) use relations::{Relation, Relations, Source, View, mentions, only_counts};
pub(crate) use scope::OpenedColumns;
pub(crate) use spelling::{ELSEWHERE, Places};
