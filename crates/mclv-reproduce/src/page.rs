//! Puts tables and figures of reports into hand-written pages.
//!
//! Between `<!-- table2 -->` and `<!-- end table2 -->` a page holds the whole report of an
//! experiment. Between `<!-- table2:table -->` and its end it holds only the first table, between
//! `<!-- beyond:sizes -->` and its end only the table with this name, and between
//! `<!-- table2:plot -->` and its end only the first plot.

use crate::write::{markdown, markdown_table, read};
use mclv::{Error, Result};
use std::path::Path;

/// Updates everything between the marks of a page from the reports in `folder`. Links to figures
/// are `link` followed by the name of the file.
///
/// # Errors
/// If a mark has no end, or a report is damaged. A missing report gives a remark in the page.
pub fn refresh(page: &str, path: &Path, folder: &Path, link: &str) -> Result<String> {
    let mut text = String::new();
    let mut rest = page;
    while let Some((before, name, after)) = next_mark(rest) {
        let (begin, end) = (format!("<!-- {name} -->"), format!("<!-- end {name} -->"));
        let Some(at) = after.find(&end) else {
            return Err(Error::malformed(path, format!("it has a mark {begin} without its {end}")));
        };
        let (experiment, part) = name.split_once(':').unwrap_or((name, ""));
        let made = if let Some(report) = read(folder, experiment)? {
            let table = match part {
                "" | "plot" => None,
                "table" => report.tables.first(),
                name => report.tables.iter().find(|table| table.name == name),
            };
            match (part, table, report.plots.first()) {
                ("", ..) => markdown(&report, link),
                ("plot", _, Some(plot)) => {
                    format!("![{}]({link}{}.svg)\n", plot.title, report.file_name(&plot.name))
                }
                (_, Some(table), _) => markdown_table(table),
                _ => "*Not run yet.*\n".into(),
            }
        } else {
            format!("*No results yet: `mclv reproduce {experiment}` creates them.*\n")
        };
        text.push_str(&format!("{before}{begin}\n{}\n{end}", made.trim_end()));
        rest = &after[at + end.len()..];
    }
    text.push_str(rest);
    Ok(text)
}

/// The text before the next mark, the name of the mark, and the text after it.
fn next_mark(text: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    loop {
        let begin = from + text[from..].find("<!-- ")?;
        let end = begin + text[begin..].find(" -->")?;
        let name = &text[begin + 5..end];
        let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == ':');
        if is_name && crate::Experiment::by_name(name.split(':').next()?).is_some() {
            return Some((&text[..begin], name, &text[end + 4..]));
        }
        from = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Report, Table};

    fn report() -> Report {
        let table = Table {
            name: String::new(),
            title: "T".into(),
            columns: vec![("a".into(), 0)],
            rows: vec![vec![7.0.into()]],
        };
        Report {
            experiment: "table2".into(),
            title: "Two".into(),
            command: "mclv reproduce table2".into(),
            data: "none".into(),
            seeds: vec![1],
            quick: false,
            core_seconds: 1.0,
            version: "0".into(),
            tables: vec![table],
            plots: Vec::new(),
            pictures: Vec::new(),
            notes: Vec::new(),
            runs: Vec::new(),
        }
    }

    #[test]
    fn only_what_is_between_marks_is_made_anew() {
        let folder = tempfile::tempdir().unwrap();
        crate::write::write(&report(), folder.path()).unwrap();
        let page = "Before <!-- a remark -->\n<!-- table2:table -->\nold\n<!-- end table2:table -->\nafter\n";
        let new = |page: &str| refresh(page, Path::new("p.md"), folder.path(), "r/");
        let made = new(page).unwrap();
        let expected = "Before <!-- a remark -->\n<!-- table2:table -->\n| a |\n| ---: |\n| 7 |\n<!-- end table2:table -->\nafter\n";
        assert_eq!(made, expected);
        assert_eq!(new(&made).unwrap(), made, "nothing left to do");
        assert!(
            new("<!-- table2 --> no end")
                .unwrap_err()
                .to_string()
                .contains("without its <!-- end table2 -->")
        );
        let part = new("<!-- table2:sizes --><!-- end table2:sizes -->").unwrap();
        assert!(part.contains("Not run yet"), "{part}");
        let none = new("<!-- table1 --><!-- end table1 -->").unwrap();
        assert!(none.contains("No results yet: `mclv reproduce table1`"), "{none}");
    }
}
