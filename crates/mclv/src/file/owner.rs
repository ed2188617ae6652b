//! Own a folder: at most one process at a time writes into it.

use super::atomic::remove_abandoned;
use super::clock::{date, now};
use crate::source::read_file;
use crate::{Error, Result, team};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

/// The name of the file that is locked. It stays in the folder, because a lock on a file that
/// others may delete protects nothing. It is empty unless the folder has an owner.
const LOCK: &str = ".lock";
/// The largest length of what that file says.
const MAX_WORDS: u64 = 300;

/// The right to write into a folder, which one process has until this value is dropped.
///
/// The operating system holds the lock, so the right ends with the process, however that ends. In a
/// [team](crate::team), the first rank holds it for all ranks.
///
/// ```
/// use mclv::Owner;
/// let folder = tempfile::tempdir().unwrap();
/// let owner = Owner::of(folder.path())?;
/// let refused = Owner::of(folder.path()).unwrap_err().to_string();
/// assert!(refused.contains("is in use by process"), "{refused}");
/// drop(owner);
/// Owner::of(folder.path())?;
/// # Ok::<(), mclv::Error>(())
/// ```
#[derive(Debug)]
pub struct Owner {
    /// The locked file. `None` for ranks other than the first.
    lock: Option<File>,
}

impl Owner {
    /// Becomes the owner of a folder, and removes the temporary files that an owner left who was
    /// killed while it wrote.
    ///
    /// # Errors
    /// [`Error::InUse`] if the folder has an owner, or if its lock cannot be written.
    pub fn of(folder: &Path) -> Result<Self> {
        team::together(if team::is_first() {
            lock(folder).map(|lock| Self { lock: Some(lock) })
        } else {
            Ok(Self { lock: None })
        })
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        if let Some(lock) = &self.lock {
            let _ = lock.set_len(0);
        }
    }
}

fn lock(folder: &Path) -> Result<File> {
    let path = folder.join(LOCK);
    let failed = || Error::io("lock", &path);
    // The check comes first, because a link would be followed and a pipe would wait.
    if path.symlink_metadata().is_ok_and(|metadata| !metadata.is_file()) {
        return Err(Error::malformed(&path, "is not a regular file; delete it"));
    }
    let mut options = OpenOptions::new();
    let mut file =
        options.read(true).write(true).create(true).truncate(false).open(&path).map_err(failed())?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(Error::InUse { path: folder.into(), owner: words_of(&mut file) });
        }
        // Some network file systems have no locks.
        Err(TryLockError::Error(error)) => tracing::warn!(
            "{} cannot be locked ({error}): make sure that no other process writes into it",
            folder.display()
        ),
    }
    remove_abandoned(folder);
    file.set_len(0).and_then(|()| file.write_all(words().as_bytes())).map_err(failed())?;
    Ok(file)
}

/// Describes this process.
fn words() -> String {
    let host = read_file(Path::new("/proc/sys/kernel/hostname"), MAX_WORDS).ok();
    let host = host.and_then(|name| String::from_utf8(name).ok());
    let host = host.or_else(|| std::env::var("HOSTNAME").ok());
    let on = host.map_or(String::new(), |host| format!(" on {}", host.trim()));
    format!("process {}{on} since {}", std::process::id(), date(now()))
}

/// Reads how the owner has described itself.
fn words_of(file: &mut File) -> String {
    let mut text = String::new();
    match file.take(MAX_WORDS).read_to_string(&mut text) {
        Ok(n) if n > 0 => text,
        // It has not written it yet, or the system lets nobody else read a locked file.
        _ => "another process".into(),
    }
}

/// Creates the first of `PARENT/STEM-1`, `PARENT/STEM-2`, … that does not exist, and returns its
/// path. Processes that do this at the same time get different folders.
///
/// # Errors
/// If the folder cannot be created.
pub fn new_folder(parent: &Path, stem: &str) -> Result<PathBuf> {
    let numbered = |n: u64| parent.join(format!("{stem}-{n}"));
    let make = || {
        std::fs::create_dir_all(parent).map_err(Error::io("create", parent))?;
        let taken = |n: &u64| match std::fs::create_dir(numbered(*n)) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => None,
            made => Some(made.map(|()| *n).map_err(Error::io("create", numbered(*n)))),
        };
        (1..).find_map(|n| taken(&n)).expect("a free number")
    };
    let made = team::together(if team::is_first() { make() } else { Ok(0) })?;
    Ok(numbered(team::of_first(made)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_folder_has_one_owner_who_says_who_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let owner = Owner::of(folder.path()).unwrap();
        let refused = Owner::of(folder.path()).unwrap_err().to_string();
        let me = format!("process {} on ", std::process::id());
        for word in [folder.path().to_str().unwrap(), "in use by ", &me, " since 20", " UTC", "wait until"] {
            assert!(refused.contains(word) || !cfg!(target_os = "linux"), "{refused} does not say {word}");
        }
        drop(owner);
        assert_eq!(std::fs::read(folder.path().join(LOCK)).unwrap(), b"");
        Owner::of(folder.path()).unwrap();
        assert!(Owner::of(&folder.path().join("missing")).is_err());
    }

    #[test]
    fn folders_made_at_the_same_time_differ() {
        let parent = tempfile::tempdir().unwrap();
        std::fs::write(parent.path().join("x-2"), "taken by a file").unwrap();
        let names: BTreeSet<PathBuf> = std::thread::scope(|scope| {
            let make = || scope.spawn(|| new_folder(parent.path(), "x").unwrap());
            let threads: Vec<_> = (0..20).map(|_| make()).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let numbers = (1..=21).filter(|n| *n != 2);
        assert_eq!(names, numbers.map(|n| parent.path().join(format!("x-{n}"))).collect());
    }

    #[test]
    fn abandoned_files_go_and_files_in_the_making_stay() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("checkpoints")).unwrap();
        let (dead, living, mine) = (at("checkpoints/.mclv-1.tmp"), at(".mclv-2.tmp"), at("my.tmp"));
        for path in [&dead, &living, &mine] {
            std::fs::write(path, "half").unwrap();
        }
        let writing = File::open(&living).unwrap();
        writing.lock().unwrap();
        drop(Owner::of(folder.path()).unwrap());
        assert!(!dead.exists() && living.exists() && mine.exists());
        drop(writing);
        drop(Owner::of(folder.path()).unwrap());
        assert!(!living.exists() && mine.exists());
    }

    #[cfg(unix)]
    #[test]
    fn a_lock_that_is_a_link_is_not_written_through() {
        let folder = tempfile::tempdir().unwrap();
        let victim = folder.path().join("victim");
        std::fs::write(&victim, "precious").unwrap();
        std::os::unix::fs::symlink(&victim, folder.path().join(LOCK)).unwrap();
        assert!(Owner::of(folder.path()).unwrap_err().to_string().contains("not a regular file"));
        assert_eq!(std::fs::read(&victim).unwrap(), b"precious");
    }
}
