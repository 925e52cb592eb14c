//! Memory of a file table: `cargo run --release -p lakesmith-delta --example file_table_memory -- 10000000`.
//!
//! Pushes that many invented files of 1,000 partitions and prints the bytes the table holds and the process' peak.

#![expect(clippy::print_stdout, reason = "the figures are the point of the program")]

use lakesmith_core::table::{FileMarks, FileTableBuilder, NewRow, PartitionTuple, Scalar};

fn main() {
    let count: u64 = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(1_000_000);
    let mut builder = FileTableBuilder::new(false);
    let marks_index = builder.marks(FileMarks::default());
    for i in 0..count {
        let day = (i % 1_000) as i32;
        let partition_index =
            builder.partition(PartitionTuple { raw: vec![Some(day.to_string())], values: vec![Scalar::Date(day)] });
        let path = format!("date={day}/part-{i:05}-00000000-0000-4000-8000-{i:012}.c000.snappy.parquet");
        let row = NewRow {
            path: &path,
            size: 1 << 20,
            rows: Some(10_000),
            modified_ms: i as i64,
            partition_index,
            marks_index,
            base_row_id: None,
            row_commit_version: None,
            stats_json: None,
        };
        builder.push(row, None);
    }
    let table = builder.finish();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find(|l| l.starts_with("VmHWM")).unwrap_or("VmHWM: unknown").to_owned();
    println!(
        "{} files, {} bytes held, {} a file; {peak}",
        table.len(),
        table.heap_bytes(),
        table.heap_bytes() as u64 / count.max(1)
    );
}
