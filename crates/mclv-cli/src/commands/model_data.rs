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
    Ok(load_parts(model, source, preparation, &[split], global)?.remove(0))
}

/// Like [`load`], for one or more parts. Each file is read once.
pub(crate) fn load_parts(
    (path, model): (&Path, &ModelFile),
    source: Option<&str>,
    preparation: &Preparation,
    splits: &[Split],
    global: &Global,
) -> anyhow::Result<Vec<Dataset>> {
    let recorded: Option<DataSpec> =
        model.provenance.settings.get("data").and_then(|spec| serde_json::from_value(spec.clone()).ok());
    let mut spec = match (source, recorded) {
        (Some(source), _) => preparation.spec(source, splits[0], global),
        (None, Some(recorded)) => recorded,
        (None, None) => {
            anyhow::bail!("{} does not record its data; give --data", path.display())
        }
    };
    spec.binarize = preparation.binarize.unwrap_or(spec.binarize);
    spec.label_column = preparation.label_column.clone().or(spec.label_column);
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
        let set = part.with_context(|| what(split))?;
        if let (None, Some(then)) = (source, &model.provenance.data)
            && then.split == split
            && then.sha256 != set.provenance.sha256
        {
            tracing::warn!(
                "{} is not the data that this model was made from: its SHA-256 has changed",
                spec.source
            );
        }
        anyhow::ensure!(
            set.n_columns() == model.rbm.n_visible(),
            "{} has {} columns, but {} has {} visible units; use data and a model that fit each other",
            set.name,
            set.n_columns(),
            path.display(),
            model.rbm.n_visible()
        );
        Ok(set)
    };
    let (&last, others) = splits.split_last().expect("at least one part");
    let mut sets = Vec::new();
    for &split in others {
        sets.push(check(split, data.part(split, spec.binarize))?);
    }
    sets.push(check(last, data.into_part(last, spec.binarize))?);
    Ok(sets)
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
