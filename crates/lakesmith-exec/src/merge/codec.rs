//! Compression of single pages, for the codecs whose pages can be merged.

use parquet::basic::{Compression, CompressionCodec};

use super::header::{get_varint, put_varint};

/// Longest prefix that [`Packer::prefixed`] puts in front.
const MAX_PREFIX: usize = 1 << 16;

/// Room for compressed pages that is kept.
const MAX_SCRATCH: usize = 4 << 20;

/// A codec whose pages can be unpacked and packed here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Codec {
    /// Stored as they are.
    Uncompressed,
    /// Raw Snappy blocks.
    Snappy,
    /// Zstandard frames.
    Zstd,
}

impl Codec {
    /// The codec of a chunk, if it can be merged.
    pub(crate) fn of(codec: CompressionCodec) -> Option<Codec> {
        match codec {
            CompressionCodec::UNCOMPRESSED => Some(Codec::Uncompressed),
            CompressionCodec::SNAPPY => Some(Codec::Snappy),
            CompressionCodec::ZSTD => Some(Codec::Zstd),
            _ => None,
        }
    }
}

/// Decompresses to exactly `size` bytes; `None` if the bytes are not that.
pub(super) fn unpack(codec: Codec, packed: &[u8], size: usize) -> Option<Vec<u8>> {
    let unpacked = match codec {
        Codec::Uncompressed => packed.to_vec(),
        Codec::Snappy => {
            if snap::raw::decompress_len(packed).ok()? != size {
                return None;
            }
            snap::raw::Decoder::new().decompress_vec(packed).ok()?
        }
        Codec::Zstd => zstd::bulk::decompress(packed, size).ok()?,
    };
    (unpacked.len() == size).then_some(unpacked)
}

/// Compresses pages for one output.
pub(crate) struct Packer {
    codec: Codec,
    snappy: snap::raw::Encoder,
    /// Room for a compressed page, not cleared in between.
    scratch: Vec<u8>,
    zstd: Option<zstd::bulk::Compressor<'static>>,
}

impl Packer {
    /// A packer for the outputs' codec; `None` if pages of it cannot be merged.
    pub(crate) fn new(compression: Compression) -> Option<Packer> {
        let codec = Codec::of(compression.into())?;
        let zstd = match compression {
            Compression::ZSTD(level) => Some(zstd::bulk::Compressor::new(level.compression_level()).ok()?),
            _ => None,
        };
        Some(Packer { codec, snappy: snap::raw::Encoder::new(), scratch: Vec::new(), zstd })
    }

    /// What it packs to.
    pub(super) fn codec(&self) -> Codec {
        self.codec
    }

    /// Compresses a page; `None` only for a failure of the codec.
    pub(super) fn pack(&mut self, bytes: Vec<u8>) -> Option<Vec<u8>> {
        match (self.codec, &mut self.zstd) {
            (Codec::Uncompressed, _) => Some(bytes),
            (Codec::Snappy, _) => {
                let longest = snap::raw::max_compress_len(bytes.len());
                if self.scratch.len() < longest {
                    self.scratch.resize(longest, 0);
                }
                let length = self.snappy.compress(&bytes, &mut self.scratch).ok()?;
                let packed = self.scratch[..length].to_vec();
                // A single huge page must not be held on to.
                self.scratch.truncate(MAX_SCRATCH);
                self.scratch.shrink_to(MAX_SCRATCH);
                Some(packed)
            }
            (Codec::Zstd, Some(zstd)) => zstd.compress(&bytes).ok(),
            (Codec::Zstd, None) => None,
        }
    }
}

/// The compressed form of `prefix` followed by what `packed` holds, without compressing anything again.
///
/// A Snappy block is a sequence of literals and of copies that point backwards, so a literal in front changes nothing of
/// what follows. `None` for a codec that has no such form.
///
/// # Source
/// Snappy `format_description.txt`, sections 1, 2 and 2.1.
pub(super) fn prefixed(codec: Codec, prefix: &[u8], packed: &[u8]) -> Option<Vec<u8>> {
    match codec {
        Codec::Uncompressed => Some([prefix, packed].concat()),
        Codec::Snappy if prefix.len() <= MAX_PREFIX => {
            let (size, length) = get_varint(packed)?;
            let mut out = Vec::with_capacity(packed.len() + prefix.len() + 8);
            put_varint(size.checked_add(prefix.len() as u64)?, &mut out);
            match prefix.len().checked_sub(1) {
                None => {}
                Some(last @ 0..60) => out.push((last as u8) << 2),
                Some(last @ 60..256) => out.extend([60 << 2, last as u8]),
                Some(last) => out.extend([61 << 2, last as u8, (last >> 8) as u8]),
            }
            out.extend_from_slice(prefix);
            out.extend_from_slice(&packed[length..]);
            Some(out)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_prefix_is_a_prefix(
            prefix in prop::sample::select(vec![0usize, 1, 6, 59, 60, 61, 255, 256, 257, 65_535, 65_536]),
            body in prop::collection::vec(0u8..4, 0..200_000),
        ) {
            let prefix: Vec<u8> = (0..prefix).map(|i| (i * 7) as u8).collect();
            let whole = [&prefix[..], &body].concat();
            for compression in [Compression::UNCOMPRESSED, Compression::SNAPPY, Compression::ZSTD(Default::default())] {
                let mut packer = Packer::new(compression).unwrap();
                let packed = packer.pack(body.clone()).unwrap();
                prop_assert_eq!(unpack(packer.codec(), &packed, body.len()), Some(body.clone()));
                prop_assert_eq!(unpack(packer.codec(), &packed, body.len() + 1), None);
                match prefixed(packer.codec(), &prefix, &packed) {
                    Some(joined) => prop_assert_eq!(unpack(packer.codec(), &joined, whole.len()), Some(whole.clone())),
                    None => prop_assert_eq!(packer.codec(), Codec::Zstd),
                }
            }
        }
    }
}
