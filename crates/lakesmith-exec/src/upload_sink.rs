//! The Parquet writer's sink: bytes go to an upload in bounded pieces.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use lakesmith_core::{Error, Result};
use lakesmith_storage::{Location, Store, Upload};
use tokio::runtime::Handle;

/// Bytes gathered before they go to the upload.
const PIECE_BYTES: usize = 1 << 20;

/// An upload shared by the Parquet writer, which holds its own clone, and the owner that ends it.
#[derive(Clone)]
pub(crate) struct UploadSink {
    state: Arc<Mutex<State>>,
    runtime: Handle,
}

struct State {
    upload: Option<Upload>,
    buffer: Vec<u8>,
    written: u64,
}

impl UploadSink {
    /// Starts an upload whose parts hold about `memory_bytes`; nothing is visible before [`UploadSink::finish`].
    pub(crate) fn start(store: &Store, location: &Location, memory_bytes: u64, runtime: &Handle) -> Result<Self> {
        let upload = runtime.block_on(store.upload_within(location, memory_bytes))?;
        let state = State { upload: Some(upload), buffer: Vec::with_capacity(PIECE_BYTES), written: 0 };
        Ok(Self { state: Arc::new(Mutex::new(state)), runtime: runtime.clone() })
    }

    /// Makes the object visible; returns its bytes.
    pub(crate) fn finish(&self) -> Result<u64> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.send(&mut state)?;
        let upload = state.upload.take().ok_or_else(gone)?;
        self.runtime.block_on(upload.finish())?;
        Ok(state.written)
    }

    /// Gives the upload up, if it is still going.
    pub(crate) fn abort(&self) {
        let upload = self.state.lock().unwrap_or_else(PoisonError::into_inner).upload.take();
        if let Some(upload) = upload
            && let Err(error) = self.runtime.block_on(upload.abort())
        {
            tracing::warn!(%error, "parts of an unfinished upload stay until the storage cleans them");
        }
    }

    fn send(&self, state: &mut State) -> Result<()> {
        if state.buffer.is_empty() {
            return Ok(());
        }
        let piece = Bytes::from(std::mem::replace(&mut state.buffer, Vec::with_capacity(PIECE_BYTES)));
        let upload = state.upload.as_mut().ok_or_else(gone)?;
        self.runtime.block_on(upload.write(piece))
    }
}

fn gone() -> Error {
    Error::internal("bytes were written to an upload that had ended")
}

impl Write for UploadSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.buffer.extend_from_slice(bytes);
        state.written += bytes.len() as u64;
        if state.buffer.len() >= PIECE_BYTES {
            self.send(&mut state).map_err(io::Error::other)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
