//! Run the program in a folder of its own, away from the network and from the files of whoever runs
//! the tests.

use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

/// A folder that the program runs in.
pub(crate) struct Sandbox {
    folder: TempDir,
    variables: Vec<(&'static str, &'static str)>,
}

/// How a run ended.
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), variables: Vec::new() }
    }

    /// Set an environment variable for every run.
    pub(crate) fn with_variable(mut self, name: &'static str, value: &'static str) -> Self {
        self.variables.push((name, value));
        self
    }

    /// Put a file there.
    pub(crate) fn with_file(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        std::fs::write(self.path(name), content).unwrap();
        self
    }

    /// Put a model of the digits there.
    pub(crate) fn with_model(self, name: &str, n_hidden: usize) -> Self {
        self.succeeds(&["init", "digits", "--n-hidden", &n_hidden.to_string(), "-o", name]);
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    /// The program, ready to run here.
    pub(crate) fn command<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("mclv"));
        command
            .args(args)
            .current_dir(self.folder.path())
            .env("MCLV_DATA_DIR", self.path("no-data"))
            .env("MCLV_CACHE_DIR", self.path("no-cache"))
            .env_remove("MCLV_ISA")
            .env("MCLV_PROGRESS", "0")
            .envs(self.variables.iter().copied());
        command
    }

    /// The program, which heeds signals whatever the tests themselves ignore: a script that starts them
    /// with `&` lets them ignore SIGINT.
    #[cfg(unix)]
    pub(crate) fn command_heeding<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        self.command_ignoring("", args)
    }

    /// The program, which ignores these signals from its beginning, and only these.
    #[cfg(unix)]
    pub(crate) fn command_ignoring<S: AsRef<OsStr>>(&self, ignored: &str, args: &[S]) -> Command {
        let command = self.command(args);
        let mut whole = Command::new("env");
        // Only `env` of Linux can undo what the tests ignore.
        if cfg!(target_os = "linux") {
            whole.arg("--default-signal=HUP,INT,TERM");
        }
        let trap = if ignored.is_empty() { String::new() } else { format!("trap '' {ignored}; ") };
        whole.args(["sh", "-c", &format!("{trap}exec \"$0\" \"$@\"")]);
        whole.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => whole.env(name, value),
                None => whole.env_remove(name),
            };
        }
        whole.current_dir(self.folder.path());
        whole
    }

    pub(crate) fn run<S: AsRef<OsStr>>(&self, args: &[S]) -> Outcome {
        let output = self.command(args).output().unwrap();
        Outcome {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Runs the program and returns its standard output. The program must succeed and print nothing
    /// on standard error.
    pub(crate) fn succeeds(&self, args: &[&str]) -> String {
        let outcome = self.run(args);
        assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{args:?}");
        outcome.stdout
    }

    /// Run it with `--json` added; it must succeed and print JSON.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let text = self.succeeds(&[args, &["--json"]].concat());
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{args:?} printed {text}: {e}"))
    }

    /// Runs the program, which must fail with code 1 and print nothing on standard output. Its
    /// error must contain all `words`, and every file must stay as it was.
    pub(crate) fn refuses(&self, args: &[&str], words: &[&str]) {
        self.fails_with(1, args, words);
    }

    /// As [`refuses`](Self::refuses), for arguments that make no sense.
    pub(crate) fn refuses_usage(&self, args: &[&str], words: &[&str]) {
        self.fails_with(2, args, words);
    }

    fn fails_with(&self, code: i32, args: &[&str], words: &[&str]) {
        let before = self.files();
        let outcome = self.run(args);
        let stderr = &outcome.stderr;
        assert_eq!(outcome.code, Some(code), "{args:?}: {stderr}");
        assert_eq!(outcome.stdout, "", "{args:?} prints although it fails");
        assert!(stderr.starts_with("error: ") && !stderr.contains("panicked"), "{args:?}: {stderr}");
        for word in words {
            assert!(stderr.contains(word), "{args:?} does not say {word:?}: {stderr}");
        }
        assert!(self.files() == before, "{args:?} changed files");
    }

    /// Every regular file and its content, hidden ones too; links and folders by name only.
    fn files(&self) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
        let entries = std::fs::read_dir(self.folder.path()).unwrap();
        entries
            .map(|entry| {
                let entry = entry.unwrap();
                let is_file = entry.file_type().unwrap().is_file();
                (entry.path(), is_file.then(|| std::fs::read(entry.path()).unwrap()))
            })
            .collect()
    }
}

/// The bytes of a `.npy` file.
pub(crate) fn npy(shape: &[u64], values: &[f32]) -> Vec<u8> {
    use npyz::WriterBuilder;
    let mut bytes = Vec::new();
    let mut writer =
        npyz::WriteOptions::new().default_dtype().shape(shape).writer(&mut bytes).begin_nd().unwrap();
    writer.extend(values).unwrap();
    writer.finish().unwrap();
    bytes
}

/// The names in a JSON object, sorted.
pub(crate) fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

/// Removes wall times from a result.
pub(crate) fn without_times(mut value: Value) -> Value {
    fn visit(value: &mut Value) {
        match value {
            Value::Object(members) => {
                members.retain(|name, _| !name.ends_with("seconds"));
                members.values_mut().for_each(visit);
            }
            Value::Array(items) => items.iter_mut().for_each(visit),
            _ => {}
        }
    }
    visit(&mut value);
    value
}
