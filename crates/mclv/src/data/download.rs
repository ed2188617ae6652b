//! Download a known file over HTTP(S), verify it, and store it completely or not at all.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::named::KnownFile;
use crate::progress::Progress;
use crate::source::{Source, is_gzip};
use crate::{Error, Result};

/// The most time that each mirror takes without a network.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(15);
const READ_TIMEOUT: Duration = Duration::from_secs(30);
const CHUNK: usize = 1 << 16;

/// Turns what a mirror sends into the file, plain or gzipped. A failure is text.
pub(super) type Decode = fn(Vec<u8>) -> Result<Vec<u8>, String>;

/// Downloads `file` from `url` into `folder`. A network failure is the inner error, as text,
/// because another mirror may succeed. The outer error is for failures that no mirror can avoid.
pub(super) fn download(
    url: &str,
    file: &KnownFile,
    decode: Decode,
    folder: &Path,
    progress: &dyn Progress,
) -> Result<Result<PathBuf, String>> {
    match request(url, file, progress)?.and_then(decode) {
        Ok(bytes) => store(file, &bytes, folder),
        Err(why) => Ok(Err(why)),
    }
}

/// Verifies the content of `file` and writes it, as it is, into `folder`: to a temporary file that
/// is renamed once it is complete.
pub(super) fn store(file: &KnownFile, bytes: &[u8], folder: &Path) -> Result<Result<PathBuf, String>> {
    let path = folder.join(if is_gzip(bytes) { format!("{}.gz", file.name) } else { file.name.into() });
    if let Err(error) = verify(file, bytes) {
        return Ok(Err(error.to_string()));
    }
    fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
    let mut builder = tempfile::Builder::new();
    // Others may share the cache; temporary files are private unless told otherwise.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644));
    let mut temporary = builder.tempfile_in(folder).map_err(Error::io("write to", folder))?;
    temporary.write_all(bytes).map_err(Error::io("write", &path))?;
    temporary.as_file().sync_all().map_err(Error::io("write", &path))?;
    temporary.persist(&path).map_err(|e| Error::io("write", &path)(e.error))?;
    Ok(Ok(path))
}

fn verify(file: &KnownFile, bytes: &[u8]) -> Result<()> {
    let path = Path::new(file.name);
    let mut source = Source::from_bytes(path, bytes)?;
    source.read_exactly(file.n_bytes)?;
    file.verify(path, &source.finish()?)
}

fn request(url: &str, file: &KnownFile, progress: &dyn Progress) -> Result<Result<Vec<u8>, String>> {
    // Even data that cannot be compressed grow by less than this.
    let limit = file.n_bytes + file.n_bytes / 1000 + 1024;
    let mut response = match agent(url).get(url).call() {
        Ok(response) => response,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let length = response.body().content_length();
    if let Some(length) = length.filter(|&n| n > limit) {
        return Ok(Err(format!("offers {length} bytes for a file of {}", file.n_bytes)));
    }
    let total = length.unwrap_or(file.n_bytes);
    let mut reader = response.body_mut().with_config().limit(limit).reader();
    let mut bytes = Vec::new();
    loop {
        progress.report(bytes.len() as u64, total);
        if progress.cancelled() {
            return Err(Error::Cancelled);
        }
        match reader.by_ref().take(CHUNK as u64).read_to_end(&mut bytes) {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) => return Ok(Err(format!("broke off after {} bytes: {error}", bytes.len()))),
        }
    }
    Ok(Ok(bytes))
}

