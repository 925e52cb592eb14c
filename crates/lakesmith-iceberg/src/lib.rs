//! Apache Iceberg: tables as their metadata describes them.
//!
//! ```text
//! vN.metadata.json ──> TableMetadata ──snapshot──> manifest list ──> manifests ──> entries
//! load ──> IcebergTable { state: what planners see, log: what the format alone knows }
//!            └─ read_spec, row_tracking, input_files, read_vector ──> the data room
//! ```
//!
//! Metadata, manifest lists and manifests are read by code of our own: every version of the format, with types that we do
//! not know, and skipping what nobody asked for.

#![cfg_attr(test, expect(clippy::unwrap_used, reason = "a test that cannot proceed should stop"))]

mod assemble;
mod avro;
mod bounds;
mod bucket;
mod delete_index;
mod load;
mod manifest;
mod manifest_list;
pub mod metadata;
mod metadata_file;
pub mod metadata_tables;
mod path;
mod read;
pub mod rest;
mod single_value;
mod snapshot_files;
mod table;
mod transform;
pub mod types;
mod value_text;
mod vector;

pub use bounds::{column_bounds, key_bounds};
pub use bucket::{BucketColumn, bucket_columns, bucket_of};
pub use load::{At, Needs, load, load_metadata_at};
pub use manifest::{Content, ContentFile, Entry, Status, StoredFormat};
pub use manifest_list::{FieldSummary, ManifestContent, ManifestFile};
pub use metadata::{PartitionField, PartitionSpec, Snapshot, TableMetadata};
pub use metadata_file::{METADATA_FOLDER, is_metadata_file, is_table};
pub use read::{input_files, read_spec, row_tracking};
pub use table::{FileFacts, IcebergTable, LogState};
pub use transform::Transform;
pub use vector::read_vector;
