//! Write a file such that it is either unchanged or complete.

use crate::{Error, Result, team};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Writes `bytes` to a temporary file beside `path`, syncs it, and renames it into place.
///
/// A symbolic link stays a link: its target is written. A path that is not a regular file (a pipe,
/// a device) is written to directly. In a [team], only the first rank writes.
///
/// # Errors
/// If any step fails. The old file is then unchanged, and the temporary file is removed.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<()> {
    if !team::is_first() {
        return Ok(());
    }
    if path.exists() && !path.is_file() {
        let write = || {
            let mut file = std::fs::OpenOptions::new().write(true).open(path)?;
            file.write_all(bytes)?;
            file.flush()
        };
        return write().map_err(Error::io("write", path));
    }
    let target = follow_links(path);
    let folder = match target.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    };
    let write = || {
        let mut builder = tempfile::Builder::new();
        builder.prefix(".mclv-").suffix(".tmp");
        #[cfg(unix)]
        {
            // Temporary files are private; a saved file is as readable as any file that the user
            // creates (the system applies the umask).
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(std::fs::Permissions::from_mode(0o666));
        }
        let mut file = builder.tempfile_in(folder)?;
        file.write_all(bytes)?;
        if let Ok(old) = target.metadata() {
            file.as_file().set_permissions(old.permissions())?;
        }
        file.as_file().sync_all()?;
        file.persist(&target).map_err(|e| e.error)?;
        Ok(())
    };
    write().map_err(Error::io("write", path))?;
    // The rename itself must survive a power cut; not every file system can sync a folder.
    if let Ok(folder) = std::fs::File::open(folder) {
        let _ = folder.sync_all();
    }
    Ok(())
}

/// Returns the target of a symbolic link, or of a link to a link, whether or not the target exists.
fn follow_links(path: &Path) -> PathBuf {
    // Linux gives up after this many links.
    (0..40).fold(path.into(), |path: PathBuf, _| match std::fs::read_link(&path) {
        Ok(target) => path.parent().unwrap_or(Path::new("")).join(target),
        Err(_) => path,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_link_stays_a_link_and_permissions_stay_as_they_were() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("sub")).unwrap();
        symlink("sub/link", at("link")).unwrap();
        symlink("model", at("sub/link")).unwrap();
        write_atomically(&at("link"), b"made through a dangling link").unwrap();
        std::fs::set_permissions(at("sub/model"), std::fs::Permissions::from_mode(0o600)).unwrap();
        write_atomically(&at("link"), b"new").unwrap();
        assert!(at("link").is_symlink() && at("sub/link").is_symlink());
        assert_eq!(std::fs::read(at("sub/model")).unwrap(), b"new");
        assert_eq!(at("sub/model").metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    }

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
