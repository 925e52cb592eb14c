//! A hundred daily loads with a budgeted run after each, rows as points, sizes in rows.

use proptest::prelude::*;

use super::*;
use crate::error::ErrorKind;
use crate::layout::{curve, rank::RankRanges};
use crate::plan::cluster::ZCUBE_KEYS_TAG;
use crate::plan::compact::tests::{TestFile, file};
use crate::plan::keys::tests::field;
use crate::plan::{ZCUBE_TAG, optimize};
use crate::table::{DataType, Schema};

const LOAD: usize = 512;
const DAYS: usize = 100;
/// Files of a load, none sorted.
const LOAD_FILES: usize = 4;

#[derive(Clone)]
struct Written {
    rows: Vec<Vec<u32>>,
    run: Option<u32>,
}

impl Written {
    fn span(&self) -> Vec<(u32, u32)> {
        let of_key = |k: usize| self.rows.iter().fold((u32::MAX, 0), |(a, b), row| (a.min(row[k]), b.max(row[k])));
        (0..self.rows[0].len()).map(of_key).collect()
    }
}

struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 40) as u32
    }
}

/// Writes the rows along the curve into files of equally many.
fn write(mut rows: Vec<Vec<u32>>, files: usize, run: u32) -> Vec<Written> {
    let keys = rows[0].len();
    let bits = curve::bits_per_key(keys);
    let ranges: Vec<RankRanges<u32>> = (0..keys)
        .map(|k| {
            let mut sample: Vec<u32> = rows.iter().map(|row| row[k]).collect();
            sample.sort_unstable();
            RankRanges::from_sorted(&sample, 0, (1 << bits) - 1)
        })
        .collect();
    rows.sort_by_cached_key(|row| match keys {
        1 => u64::from(row[0]),
        _ => {
            let point: Vec<u32> = row.iter().zip(&ranges).map(|(value, ranges)| ranges.rank(value)).collect();
            curve::hilbert(&point, bits)
        }
    });
    let cut = |i: usize| rows.len() * i / files;
    (0..files)
        .map(|i| Written { rows: rows[cut(i)..cut(i + 1)].to_vec(), run: Some(run) })
        .filter(|f| !f.rows.is_empty())
        .collect()
}

fn extents(files: &[Written]) -> Vec<Extent> {
    let of = |f: &Written| {
        let span = f.span().iter().map(|(a, b)| (f64::from(*a), f64::from(*b))).collect();
        Extent { span, bytes: f.rows.len() as u64, rows: f.rows.len() as u64, run: f.run }
    };
    files.iter().map(of).collect()
}

/// Files to open for a random row, all keys given.
fn depth(files: &[Written], rows: &[Vec<u32>], numbers: &mut Numbers) -> f64 {
    let spans: Vec<Vec<(u32, u32)>> = files.iter().map(Written::span).collect();
    const ASKED: usize = 300;
    let open = |row: &Vec<u32>| {
        spans.iter().filter(|span| span.iter().zip(row).all(|((a, b), value)| a <= value && value <= b)).count()
    };
    (0..ASKED).map(|_| open(&rows[numbers.next() as usize % rows.len()])).sum::<usize>() as f64 / ASKED as f64
}

#[derive(Debug, Clone, Copy)]
struct Course {
    /// Rows written, loads included, for each row loaded.
    written: f64,
    mean_depth: f64,
}

