//! The local file system as an object store.
//!
//! Two things are done here that the library's own local store does not: every name is an object (it hides names that
//! end in `#` and digits), and the side file in which Hadoop keeps a checksum never outlives the bytes it describes.
//! Writes appear whole or not at all: bytes go to a hidden file in the same folder, reach the disk, and are then
//! renamed (replacing) or hard-linked (only if absent).

mod list;
mod survey;
pub(crate) mod temporary;
mod write;

use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use object_store::path::Path;
use object_store::{
    Attributes, CopyMode, CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

pub(crate) use self::survey::{Walked, survey};
use self::write::{LocalUpload, Staged};

/// Threads that delete at once, and the files that one takes at a time: a file is gone sooner than a thread is woken.
const DELETES_IN_FLIGHT: usize = 8;
const DELETES_A_THREAD: usize = 64;

/// The file system from its root; paths are absolute file names without the leading slash.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LocalStore;

impl fmt::Display for LocalStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LocalStore")
    }
}

#[async_trait]
impl ObjectStore for LocalStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        let create = match options.mode {
            PutMode::Overwrite => false,
            PutMode::Create => true,
            PutMode::Update(_) => return Err(not_supported("a put that compares versions")),
        };
        let location = location.clone();
        blocking(move || {
            let staged = Staged::create(&location)?;
            let mut offset = 0;
            for piece in payload.iter() {
                staged.write_at(piece, offset)?;
                offset += piece.len() as u64;
            }
            staged.publish(create)
        })
        .await
    }

    async fn put_multipart_opts(&self, location: &Path, _: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        let location = location.clone();
        blocking(move || Ok(Box::new(LocalUpload::new(Staged::create(&location)?)) as Box<dyn MultipartUpload>)).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let location = location.clone();
        blocking(move || {
            let path = file_path(&location);
            let file = File::open(&path).map_err(|e| io_failure(e, &location))?;
            let meta = object_meta(&file.metadata().map_err(|e| io_failure(e, &location))?, location)?;
            options.check_preconditions(&meta)?;
            let range = match options.range {
                Some(range) => range.as_range(meta.size).map_err(|e| generic(e.to_string()))?,
                None => 0..meta.size,
            };
            Ok(GetResult {
                payload: GetResultPayload::File(file, path),
                meta,
                range,
                attributes: Attributes::default(),
            })
        })
        .await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let (location, ranges) = (location.clone(), ranges.to_vec());
        blocking(move || {
            let file = File::open(file_path(&location)).map_err(|e| io_failure(e, &location))?;
            let size = file.metadata().map_err(|e| io_failure(e, &location))?.len();
            let read = |range: Range<u64>| {
                let end = range.end.min(size);
                let length = usize::try_from(end.saturating_sub(range.start)).map_err(|e| generic(e.to_string()))?;
                let mut buffer = vec![0; length];
                file.read_exact_at(&mut buffer, range.start).map_err(|e| io_failure(e, &location))?;
                Ok(Bytes::from(buffer))
            };
            ranges.into_iter().map(read).collect()
        })
        .await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let delete = |location: Result<Path>| {
            let location = location?;
            let path = file_path(&location);
            write::remove_checksum(&path).map_err(|e| io_failure(e, &location))?;
            std::fs::remove_file(&path).map_err(|e| io_failure(e, &location))?;
            Ok(location)
        };
        locations
            .ready_chunks(DELETES_A_THREAD)
            .map(move |some| async move {
                let deleted = blocking(move || Ok(some.into_iter().map(delete).collect::<Vec<_>>())).await;
                futures::stream::iter(deleted.unwrap_or_else(|e| vec![Err(e)]))
            })
            .buffered(DELETES_IN_FLIGHT)
            .flatten()
            .boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        list::walk(prefix.cloned().unwrap_or_default(), None)
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
        list::walk(prefix.cloned().unwrap_or_default(), Some(offset.clone()))
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let prefix = prefix.cloned().unwrap_or_default();
        blocking(move || list::folder(&prefix)).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        let (from, to) = (from.clone(), to.clone());
        blocking(move || {
            let mut source = File::open(file_path(&from)).map_err(|e| io_failure(e, &from))?;
            let mut staged = Staged::create(&to)?;
            io::copy(&mut source, staged.file_mut()).map_err(|e| io_failure(e, &to))?;
            staged.publish(matches!(options.mode, CopyMode::Create)).map(|_| ())
        })
        .await
    }
}

/// Removes a folder that holds nothing. False if it holds something.
pub(crate) async fn remove_empty_folder(location: &Path) -> Result<bool> {
    let location = location.clone();
    blocking(move || match std::fs::remove_dir(file_path(&location)) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(false),
        Err(e) => Err(io_failure(e, &location)),
    })
    .await
}

/// Runs file operations away from the threads that serve requests.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await?
}

fn file_path(location: &Path) -> PathBuf {
    PathBuf::from(format!("/{location}"))
}

fn object_meta(metadata: &std::fs::Metadata, location: Path) -> Result<ObjectMeta> {
    if metadata.is_dir() {
        // A folder is no object, and opening one succeeds.
        return Err(io_failure(io::ErrorKind::NotFound.into(), &location));
    }
    let modified = metadata.modified().map_err(|e| io_failure(e, &location))?;
    Ok(ObjectMeta { location, last_modified: modified.into(), size: metadata.len(), e_tag: None, version: None })
}

fn io_failure(source: io::Error, location: &Path) -> Error {
    let path = file_path(location).display().to_string();
    match source.kind() {
        io::ErrorKind::NotFound => Error::NotFound { path, source: source.into() },
        io::ErrorKind::AlreadyExists => Error::AlreadyExists { path, source: source.into() },
        _ => Error::Generic { store: "local", source: source.into() },
    }
}

fn generic(message: String) -> Error {
    Error::Generic { store: "local", source: message.into() }
}

fn not_supported(what: &str) -> Error {
    Error::NotSupported { source: format!("{what} is not offered by the local file system").into() }
}
