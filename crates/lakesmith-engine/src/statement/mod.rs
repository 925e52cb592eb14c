//! From a statement's text to a tree that can be planned.
//!
//! ```text
//! text ─parse─> tree, names in lower case ─relations─> tables opened, views put in ─literals, names─> plan
//! ```

mod dialect;
mod functions;
mod literals;
mod names;
mod parse;
mod pretty;
mod relations;
mod tokens;

pub(crate) use functions::translate_functions;
pub(crate) use literals::type_literals;
pub(crate) use names::{Output, name_outputs};
pub(crate) use parse::{Explain, Kind, Parsed, parse};
pub(crate) use relations::{Relation, Relations, Source};
