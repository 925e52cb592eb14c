//! Columns that rows are ordered by, found by their logical names.

use crate::layout::OrderKey;
use crate::table::{DataType, Field, Schema};

/// What a column path leads to.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Found {
    /// A leaf whose values have an order.
    Key(OrderKey),
    /// Something that rows are not ordered by: its physical path and its type.
    NoOrder(Vec<String>, DataType),
    /// Nothing.
    Nothing,
}

/// Follows the logical names in `parts` without regard to case, an exact spelling first.
pub(super) fn find(schema: &Schema, parts: &[String]) -> Found {
    let (mut path, mut name) = (Vec::new(), Vec::new());
    let mut fields: &[Field] = &schema.fields;
    let mut rest = parts.iter();
    while let Some(part) = rest.next() {
        let same_but_for_case = |f: &&Field| f.name.to_lowercase() == part.to_lowercase();
        let exact = fields.iter().find(|f| f.name == *part);
        let Some(field) = exact.or_else(|| fields.iter().find(same_but_for_case)) else { return Found::Nothing };
        path.push(field.physical.clone());
        name.push(field.name.clone());
        match &field.data_type {
            DataType::Struct(inner) if rest.len() > 0 => fields = inner,
            // Fields of an element are many values a row.
            DataType::List(_) | DataType::Map(..) | DataType::Variant => {
                return Found::NoOrder(path, field.data_type.clone());
            }
            _ if rest.len() > 0 => return Found::Nothing,
            DataType::Struct(_) | DataType::Null => return Found::NoOrder(path, field.data_type.clone()),
            leaf => return Found::Key(OrderKey { path, name, data_type: leaf.clone() }),
        }
    }
    Found::Nothing
}

/// The part of a path that a struct on the way lacks, and the fields that it has; `None` if something else ends the path.
pub(super) fn lacking_field<'a>(schema: &'a Schema, parts: &'a [String]) -> Option<(&'a str, Vec<&'a str>)> {
    let mut fields: &[Field] = &schema.fields;
    for (depth, part) in parts.iter().enumerate() {
        match fields.iter().find(|f| f.name.to_lowercase() == part.to_lowercase()).map(|f| &f.data_type) {
            Some(DataType::Struct(inner)) => fields = inner,
            Some(_) => return None,
            None => return (depth > 0).then(|| (part.as_str(), fields.iter().map(|f| f.name.as_str()).collect())),
        }
    }
    None
}

/// A column path as Spark's messages name it: parts with dots in backticks.
pub fn attribute_name(parts: &[String]) -> String {
    let quoted = |part: &String| if part.contains('.') { format!("`{part}`") } else { part.clone() };
    parts.iter().map(quoted).collect::<Vec<_>>().join(".")
}

/// A column path as the tags of clustered files name it: parts that are no identifiers in backticks.
///
/// # Source
/// Spark's `FieldReference.toString`.
pub fn reference_name(parts: &[String]) -> String {
    let plain = |part: &str| {
        !part.starts_with(|c: char| c.is_ascii_digit())
            && !part.is_empty()
            && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let quoted = |part: &String| if plain(part) { part.clone() } else { format!("`{}`", part.replace('`', "``")) };
    parts.iter().map(quoted).collect::<Vec<_>>().join(".")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn field(name: &str, data_type: DataType) -> Field {
        Field {
            name: name.into(),
            physical: format!("col-{name}"),
            id: None,
            data_type,
            nullable: true,
            metadata: Default::default(),
        }
    }

    fn parts(parts: &[&str]) -> Vec<String> {
        parts.iter().map(|p| p.to_string()).collect()
    }

    #[test]
    fn paths_are_followed_without_regard_to_case_and_a_dot_in_a_name_is_no_separator() {
        let inner =
            vec![field("A", DataType::Long), field("list", DataType::List(Box::new(field("element", DataType::Long))))];
        let schema = Schema {
            fields: vec![
                field("s", DataType::Struct(inner)),
                field("s.A", DataType::String),
                field("K", DataType::Date),
                field("k", DataType::Double),
            ],
        };
        let key = |p: &[&str]| match find(&schema, &parts(p)) {
            Found::Key(key) => (key.path, key.name, key.data_type),
            other => panic!("{other:?}"),
        };
        assert_eq!(key(&["S", "a"]), (parts(&["col-s", "col-A"]), parts(&["s", "A"]), DataType::Long));
        assert_eq!(key(&["s.a"]), (parts(&["col-s.A"]), parts(&["s.A"]), DataType::String));
        assert_eq!(key(&["k"]).2, DataType::Double);
        assert_eq!(key(&["K"]).2, DataType::Date);
        assert!(matches!(find(&schema, &parts(&["s"])), Found::NoOrder(_, DataType::Struct(_))));
        assert!(matches!(find(&schema, &parts(&["s", "list", "element"])), Found::NoOrder(_, DataType::List(_))));
        for nothing in [&["x"][..], &["s", "x"], &["k", "x"], &["s.x"], &[]] {
            assert_eq!(find(&schema, &parts(nothing)), Found::Nothing, "{nothing:?}");
        }
    }

    #[test]
    fn names_are_quoted_as_spark_does() {
        assert_eq!(attribute_name(&parts(&["a", "b c", "d.e"])), "a.b c.`d.e`");
        assert_eq!(reference_name(&parts(&["a", "b c", "d.e", "1f", "g`"])), "a.`b c`.`d.e`.`1f`.`g```");
    }
}
