//! The parser of settings that are chosen by name.

/// A setting by the name that it has in configuration files.
pub(crate) fn named<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_value(serde_json::Value::String(text.into())).map_err(|e| e.to_string())
}
