//! Page headers in Thrift's compact protocol: as much of it as pages need.
//!
//! # Source
//! Parquet `parquet.thrift`, `PageHeader`; Thrift "Compact protocol encoding".

/// `Encoding.PLAIN`.
pub(super) const PLAIN: i32 = 0;
/// `Encoding.PLAIN_DICTIONARY`.
pub(super) const PLAIN_DICTIONARY: i32 = 2;
/// `Encoding.RLE`.
pub(super) const RLE: i32 = 3;
/// `Encoding.RLE_DICTIONARY`.
pub(super) const RLE_DICTIONARY: i32 = 8;

/// Structs nest no deeper than this in a page header.
const MAX_DEPTH: usize = 8;

/// What kind of page follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Levels and values are compressed together.
    Data {
        /// Values with nulls.
        values: usize,
        /// Of the values.
        encoding: i32,
        /// Of the definition levels.
        def_encoding: i32,
    },
    /// Levels lie in front of the compressed values.
    DataV2 {
        /// Values with nulls.
        values: usize,
        /// Nulls.
        nulls: usize,
        /// Rows.
        rows: usize,
        /// Of the values.
        encoding: i32,
        /// Bytes of the definition levels.
        def_bytes: usize,
        /// Bytes of the repetition levels.
        rep_bytes: usize,
        /// Whether the values are compressed.
        compressed: bool,
    },
    /// The dictionary.
    Dictionary {
        /// Entries.
        values: usize,
        /// Of the entries.
        encoding: i32,
    },
}

impl Kind {
    /// Values with nulls, or entries.
    pub(super) fn values(&self) -> usize {
        match self {
            Kind::Data { values, .. } | Kind::DataV2 { values, .. } | Kind::Dictionary { values, .. } => *values,
        }
    }
}

/// One page's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    /// What follows.
    pub kind: Kind,
    /// Bytes of the page when decompressed, without the header.
    pub uncompressed: usize,
    /// Bytes of the page as stored, without the header.
    pub stored: usize,
    /// Bytes of the header itself.
    pub length: usize,
}

/// Reads the header at the start of `bytes`; `None` for anything unexpected.
pub(super) fn read(bytes: &[u8]) -> Option<Header> {
    let mut reader = Reader { bytes, at: 0 };
    let (mut page_type, mut uncompressed, mut stored) = (None, None, None);
    let (mut data, mut dictionary, mut data_v2) = (None, None, None);
    let mut id = 0;
    while let Some(field) = reader.field(&mut id)? {
        match (id, field) {
            (1, I32) => page_type = Some(reader.int()?),
            (2, I32) => uncompressed = Some(reader.size()?),
            (3, I32) => stored = Some(reader.size()?),
            (5, STRUCT) => data = Some(reader.numbers()?),
            (7, STRUCT) => dictionary = Some(reader.numbers()?),
            (8, STRUCT) => data_v2 = Some(reader.numbers()?),
            _ => reader.skip(field, MAX_DEPTH)?,
        }
    }
    let size = |value: Option<i32>| usize::try_from(value?).ok();
    let kind = match page_type? {
        0 => {
            let n = data?;
            Kind::Data { values: size(n[1])?, encoding: n[2]?, def_encoding: n[3]? }
        }
        2 => {
            let n = dictionary?;
            Kind::Dictionary { values: size(n[1])?, encoding: n[2]? }
        }
        3 => {
            let n = data_v2?;
            Kind::DataV2 {
                values: size(n[1])?,
                nulls: size(n[2])?,
                rows: size(n[3])?,
                encoding: n[4]?,
                def_bytes: size(n[5])?,
                rep_bytes: size(n[6])?,
                compressed: n[7].unwrap_or(1) != 0,
            }
        }
        _ => return None,
    };
    Some(Header { kind, uncompressed: uncompressed?, stored: stored?, length: reader.at })
}

/// The header of a first-version data page whose levels, if any, are run-length encoded.
pub(super) fn write_data(values: usize, encoding: i32, uncompressed: usize, stored: usize) -> Option<Vec<u8>> {
    write(0, uncompressed, stored, 5, &[i32::try_from(values).ok()?, encoding, RLE, RLE])
}

/// The header of a dictionary page.
pub(super) fn write_dictionary(values: usize, uncompressed: usize, stored: usize) -> Option<Vec<u8>> {
    write(2, uncompressed, stored, 7, &[i32::try_from(values).ok()?, PLAIN])
}

fn write(page_type: i32, uncompressed: usize, stored: usize, field: u8, numbers: &[i32]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(32);
    let sizes = [page_type, i32::try_from(uncompressed).ok()?, i32::try_from(stored).ok()?];
    for number in sizes {
        put_field(number, &mut out);
    }
    out.push((field - 3) << 4 | STRUCT);
    for number in numbers {
        put_field(*number, &mut out);
    }
    out.extend([0, 0]);
    Some(out)
}

/// A 32-bit number under the next field id.
fn put_field(number: i32, out: &mut Vec<u8>) {
    out.push(1 << 4 | I32);
    put_varint(u64::from((number << 1 ^ number >> 31) as u32), out);
}