/// `loads`: the budget, in daily loads.
fn simulate(keys: usize, target: usize, loads: f64, correlated: bool) -> Course {
    let mut numbers = Numbers(7);
    let (mut files, mut rows): (Vec<Written>, Vec<Vec<u32>>) = (vec![], vec![]);
    let (mut written, mut depths) = (0usize, 0.0);
    for day in 0..DAYS {
        for _ in 0..LOAD_FILES {
            let mut load: Vec<Vec<u32>> =
                (0..LOAD / LOAD_FILES).map(|_| (0..keys).map(|_| numbers.next()).collect()).collect();
            if correlated {
                // A day's rows reach a tenth into the next day.
                load.iter_mut().for_each(|row| row[0] = ((day as u32) << 16) + row[0] % 72_000);
            }
            rows.extend(load.iter().cloned());
            files.push(Written { rows: load, run: None });
        }
        written += LOAD;
        let bytes = (loads * LOAD as f64) as u64;
        let sets = choose(&extents(&files), bytes);
        assert!(sets.iter().map(|set| set.bytes).sum::<u64>() <= bytes);
        let mut taken = vec![false; files.len()];
        let mut new = vec![];
        for set in &sets {
            set.members.iter().for_each(|i| taken[*i] = true);
            let inputs: Vec<Vec<u32>> = set.members.iter().flat_map(|i| files[*i].rows.clone()).collect();
            written += inputs.len();
            let count = outputs(set, rows.len() as u64, bytes, target as u64, keys);
            new.extend(write(inputs, count as usize, day as u32));
        }
        let mut taken = taken.into_iter();
        files.retain(|_| taken.next() == Some(false));
        files.extend(new);
        depths += depth(&files, &rows, &mut numbers);
    }
    Course { written: written as f64 / rows.len() as f64, mean_depth: depths / DAYS as f64 }
}

fn is_cheap_and_shallow(course: Course, written: f64, depth: f64) {
    assert!(course.written <= written && course.mean_depth <= depth, "{course:?}");
}

#[test]
fn four_loads_a_day_keep_one_key_shallow_whatever_the_target() {
    is_cheap_and_shallow(simulate(1, LOAD * 4, 4.0, false), 5.0, 6.0);
}

#[test]
fn two_keys_cost_as_much_and_stay_bounded() {
    is_cheap_and_shallow(simulate(2, LOAD * 4, 4.0, false), 5.0, 8.0);
}

#[test]
fn keys_that_follow_time_are_written_once_more_and_no_more() {
    is_cheap_and_shallow(simulate(1, LOAD / 2, 4.0, true), 2.0, 1.2);
}

const KEYS: &str = r#"["a","b"]"#;

fn state(files: &[TestFile]) -> TableState {
    let mut state = crate::plan::compact::tests::state(files);
    state.schema = Schema { fields: vec![field("a", DataType::Long), field("b", DataType::String)] };
    state.features = vec!["clustering".into()];
    state.clustering_columns = Some(vec![vec!["a".into()], vec!["b".into()]]);
    state
}

fn in_cube(path: &str, size: u64, id: &str, keys: &str) -> TestFile {
    let tags = vec![(ZCUBE_TAG, id.to_string()), (ZCUBE_KEYS_TAG, keys.to_string())];
    TestFile { tags, provider: Some("liquid"), ..file(path, size) }
}

fn plan(files: &[TestFile], bounds: &[Option<(i64, i64)>], budget_bytes: u64) -> RewritePlan {
    let numbers = bounds.iter().map(|b| b.map(|(a, b)| (Scalar::Long(a), Scalar::Long(b)))).collect();
    let texts = bounds.iter().map(|b| b.map(|(a, b)| (text(a), text(b)))).collect();
    let options = OptimizeOptions { budget_bytes: Some(budget_bytes), ..Default::default() };
    let mut context = LayoutContext {
        indexed_leaves: &[],
        run_id: "r",
        new_cube_id: &mut || "new".into(),
        bounds: &[numbers, texts],
    };
    optimize(&state(files), &options, None, &mut context).unwrap()
}

/// Of one length, so that texts are ordered as the numbers.
fn text(number: i64) -> Scalar {
    Scalar::String(format!("customer-{number:06}"))
}

fn cubes(plan: &RewritePlan) -> Vec<(usize, &str)> {
    plan.groups.iter().map(|g| (g.files.len(), g.marks.tag(ZCUBE_TAG).unwrap())).collect()
}

