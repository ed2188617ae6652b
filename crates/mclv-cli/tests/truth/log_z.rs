//! What `mclv logz` and `mclv likelihood` say is true.
