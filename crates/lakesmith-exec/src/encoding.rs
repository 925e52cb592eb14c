//! Codec and dictionaries of the outputs, chosen from what the inputs' footers show.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use lakesmith_core::{Error, Result};
use parquet::basic::{
    BrotliLevel, Compression, CompressionCodec, Encoding, GzipLevel, Type as PhysicalType, ZstdLevel,
};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::schema::types::ColumnPath;

use crate::merge::{COPIED_ROWS, SMALL_CHUNK_BYTES};

/// What the inputs' footers taught.
#[derive(Debug, Default)]
pub(crate) struct EncodingChoice {
    codec_bytes: BTreeMap<&'static str, u64>,
    groups: u64,
    rows: u64,
    /// By column path.
    votes: BTreeMap<Vec<String>, Vote>,
    /// Columns with a bloom filter in any input that was looked at.
    bloom_filters: BTreeSet<Vec<String>>,
}

/// Chunks where the dictionary paid, and where not.
#[derive(Debug, Default)]
struct Vote {
    pays: u64,
    plain: u64,
    plain_chunks: u64,
    /// Before compression.
    plain_unpacked: u64,
}

impl EncodingChoice {
    /// Looks at one footer.
    pub(crate) fn observe(&mut self, metadata: &ParquetMetaData) {
        self.groups += metadata.num_row_groups() as u64;
        self.rows += metadata.row_groups().iter().map(|g| u64::try_from(g.num_rows()).unwrap_or(0)).sum::<u64>();
        for column in metadata.row_groups().iter().flat_map(|g| g.columns()) {
            let bytes = u64::try_from(column.compressed_size()).unwrap_or(0).max(1);
            *self.codec_bytes.entry(codec_name(column.compression_codec())).or_default() += bytes;
            if column.bloom_filter_offset().is_some() {
                self.bloom_filters.insert(column.column_path().parts().to_vec());
            }
            if column.column_type() == PhysicalType::BOOLEAN {
                // Flags have no dictionary.
                continue;
            }
            let vote = self.votes.entry(column.column_path().parts().to_vec()).or_default();
            if dictionary_pays(column) {
                vote.pays += bytes;
            } else {
                vote.plain += bytes;
                vote.plain_chunks += 1;
                vote.plain_unpacked += u64::try_from(column.uncompressed_size()).unwrap_or(0);
            }
        }
    }

    /// The codec that was asked for, else the one that holds most bytes.
    ///
    /// # Errors
    /// Usage for an unknown codec.
    pub(crate) fn codec(&self, asked: Option<&str>) -> Result<(Compression, &'static str)> {
        match asked {
            Some(name) => codec(name),
            None => {
                let most = self.codec_bytes.iter().max_by_key(|(_, bytes)| **bytes).map_or("snappy", |(name, _)| name);
                codec(most)
            }
        }
    }

    /// Columns that have bloom filters.
    pub(crate) fn bloom_filter_columns(&self) -> &BTreeSet<Vec<String>> {
        &self.bloom_filters
    }

    /// Those of [`EncodingChoice::plain_columns`] whose chunks are so small that their values may repeat over many of them.
    pub(crate) fn untold_columns(&self) -> HashSet<ColumnPath> {
        let small = |vote: &Vote| vote.plain_unpacked <= vote.plain_chunks * SMALL_CHUNK_BYTES as u64;
        let plain = self.plain_columns().into_iter();
        plain.filter(|path| self.votes.get(path.parts()).is_some_and(small)).collect()
    }

    /// True if row groups have so few rows that their pages will not be copied.
    pub(crate) fn has_small_groups(&self) -> bool {
        self.rows < self.groups * COPIED_ROWS as u64
    }

    /// Columns that are better written plain.
    pub(crate) fn plain_columns(&self) -> Vec<ColumnPath> {
        self.votes
            .iter()
            .filter(|(_, vote)| vote.plain > vote.pays)
            .map(|(path, _)| ColumnPath::new(path.clone()))
            .collect()
    }
}

fn codec_name(codec: CompressionCodec) -> &'static str {
    match codec {
        CompressionCodec::UNCOMPRESSED => "uncompressed",
        CompressionCodec::SNAPPY => "snappy",
        CompressionCodec::GZIP => "gzip",
        CompressionCodec::BROTLI => "brotli",
        CompressionCodec::ZSTD => "zstd",
        // The old LZ4 frame is ambiguous between writers; LZ4_RAW replaced it.
        CompressionCodec::LZ4 | CompressionCodec::LZ4_RAW => "lz4_raw",
        CompressionCodec::LZO => "snappy",
    }
}

/// A codec and its part of the file name, both as Spark has them.
fn codec(name: &str) -> Result<(Compression, &'static str)> {
    Ok(match name.to_ascii_lowercase().as_str() {
        "none" | "uncompressed" => (Compression::UNCOMPRESSED, ""),
        "snappy" => (Compression::SNAPPY, "snappy"),
        "gzip" => (Compression::GZIP(GzipLevel::default()), "gz"),
        "brotli" => (Compression::BROTLI(BrotliLevel::default()), "br"),
        "lz4" | "lz4_raw" | "lz4raw" => (Compression::LZ4_RAW, "lz4raw"),
        "zstd" => (Compression::ZSTD(ZstdLevel::default()), "zstd"),
        _ => {
            return Err(Error::usage(format!(
                "'{name}' is not a codec; use snappy, zstd, gzip, lz4_raw, brotli or uncompressed"
            )));
        }
    })
}

/// True unless the chunk fell back to plain pages or its dictionary saved little.
fn dictionary_pays(column: &ColumnChunkMetaData) -> bool {
    let is_dictionary = |e: Encoding| matches!(e, Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY);
    let mask = column.page_encoding_stats_mask();
    let (has_dictionary, falls_back) = match mask {
        Some(mask) => (mask.encodings().any(is_dictionary), mask.encodings().any(|e| !is_dictionary(e))),
        None => {
            let has = column.encodings().any(is_dictionary);
            let old = column.encodings().any(|e| e == Encoding::PLAIN_DICTIONARY);
            // With PLAIN_DICTIONARY the dictionary page itself does not count as PLAIN.
            (has, old && column.encodings().any(|e| e == Encoding::PLAIN))
        }
    };
    if !has_dictionary || falls_back {
        return false;
    }
    let values = u64::try_from(column.num_values()).unwrap_or(0);
    let nulls = column.statistics().and_then(|s| s.null_count_opt()).unwrap_or(0);
    let present = values.saturating_sub(nulls);
    let plain = match column.column_type() {
        PhysicalType::BOOLEAN => return false,
        PhysicalType::INT32 | PhysicalType::FLOAT => 4 * present,
        PhysicalType::INT64 | PhysicalType::DOUBLE => 8 * present,
        PhysicalType::INT96 => 12 * present,
        PhysicalType::FIXED_LEN_BYTE_ARRAY => u64::try_from(column.column_descr().type_length()).unwrap_or(0) * present,
        PhysicalType::BYTE_ARRAY => match column.unencoded_byte_array_data_bytes() {
            Some(bytes) => u64::try_from(bytes).unwrap_or(0) + 4 * present,
            None => return true,
        },
    };
    u64::try_from(column.uncompressed_size()).unwrap_or(0) * 10 <= plain * 8
}
