//! `mclv tours --theorems`: the statements of the paper, measured with these tours.

use crate::output::{table, wrapped};
use clap::Args;
use mclv::theorems::{Precision, TheoremSettings, Theorems};
use mclv_report::theorems::sheets;

/// The flags of `--theorems`.
#[derive(Args, Clone)]
pub(crate) struct TheoremArgs {
    /// Also print the statements of the paper with these tours, beside exact values of small models
    #[arg(long)]
    pub(crate) theorems: bool,
    /// Numbers of steps K after which tours are cut, for --theorems
    #[arg(long, value_delimiter = ',', default_value = "1,3,10,100", value_name = "K", requires = "theorems", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) cut_at: Vec<u32>,
    /// Relative error of Ẑ for which --theorems says how many tours are enough
    #[arg(long, default_value_t = 0.1, value_name = "E", requires = "theorems", value_parser = parse_error)]
    pub(crate) error: f64,
    /// Probability of a larger error than --error
    #[arg(long, default_value_t = 0.05, value_name = "A", requires = "theorems", value_parser = parse_alpha)]
    pub(crate) alpha: f64,
}

impl TheoremArgs {
    pub(crate) fn settings(&self) -> TheoremSettings {
        let mut k = self.cut_at.clone();
        k.sort_unstable();
        k.dedup();
        TheoremSettings { k, precision: Precision { error: self.error, alpha: self.alpha } }
    }
}

fn parse_error(text: &str) -> Result<f64, String> {
    let is_right = |x: &f64| *x > 0.0 && x.is_finite();
    text.parse().ok().filter(is_right).ok_or_else(|| "write a number above 0, such as 0.1".into())
}

fn parse_alpha(text: &str) -> Result<f64, String> {
    let is_right = |x: &f64| *x > 0.0 && *x <= 1.0;
    text.parse().ok().filter(is_right).ok_or_else(|| "write a probability, such as 0.05".into())
}

/// The statements as text.
pub(super) fn text(name: &str, theorems: &Theorems) -> String {
    let mut text = format!("\nThe paper's statements, tours with {name}\n");
    for sheet in sheets(theorems) {
        let right: Vec<usize> = (1..sheet.header.len()).collect();
        text.push_str(&format!(
            "\n{}\n{}\n{}\n",
            wrapped(&sheet.title),
            table(&sheet.header, &right, sheet.rows),
            wrapped(&sheet.note)
        ));
    }
    text
}
