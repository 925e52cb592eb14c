//! Statistics as JSON text, looked through without keeping any of it: a table may have a gigabyte of them.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};

/// A part of a file's statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// `numRecords`
    Rows,
    /// `minValues`
    Minima,
    /// `maxValues`
    Maxima,
    /// `nullCount`
    Nulls,
    /// `tightBounds`
    Tight,
}

const PARTS: [(&str, Part); 5] = [
    ("numRecords", Part::Rows),
    ("minValues", Part::Minima),
    ("maxValues", Part::Maxima),
    ("nullCount", Part::Nulls),
    ("tightBounds", Part::Tight),
];

/// Keeps of a file's statistics what it wants.
pub(crate) trait Keep {
    /// There is something, if only something unknown.
    fn is_there(&mut self);
    /// Whether anything of the part is of use.
    fn wants(&self, part: Part) -> bool;
    /// The number of rows.
    fn rows(&mut self, rows: Option<u64>);
    /// Whether bounds are told to be tight; not called where nothing is told.
    fn tight(&mut self, _tight: Option<bool>) {}
    /// Takes the next value of `map`, which is that of a column, by its place in the tree.
    fn value<'de, A: MapAccess<'de>>(&mut self, part: Part, column: usize, map: &mut A) -> Result<(), A::Error>;
}

/// Reads statistics; what is not in the tree of columns is passed over.
///
/// # Errors
/// For text that is no statistics; what was kept until then stays.
pub(crate) fn read<K: Keep>(text: &str, tree: &[(String, Node)], keep: &mut K) -> serde_json::Result<()> {
    Statistics { tree, keep }.deserialize(&mut serde_json::Deserializer::from_str(text))
}

/// A column, or a struct of columns.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Node {
    /// With its place among the columns.
    Leaf(usize),
    Struct(Vec<(String, Node)>),
}

/// Adds a column to a tree of columns.
pub(crate) fn plant(tree: &mut Vec<(String, Node)>, path: &[String], place: usize) {
    let Some((first, rest)) = path.split_first() else { return };
    if rest.is_empty() {
        tree.push((first.clone(), Node::Leaf(place)));
        return;
    }
    if !tree.iter().any(|(name, _)| name == first) {
        tree.push((first.clone(), Node::Struct(Vec::new())));
    }
    if let Some((_, Node::Struct(inner))) = tree.iter_mut().find(|(name, _)| name == first) {
        plant(inner, rest, place);
    }
}

struct Statistics<'a, K> {
    tree: &'a [(String, Node)],
    keep: &'a mut K,
}

impl<'de, K: Keep> DeserializeSeed<'de> for Statistics<'_, K> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, K: Keep> Visitor<'de> for Statistics<'_, K> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("statistics")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(place) = map.next_key_seed(Name(&PARTS.map(|(name, _)| name)))? {
            self.keep.is_there();
            match place.map(|place| PARTS[place].1).filter(|part| self.keep.wants(*part)) {
                Some(Part::Rows) => self.keep.rows(map.next_value()?),
                Some(Part::Tight) => self.keep.tight(map.next_value()?),
                Some(part) => map.next_value_seed(Columns { tree: self.tree, keep: &mut *self.keep, part })?,
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// Values by column name.
struct Columns<'a, K> {
    tree: &'a [(String, Node)],
    keep: &'a mut K,
    part: Part,
}

impl<'de, K: Keep> DeserializeSeed<'de> for Columns<'_, K> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, K: Keep> Visitor<'de> for Columns<'_, K> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("values by column")
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let names: Vec<&str> = self.tree.iter().map(|(name, _)| name.as_str()).collect();
        while let Some(column) = map.next_key_seed(Name(&names))? {
            match column.map(|place| &self.tree[place].1) {
                Some(Node::Leaf(place)) => self.keep.value(self.part, *place, &mut map)?,
                Some(Node::Struct(inner)) => {
                    map.next_value_seed(Columns { tree: inner, keep: &mut *self.keep, part: self.part })?;
                }
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// A key as its place among known ones.
struct Name<'a>(&'a [&'a str]);

impl<'de> DeserializeSeed<'de> for Name<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<usize>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Name<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Option<usize>, E> {
        Ok(self.0.iter().position(|known| *known == name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, PartialEq)]
    struct All {
        rows: Option<u64>,
        parts: u64,
        values: Vec<(Part, usize, serde_json::Value)>,
    }

    impl Keep for All {
        fn is_there(&mut self) {
            self.parts += 1;
        }

        fn wants(&self, part: Part) -> bool {
            part != Part::Maxima
        }

        fn rows(&mut self, rows: Option<u64>) {
            self.rows = rows;
        }

        fn value<'de, A: MapAccess<'de>>(&mut self, part: Part, column: usize, map: &mut A) -> Result<(), A::Error> {
            self.values.push((part, column, map.next_value()?));
            Ok(())
        }
    }

    fn all(text: &str) -> Option<All> {
        let mut tree = Vec::new();
        let path = |text: &str| text.split('.').map(str::to_owned).collect::<Vec<_>>();
        for (place, column) in ["a", "s.x", "s.y"].iter().enumerate() {
            plant(&mut tree, &path(column), place);
        }
        let mut found = All::default();
        read(text, &tree, &mut found).ok()?;
        Some(found)
    }

    #[test]
    fn nested_columns_are_found_and_others_passed_over() {
        let text = r#"{"numRecords":7,"minValues":{"z":[1,{"a":2}],"a":"x","s":{"y":1.5,"w":{}}},"maxValues":{"a":3},
            "nullCount":{"a":0,"s":{"x":7}},"tightBounds":true}"#;
        let values = vec![
            (Part::Minima, 0, "x".into()),
            (Part::Minima, 2, 1.5.into()),
            (Part::Nulls, 0, 0.into()),
            (Part::Nulls, 1, 7.into()),
        ];
        assert_eq!(all(text), Some(All { rows: Some(7), parts: 5, values }));
    }

    #[test]
    fn empty_and_broken_statistics_are_told_apart() {
        assert_eq!(all("{}").map(|found| found.parts), Some(0));
        assert_eq!(all(r#"{"minValues":null,"nullCount":{"a":null}}"#).map(|found| found.parts), Some(2));
        for text in ["", "[]", "null", "{\"numRecords\":", r#"{"numRecords":"x"}"#] {
            assert_eq!(all(text), None, "{text}");
        }
    }
}
