//! Assign visible states to modes.

use crate::bits::BitRows;
use crate::clusters::{Centres, MOST_CENTRES, k_means, means};
use crate::data::{self, Binarize, Labels, Rows};
use crate::partition::spread;
use crate::words::words;
use crate::{Error, Result};
use std::collections::HashMap;

/// What the modes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModeKind {
    /// The classes of the rows.
    Class,
    /// The distinct rows.
    Pattern,
    /// Clusters of rows.
    Cluster,
}

words!(ModeKind as "by" { Class = "class", Pattern = "pattern", Cluster = "cluster" });

/// Settings of a [`ModeMap`].
#[derive(Clone, Debug, PartialEq)]
pub struct ModeSettings {
    /// What the modes are. With `None`: the distinct rows if there are at most 64, else the classes
    /// if they are known, else clusters.
    pub by: Option<ModeKind>,
    /// The number of clusters, from 2 to 64.
    pub n_clusters: usize,
    /// The seed of the clusters, and of the bits of grey rows.
    pub seed: u64,
}

impl Default for ModeSettings {
    /// 10 clusters.
    fn default() -> Self {
        Self { by: None, n_clusters: 10, seed: 0 }
    }
}

/// The most modes of a map.
const MOST_MODES: usize = 64;
/// The most rows that clusters are found from. They are spread evenly over the data.
const CLUSTER_ROWS: usize = 5_000;
/// The most prototypes of a class.
const MOST_PROTOTYPES: usize = 16;
/// A state is far from its mode if it is farther than this share of the rows.
const NEAR: f64 = 0.99;
/// If there are at least this many rows, prototypes are found from half of them. The other half says
/// how far rows are from prototypes that were not made from them.
const MIN_HALVED: usize = 512;
/// Patterns of at most this many units are named by their bits.
const NAMED_BY_BITS: usize = 32;

/// A map from visible states to modes.
///
/// A state belongs to the mode of its nearest *prototype*, by squared distance. For bits this is
/// the Hamming distance.
///
/// - *Patterns*: each distinct row is a prototype.
/// - *Clusters*: the centres of k-means are the prototypes.
/// - *Classes*: each class has up to 16 prototypes, the centres of k-means among its rows. The map
///   assigns most rows to their own class, not all ([`agreement`](Self::agreement)).
///
/// The share of the data is the share of the rows that the map assigns to a mode, not the share of
/// the labels. A model that is equal to the distribution of the data then has the same shares, even
/// if the map confuses classes. Grey rows become bits first: each value is the probability of a one.
///
/// The same seed gives the same map for any number of threads.
///
/// ```
/// use mclv::{bits::BitRows, data::Rows, modes::{ModeKind, ModeMap}};
/// let rows = Rows::Bits(BitRows::from_words(4, vec![0b0000, 0b1111, 0b1111]));
/// let map = ModeMap::new(&rows, None, &Default::default())?;
/// assert_eq!((map.kind(), map.names().len()), (ModeKind::Pattern, 2));
/// assert_eq!(map.counts(), [2, 1]);
/// assert_eq!(map.mode_of(&[0b0111]), 0);
/// # Ok::<(), mclv::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ModeMap {
    kind: ModeKind,
    names: Vec<String>,
    counts: Vec<usize>,
    means: Vec<Vec<f32>>,
    centres: Centres,
    /// The mode of each prototype.
    owners: Vec<usize>,
    /// The squared distance that most rows do not exceed.
    radius: f32,
    /// The number of rows that exceed it, and the number of rows that were measured.
    n_far: (usize, usize),
    agreement: Option<f64>,
    n_visible: usize,
}

