//! Save a ladder, and read it again.

use super::Ladder;
use crate::file::{MAX_MODEL, write_atomically};
use crate::model::Rbm;
use crate::source::read_file;
use crate::team::{Facts, agree};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::path::Path;

/// The version of the format.
const VERSION: u32 = 1;

/// The content of a file.
#[derive(Serialize, Deserialize)]
struct Content<'a> {
    /// The version of the format.
    mclv_ladder: u32,
    ladder: Cow<'a, Ladder>,
}

impl Ladder {
    /// Writes the ladder to a file, as JSON.
    ///
    /// ```
    /// use mclv::{Rbm, partition::{Inputs, Ladder, LadderTourSettings, ladder}, progress::Silent};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("ladder.json");
    /// let rbm = Rbm::new(4, 3, &[0.8; 12], &[-1.0; 4], &[-1.0; 3])?;
    /// let settings = LadderTourSettings::default();
    /// Ladder::new(&rbm, &Inputs::default(), &settings, &Silent)?.save(&path)?;
    ///
    /// let saved = Ladder::load(&path)?;
    /// let inputs = Inputs { ladder: Some(&saved), ..Inputs::default() };
    /// let estimate = ladder(&rbm, &inputs, &LadderTourSettings { seed: 1, ..settings }, &Silent)?;
    /// assert!(estimate.std_err.unwrap() < 0.1);
    /// # Ok::<(), mclv::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<()> {
        let content = Content { mclv_ladder: VERSION, ladder: Cow::Borrowed(self) };
        let text = serde_json::to_string(&content).expect("numbers and words");
        write_atomically(path, text.as_bytes())
    }

    /// Reads a file that [`save`](Self::save) wrote.
    ///
    /// # Errors
    /// If the file cannot be read or is not a ladder.
    pub fn load(path: &Path) -> Result<Self> {
        let broken = |problem: String| {
            Error::malformed(path, format!("is not an intact ladder: {problem}; make it again"))
        };
        let text = read_file(path, MAX_MODEL)?;
        let content: Content<'_> = serde_json::from_slice(&text).map_err(|e| broken(e.to_string()))?;
        if content.mclv_ladder != VERSION {
            let problem = format!("its format has version {}, not {VERSION}", content.mclv_ladder);
            return Err(broken(problem));
        }
        let ladder = content.ladder.into_owned();
        if let Some(problem) = ladder.problem() {
            return Err(broken(problem.into()));
        }
        agree(&Facts::default().with_bytes(&format!("the content of {}", path.display()), &text))?;
        Ok(ladder)
    }

    /// Returns the ladder if it leads to `rbm`.
    pub(super) fn for_model(&self, rbm: &Rbm) -> Result<&Self> {
        if self.model == rbm.digest() {
            return Ok(self);
        }
        Err(Error::InvalidSetting {
            name: "ladder",
            value: "a ladder of another model".into(),
            cure: "make a ladder for this model (`save-ladder`)",
        })
    }

    /// Returns what is wrong with the ladder.
    fn problem(&self) -> Option<&'static str> {
        let n_legs = self.legs.len();
        if n_legs == 0 || self.bases.len() != n_legs || self.estimates.len() != n_legs {
            return Some("its legs, base models and estimates differ in number");
        }
        let widths = |leg: usize| (self.bases[leg].visible.len(), self.bases[leg].hidden.len());
        if (0..n_legs).any(|leg| widths(leg) != widths(0)) {
            return Some("its base models differ in size");
        }
        let of_bases = self.bases.iter().flat_map(|base| base.visible.iter().chain(&*base.hidden));
        let of_legs = self.legs.iter().flat_map(|rungs| rungs.betas.iter().chain(&rungs.log_c));
        let are_finite = of_bases.map(|&x| f64::from(x)).chain(of_legs.copied()).all(f64::is_finite);
        if !are_finite || self.estimates.iter().any(|(log_z, se)| !(log_z + se).is_finite()) {
            return Some("a number is not finite");
        }
        let rises = |betas: &[f64]| {
            betas.len() >= 2
                && (betas[0], betas[betas.len() - 1]) == (0.0, 1.0)
                && betas.windows(2).all(|pair| pair[0] < pair[1])
        };
        if self.legs.iter().any(|rungs| !rises(&rungs.betas) || rungs.log_c.len() != rungs.betas.len()) {
            return Some("the temperatures of a leg do not rise from 0 to 1, each with a weight");
        }
        let top = self.legs[0].log_c.last();
        self.legs
            .iter()
            .any(|rungs| rungs.log_c.last() != top)
            .then_some("its legs do not share the top rung")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tests::random_rbm;
    use crate::partition::{Inputs, LadderTourSettings, LogZ, ladder};
    use crate::progress::Silent;

    /// Estimates with a saved ladder have the same bits as those that make it themselves, and cost
    /// fewer steps.
    #[test]
    fn a_saved_ladder_gives_the_same_estimate() {
        let rbm = random_rbm(20, 8, 1.0, 950);
        let settings = LadderTourSettings::default();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ladder.json");
        let made = Ladder::new(&rbm, &Inputs::default(), &settings, &Silent).unwrap();
        made.save(&path).unwrap();
        let read = Ladder::load(&path).unwrap();
        assert_eq!(Ladder { n_steps: 0, ..made }, read);
        let by = |ladder_: Option<&Ladder>| {
            let inputs = Inputs { ladder: ladder_, ..Inputs::default() };
            LogZ { seconds: 0.0, ..ladder(&rbm, &inputs, &settings, &Silent).unwrap() }
        };
        let (with, without) = (by(Some(&read)), by(None));
        assert!(with.n_states < without.n_states, "{with:?}");
        assert_eq!(LogZ { n_states: 0.0, ..with }, LogZ { n_states: 0.0, ..without });
        let other = random_rbm(20, 8, 1.0, 951);
        let inputs = Inputs { ladder: Some(&read), ..Inputs::default() };
        let error = ladder(&other, &inputs, &settings, &Silent).unwrap_err().to_string();
        assert!(error.contains("another model"), "{error}");
    }

    #[test]
    fn what_is_no_ladder_is_refused() {
        let rbm = random_rbm(5, 3, 1.0, 952);
        let settings = LadderTourSettings { n_rungs: Some(3), ..Default::default() };
        let good = Ladder::new(&rbm, &Inputs::default(), &settings, &Silent).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ladder.json");
        let problem = |change: &dyn Fn(&mut Ladder)| {
            let mut ladder = good.clone();
            change(&mut ladder);
            ladder.save(&path).unwrap();
            Ladder::load(&path).unwrap_err().to_string()
        };
        assert!(problem(&|ladder| ladder.legs.clear()).contains("differ in number"));
        assert!(problem(&|ladder| ladder.legs[0].betas[0] = 0.1).contains("rise from 0 to 1"));
        assert!(problem(&|ladder| ladder.legs[0].betas[1] = 1.0).contains("rise from 0 to 1"));
        assert!(problem(&|ladder| ladder.legs[0].log_c.truncate(1)).contains("rise from 0 to 1"));
        // JSON has no infinity: it is written as null.
        assert!(problem(&|ladder| ladder.legs[0].log_c[1] = f64::INFINITY).contains("not an intact ladder"));
        std::fs::write(&path, r#"{"mclv_ladder": 2, "ladder": {}}"#).unwrap();
        assert!(Ladder::load(&path).unwrap_err().to_string().contains("not an intact ladder"));
        std::fs::write(&path, "[").unwrap();
        assert!(Ladder::load(&path).unwrap_err().to_string().contains("make it again"));
    }
}
