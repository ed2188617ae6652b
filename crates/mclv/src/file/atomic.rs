//! Write a file so that it is either as before or complete.

use crate::{Error, Result};
use std::io::Write;
use std::path::Path;

/// Write `bytes` to a temporary sibling of `path`, sync it, and rename it into place.
///
/// What is not a regular file (a pipe, a device) is written to directly.
///
/// # Errors
/// If any step fails; the old file is then untouched and the temporary one gone.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<()> {
    if path.exists() && !path.is_file() {
        let write = || {
            let mut file = std::fs::OpenOptions::new().write(true).open(path)?;
            file.write_all(bytes)?;
            file.flush()
        };
        return write().map_err(Error::io("write", path));
    }
    let folder = match path.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    };
    let write = || {
        let mut file = tempfile::Builder::new().prefix(".mclv-").suffix(".tmp").tempfile_in(folder)?;
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        #[cfg(unix)]
        {
            // Temporary files are private; what people save is as readable as any file they create.
            use std::os::unix::fs::PermissionsExt;
            let mode = path.metadata().map_or(0o644, |m| m.permissions().mode());
            file.as_file().set_permissions(std::fs::Permissions::from_mode(mode))?;
        }
        file.persist(path).map_err(|e| e.error)?;
        Ok(())
    };
    write().map_err(Error::io("write", path))?;
    // The rename itself must survive a power cut; not every file system can sync a folder.
    if let Ok(folder) = std::fs::File::open(folder) {
        let _ = folder.sync_all();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_leaves_the_old_file_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model");
        write_atomically(&path, b"old").unwrap();
        write_atomically(&path, b"new").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        let missing = folder.path().join("no-such-folder").join("model");
        let error = write_atomically(&missing, b"x").unwrap_err().to_string();
        assert!(error.contains("cannot write") && error.contains("no-such-folder"), "{error}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_an_error() {
        let error = write_atomically(Path::new("/dev/full"), b"x").unwrap_err().to_string();
        assert!(error.contains("/dev/full") && error.contains("No space left"), "{error}");
        assert!(!Path::new("/dev/full").is_file(), "the device is still a device");
    }
}
