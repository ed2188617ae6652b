//! The memory of stopping sets.

use super::{Parts, column};
use crate::options::Options;
use crate::report::Table;
use crate::store::Store;
use crate::task::{SpaceOf, Task};
use crate::work::Space;
use mclv::Result;

const SIZES: [(usize, usize); 7] =
    [(1024, 1), (4096, 1), (16_384, 1), (55_000, 1), (55_000, 4), (55_000, 7), (55_000, 16)];

fn task(options: &Options, (n_rows, samples_per_row): (usize, usize)) -> Task {
    let model = options.paper("LVS-1", options.hidden(32), 0.1, options.seeds[0]);
    Task::Space(SpaceOf { model, n_rows, samples_per_row, seed: options.seeds[0] })
}

pub(super) fn tasks(options: &Options) -> Vec<Task> {
    SIZES.map(|sizes| task(options, sizes)).to_vec()
}

pub(super) fn parts(options: &Options, store: &Store) -> Result<Parts> {
    let mut rows = Vec::new();
    for (n_rows, m) in SIZES {
        let space: Space = store.get(&task(options, (n_rows, m)))?.read()?;
        let n = space.n_states as f64;
        rows.push(vec![
            (space.n_drawn / m).into(),
            m.into(),
            space.n_drawn.into(),
            space.n_states.into(),
            (space.set_bytes as f64 / n).into(),
            (space.table_bytes as f64 / n).into(),
            ((space.set_bytes + space.table_bytes) as f64 / 1e6).into(),
        ]);
    }
    let columns = vec![
        column("rows N", 0),
        column("states per row m", 0),
        column("states drawn", 0),
        column("distinct states", 0),
        column("bytes per state, set", 1),
        column("bytes per state, starts", 1),
        column("MB", 2),
    ];
    let title = format!(
        "The memory of stopping sets: LVS-1 by the paper's protocol, {} hidden units.",
        options.hidden(32)
    );
    let notes = vec![
        "Space is O(m·N·n_H) bits for the distinct states, a hash table of their numbers, and 16 bytes per state for the \
         start table. No row of the data is kept with its states."
            .into(),
    ];
    Ok(Parts { tables: vec![Table { name: String::new(), title, columns, rows }], notes, ..Parts::default() })
}
