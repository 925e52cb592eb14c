//! Values by schema: fields of records are handed out one by one, to be read or to be left out.

use lakesmith_core::{Error, Result};

use super::cursor::Cursor;
use super::schema::{AvroField, AvroSchema};

/// A value that was built because somebody asked for it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum AvroValue {
    Null,
    Boolean(bool),
    Long(i64),
    Float(f32),
    Double(f64),
    Bytes(Vec<u8>),
    Text(String),
}

/// A field's value that has not been read yet. One that is dropped unread is skipped.
pub(crate) struct Slot<'s, 'c, 'a> {
    schema: &'s AvroSchema,
    cursor: &'c mut Cursor<'a>,
    read: bool,
}

impl<'s, 'a> Slot<'s, '_, 'a> {
    /// The type behind a union; `None` for NULL.
    fn schema(&mut self) -> Result<Option<&'s AvroSchema>> {
        self.read = true;
        branch(self.schema, self.cursor)
    }

    pub(crate) fn long(&mut self) -> Result<Option<i64>> {
        match self.schema()? {
            None => Ok(None),
            Some(AvroSchema::Long) => self.cursor.long().map(Some),
            Some(other) => Err(unexpected("a number", other)),
        }
    }

    /// # Errors
    /// `Corrupt` for a number beyond 32 bits.
    pub(crate) fn int(&mut self) -> Result<Option<i32>> {
        let to_int = |long| {
            i32::try_from(long).map_err(|_| Error::corrupt(format!("the number {long} is too large for an int")))
        };
        self.long()?.map(to_int).transpose()
    }

    pub(crate) fn boolean(&mut self) -> Result<Option<bool>> {
        match self.schema()? {
            None => Ok(None),
            Some(AvroSchema::Boolean) => Ok(Some(self.cursor.array::<1>()? != [0])),
            Some(other) => Err(unexpected("a boolean", other)),
        }
    }

    pub(crate) fn text(&mut self) -> Result<Option<&'a str>> {
        match self.schema()? {
            None => Ok(None),
            Some(AvroSchema::Text) => self.cursor.text().map(Some),
            Some(other) => Err(unexpected("a string", other)),
        }
    }

    pub(crate) fn bytes(&mut self) -> Result<Option<&'a [u8]>> {
        match self.schema()? {
            None => Ok(None),
            Some(AvroSchema::Bytes) => self.cursor.bytes().map(Some),
            Some(AvroSchema::Fixed(size)) => self.cursor.take(*size).map(Some),
            Some(other) => Err(unexpected("bytes", other)),
        }
    }

    pub(crate) fn value(&mut self) -> Result<AvroValue> {
        self.read = true;
        read_value(self.schema, self.cursor)
    }

    /// Hands out the items of an array; `false` for NULL.
    pub(crate) fn items(&mut self, item: impl FnMut(&mut Slot<'_, '_, 'a>) -> Result<()>) -> Result<bool> {
        match self.schema()? {
            None => Ok(false),
            Some(AvroSchema::Array(schema)) => each_item(schema, self.cursor, item).map(|()| true),
            Some(other) => Err(unexpected("a list", other)),
        }
    }

    /// Hands out the fields of a record; `false` for NULL.
    pub(crate) fn fields(
        &mut self,
        field: impl FnMut(&AvroField, &mut Slot<'_, '_, 'a>) -> Result<()>,
    ) -> Result<bool> {
        match self.schema()? {
            None => Ok(false),
            Some(schema) => each_field(schema, self.cursor, field).map(|()| true),
        }
    }

    fn finish(self) -> Result<()> {
        if self.read { Ok(()) } else { skip(self.schema, self.cursor) }
    }
}

/// Hands out the fields of a record in their order.
///
/// # Errors
/// `Corrupt`, and whatever `field` gives.
pub(crate) fn each_field<'a>(
    schema: &AvroSchema,
    cursor: &mut Cursor<'a>,
    mut field: impl FnMut(&AvroField, &mut Slot<'_, '_, 'a>) -> Result<()>,
) -> Result<()> {
    let AvroSchema::Record(fields) = schema else { return Err(unexpected("a record", schema)) };
    for of_record in fields {
        let mut slot = Slot { schema: &of_record.schema, cursor, read: false };
        field(of_record, &mut slot)?;
        slot.finish()?;
    }
    Ok(())
}

/// Hands out the items of an array.
///
/// # Errors
/// As [`each_field`].
fn each_item<'a>(
    schema: &AvroSchema,
    cursor: &mut Cursor<'a>,
    mut item: impl FnMut(&mut Slot<'_, '_, 'a>) -> Result<()>,
) -> Result<()> {
    loop {
        let items = cursor.items()?;
        if items == 0 {
            return Ok(());
        }
        for _ in 0..items {
            let mut slot = Slot { schema, cursor, read: false };
            item(&mut slot)?;
            slot.finish()?;
        }
    }
}

/// Reads a value that is no list, map or record.
///
/// # Errors
/// `Corrupt`.
fn read_value(schema: &AvroSchema, cursor: &mut Cursor<'_>) -> Result<AvroValue> {
    let Some(schema) = branch(schema, cursor)? else { return Ok(AvroValue::Null) };
    Ok(match schema {
        AvroSchema::Null => AvroValue::Null,
        AvroSchema::Boolean => AvroValue::Boolean(cursor.array::<1>()? != [0]),
        AvroSchema::Long | AvroSchema::Enum => AvroValue::Long(cursor.long()?),
        AvroSchema::Float => AvroValue::Float(f32::from_le_bytes(cursor.array()?)),
        AvroSchema::Double => AvroValue::Double(f64::from_le_bytes(cursor.array()?)),
        AvroSchema::Bytes => AvroValue::Bytes(cursor.bytes()?.to_vec()),
        AvroSchema::Fixed(size) => AvroValue::Bytes(cursor.take(*size)?.to_vec()),
        AvroSchema::Text => AvroValue::Text(cursor.text()?.to_owned()),
        other => return Err(unexpected("a single value", other)),
    })
}

/// The type behind a union; `None` for NULL.
fn branch<'s>(mut schema: &'s AvroSchema, cursor: &mut Cursor<'_>) -> Result<Option<&'s AvroSchema>> {
    while let AvroSchema::Union(branches) = schema {
        let number = cursor.long()?;
        let chosen = usize::try_from(number).ok().and_then(|number| branches.get(number));
        schema = chosen.ok_or_else(|| Error::corrupt(format!("an Avro union has no branch {number}")))?;
    }
    Ok((*schema != AvroSchema::Null).then_some(schema))
}

fn skip(schema: &AvroSchema, cursor: &mut Cursor<'_>) -> Result<()> {
    let Some(schema) = branch(schema, cursor)? else { return Ok(()) };
    match schema {
        AvroSchema::Null | AvroSchema::Union(_) => {}
        AvroSchema::Boolean => drop(cursor.take(1)?),
        AvroSchema::Long | AvroSchema::Enum => drop(cursor.long()?),
        AvroSchema::Float => drop(cursor.take(4)?),
        AvroSchema::Double => drop(cursor.take(8)?),
        AvroSchema::Bytes | AvroSchema::Text => drop(cursor.bytes()?),
        AvroSchema::Fixed(size) => drop(cursor.take(*size)?),
        AvroSchema::Array(item) => each_item(item, cursor, |_| Ok(()))?,
        AvroSchema::Map(value) => loop {
            let entries = cursor.items()?;
            if entries == 0 {
                break;
            }
            for _ in 0..entries {
                cursor.bytes()?;
                skip(value, cursor)?;
            }
        },
        AvroSchema::Record(_) => each_field(schema, cursor, |_, _| Ok(()))?,
    }
    Ok(())
}

fn unexpected(wanted: &str, found: &AvroSchema) -> Error {
    let found = match found {
        AvroSchema::Null => "null",
        AvroSchema::Boolean => "a boolean",
        AvroSchema::Long => "a number",
        AvroSchema::Float | AvroSchema::Double => "a floating-point number",
        AvroSchema::Bytes | AvroSchema::Fixed(_) => "bytes",
        AvroSchema::Text => "a string",
        AvroSchema::Enum => "an enum",
        AvroSchema::Array(_) => "a list",
        AvroSchema::Map(_) => "a map",
        AvroSchema::Union(_) => "a union",
        AvroSchema::Record(_) => "a record",
    };
    Error::corrupt(format!("the Avro file holds {found} where {wanted} belongs"))
}
