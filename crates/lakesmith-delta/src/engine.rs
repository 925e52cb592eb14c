//! The kernel, behind one adapter: its engine over our metered store, and its errors as ours.
//!
//! The kernel builds URLs from object names and decodes them again, which loses names that hold a `%`. So it is rooted
//! at the table itself: it sees only the names below, and those are Delta's own.

use std::sync::Arc;

use delta_kernel::object_store::prefix::PrefixStore;
use delta_kernel::{Engine, KernelError};
use delta_kernel_default_engine::DefaultEngineBuilder;
use delta_kernel_default_engine::executor::tokio::TokioMultiThreadExecutor;
use lakesmith_core::{Error, ErrorKind, Result};
use lakesmith_storage::{Location, Store, credentials_missing};

use crate::features;

/// The table's root as the kernel sees it.
pub const KERNEL_ROOT: &str = "file:///";

/// Rows of a batch: larger ones cost the kernel less a row, and a batch must stay small beside the file table.
const BATCH_ROWS: std::num::NonZeroUsize = std::num::NonZeroUsize::new(65_536).expect("not zero");

/// An engine whose storage is the table at `root`. Call its methods from blocking threads only.
///
/// # Errors
/// [`ErrorKind::Internal`] outside a multi-threaded runtime.
pub fn open(store: &Store, root: &Location) -> Result<Arc<dyn Engine>> {
    let handle = tokio::runtime::Handle::try_current()
        .map_err(|e| Error::internal("the kernel needs the session's runtime").caused_by(e))?;
    if handle.runtime_flavor() != tokio::runtime::RuntimeFlavor::MultiThread {
        return Err(Error::internal("the kernel needs a multi-threaded runtime"));
    }
    let below_root = PrefixStore::new(store.object_store(), store.path(root)?);
    let engine = DefaultEngineBuilder::new(Arc::new(below_root))
        .with_task_executor(Arc::new(TokioMultiThreadExecutor::new(handle)))
        .with_batch_size(BATCH_ROWS)
        .build();
    Ok(Arc::new(engine))
}

/// Runs kernel work on a blocking thread.
///
/// # Errors
/// What `work` returns; [`ErrorKind::Internal`] if it panicked.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(e) if e.is_cancelled() => Err(Error::new(ErrorKind::Cancelled, "the run was stopped")),
        Err(e) => Err(Error::internal("reading the log failed unexpectedly").caused_by(e)),
    }
}

/// A kernel error as ours, for the table at `root`.
pub fn translate(error: KernelError, root: &Location) -> Error {
    let error = match error {
        KernelError::Backtraced { source, .. } => *source,
        other => other,
    };
    let text = error.to_string();
    let (kind, message) = match &error {
        KernelError::Unsupported(why) => return unsupported(why, root),
        KernelError::MaxCatalogVersion(_) => {
            return features::catalog_managed("catalogManaged").with("path", root).caused_by(error);
        }
        KernelError::InvalidProtocol(why) if quoted(why).is_some_and(features::is_catalog_managed) => {
            return features::catalog_managed(quoted(why).unwrap_or_default()).with("path", root);
        }
        KernelError::Schema(_) if text.to_lowercase().contains("unsupported") => {
            (ErrorKind::Unsupported, "the table's schema holds something that can't be read")
        }
        KernelError::ObjectStore(e) if !e.to_string().contains("not found") => {
            (ErrorKind::Unavailable, "the storage did not answer while the log was read")
        }
        KernelError::Reqwest(_) | KernelError::IOError(_) => {
            (ErrorKind::Unavailable, "the storage did not answer while the log was read")
        }
        KernelError::InternalError(_) | KernelError::JoinFailure(_) | KernelError::EngineDataType(_) => {
            (ErrorKind::Internal, "reading the log failed unexpectedly")
        }
        KernelError::Cancelled => (ErrorKind::Cancelled, "the run was stopped"),
        KernelError::FileNotFound(_) => (ErrorKind::Corrupt, "a file that the log needs is missing"),
        KernelError::MissingVersion(_) | KernelError::InvalidLogSegment(_) => {
            (ErrorKind::Corrupt, "the log has a gap: the versions it holds are not contiguous")
        }
        KernelError::InvalidCheckpoint(_) => (
            ErrorKind::Corrupt,
            "a checkpoint is incomplete or broken, or _delta_log/_last_checkpoint names one that is gone; if all commits \
             are still there, remove that hint and the broken checkpoint",
        ),
        KernelError::Parquet(_) => (ErrorKind::Corrupt, "a checkpoint is not a valid Parquet file"),
        KernelError::MissingMetadata | KernelError::MissingProtocol | KernelError::MissingMetadataAndProtocol => {
            (ErrorKind::Corrupt, "the log holds no protocol or no metadata")
        }
        _ => (ErrorKind::Corrupt, "the log can't be read"),
    };
    let message = match kind {
        ErrorKind::Unavailable => credentials_missing(&text, root).map(|why| format!("the log can't be read: {why}")),
        _ => None,
    }
    .unwrap_or_else(|| message.to_owned());
    Error::new(kind, message).with("path", root).caused_by(error)
}

/// The feature that the kernel speaks of: it quotes its name first.
fn quoted(why: &str) -> Option<&str> {
    why.split('\'').nth(1)
}

fn unsupported(why: &str, root: &Location) -> Error {
    let feature = quoted(why);
    let message = match feature {
        Some(name) => format!(
            "the table requires the feature {name}, which this version of Lakesmith can't read; nothing was done"
        ),
        None => format!("the table can't be read by this version of Lakesmith: {why}"),
    };
    Error::unsupported(message)
        .class("DELTA_UNSUPPORTED_FEATURES_FOR_READ")
        .with("path", root)
        .with("features", feature.unwrap_or_default())
}
