//! A place in a block of Avro's binary encoding. Every read checks that the bytes are there.
//!
//! # Source
//! Avro specification, "Binary Encoding".

use lakesmith_core::{Error, Result};

/// Reads values one after the other.
#[derive(Debug)]
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Bytes that are left.
    pub(crate) fn left(&self) -> usize {
        self.rest.len()
    }

    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or_else(ends_early)?;
        self.rest = rest;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or_else(ends_early)?;
        self.rest = rest;
        Ok(*taken)
    }

    /// An int or a long: zigzag, seven bits a byte.
    pub(crate) fn long(&mut self) -> Result<i64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array::<1>()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok((value >> 1) as i64 ^ -((value & 1) as i64));
            }
        }
        Err(Error::corrupt("an Avro number is longer than 64 bits"))
    }

    /// A number of bytes or of things that take no more space than what is left.
    pub(crate) fn count(&mut self) -> Result<usize> {
        let count = self.long()?;
        match usize::try_from(count) {
            Ok(count) if count <= self.left() => Ok(count),
            _ => Err(Error::corrupt(format!("an Avro length of {count} is more than the file holds"))),
        }
    }

    pub(crate) fn bytes(&mut self) -> Result<&'a [u8]> {
        let count = self.count()?;
        self.take(count)
    }

    pub(crate) fn text(&mut self) -> Result<&'a str> {
        std::str::from_utf8(self.bytes()?).map_err(|e| Error::corrupt("an Avro string is not UTF-8").caused_by(e))
    }

    /// Number of items in the next block of an array or a map; 0 at its end.
    pub(crate) fn items(&mut self) -> Result<usize> {
        let count = self.long()?;
        if count < 0 {
            // The bytes of the block follow, for those who skip it.
            self.long()?;
        }
        match usize::try_from(count.unsigned_abs()) {
            Ok(count) if count <= self.left() => Ok(count),
            _ => Err(Error::corrupt(format!("an Avro array of {count} items is more than the file holds"))),
        }
    }
}

fn ends_early() -> Error {
    Error::corrupt("the Avro file ends inside a value")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_zigzag() {
        for (bytes, number) in [
            (&[0][..], 0),
            (&[1], -1),
            (&[2], 1),
            (&[0x7f], -64),
            (&[0x80, 0x01], 64),
            (&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01], i64::MIN),
            (&[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01], i64::MAX),
        ] {
            assert_eq!(Cursor::new(bytes).long().ok(), Some(number), "{bytes:?}");
        }
        for bytes in [&[][..], &[0x80], &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x03], &[0xff; 11]] {
            assert!(Cursor::new(bytes).long().is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn lengths_beyond_the_end_are_refused() {
        assert!(Cursor::new(&[4, b'a']).bytes().is_err());
        assert!(Cursor::new(&[1]).bytes().is_err());
        assert_eq!(Cursor::new(&[4, b'a', b'b']).text().ok(), Some("ab"));
        assert_eq!(Cursor::new(&[1, 2, 0]).items().ok(), Some(1));
    }
}
