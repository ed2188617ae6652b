//! What `mclv train` says is true.