#[test]
fn loads_over_the_same_keys_are_merged_into_the_tables_cube() {
    let loads = [file("a", 10), file("b", 10), file("c", 10)];
    let wide = [Some((0, 1000)); 3];
    assert_eq!(cubes(&plan(&loads, &wide, 30)), [(3, "new")]);
    let four = [file("a", 10), file("b", 10), file("c", 10), file("d", 10)];
    assert_eq!(cubes(&plan(&four, &[Some((0, 1000)); 4], 39)), [(3, "new")], "as many as the budget bears");
    assert!(plan(&loads, &wide, 19).groups.is_empty());
    let mut with_cube = loads.to_vec();
    with_cube.push(in_cube("old", 5000, "theirs", KEYS));
    let bounds = [Some((0, 1000)), Some((0, 1000)), Some((0, 1000)), Some((0, 1000))];
    assert_eq!(cubes(&plan(&with_cube, &bounds, 30)), [(3, "theirs")]);
}

#[test]
fn what_would_not_lower_the_depth_or_is_not_ours_stays() {
    let loads = [file("a", 10), file("b", 10), file("c", 10)];
    let apart = [Some((0, 99)), Some((100, 199)), Some((199, 300))];
    assert!(plan(&loads, &apart, 1000).groups.is_empty());
    let other = [in_cube("a", 10, "o", r#"["b","a"]"#), in_cube("b", 10, "o", r#"["b"]"#), in_cube("c", 10, "o", "{")];
    assert!(plan(&other, &[Some((0, 9)); 3], 1000).groups.is_empty());
    assert!(plan(&[], &[], 1000).groups.is_empty());
}

#[test]
fn files_without_bounds_lie_over_everything() {
    let files = [file("a", 10), file("b", 10), file("c", 10)];
    assert_eq!(cubes(&plan(&files, &[None, None, Some((0, 9))], 1000)), [(3, "new")]);
    assert_eq!(cubes(&plan(&files, &[None; 3], 1000)), [(3, "new")]);
}

#[test]
fn bounds_of_every_key_and_file_are_demanded() {
    let options = OptimizeOptions { budget_bytes: Some(1), ..Default::default() };
    let mut context = LayoutContext { indexed_leaves: &[], run_id: "r", new_cube_id: &mut String::new, bounds: &[] };
    let error = optimize(&state(&[file("a", 1)]), &options, None, &mut context).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal);
}

#[test]
fn texts_are_told_apart_behind_what_they_share_and_numbers_stay_finite() {
    let shared = shared_prefix([text(1), text(100_000)].iter());
    assert_eq!(shared, "customer-".len());
    assert!(number(&text(1), shared) < number(&text(2), shared));
    for odd in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert!(number(&Scalar::Double(odd), 0).is_finite());
    }
    assert!(number(&Scalar::Null, 0) < number(&Scalar::Long(i64::MIN), 0));
}

proptest! {
    #[test]
    fn the_order_of_the_table_does_not_reach_the_plan_and_the_budget_holds(
        files in prop::collection::vec((1u64..50, 0i64..100, 0i64..100), 0..25), budget_bytes in 0u64..400,
    ) {
        let shown = |reversed: bool| {
            let mut named: Vec<(TestFile, Option<(i64, i64)>)> = files.iter().enumerate()
                .map(|(i, (size, min, width))| (file(&format!("f{i:02}"), *size), Some((*min, min + width)))).collect();
            if reversed {
                named.reverse();
            }
            let (files, bounds): (Vec<TestFile>, Vec<_>) = named.into_iter().unzip();
            let plan = plan(&files, &bounds, budget_bytes);
            assert!(plan.input_bytes() <= budget_bytes);
            plan.groups.iter().map(|g| g.files.iter().map(|f| files[f.0 as usize].path.clone()).collect::<Vec<_>>()).collect::<Vec<_>>()
        };
        prop_assert_eq!(shown(false), shown(true));
    }
}
