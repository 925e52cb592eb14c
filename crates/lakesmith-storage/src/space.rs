//! Room left on a local disk.

use std::io;

use lakesmith_core::Result;

use crate::failure::io_error;
use crate::location::Location;

/// Bytes that an unprivileged writer can still put on the disk that holds `location`, or would hold it; `None` for
/// storages without such a limit.
///
/// # Errors
/// `Unavailable` if the file system does not answer.
pub fn free_bytes(location: &Location) -> Result<Option<u64>> {
    let Some(mut path) = location.local_path() else { return Ok(None) };
    loop {
        match rustix::fs::statvfs(&path) {
            Ok(space) => return Ok(Some(space.f_bavail.saturating_mul(space.f_frsize))),
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) if path.pop() => {}
            Err(e) => return Err(io_error(io::Error::from(e), "measure the free space", location)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_existing_folder_is_measured() {
        let folder = tempfile::tempdir().unwrap();
        let deep = Location::from_local_path(&folder.path().join("not/yet/there")).unwrap();
        assert!(free_bytes(&deep).unwrap().unwrap() > 0);
        assert_eq!(free_bytes(&Location::parse("s3://b/t").unwrap()).unwrap(), None);
    }
}
