//! Which writer gets which rows.

use arrow::array::{RecordBatch, UInt64Array};
use arrow::compute::take_record_batch;
use arrow::error::ArrowError;

/// How rows are spread over writers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spread {
    /// Partitions of the plan stay whole.
    Partitions,
    /// Row by row in turn.
    Rows,
}

/// `batch` as `count` batches, its rows in turn beginning with the one whose turn it is.
pub(super) fn in_turn(batch: &RecordBatch, count: usize, turn: &mut usize) -> Result<Vec<RecordBatch>, ArrowError> {
    let rows = batch.num_rows();
    let parts = (0..count).map(|writer| {
        let first = (writer + count - *turn % count) % count;
        let places: UInt64Array = (first..rows).step_by(count).map(|row| row as u64).collect();
        take_record_batch(batch, &places)
    });
    let parts = parts.collect::<Result<Vec<_>, _>>()?;
    *turn = (*turn + rows) % count;
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{AsArray, Int32Array};
    use arrow::datatypes::{DataType, Field, Int32Type, Schema};

    use super::*;

    #[test]
    fn every_writer_gets_as_many_rows_as_the_others_and_each_row_goes_to_one() {
        let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Int32, true)]));
        let (mut turn, mut got) = (0, vec![Vec::new(); 3]);
        for rows in [0..5, 5..6, 6..13] {
            let column = Int32Array::from_iter_values(rows);
            let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(column)]).unwrap();
            for (writer, part) in in_turn(&batch, 3, &mut turn).unwrap().into_iter().enumerate() {
                got[writer].extend(part.column(0).as_primitive::<Int32Type>().values().iter().copied());
            }
        }
        assert_eq!(got, [vec![0, 3, 6, 9, 12], vec![1, 4, 7, 10], vec![2, 5, 8, 11]]);
    }
}
