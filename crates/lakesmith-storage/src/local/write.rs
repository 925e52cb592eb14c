//! Writes that appear whole or not at all.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use object_store::path::Path;
use object_store::{MultipartUpload, PutPayload, PutResult, Result, UploadPart};

use super::{blocking, file_path, generic, io_failure, temporary};

/// A hidden file that will become the object. Dropping it removes it.
#[derive(Debug)]
pub(super) struct Staged {
    file: File,
    staging: PathBuf,
    target: PathBuf,
    location: Path,
}

impl Staged {
    pub(super) fn create(location: &Path) -> Result<Staged> {
        let target = file_path(location);
        let folder = target.parent().unwrap_or(FilePath::new("/"));
        let staging = folder.join(temporary::fresh());
        let open = || OpenOptions::new().write(true).create_new(true).open(&staging);
        let opened = match open() {
            Err(e) if e.kind() == io::ErrorKind::NotFound => std::fs::create_dir_all(folder).and_then(|()| open()),
            other => other,
        };
        let file = opened.map_err(|e| io_failure(e, location))?;
        Ok(Staged { file, staging, target, location: location.clone() })
    }

    pub(super) fn file_mut(&mut self) -> &mut File {
        &mut self.file
    }

    pub(super) fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        self.file.write_all_at(bytes, offset).map_err(|e| io_failure(e, &self.location))
    }

    /// Makes the object visible: over what is there, or, with `create`, only if nothing is there.
    pub(super) fn publish(self, create: bool) -> Result<PutResult> {
        self.try_publish(create).map_err(|e| io_failure(e, &self.location))?;
        Ok(PutResult { e_tag: None, version: None })
    }

    fn try_publish(&self, create: bool) -> io::Result<()> {
        // A commit that survives a power cut must not name data that did not.
        self.file.sync_all()?;
        if create {
            self.link()?;
            // Whatever checksum lies here described an object that is gone.
            remove_checksum(&self.target)?;
        } else {
            remove_checksum(&self.target)?;
            std::fs::rename(&self.staging, &self.target)?;
        }
        if let Some(folder) = self.target.parent() {
            // Not every file system can flush a folder; the object itself is safe by now.
            let _ = File::open(folder).and_then(|f| f.sync_all());
        }
        Ok(())
    }

    fn link(&self) -> io::Result<()> {
        match std::fs::hard_link(&self.staging, &self.target) {
            Err(e) if matches!(e.kind(), io::ErrorKind::Unsupported | io::ErrorKind::PermissionDenied) => {
                rename_if_absent(&self.staging, &self.target).map_err(|_| e)
            }
            other => other,
        }
    }
}

impl Staged {
    /// Removes the hidden file; what is still being written to it goes nowhere.
    fn discard(&self) {
        // After a rename there is nothing left to remove.
        let _ = std::fs::remove_file(&self.staging);
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        self.discard();
    }
}

/// For file systems without hard links.
#[cfg(target_os = "linux")]
fn rename_if_absent(from: &FilePath, to: &FilePath) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    Ok(renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE)?)
}

#[cfg(not(target_os = "linux"))]
fn rename_if_absent(_: &FilePath, _: &FilePath) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Removes the side file `.NAME.crc` in which Hadoop keeps the checksum of NAME: with other bytes in NAME, Spark
/// would refuse to read it.
pub(super) fn remove_checksum(path: &FilePath) -> io::Result<()> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name().and_then(|n| n.to_str())) else {
        return Ok(());
    };
    match std::fs::remove_file(folder.join(format!(".{name}.crc"))) {
        Err(e) if !matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidFilename) => Err(e),
        _ => Ok(()),
    }
}

/// A write in parts: each part knows its place, so they may land in any order.
#[derive(Debug)]
pub(super) struct LocalUpload {
    staged: Option<Arc<Staged>>,
    next_offset: u64,
}

impl LocalUpload {
    pub(super) fn new(staged: Staged) -> Self {
        Self { staged: Some(Arc::new(staged)), next_offset: 0 }
    }
}

#[async_trait]
impl MultipartUpload for LocalUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let Some(staged) = self.staged.clone() else {
            return Box::pin(async { Err(generic("the upload is over".to_owned())) });
        };
        let mut offset = self.next_offset;
        self.next_offset += data.content_length() as u64;
        Box::pin(blocking(move || {
            for piece in data.iter() {
                staged.write_at(piece, offset)?;
                offset += piece.len() as u64;
            }
            Ok(())
        }))
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let staged = self.staged.take().and_then(Arc::into_inner);
        let staged = staged.ok_or_else(|| generic("a part of the upload is still being written".to_owned()))?;
        blocking(move || staged.publish(false)).await
    }

    async fn abort(&mut self) -> Result<()> {
        match self.staged.take() {
            Some(staged) => {
                blocking(move || {
                    staged.discard();
                    Ok(())
                })
                .await
            }
            None => Ok(()),
        }
    }
}

impl Drop for LocalUpload {
    fn drop(&mut self) {
        // A part may still be written on another thread and hold the file: the process may end before that does.
        if let Some(staged) = &self.staged {
            staged.discard();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_part_on_its_way_does_not_keep_the_hidden_file_of_an_upload_that_was_given_up() {
        for abort in [true, false] {
            let folder = tempfile::tempdir().unwrap();
            let path = Path::from_absolute_path(folder.path().join("a")).unwrap();
            let mut upload = LocalUpload::new(Staged::create(&path).unwrap());
            let part_on_its_way = upload.staged.clone();
            if abort {
                upload.abort().await.unwrap();
            } else {
                drop(upload);
            }
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "abort: {abort}");
            drop(part_on_its_way);
        }
    }
}
