//! The container: header, codecs and blocks.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Read as _;

use lakesmith_core::{Error, ErrorKind, Result};

use super::cursor::Cursor;
use super::schema::AvroSchema;

const MAGIC: [u8; 4] = *b"Obj\x01";
/// Bytes of an unpacked block at most: writers make blocks of some kilobytes.
const BLOCK_BYTES_MAX: u64 = 1 << 30;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Codec {
    Null,
    Deflate,
    Snappy,
    Zstandard,
}

/// A container file whose header was read.
#[derive(Debug)]
pub(crate) struct Container<'a> {
    /// Type of the rows.
    pub(crate) schema: AvroSchema,
    metadata: BTreeMap<String, &'a [u8]>,
    codec: Codec,
    marker: [u8; 16],
    blocks: &'a [u8],
}

impl<'a> Container<'a> {
    /// Reads the header.
    ///
    /// # Errors
    /// `Corrupt` if this is no such file, `Unsupported` for a codec that is not known.
    pub(crate) fn open(bytes: &'a [u8]) -> Result<Self> {
        let mut cursor = Cursor::new(bytes);
        if cursor.array().ok() != Some(MAGIC) {
            return Err(Error::corrupt("the file is not an Avro file"));
        }
        let mut metadata = BTreeMap::new();
        loop {
            let entries = cursor.items()?;
            if entries == 0 {
                break;
            }
            for _ in 0..entries {
                metadata.insert(cursor.text()?.to_owned(), cursor.bytes()?);
            }
        }
        let codec = match metadata.get("avro.codec").copied().unwrap_or(b"null") {
            b"null" => Codec::Null,
            b"deflate" => Codec::Deflate,
            b"snappy" => Codec::Snappy,
            b"zstandard" => Codec::Zstandard,
            other => {
                let name = String::from_utf8_lossy(other);
                return Err(Error::unsupported(format!("the Avro codec '{name}' is not known")));
            }
        };
        let schema = metadata.get("avro.schema").ok_or_else(|| Error::corrupt("the Avro file has no schema"))?;
        let schema = AvroSchema::parse(schema)?;
        let marker = cursor.array()?;
        let blocks = cursor.take(cursor.left())?;
        Ok(Self { schema, metadata, codec, marker, blocks })
    }

    /// A value of the header.
    pub(crate) fn metadata(&self, key: &str) -> Option<&'a [u8]> {
        self.metadata.get(key).copied()
    }

    /// Calls `row` at the start of each row, which it has to read whole.
    ///
    /// # Errors
    /// `Corrupt`, `Limit` for a block that is far too large, and whatever `row` gives.
    pub(crate) fn each_row(&self, mut row: impl FnMut(&AvroSchema, &mut Cursor<'_>) -> Result<()>) -> Result<()> {
        let mut cursor = Cursor::new(self.blocks);
        while cursor.left() > 0 {
            let rows = cursor.long()?;
            let packed = cursor.bytes()?;
            if cursor.array()? != self.marker {
                return Err(Error::corrupt("a block of the Avro file does not end where it should"));
            }
            let block = unpack(self.codec, packed)?;
            // A row takes a byte at least, so this also bounds the work.
            let rows = usize::try_from(rows).ok().filter(|rows| *rows <= block.len());
            let rows = rows.ok_or_else(|| Error::corrupt("a block of the Avro file claims more rows than it holds"))?;
            let mut inside = Cursor::new(&block);
            for _ in 0..rows {
                row(&self.schema, &mut inside)?;
            }
            if inside.left() > 0 {
                return Err(Error::corrupt("a block of the Avro file holds more than its rows"));
            }
        }
        Ok(())
    }
}

fn unpack(codec: Codec, packed: &[u8]) -> Result<Cow<'_, [u8]>> {
    match codec {
        Codec::Null => Ok(Cow::Borrowed(packed)),
        Codec::Deflate => limited(flate2::read::DeflateDecoder::new(packed)),
        Codec::Zstandard => limited(zstd::stream::read::Decoder::new(packed).map_err(broken)?),
        Codec::Snappy => {
            let (body, checksum) = packed
                .split_last_chunk::<4>()
                .ok_or_else(|| Error::corrupt("a block of the Avro file is too short"))?;
            let length = snap::raw::decompress_len(body).map_err(broken)?;
            if length as u64 > BLOCK_BYTES_MAX {
                return Err(too_large());
            }
            let block = snap::raw::Decoder::new().decompress_vec(body).map_err(broken)?;
            if crc32fast::hash(&block) != u32::from_be_bytes(*checksum) {
                return Err(Error::corrupt("the checksum of a block of the Avro file does not match its bytes"));
            }
            Ok(Cow::Owned(block))
        }
    }
}

fn limited(reader: impl std::io::Read) -> Result<Cow<'static, [u8]>> {
    let mut block = Vec::new();
    let read = reader.take(BLOCK_BYTES_MAX + 1).read_to_end(&mut block).map_err(broken)?;
    if read as u64 > BLOCK_BYTES_MAX { Err(too_large()) } else { Ok(Cow::Owned(block)) }
}

fn broken(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::corrupt("a block of the Avro file cannot be unpacked").caused_by(error)
}

fn too_large() -> Error {
    Error::new(ErrorKind::Limit, "a block of the Avro file unpacks to more than 1 GiB")
}