/// Appends an unsigned LEB128 number.
pub(super) fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// An unsigned LEB128 number and its length.
pub(super) fn get_varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0u64;
    for (i, byte) in bytes.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f).checked_shl(7 * i as u32)?;
        if byte & 0x80 == 0 {
            return Some((value, i + 1));
        }
    }
    None
}

const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const I16: u8 = 4;
const I32: u8 = 5;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
const STRUCT: u8 = 12;

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn varint(&mut self) -> Option<u64> {
        let (value, length) = get_varint(self.bytes.get(self.at..)?)?;
        self.at += length;
        Some(value)
    }

    fn int(&mut self) -> Option<i32> {
        let value = u32::try_from(self.varint()?).ok()?;
        Some((value >> 1) as i32 ^ -((value & 1) as i32))
    }

    fn size(&mut self) -> Option<usize> {
        usize::try_from(self.int()?).ok()
    }

    /// Type of the next field, whose id goes to `id`; `Some(None)` at the end of the struct.
    fn field(&mut self, id: &mut i32) -> Option<Option<u8>> {
        let byte = self.byte()?;
        if byte == 0 {
            return Some(None);
        }
        match byte >> 4 {
            0 => *id = self.int()?,
            delta => *id = id.checked_add(i32::from(delta))?,
        }
        Some(Some(byte & 0x0f))
    }

    /// The numbers and flags of a struct by field id.
    fn numbers(&mut self) -> Option<[Option<i32>; 8]> {
        let mut numbers = [None; 8];
        let mut id = 0;
        while let Some(field) = self.field(&mut id)? {
            let value = match field {
                I32 => self.int()?,
                TRUE => 1,
                FALSE => 0,
                _ => {
                    self.skip(field, MAX_DEPTH)?;
                    continue;
                }
            };
            if let Some(slot) = usize::try_from(id).ok().and_then(|i| numbers.get_mut(i)) {
                *slot = Some(value);
            }
        }
        Some(numbers)
    }

    fn skip(&mut self, field: u8, depth: usize) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match field {
            TRUE | FALSE => {}
            BYTE => self.at += 1,
            I16 | I32 | I64 => {
                self.varint()?;
            }
            DOUBLE => self.at += 8,
            BINARY => {
                let length = usize::try_from(self.varint()?).ok()?;
                self.at = self.at.checked_add(length)?;
            }
            LIST | SET => {
                let head = self.byte()?;
                let count = if head >> 4 == 15 { self.varint()? } else { u64::from(head >> 4) };
                for _ in 0..count {
                    self.element(head & 0x0f, depth)?;
                }
            }
            MAP => {
                let count = self.varint()?;
                let types = if count > 0 { self.byte()? } else { 0 };
                for _ in 0..count {
                    self.element(types >> 4, depth)?;
                    self.element(types & 0x0f, depth)?;
                }
            }
            STRUCT => {
                let mut id = 0;
                while let Some(inner) = self.field(&mut id)? {
                    self.skip(inner, depth)?;
                }
            }
            _ => return None,
        }
        (self.at <= self.bytes.len()).then_some(())
    }

    /// Flags take a byte of their own inside of collections.
    fn element(&mut self, field: u8, depth: usize) -> Option<()> {
        if matches!(field, TRUE | FALSE) { self.byte().map(|_| ()) } else { self.skip(field, depth) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_come_back_as_they_were_written() {
        for (values, uncompressed, stored) in [(0, 0, 0), (1, 127, 128), (20_000, 1 << 20, i32::MAX as usize)] {
            let data = write_data(values, RLE_DICTIONARY, uncompressed, stored).unwrap();
            let kind = Kind::Data { values, encoding: RLE_DICTIONARY, def_encoding: RLE };
            assert_eq!(read(&data), Some(Header { kind, uncompressed, stored, length: data.len() }));
            let dictionary = write_dictionary(values, uncompressed, stored).unwrap();
            let kind = Kind::Dictionary { values, encoding: PLAIN };
            assert_eq!(read(&dictionary), Some(Header { kind, uncompressed, stored, length: dictionary.len() }));
            assert_eq!(read(&data[..data.len() - 1]), None);
        }
        assert_eq!(write_data(1, PLAIN, 1 << 40, 1), None);
    }

    #[test]
    fn unknown_fields_are_skipped() {
        let mut bytes = write_data(7, PLAIN, 10, 9).unwrap();
        bytes.pop();
        // Field 9: a list of two maps of one flag each; field 10: a string; field 11: a double.
        bytes.extend([4 << 4 | LIST, 2 << 4 | MAP, 1, TRUE << 4 | TRUE, 1, 2, 1, TRUE << 4 | TRUE, 1, 1]);
        bytes.extend([1 << 4 | BINARY, 2, b'a', b'b', 1 << 4 | DOUBLE, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        let header = read(&bytes).unwrap();
        assert_eq!((header.stored, header.length), (9, bytes.len()));
        let hostile = [1 << 4 | STRUCT; 64];
        assert_eq!(read(&hostile), None);
    }
}
