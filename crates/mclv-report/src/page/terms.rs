//! Explain the terms of pages, each in a sentence or two.
//!
//! The sentences are how the entries of the glossary (`docs/reference/glossary.md`) begin; a test of
//! `mclv-cli` compares them.

/// A term that pages explain.
#[derive(Debug)]
pub struct Term {
    /// Its name, as in the glossary.
    pub name: &'static str,
    /// What it is.
    pub sentence: &'static str,
    /// The names of facts, columns, charts and sections that show it, in lower case.
    labels: &'static [&'static str],
}

/// All terms, in the order of the glossary.
pub const TERMS: &[Term] = &[
    Term {
        name: "Best model",
        sentence: "The model of a run with the highest log-likelihood of validation rows, or of training rows if there are no validation rows.",
        labels: &["best"],
    },
    Term {
        name: "Completed tour",
        sentence: "A tour that came back to the stopping set.",
        labels: &["tours that return", "complete"],
    },
    Term {
        name: "Confidence band",
        sentence: "The shaded area around a curve in a report. For one run it shows the 95 % limits of each point, which come from the error of log Z. For the mean of several seeds it is one standard deviation over the seeds.",
        labels: &["log-likelihood, mean over seeds", "means over seeds"],
    },
    Term {
        name: "Correlation",
        sentence: "How strongly two units go together, from −1 (always different) through 0 (independent) to 1 (always equal).",
        labels: &["correlations of pairs of visible units"],
    },
    Term { name: "Epoch", sentence: "One pass over all training rows.", labels: &["epochs"] },
    Term {
        name: "Estimator",
        sentence: "The method that estimates the gradient of the log-likelihood, which training follows: CD, PCD, LVS, tempering or an exact sum.",
        labels: &["estimator"],
    },
    Term {
        name: "Gradient",
        sentence: "The direction in which the log-likelihood rises fastest; an update moves the parameters along an estimate of it.",
        labels: &["norm of the gradient"],
    },
    Term {
        name: "Guarantee",
        sentence: "A statement about an estimate that is true by mathematics, before the run has been made: exact, unbiased, a lower bound on average, an upper bound on average, or none.",
        labels: &["guarantee for z", "guarantee for log z", "guarantee for likelihoods"],
    },
    Term {
        name: "Hidden unit",
        sentence: "A unit of the layer that is not in the data.",
        labels: &["hidden"],
    },
    Term {
        name: "Idle unit",
        sentence: "A hidden unit that does next to nothing: its probability of being on hardly changes from row to row, and its weights are small beside those of other units.",
        labels: &["unused hidden units"],
    },
    Term {
        name: "Interval",
        sentence: "A range that is made to hold the true value in 95 % of runs.",
        labels: &["95 % interval"],
    },
    Term {
        name: "Ladder",
        sentence: "Copies of a model at several temperatures, from a model without weights up to the model itself.",
        labels: &["ladders in training"],
    },
    Term {
        name: "Learning rate",
        sentence: "How far an update moves the parameters along the gradient.",
        labels: &["learning rate", "optimisation"],
    },
    Term {
        name: "Likelihood",
        sentence: "The probability that the model gives to rows of data. The program prints its logarithm, averaged over rows: nats per row, higher is better.",
        labels: &[
            "likelihood",
            "log-likelihood",
            "log-likelihood, train",
            "log-likelihood, validation",
            "train (nats)",
            "validation (nats)",
        ],
    },
    Term {
        name: "log Z",
        sentence: "The logarithm of the partition function. Every true log-likelihood needs it.",
        labels: &["log z", "log z (nats)", "log z ±", "log z_s", "log z_s and log z"],
    },
    Term {
        name: "Mode share",
        sentence: "The share of the rows, or of the model's probability, that belongs to one of several modes: a class, a distinct row or a cluster of rows.",
        labels: &["modes", "model / data"],
    },
    Term {
        name: "Nearest training row",
        sentence: "The training row that differs from a given row in the fewest units. A model whose samples are much nearer to training rows than rows that it has not seen may repeat what it was trained on.",
        labels: &["distance to the nearest training row"],
    },
    Term {
        name: "Principal component",
        sentence: "A direction in which rows vary most: the first has the largest variance of all directions, the second the largest of those orthogonal to it.",
        labels: &["principal components"],
    },
    Term {
        name: "Provenance",
        sentence: "Where a model came from: its data, settings, seed and program, and for a run folder also when, where and by which command it was made.",
        labels: &["provenance"],
    },
    Term {
        name: "Pseudo-log-likelihood",
        sentence: "The sum over visible units of log p(vᵢ | all other visible units). It needs no log Z and is exact, but it is not the likelihood and can rank models differently.",
        labels: &["pseudo-log-likelihood"],
    },
    Term {
        name: "Reconstruction error",
        sentence: "The mean squared difference between a row and the row that the model computes from its hidden probabilities.",
        labels: &["reconstruction error"],
    },
    Term {
        name: "Round trip",
        sentence: "In parallel tempering: a state goes from the lowest rung of a ladder to the top and back.",
        labels: &["round trips"],
    },
    Term {
        name: "Sample",
        sentence: "A row of zeros and ones that is drawn from the model.",
        labels: &["generated against data"],
    },
    Term {
        name: "Seed",
        sentence: "The number from which all random numbers follow. The same seed gives the same bytes.",
        labels: &["seed"],
    },
    Term {
        name: "SHA-256",
        sentence: "A fingerprint of a file: two files with the same fingerprint have the same content.",
        labels: &["sha-256 of the data"],
    },
    Term {
        name: "Singular value",
        sentence: "The strength with which the weights connect one direction of the visible layer with one direction of the hidden layer.",
        labels: &["singular values of the weights"],
    },
    Term {
        name: "Standard error",
        sentence: "The typical size of the random error of an estimate: about two thirds of estimates lie within one standard error of the truth if errors are normal.",
        labels: &["std. error"],
    },
    Term {
        name: "Stopping set",
        sentence: "A set S of hidden states in which tours start and end.",
        labels: &["states in s"],
    },
    Term {
        name: "Tour",
        sentence: "A Gibbs chain that starts in the stopping set and ends when it is in the set again. Its length is the number of steps.",
        labels: &["tours", "tours in training", "lengths of tours", "mean length of tours that returned"],
    },
    Term {
        name: "Visible unit",
        sentence: "A unit of the layer that holds the data: one for each column.",
        labels: &["means of visible units"],
    },
];

/// The number, in [`TERMS`], of the term that a label shows.
pub(super) fn term_of(label: &str) -> Option<usize> {
    let label = label.to_lowercase();
    TERMS.iter().position(|term| term.labels.contains(&label.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_label_belongs_to_one_term_and_can_be_found() {
        let labels: Vec<&str> = TERMS.iter().flat_map(|term| term.labels).copied().collect();
        assert_eq!(labels.iter().collect::<BTreeSet<_>>().len(), labels.len());
        for (k, term) in TERMS.iter().enumerate() {
            assert!(!term.labels.is_empty() && term.sentence.ends_with('.'), "{}", term.name);
            assert!(term.labels.iter().all(|label| term_of(label) == Some(k)), "{}", term.name);
        }
        assert_eq!(term_of("Log-likelihood").map(|k| TERMS[k].name), Some("Likelihood"));
        assert_eq!(term_of("log-likelihoo"), None);
        let names: Vec<String> = TERMS.iter().map(|term| term.name.to_lowercase()).collect();
        assert!(names.is_sorted(), "{names:?}");
    }
}
