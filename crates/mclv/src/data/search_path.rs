//! Define where the files of named data sets are looked for.

use std::env;
use std::path::{Path, PathBuf};

/// The folders in which named data sets are looked for.
///
/// A file of the set `NAME` is looked for, plain and with `.gz`, in `data_dir/NAME`, in
/// `cache_dir/NAME`, in the folder of a system package, and in `data_dir` itself. Fetched files are
/// stored in `cache_dir/NAME`. The binary sets (`nltcs`, `plants`, …) share the folder `density` in
/// place of `NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchPath {
    /// The user's own folder.
    pub data_dir: Option<PathBuf>,
    /// The folder for fetched files.
    pub cache_dir: PathBuf,
}

impl SearchPath {
    /// Reads the folders from environment variables: `data_dir` is `MCLV_DATA_DIR`; `cache_dir` is
    /// `MCLV_CACHE_DIR`, else `$XDG_CACHE_HOME/mclv`, else `.cache/mclv` in the home folder.
    pub fn from_env() -> Self {
        Self::from_variables(|name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from))
    }

    fn from_variables(variable: impl Fn(&str) -> Option<PathBuf>) -> Self {
        let cache_dir = variable("MCLV_CACHE_DIR")
            // The standard says that a relative path must be ignored.
            .or_else(|| variable("XDG_CACHE_HOME").filter(|p| p.is_absolute()).map(|p| p.join("mclv")))
            .or_else(|| variable("HOME").or_else(|| variable("USERPROFILE")).map(|p| p.join(".cache/mclv")))
            .unwrap_or_else(|| env::temp_dir().join("mclv"));
        Self { data_dir: variable("MCLV_DATA_DIR"), cache_dir }
    }

    /// Returns the folder for fetched files of the sets that share the folder `name`.
    pub fn cache_of(&self, name: &str) -> PathBuf {
        self.cache_dir.join(name)
    }

    /// Returns the folders to look into for files of the sets that share the folder `name`, which a
    /// system package may keep in `system`. The shared top folder comes last, because sets use the same file names and
    /// another set may lie there.
    pub(super) fn folders(&self, name: &str, system: Option<&str>) -> Vec<PathBuf> {
        let own = self.data_dir.as_ref().map(|dir| dir.join(name));
        let system = system.map(|dir| Path::new(dir).to_path_buf());
        let own_top = self.data_dir.clone();
        own.into_iter().chain([self.cache_of(name)]).chain(system).chain(own_top).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(variables: &[(&str, &str)]) -> SearchPath {
        SearchPath::from_variables(|name| {
            variables.iter().find(|(n, _)| *n == name).map(|(_, value)| PathBuf::from(value))
        })
    }

    #[test]
    fn the_cache_follows_the_environment() {
        assert_eq!(path(&[("HOME", "/h")]).cache_dir, Path::new("/h/.cache/mclv"));
        assert_eq!(path(&[("HOME", "/h"), ("XDG_CACHE_HOME", "/x")]).cache_dir, Path::new("/x/mclv"));
        assert_eq!(path(&[("HOME", "/h"), ("XDG_CACHE_HOME", "x")]).cache_dir, Path::new("/h/.cache/mclv"));
        assert_eq!(path(&[("XDG_CACHE_HOME", "/x"), ("MCLV_CACHE_DIR", "/c")]).cache_dir, Path::new("/c"));
        assert_eq!(path(&[]).data_dir, None);
    }

    #[test]
    fn own_folders_come_first_and_the_shared_one_last() {
        let folders = path(&[("MCLV_DATA_DIR", "/d"), ("HOME", "/h")]).folders("set", Some("/usr/set"));
        assert_eq!(folders, ["/d/set", "/h/.cache/mclv/set", "/usr/set", "/d"].map(PathBuf::from));
    }
}
