use super::*;

fn file(rows: u64) -> ContentFile {
    ContentFile { record_count: rows, ..ContentFile::empty(0) }
}

fn known(primitive: &Primitive, data_type: &DataType, file: &ContentFile) -> Known {
    let is_float = matches!(data_type, DataType::Float | DataType::Double);
    by_statistics(&Column { id: 7, primitive, example: example(data_type).unwrap(), is_float }, file)
}

#[test]
fn whole_numbers_are_exact_where_all_is_counted() {
    let mut file = file(10);
    file.lower_bounds = Some(vec![(3, vec![9; 8]), (7, vec![1, 0, 0, 0])]);
    file.upper_bounds = Some(vec![(7, vec![5, 0, 0, 0, 0, 0, 0, 0])]);
    file.null_value_counts = Some(vec![(7, 2)]);
    file.value_counts = Some(vec![(7, 10)]);
    let long = |file: &ContentFile| known(&Primitive::Long, &DataType::Long, file);
    let expected = |tight| Known { low: Some(Scalar::Long(1)), high: Some(Scalar::Long(5)), nulls: Some(2), tight };
    assert_eq!(long(&file), expected(true));
    // Values that are not counted row by row are those of something else.
    file.value_counts = Some(vec![(7, 12)]);
    assert_eq!(long(&file), expected(false));
    file.null_value_counts = None;
    file.upper_bounds = Some(vec![(7, vec![0; 8])]);
    assert_eq!(long(&file), Known::default());
}

#[test]
fn nan_stands_above_every_bound_of_a_float() {
    let mut file = file(3);
    file.lower_bounds = Some(vec![(7, 1.5f32.to_le_bytes().to_vec())]);
    file.upper_bounds = Some(vec![(7, 2.5f32.to_le_bytes().to_vec())]);
    let double = |file: &ContentFile| known(&Primitive::Double, &DataType::Double, file);
    assert_eq!((double(&file).low, double(&file).high), (Some(Scalar::Double(1.5)), None));
    file.nan_value_counts = Some(vec![(7, 1)]);
    assert_eq!(double(&file).high, None);
    file.nan_value_counts = Some(vec![(7, 0)]);
    assert_eq!((double(&file).high, double(&file).tight), (Some(Scalar::Double(2.5)), false));
    file.lower_bounds = Some(vec![(7, f32::NAN.to_le_bytes().to_vec())]);
    assert_eq!((double(&file).low, double(&file).high), (None, None));
}

#[test]
fn texts_may_be_cut_and_columns_of_nulls_have_no_bounds() {
    let mut file = file(4);
    file.lower_bounds = Some(vec![(7, b"a".to_vec())]);
    file.upper_bounds = Some(vec![(7, b"b".to_vec())]);
    file.null_value_counts = Some(vec![(7, 0)]);
    file.value_counts = Some(vec![(7, 4)]);
    let text = known(&Primitive::String, &DataType::String, &file);
    assert_eq!((text.high, text.tight), (Some(Scalar::String("b".into())), false));
    (file.lower_bounds, file.upper_bounds) = (None, None);
    file.null_value_counts = Some(vec![(7, 4)]);
    let nulls = known(&Primitive::Int, &DataType::Integer, &file);
    assert_eq!(nulls, Known { low: None, high: None, nulls: Some(4), tight: true });
}