impl ModeMap {
    /// Makes a map from rows and, for classes, their labels.
    ///
    /// # Errors
    /// If there are no rows, if classes are asked for and not known, if there are more than 64
    /// classes or distinct rows, or if the number of clusters is not allowed.
    pub fn new(rows: &Rows, labels: Option<&Labels>, settings: &ModeSettings) -> Result<Self> {
        if rows.n_rows() == 0 {
            return Err(Error::Empty { what: "the data".into(), cure: "modes are made from its rows" });
        }
        if let Some(labels) = labels.filter(|labels| labels.ids.len() != rows.n_rows()) {
            let what = "labels, one per row".into();
            return Err(Error::ShapeMismatch { what, expected: rows.n_rows(), got: labels.ids.len() });
        }
        let is_grey = !matches!(rows, Rows::Bits(_));
        let drawn = match data::binarize(rows, Binarize::Bernoulli, settings.seed, 0) {
            Rows::Bits(bits) => bits,
            _ => unreachable!("draws are bits"),
        };
        // Draws of grey rows are distinct by chance.
        let patterns = (!is_grey).then(|| distinct(&drawn)).flatten();
        let kind = match settings.by {
            Some(kind) => kind,
            None if patterns.as_ref().is_some_and(|patterns| patterns.len() > 1) => ModeKind::Pattern,
            None if labels.is_some_and(|labels| (2..=MOST_MODES).contains(&n_used(labels))) => {
                ModeKind::Class
            }
            None => ModeKind::Cluster,
        };
        let invalid = |name, value: String, cure| Error::InvalidSetting { name, value, cure };
        let (names, prototypes) = match kind {
            ModeKind::Pattern => {
                let cure = "there are more than 64 distinct rows; choose class or cluster";
                patterns_of(&drawn, &patterns.ok_or_else(|| invalid("by", "pattern".into(), cure))?)
            }
            ModeKind::Class => {
                let cure = "the classes of the rows are not known; choose cluster";
                let labels = labels.ok_or_else(|| invalid("by", "class".into(), cure))?;
                if n_used(labels) > MOST_MODES {
                    let cure = "there are more than 64 classes; choose cluster";
                    return Err(invalid("by", "class".into(), cure));
                }
                classes_of(&drawn, labels, settings.seed)
            }
            ModeKind::Cluster => {
                if !(2..=MOST_MODES).contains(&settings.n_clusters) {
                    return Err(invalid("n-clusters", settings.n_clusters.to_string(), "from 2 to 64"));
                }
                let made_from: Vec<usize> =
                    (0..drawn.n_rows()).filter(|&r| is_made_from(&drawn, r)).collect();
                let centres = k_means(&some_of(&drawn, &made_from), settings.n_clusters, settings.seed, 0);
                let names = (1..=centres.len()).map(|k| format!("cluster {k}")).collect();
                (names, centres.into_iter().enumerate().collect())
            }
        };
        let map = Self::of_prototypes(kind, names, prototypes, &drawn);
        Ok(match (kind, labels) {
            (ModeKind::Class, Some(labels)) => map.compared_with(labels, &drawn),
            _ => map,
        })
    }

    /// Makes a map from prototypes, each with its mode.
    fn of_prototypes(
        kind: ModeKind,
        names: Vec<String>,
        prototypes: Vec<(usize, Vec<f32>)>,
        rows: &BitRows,
    ) -> Self {
        let (owners, values): (Vec<usize>, Vec<Vec<f32>>) = prototypes.into_iter().unzip();
        let centres = Centres::new(rows.n_bits(), &values);
        let nearest = centres.nearest_of(rows);
        let modes: Vec<usize> = nearest.iter().map(|&(centre, _)| owners[centre]).collect();
        let (means, counts) = means(rows, &modes, names.len()).into_iter().unzip();
        let is_measured =
            |r: usize| kind == ModeKind::Pattern || !is_made_from(rows, r) || rows.n_rows() < MIN_HALVED;
        let measured = nearest.into_iter().enumerate().filter(|(r, _)| is_measured(*r));
        let mut distances: Vec<f32> = measured.map(|(_, (_, distance))| distance).collect();
        distances.sort_by(f32::total_cmp);
        let radius = distances[((NEAR * distances.len() as f64) as usize).min(distances.len() - 1)];
        let n_far = (distances.iter().filter(|&&distance| distance > radius).count(), distances.len());
        let n_visible = rows.n_bits();
        Self { kind, names, counts, means, centres, owners, radius, n_far, agreement: None, n_visible }
    }

    /// Compares the map with the labels.
    fn compared_with(mut self, labels: &Labels, rows: &BitRows) -> Self {
        let nearest = self.centres.nearest_of(rows);
        let is_own = |&(r, (centre, _)): &(usize, (usize, f32))| {
            self.names[self.owners[centre]] == labels.names[labels.ids[r] as usize]
        };
        let n_own = nearest.into_iter().enumerate().filter(is_own).count();
        self.agreement = Some(n_own as f64 / rows.n_rows() as f64);
        self
    }

    /// What the modes are.
    pub fn kind(&self) -> ModeKind {
        self.kind
    }

    /// The names of the modes: classes in their order, others by falling number of rows.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The number of rows of each mode.
    pub fn counts(&self) -> &[usize] {
        &self.counts
    }

    /// The mean of the rows of each mode.
    pub fn means(&self) -> &[Vec<f32>] {
        &self.means
    }

    /// The number of rows that the map was made from.
    pub fn n_rows(&self) -> usize {
        self.counts.iter().sum()
    }

