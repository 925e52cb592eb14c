use std::sync::Arc;

use arrow::array::{Float64Array, RecordBatch, StringArray};

use super::*;

#[test]
fn bounds_join_over_batches_and_unknown_leaves_are_refused() {
    let batch = |values: Vec<Option<f64>>, texts: Vec<Option<&str>>| {
        RecordBatch::try_from_iter_with_nullable([
            ("d", Arc::new(Float64Array::from(values)) as ArrayRef, true),
            ("t", Arc::new(StringArray::from(texts)), true),
        ])
        .unwrap()
    };
    let first = batch(vec![Some(f64::NAN), None], vec![None, None]);
    let paths = [vec!["d".to_owned()], vec!["t".to_owned()]];
    assert!(StatsCollector::new(&[vec!["x".to_owned()]], first.schema_ref()).is_err());
    let mut stats = StatsCollector::new(&paths, first.schema_ref()).unwrap();
    for batch in [first, batch(vec![Some(-1.0), Some(f64::INFINITY)], vec![Some("b"), Some("a")])] {
        stats.observe_batch(&batch);
    }
    let stats = stats.finish();
    assert_eq!(stats.rows, 4);
    assert_eq!((stats.leaves[0].null_count, stats.leaves[1].null_count), (1, 2));
    assert_eq!(stats.leaves[0].min, Some(Scalar::Double(-1.0)));
    assert!(matches!(stats.leaves[0].max, Some(Scalar::Double(v)) if v.is_nan()));
    assert_eq!(stats.leaves[1].min, Some(Scalar::String("a".into())));
    assert_eq!(stats.leaves[1].max, Some(Scalar::String("b".into())));
}
