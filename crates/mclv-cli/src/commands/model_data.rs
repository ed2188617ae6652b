//! Loads the data that a command uses with a model.

use crate::cli::Global;
use crate::flags::Preparation;
use crate::watch::Watch;
use anyhow::Context;
use mclv::data::{self, DataSpec, Dataset, Split};
use mclv::{ModelFile, picture};
use std::path::Path;

/// Loads the given data, or else the data that the model was trained on, prepared as they were
/// then. The data must fit the model.
pub(crate) fn load(
    model: (&Path, &ModelFile),
    source: Option<&str>,
    preparation: &Preparation,
    split: Split,
    global: &Global,
) -> anyhow::Result<Dataset> {
    Ok(load_parts(model, source, preparation, Wanted::Each(&[split]), global)?.remove(0))
}

/// The wanted parts of data.
#[derive(Clone, Copy)]
pub(crate) enum Wanted<'a> {
    /// Each of these.
    Each(&'a [Split]),
    /// Train, validation and test, as far as they have rows.
    All,
}

/// Like [`load`], for one or more parts. Each file is read once.
pub(crate) fn load_parts(
    (path, model): (&Path, &ModelFile),
    source: Option<&str>,
    preparation: &Preparation,
    wanted: Wanted<'_>,
    global: &Global,
) -> anyhow::Result<Vec<Dataset>> {
    let splits = match wanted {
        Wanted::Each(splits) => splits,
        Wanted::All => &Split::EACH[..3],
    };
    let spec = match (source, recorded(model)) {
        (Some(source), _) => preparation.spec(source, splits[0], global),
        (None, Some(recorded)) => preparation.over(recorded.near(path)),
        (None, None) => {
            anyhow::bail!("{} does not record its data; give --data", path.display())
        }
    };
    let what = |split: Split| match source {
        Some(data) => format!("{split} rows of {data}"),
        None => {
            format!(
                "{split} rows of {}, the data recorded in the model file (--data chooses others)",
                spec.source
            )
        }
    };
    let watch = Watch::new("fetching", "B");
    let mut data = data::open(&spec, &watch).with_context(|| what(splits[0]))?;
    let check = |split: Split, part: mclv::Result<Dataset>| {
        let set = match (part, wanted) {
            (Err(mclv::Error::Empty { .. }), Wanted::All) => return Ok(None),
            (part, _) => part.with_context(|| what(split))?,
        };
        if let Some(file) = changed(model, &spec, &set).filter(|_| source.is_none()) {
            tracing::warn!("{file} is not the data that this model was made from: its SHA-256 has changed");
        }
        if let Some(then) = &model.provenance.data {
            then.check_order(&set.provenance)?;
        }
        anyhow::ensure!(
            set.n_columns() == model.rbm.n_visible(),
            "{} has {} columns, but {} has {} visible units; use data and a model that fit each other",
            set.name,
            set.n_columns(),
            path.display(),
            model.rbm.n_visible()
        );
        Ok(Some(set))
    };
    let (&last, others) = splits.split_last().expect("at least one part");
    let mut sets = Vec::new();
    for &split in others {
        sets.extend(check(split, data.part(split, spec.binarize))?);
    }
    sets.extend(check(last, data.into_part(last, spec.binarize))?);
    anyhow::ensure!(!sets.is_empty(), "{} has no train, validation or test rows", spec.source);
    Ok(sets)
}

/// Returns the file whose content is not what the model file records, if there is one.
fn changed<'a>(model: &ModelFile, spec: &'a DataSpec, set: &Dataset) -> Option<&'a String> {
    let now = &set.provenance;
    let own = match now.split {
        Split::Validation => &spec.validation,
        Split::Test => &spec.test,
        Split::Train | Split::All => &None,
    };
    if let Some(path) = own {
        let files = model.provenance.settings["files"].as_array().into_iter().flatten();
        let mut then = files.filter(|file| file["file"] == path.as_str());
        return then.any(|file| file["sha256"] != now.sha256.as_str()).then_some(path);
    }
    let then = model.provenance.data.as_ref().filter(|then| then.split == now.split)?;
    match &spec.split_file {
        _ if then.sha256 != now.sha256 => Some(&spec.source),
        Some(path) if then.division != now.division => Some(path),
        _ => None,
    }
}

/// Returns the data that a model file records.
pub(crate) fn recorded(model: &ModelFile) -> Option<DataSpec> {
    model.provenance.settings.get("data").and_then(|spec| serde_json::from_value(spec.clone()).ok())
}

/// The given shape, or else that of the model's training data, or else that of the data.
pub(crate) fn image_shape<'a>(
    asked: Option<(usize, usize)>,
    model: &ModelFile,
    mut sets: impl Iterator<Item = &'a Dataset>,
) -> anyhow::Result<Option<(usize, usize)>> {
    let n_visible = model.rbm.n_visible();
    if let Some(shape) = asked {
        picture::check_shape(shape, n_visible).context("--shape")?;
        return Ok(Some(shape));
    }
    let of_sets = sets.find_map(|set| set.image_shape);
    let of_model = model.provenance.data.as_ref().and_then(|data| data.image_shape);
    let fits = |&shape: &(usize, usize)| picture::check_shape(shape, n_visible).is_ok();
    Ok(of_model.filter(fits).or(of_sets.filter(fits)))
}