    /// Returns true if the rows are taken as the whole distribution, not as a sample of it: if the
    /// modes are patterns that all occur equally often, as in a complete list of patterns.
    pub fn is_whole(&self) -> bool {
        self.kind == ModeKind::Pattern && self.counts.iter().all(|&n| n == self.counts[0])
    }

    /// The number of visible units.
    pub fn n_visible(&self) -> usize {
        self.n_visible
    }

    /// For classes: the share of the rows that the map assigns to their own class.
    pub fn agreement(&self) -> Option<f64> {
        self.agreement
    }

    /// Returns the mode of a packed visible state.
    pub fn mode_of(&self, v: &[u64]) -> usize {
        self.locate(v).0
    }

    /// Returns the mode of a packed visible state, and true if the state is farther from its nearest
    /// prototype than 99 % of the rows are from theirs.
    pub fn locate(&self, v: &[u64]) -> (usize, bool) {
        let (centre, distance) = self.centres.nearest(v);
        (self.owners[centre], distance > self.radius)
    }

    /// The number of rows that are farther from their nearest prototype than 99 % of the rows, and
    /// the number of rows that this was found from. These are rows that no prototype was made from,
    /// if there are at least 512 rows or if the modes are patterns.
    pub fn n_far(&self) -> (usize, usize) {
        self.n_far
    }
}

/// The number of classes that have rows.
fn n_used(labels: &Labels) -> usize {
    let mut is_used = vec![false; labels.names.len()];
    labels.ids.iter().for_each(|&id| is_used[id as usize] = true);
    is_used.into_iter().filter(|&is_used| is_used).count()
}

/// Returns a row of each distinct kind, the most frequent first; `None` if there are too many.
fn distinct(rows: &BitRows) -> Option<Vec<usize>> {
    let mut found: HashMap<&[u64], (usize, usize)> = HashMap::new();
    for r in 0..rows.n_rows() {
        found.entry(rows.row(r)).or_insert((0, r)).0 += 1;
        if found.len() > MOST_MODES {
            return None;
        }
    }
    let mut found: Vec<(usize, usize)> = found.into_values().collect();
    found.sort_by_key(|&(count, first)| (std::cmp::Reverse(count), first));
    Some(found.into_iter().map(|(_, first)| first).collect())
}

/// Returns true if prototypes are made from row `r`. Rows may be sorted, so that every second one is
/// taken.
fn is_made_from(rows: &BitRows, r: usize) -> bool {
    rows.n_rows() < MIN_HALVED || r.is_multiple_of(2)
}

/// Returns at most 5,000 of the rows named by `indices`, evenly spread.
fn some_of(rows: &BitRows, indices: &[usize]) -> BitRows {
    let some: Vec<usize> = spread(indices.len(), CLUSTER_ROWS).into_iter().map(|k| indices[k]).collect();
    rows.select(&some)
}

type Prototypes = (Vec<String>, Vec<(usize, Vec<f32>)>);

fn patterns_of(rows: &BitRows, first: &[usize]) -> Prototypes {
    let bits = |r: usize| (0..rows.n_bits()).map(move |i| rows.get(r, i));
    let name = |(k, &r): (usize, &usize)| match rows.n_bits() {
        n if n <= NAMED_BY_BITS => bits(r).map(|bit| if bit { '1' } else { '0' }).collect(),
        _ => format!("pattern {}", k + 1),
    };
    let prototype =
        |(k, &r): (usize, &usize)| (k, bits(r).map(|bit| f32::from(u8::from(bit))).collect::<Vec<f32>>());
    (first.iter().enumerate().map(name).collect(), first.iter().enumerate().map(prototype).collect())
}

fn classes_of(rows: &BitRows, labels: &Labels, seed: u64) -> Prototypes {
    let most = (MOST_CENTRES / n_used(labels)).min(MOST_PROTOTYPES);
    let (mut names, mut prototypes) = (Vec::new(), Vec::new());
    for (id, name) in labels.names.iter().enumerate() {
        let is_own = |&r: &usize| labels.ids[r] as usize == id;
        let all: Vec<usize> = (0..rows.n_rows()).filter(is_own).collect();
        if all.is_empty() {
            continue;
        }
        let half: Vec<usize> = all.iter().copied().filter(|&r| is_made_from(rows, r)).collect();
        // A small class may have no row in the half.
        let own = if half.is_empty() { all } else { half };
        let centres = k_means(&some_of(rows, &own), most, seed, 1 + id as u64);
        prototypes.extend(centres.into_iter().map(|centre| (names.len(), centre)));
        names.push(name.clone());
    }
    (names, prototypes)
}