fn agent(url: &str) -> ureq::Agent {
    let mut config = ureq::Agent::config_builder()
        .timeout_resolve(Some(CONNECT_TIMEOUT))
        .timeout_connect(Some(CONNECT_TIMEOUT))
        .timeout_recv_response(Some(RESPONSE_TIMEOUT))
        .timeout_per_read(Some(READ_TIMEOUT))
        .user_agent(concat!("mclv/", env!("CARGO_PKG_VERSION")));
    // A proxy cannot reach this machine's own loopback.
    if url.starts_with("http://127.0.0.1") {
        config = config.proxy(None);
    }
    config.build().into()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::progress::Silent;
    use std::io::{BufRead, BufReader};
    use std::net::TcpListener;
    use std::sync::Mutex;
    use std::sync::atomic::AtomicBool;
    use std::thread;

    const FILE: KnownFile = KnownFile {
        name: "abc",
        n_bytes: 3,
        // FIPS 180-2, appendix B.1.
        sha256: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    };

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn respond(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
        [format!("HTTP/1.1 {status}\r\n{headers}Connection: close\r\n\r\n").as_bytes(), body].concat()
    }

    pub(in super::super) fn ok(body: &[u8]) -> Vec<u8> {
        respond("200 OK", &format!("Content-Length: {}\r\n", body.len()), body)
    }

    /// A server that gives each of `responses` to one request, in order.
    pub(in super::super) fn serve(responses: Vec<Vec<u8>>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for response in responses {
                let (mut stream, _) = listener.accept().unwrap();
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
                // The client may hang up on what it does not want.
                let _ = stream.write_all(&response);
            }
        });
        format!("http://{address}/abc.gz")
    }

    fn get(response: Vec<u8>, folder: &Path) -> Result<PathBuf, String> {
        download(&serve(vec![response]), &FILE, Ok, folder, &Silent).unwrap()
    }

    #[test]
    fn sound_files_are_stored_plain_or_gzipped() {
        for (body, name) in [(b"abc".to_vec(), "abc"), (gzip(b"abc"), "abc.gz")] {
            let dir = tempfile::tempdir().unwrap();
            let folder = dir.path().join("new/cache");
            assert_eq!(get(ok(&body), &folder).unwrap(), folder.join(name));
            assert_eq!(fs::read(folder.join(name)).unwrap(), body);
            assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        }
    }

    #[test]
    fn failures_leave_nothing_behind() {
        let huge = "Content-Length: 99999999\r\n";
        for (response, why) in [
            (respond("404 Not Found", "Content-Length: 0\r\n", b""), "404"),
            (ok(b"abd"), "SHA-256"),
            (ok(&gzip(b"abd")), "SHA-256"),
            (ok(b"ab"), "cut short"),
            (ok(b"abcd"), "has more bytes than"),
            (ok(&gzip(b"abc")[..12]), "cut short"),
            (respond("200 OK", "Content-Length: 3\r\n", b"ab"), "broke off after 2 bytes"),
            (respond("200 OK", huge, b"abc"), "offers 99999999 bytes"),
            (respond("200 OK", "", &[b'x'; 5000]), "is larger than"),
            (b"nonsense\r\n\r\n".to_vec(), ""),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let error = get(response, dir.path()).unwrap_err();
            assert!(error.contains(why), "{error:?} does not say {why:?}");
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "{why}");
        }
    }

    #[test]
    fn redirects_are_followed() {
        let target = serve(vec![ok(b"abc")]);
        let redirect = respond("302 Found", &format!("Location: {target}\r\nContent-Length: 0\r\n"), b"");
        let dir = tempfile::tempdir().unwrap();
        assert!(get(redirect, dir.path()).is_ok());
    }

    #[test]
    fn nobody_listening_is_a_failure() {
        let dir = tempfile::tempdir().unwrap();
        // No free port is given out below 1024, so no other test can be listening here.
        let result = download("http://127.0.0.1:1/abc.gz", &FILE, Ok, dir.path(), &Silent);
        assert!(result.unwrap().is_err());
    }

    #[test]
    fn progress_is_told_and_can_cancel() {
        struct Heard(Mutex<Vec<(u64, u64)>>);
        impl Progress for Heard {
            fn report(&self, done: u64, total: u64) {
                self.0.lock().unwrap().push((done, total));
            }
        }
        let heard = Heard(Mutex::default());
        let dir = tempfile::tempdir().unwrap();
        download(&serve(vec![ok(b"abc")]), &FILE, Ok, dir.path(), &heard).unwrap().unwrap();
        assert_eq!(*heard.0.lock().unwrap(), [(0, 3), (3, 3)]);

        let stop = AtomicBool::new(true);
        let dir = tempfile::tempdir().unwrap();
        let result = download(&serve(vec![ok(b"abc")]), &FILE, Ok, dir.path(), &stop);
        assert!(matches!(result, Err(Error::Cancelled)));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
