//! The golden Iceberg tables where their metadata says that they are: it holds absolute paths.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Where the tables were written.
const WRITTEN_AT: &str = "/tmp/lakesmith-fixtures/iceberg";

/// The folder of the golden table `name`, for reading only: every test of every process shares it.
///
/// # Panics
/// If the tables cannot be copied.
pub fn iceberg_fixture(name: &str) -> PathBuf {
    static COPIED: OnceLock<()> = OnceLock::new();
    COPIED.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/iceberg");
        let place = Path::new(WRITTEN_AT);
        std::fs::create_dir_all(place).expect("the folder can be made");
        for table in std::fs::read_dir(&source).expect("there are golden tables").flatten() {
            let target = place.join(table.file_name());
            if table.path().is_dir() && !target.exists() {
                // Whoever renames first wins; the others find the same table.
                let own = place.join(format!(".{}.{}", table.file_name().to_string_lossy(), std::process::id()));
                copy(&table.path(), &own).expect("a golden table can be copied");
                if std::fs::rename(&own, &target).is_err() {
                    std::fs::remove_dir_all(&own).expect("a copy can be removed");
                }
            }
        }
    });
    Path::new(WRITTEN_AT).join(name)
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}
