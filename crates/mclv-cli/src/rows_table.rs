//! Shows rows of data as a table in the terminal.

use crate::output::table;

/// A table of rows with their labels. Columns that do not fit the line are left out.
pub(crate) fn rows_table(rows: &[Vec<f32>], names: &[String], labels: Option<&[&str]>) -> String {
    const WIDTH: usize = 80;
    let n_columns = rows[0].len();
    let value = |x: f32| format!("{}", (x * 1e4).round() / 1e4);
    let name = |column: usize| names.get(column).cloned().unwrap_or_else(|| (column + 1).to_string());
    // Three spaces are between two columns.
    let width = |column: usize| {
        let cells = rows.iter().map(|row| value(row[column]));
        3 + cells.chain([name(column)]).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let mut room = WIDTH;
    let fits = |&column: &usize| {
        let is_room = width(column) <= room;
        room = room.saturating_sub(width(column));
        is_room
    };
    let n = (0..n_columns).take_while(fits).count().max(1);
    let (more, label) = ((n < n_columns).then_some("…"), labels.map(|_| "label"));
    let header: Vec<String> = (0..n).map(name).collect();
    let header: Vec<&str> = header.iter().map(String::as_str).chain(more).chain(label).collect();
    let lines = rows.iter().enumerate().map(|(r, row)| {
        let values = row[..n].iter().map(|&x| value(x)).chain(more.map(str::to_owned));
        values.chain(labels.map(|labels| labels[r].to_owned())).collect()
    });
    table(&header, &(0..n).collect::<Vec<_>>(), lines)
}
