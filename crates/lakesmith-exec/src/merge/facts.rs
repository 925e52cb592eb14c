//! What a footer and the page indexes say of a merged chunk.

use std::sync::Arc;

use parquet::basic::{BoundaryOrder, Compression, Encoding, PageType};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, ColumnIndexBuilder, OffsetIndexBuilder, PageEncodingStats};
use parquet::file::page_index::column_index::ColumnIndexMetaData;

use super::bounds::{self, Bounds};
use super::leaf::Column;

/// One finished page.
pub(super) struct PageFacts {
    pub rows: usize,
    pub nulls: usize,
    /// Bytes with its header.
    pub stored: usize,
    /// As the page index has them.
    pub bounds: Option<(Vec<u8>, Vec<u8>)>,
    /// It holds ids.
    pub dictionary: bool,
    /// Bytes of its strings without their lengths.
    pub plain_bytes: usize,
}

/// All finished pages and their sums.
#[derive(Default)]
pub(super) struct Facts {
    pub pages: Vec<PageFacts>,
    /// Bytes with headers.
    pub stored: u64,
    /// Bytes with headers before compression.
    pub uncompressed: u64,
    pub plain_bytes: u64,
    pub nulls: u64,
    pub rows: u64,
}

impl Facts {
    /// What the footer and the page indexes say, as if the chunk stood at the start of a file.
    ///
    /// # Errors
    /// A size beyond what a footer can say.
    pub(super) fn describe(
        &self,
        column: &Column,
        compression: Compression,
        dictionary_length: usize,
        bounds: Option<&Bounds>,
    ) -> Result<ColumnCloseResult, ParquetError> {
        let has_dictionary = dictionary_length > 0;
        let of = |dictionary: bool| self.pages.iter().filter(|p| p.dictionary == dictionary).count() as i32;
        let count = |page_type, encoding, count| PageEncodingStats { page_type, encoding, count };
        let mut encodings = vec![Encoding::RLE];
        let mut counts = Vec::new();
        if has_dictionary {
            encodings.push(Encoding::RLE_DICTIONARY);
            counts.push(count(PageType::DICTIONARY_PAGE, Encoding::PLAIN, 1));
            counts.push(count(PageType::DATA_PAGE, Encoding::RLE_DICTIONARY, of(true)));
        }
        if of(false) > 0 {
            counts.push(count(PageType::DATA_PAGE, Encoding::PLAIN, of(false)));
        }
        encodings.push(Encoding::PLAIN);
        let is_text = column.width.is_none();
        let metadata = ColumnChunkMetaData::builder(Arc::clone(&column.descriptor))
            .set_compression(compression)
            .set_encodings(encodings)
            .set_page_encoding_stats(counts)
            .set_num_values(self.rows as i64)
            .set_total_compressed_size(self.stored as i64)
            .set_total_uncompressed_size(self.uncompressed as i64)
            .set_dictionary_page_offset(has_dictionary.then_some(0))
            .set_data_page_offset(dictionary_length as i64)
            .set_statistics(bounds::statistics(column.order, bounds, self.nulls))
            .set_unencoded_byte_array_data_bytes(is_text.then_some(self.plain_bytes as i64))
            .build()?;
        let mut offsets = OffsetIndexBuilder::new();
        let mut at = dictionary_length as i64;
        for page in &self.pages {
            offsets.append_offset_and_size(at, i32::try_from(page.stored)?);
            offsets.append_row_count(page.rows as i64);
            offsets.append_unencoded_byte_array_data_bytes(is_text.then_some(page.plain_bytes as i64));
            at += page.stored as i64;
        }
        Ok(ColumnCloseResult {
            bytes_written: self.stored,
            rows_written: self.rows,
            metadata,
            bloom_filter: None,
            column_index: self.column_index(column)?,
            offset_index: Some(offsets.build()),
        })
    }

    /// `None` if a page has values without bounds.
    fn column_index(&self, column: &Column) -> Result<Option<ColumnIndexMetaData>, ParquetError> {
        let order = column.order;
        let mut builder = ColumnIndexBuilder::new(column.descriptor.physical_type());
        for page in &self.pages {
            let null_page = page.nulls == page.rows;
            match &page.bounds {
                Some((low, high)) => builder.append(false, low.clone(), high.clone(), page.nulls as i64),
                None if null_page => builder.append(true, Vec::new(), Vec::new(), page.nulls as i64),
                None => return Ok(None),
            }
        }
        let bounded: Vec<_> = self.pages.iter().filter_map(|p| p.bounds.as_ref()).collect();
        let sorted = |ascending: bool| {
            bounded.windows(2).all(|pair| {
                let ((l0, h0), (l1, h1)) = (pair[0], pair[1]);
                let (low, high) = (bounds::compare(order, l0, l1), bounds::compare(order, h0, h1));
                if ascending { low.is_le() && high.is_le() } else { low.is_ge() && high.is_ge() }
            })
        };
        builder.set_boundary_order(match (sorted(true), sorted(false)) {
            (true, _) => BoundaryOrder::ASCENDING,
            (false, true) => BoundaryOrder::DESCENDING,
            (false, false) => BoundaryOrder::UNORDERED,
        });
        builder.build().map(Some)
    }
}
