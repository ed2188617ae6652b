//! Write a file such that it is either unchanged or complete.

use crate::source::open_file;
use crate::{Error, Result, team};
use std::fs::{DirEntry, FileType, Metadata};
use std::io::Write;
use std::path::{Path, PathBuf};

/// How the names of temporary files begin and end.
const TEMPORARY: (&str, &str) = (".mclv-", ".tmp");

/// Writes a file that the user has named: writes `bytes` to a temporary file beside `path`, syncs
/// it, and renames it into place.
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
    put(path, &follow_links(path), bytes)
}

/// Writes a file of a folder that the user has named, such as a run folder. Such a folder may come
/// from a stranger: other than by [`write_atomically`], a link at `path` is not followed, but
/// replaced by the file.
///
/// # Errors
/// If any step fails. The old file is then unchanged, and the temporary file is removed.
pub fn write_inside(path: &Path, bytes: &[u8]) -> Result<()> {
    if team::is_first() { put(path, path, bytes) } else { Ok(()) }
}

/// Writes `bytes` to a temporary file beside `target`, and renames it. `path` names it in errors.
fn put(path: &Path, target: &Path, bytes: &[u8]) -> Result<()> {
    let folder = match target.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    };
    let write = || {
        let mut builder = tempfile::Builder::new();
        builder.prefix(TEMPORARY.0).suffix(TEMPORARY.1);
        #[cfg(unix)]
        {
            // Temporary files are private; a saved file is as readable as any file that the user
            // creates (the system applies the umask).
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(std::fs::Permissions::from_mode(0o666));
        }
        let mut file = builder.tempfile_in(folder)?;
        // `remove_abandoned` must see that the writer lives; not every file system has locks.
        let _ = file.as_file().try_lock();
        file.write_all(bytes)?;
        if let Some(old) = target.symlink_metadata().ok().filter(Metadata::is_file) {
            file.as_file().set_permissions(old.permissions())?;
        }
        file.as_file().sync_all()?;
        file.persist(target).map_err(|e| e.error)?;
        Ok(())
    };
    write().map_err(Error::io("write", path))?;
    // The rename itself must survive a power cut; not every file system can sync a folder.
    if let Ok(folder) = std::fs::File::open(folder) {
        let _ = folder.sync_all();
    }
    Ok(())
}

/// Removes temporary files, in a folder and its direct subfolders, whose writers were killed.
pub(super) fn remove_abandoned(folder: &Path) {
    // A link is neither a file nor a folder here.
    let entries = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is = |entry: &DirEntry, kind: fn(&FileType) -> bool| entry.file_type().is_ok_and(|of| kind(&of));
    let subfolders = entries(folder).filter(|entry| is(entry, FileType::is_dir));
    let of_subfolders = subfolders.flat_map(|entry| entries(&entry.path()));
    for entry in entries(folder).chain(of_subfolders).filter(|entry| is(entry, FileType::is_file)) {
        let name = entry.file_name();
        let is_temporary = |name: &str| name.starts_with(TEMPORARY.0) && name.ends_with(TEMPORARY.1);
        // A living writer holds a lock.
        if name.to_str().is_some_and(is_temporary)
            && open_file(&entry.path()).is_ok_and(|(file, _)| file.try_lock().is_ok())
        {
            let _ = std::fs::remove_file(entry.path());
        }
    }
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

    #[cfg(unix)]
    #[test]
    fn inside_a_folder_links_are_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let (victim, link) = (folder.path().join("victim"), folder.path().join("link"));
        std::fs::write(&victim, b"precious").unwrap();
        for target in ["victim", "nowhere", ".", "/dev/null"] {
            std::os::unix::fs::symlink(target, &link).unwrap();
            write_inside(&link, b"new").unwrap();
            assert!(!link.is_symlink(), "{target}");
            assert_eq!(std::fs::read(&link).unwrap(), b"new");
            std::fs::remove_file(&link).unwrap();
        }
        assert_eq!(std::fs::read(&victim).unwrap(), b"precious");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
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
