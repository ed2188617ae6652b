//! Groups of flags that several commands share, and parsers of their values.

mod data_preparation;
mod duration;
mod log_z_work;
mod minutes;
mod picture_shape;

pub(crate) use data_preparation::{DataArgs, OwnParts, Preparation};
pub(crate) use duration::parse_duration;
pub(crate) use log_z_work::{TimeLimit, WorkArgs};
pub(crate) use minutes::parse_minutes;
pub(crate) use picture_shape::PictureShape;
