//! The numbers of the paper's tables: mean and standard deviation over ten seeds, for training and
//! test rows.

/// A line of a table.
pub(crate) struct Published {
    pub(crate) method: &'static str,
    /// Mean and standard deviation of the average log-likelihood of training rows.
    pub(crate) train: (f64, f64),
    /// The same for test rows.
    pub(crate) test: (f64, f64),
    pub(crate) learning_rate: f64,
}

const fn line(method: &'static str, learning_rate: f64, train: (f64, f64), test: (f64, f64)) -> Published {
    Published { method, train, test, learning_rate }
}

/// 32 hidden units, the same learning rate for all methods.
pub(crate) const TABLE1: [Published; 7] = [
    line("CD-1", 0.1, (-167.3, 2.7), (-166.6, 2.8)),
    line("CD-10", 0.1, (-154.3, 3.3), (-153.4, 3.3)),
    line("PCD-1", 0.1, (-153.0, 4.9), (-152.1, 4.7)),
    line("PCD-10", 0.1, (-139.3, 3.2), (-138.5, 3.3)),
    line("LVS-1", 0.1, (-134.0, 1.0), (-133.3, 1.0)),
    line("LVS-3", 0.1, (-133.7, 0.8), (-132.9, 0.7)),
    line("LVS-10", 0.1, (-133.3, 1.0), (-132.6, 1.0)),
];

/// 25 hidden units, each method with its own learning rate.
pub(crate) const TABLE2: [Published; 7] = [
    line("CD-1", 0.01, (-169.8, 2.6), (-169.0, 2.6)),
    line("CD-10", 0.01, (-156.4, 0.5), (-155.6, 0.5)),
    line("PCD-1", 0.01, (-147.8, 0.5), (-147.0, 0.5)),
    line("PCD-10", 0.01, (-147.4, 0.5), (-146.7, 0.5)),
    line("LVS-1", 0.1, (-138.3, 1.3), (-137.5, 1.4)),
    line("LVS-3", 0.1, (-138.2, 1.0), (-137.5, 1.1)),
    line("LVS-10", 0.1, (-138.1, 1.1), (-137.4, 1.2)),
];
