//! Writing an object piece by piece, in bounded memory.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use lakesmith_core::Result;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _, PutPayload, WriteMultipart};

use crate::failure::storage_error;
use crate::location::Location;

/// Bytes in a part. S3 allows 10,000 parts, so an object can have 80 GB.
const PART_BYTES: usize = 8 << 20;
/// Parts on their way at once at most.
const PARTS_IN_FLIGHT_MAX: usize = 4;

/// A write in progress. Dropping it without [`Upload::finish`] leaves no object, but may leave parts for the
/// storage's own cleaning; [`Upload::abort`] removes them at once.
#[derive(Debug)]
pub struct Upload {
    store: Arc<dyn ObjectStore>,
    path: Path,
    location: Location,
    parts_in_flight: usize,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Less than a part so far: it will be one plain put.
    Small(BytesMut),
    Parts(WriteMultipart),
}

impl Upload {
    pub(crate) fn new(store: Arc<dyn ObjectStore>, path: Path, location: Location, memory_bytes: u64) -> Self {
        let parts = usize::try_from(memory_bytes / PART_BYTES as u64).unwrap_or(PARTS_IN_FLIGHT_MAX);
        let parts_in_flight = parts.clamp(1, PARTS_IN_FLIGHT_MAX);
        Self { store, path, location, parts_in_flight, state: State::Small(BytesMut::new()) }
    }

    /// Where the object will be.
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// Appends bytes; waits while too many parts are on their way.
    ///
    /// # Errors
    /// `Unavailable`; then call [`Upload::abort`].
    pub async fn write(&mut self, bytes: Bytes) -> Result<()> {
        let written = async {
            if let State::Small(buffer) = &mut self.state {
                if buffer.len() + bytes.len() < PART_BYTES {
                    buffer.extend_from_slice(&bytes);
                    return Ok(());
                }
                let upload = self.store.put_multipart(&self.path).await?;
                let mut parts = WriteMultipart::new_with_chunk_size(upload, PART_BYTES);
                parts.put(std::mem::take(buffer).freeze());
                self.state = State::Parts(parts);
            }
            if let State::Parts(parts) = &mut self.state {
                parts.wait_for_capacity(self.parts_in_flight).await?;
                parts.put(bytes);
            }
            Ok(())
        };
        written.await.map_err(|e| storage_error(e, "write", &self.location))
    }

    /// Makes the object visible, whole.
    ///
    /// # Errors
    /// `Unavailable`; the parts were given up.
    pub async fn finish(self) -> Result<()> {
        let finished = match self.state {
            State::Small(buffer) => self.store.put(&self.path, PutPayload::from_bytes(buffer.freeze())).await,
            State::Parts(parts) => parts.finish().await,
        };
        finished.map(|_| ()).map_err(|e| storage_error(e, "write", &self.location))
    }

    /// Gives the write up and removes its parts.
    ///
    /// # Errors
    /// `Unavailable`; the parts stay until the storage cleans them.
    pub async fn abort(self) -> Result<()> {
        match self.state {
            State::Small(_) => Ok(()),
            State::Parts(parts) => parts.abort().await.map_err(|e| storage_error(e, "abort the write", &self.location)),
        }
    }
}
