//! Statistics as JSON text, looked through without keeping any of it: a table may have a gigabyte of them.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};

/// What the statistics of a file say of one column.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// It has a minimum.
    pub minimum: bool,
    /// Its number of nulls.
    pub nulls: Option<u64>,
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

/// One file's statistics being read.
pub(crate) struct Read<'a> {
    pub tree: &'a [(String, Node)],
    pub found: &'a mut [Found],
    /// `numRecords`
    pub rows: Option<u64>,
    pub is_empty: bool,
}

impl<'de> DeserializeSeed<'de> for &mut Read<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for &mut Read<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("statistics")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(part) = map.next_key_seed(Name(&["numRecords", "minValues", "nullCount"]))? {
            self.is_empty = false;
            match part {
                Some(0) => self.rows = map.next_value::<Option<u64>>()?,
                Some(part) => {
                    map.next_value_seed(Columns { tree: self.tree, found: self.found, minima: part == 1 })?;
                }
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// Values by column name.
struct Columns<'a> {
    tree: &'a [(String, Node)],
    found: &'a mut [Found],
    /// Minima, else numbers of nulls.
    minima: bool,
}

impl<'de> DeserializeSeed<'de> for Columns<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Columns<'_> {
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
                Some(Node::Leaf(place)) => {
                    let found = self.found.get_mut(*place).ok_or_else(|| A::Error::custom("no such column"))?;
                    if self.minima {
                        found.minimum = map.next_value::<Option<IgnoredAny>>()?.is_some();
                    } else {
                        found.nulls = map.next_value::<Option<u64>>()?;
                    }
                }
                Some(Node::Struct(inner)) => {
                    map.next_value_seed(Columns { tree: inner, found: &mut *self.found, minima: self.minima })?;
                }
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// A key as its place among known ones.
pub(crate) struct Name<'a>(pub(crate) &'a [&'a str]);

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

    fn read(text: &str) -> Option<(Option<u64>, bool, Vec<Found>)> {
        let mut tree = Vec::new();
        let path = |text: &str| text.split('.').map(str::to_owned).collect::<Vec<_>>();
        for (place, column) in ["a", "s.x", "s.y"].iter().enumerate() {
            plant(&mut tree, &path(column), place);
        }
        let mut found = vec![Found::default(); 3];
        let mut read = Read { tree: &tree, found: &mut found, rows: None, is_empty: true };
        let mut json = serde_json::Deserializer::from_str(text);
        (&mut read).deserialize(&mut json).ok()?;
        let (rows, is_empty) = (read.rows, read.is_empty);
        Some((rows, is_empty, found))
    }

    #[test]
    fn nested_columns_are_found_and_others_passed_over() {
        let text = r#"{"numRecords":7,"minValues":{"z":[1,{"a":2}],"a":"x","s":{"y":1.5,"w":{}}},"maxValues":{"a":3},
            "nullCount":{"a":0,"s":{"x":7}},"tightBounds":true}"#;
        let (rows, is_empty, found) = read(text).unwrap();
        assert_eq!((rows, is_empty), (Some(7), false));
        let minima: Vec<bool> = found.iter().map(|f| f.minimum).collect();
        assert_eq!(minima, [true, false, true]);
        assert_eq!(found.iter().map(|f| f.nulls).collect::<Vec<_>>(), [Some(0), Some(7), None]);
    }

    #[test]
    fn empty_and_broken_statistics_are_told_apart() {
        assert_eq!(read("{}").map(|r| r.1), Some(true));
        assert_eq!(read(r#"{"minValues":null,"nullCount":{"a":null}}"#).map(|r| r.1), Some(false));
        for text in ["", "[]", "null", "{\"numRecords\":", r#"{"numRecords":"x"}"#] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
