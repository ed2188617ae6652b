//! Read, make and prepare data sets.
//!
//! [`load`] turns a [`DataSpec`] into a [`Dataset`]: a built-in set, a named set, or a file. It
//! reads files from disk; [`fetch`] downloads named sets that are not there. [`open`] returns
//! several parts and reads each file once. All values lie in [0, 1]; rows of only zeros and ones
//! are packed bits.
//!
//! ```
//! use mclv::data::{self, Binarize, DataSpec, Split};
//! use mclv::progress::Silent;
//! let spec = DataSpec {
//!     source: "digits".into(),
//!     split: Split::Train,
//!     binarize: Binarize::Threshold(0.5),
//!     ..DataSpec::default()
//! };
//! let digits = data::load(&spec, &Silent)?;
//! assert_eq!((digits.n_rows(), digits.n_columns()), (1297, 64));
//! # Ok::<(), mclv::Error>(())
//! ```

mod bars_and_stripes;
mod catalogue;
mod csv;
mod dataset;
mod density;
mod digits;
#[cfg(feature = "fetch")]
mod download;
mod file;
mod hdf5;
mod idx;
mod ising;
mod load;
mod named;
#[cfg(feature = "fetch")]
mod npm;
mod npy;
mod npz;
mod open;
mod parts;
mod preprocess;
mod rows;
mod scale;
mod scipy;
mod search_path;
mod set_files;
mod sparse;
mod split;
mod survey;

pub use catalogue::{CatalogueEntry, Origin, catalogue, catalogue_in};
pub use dataset::{DataProvenance, Dataset, Labels};
pub use file::read;
pub use load::{DataSpec, load, load_with};
pub use named::{Mirrors, fetch, fetch_with};
pub(crate) use open::FileDigest;
pub use open::{DataSource, open, open_with};
pub use parts::{PartRows, Parts};
pub use preprocess::{Binarize, binarize};
pub use rows::{RealRows, Rows};
pub use scale::Scale;
pub(crate) use scale::spins;
pub use search_path::SearchPath;
pub use sparse::SparseRows;
pub use split::Split;
pub use survey::Survey;
