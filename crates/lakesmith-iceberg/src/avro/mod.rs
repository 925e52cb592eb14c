//! Reads Avro object container files, the encoding of manifests and manifest lists.
//!
//! ```text
//! file: "Obj" 1 | header: map of bytes (avro.schema, avro.codec, …) | marker[16] | ( rows | length | bytes | marker )*
//! ```
//!
//! Readers match fields by the ids that Iceberg writes into the schema, so columns that nobody asked for are skipped
//! without being built, and unknown ones do no harm.
//!
//! # Source
//! Avro specification, "Object Container Files"; Iceberg spec, appendix A, "Avro".

mod container;
mod cursor;
mod record;
mod schema;

pub(crate) use container::Container;
pub(crate) use cursor::Cursor;
pub(crate) use record::{AvroValue, Slot, each_field};
pub(crate) use schema::{AvroField, AvroSchema};
