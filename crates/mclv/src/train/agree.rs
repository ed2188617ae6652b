//! Compare a training with those of other ranks.

use super::Session;
use super::monitor::Weighted;
use super::session::Part;
use crate::Result;
use crate::team::{self, Facts};

impl Session<'_> {
    /// Compares everything that decides the updates to come with what other ranks have.
    pub(super) fn agree(&self) -> Result<()> {
        if team::size() == 1 {
            return Ok(());
        }
        let trainer = &self.trainer;
        let mut facts = Facts::of_program()
            .with("", &self.settings.settings())
            .with("the model", &trainer.rbm().digest())
            .with("the number of epochs made", &trainer.epochs_done())
            .with("the number of updates in this epoch", &trainer.update);
        let grey = self.grey.as_deref().map(|rows| Part::new(Weighted { rows, weights: None }));
        let parts = [
            ("training", Some(&self.train)),
            ("validation", self.validation.as_ref()),
            ("grey", grey.as_ref()),
        ];
        for (name, part) in parts {
            let Some(Part { rows, weights }) = part else { continue };
            facts = facts.with(&format!("the content of {name} rows"), &rows.sha256());
            if let Some(weights) = weights {
                let bytes: Vec<u8> = weights.iter().flat_map(|x| x.to_le_bytes()).collect();
                facts = facts.with_bytes(&format!("the weights of {name} rows"), &bytes);
            }
        }
        team::agree(&facts)
    }
}
