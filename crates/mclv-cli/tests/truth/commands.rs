//! What `mclv tours`, `sample`, `report`, `plot` and `selftest` say is true.
