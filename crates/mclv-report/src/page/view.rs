//! Fills in the template of a page.

use super::terms::{TERMS, term_of};
use super::{Block, Live, Page, Section, Verdict};
use crate::figure::{Drawing, Theme, page_variables};
use mclv::printable;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, HtmlEscape};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::sync::LazyLock;

static TEMPLATES: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut templates = Environment::new();
    templates.set_auto_escape_callback(|_| AutoEscape::Html);
    templates.add_filter("breakable", breakable);
    templates.add_template("page", include_str!("../../assets/page.html")).expect("the template is valid");
    templates
});

/// A text whose long words, such as names and paths, may be broken at some signs. What is copied from
/// the page has no breaks.
fn breakable(text: &str) -> minijinja::Value {
    let mut html = HtmlEscape(text).to_string();
    for sign in [",", "=", "_"] {
        html = html.replace(sign, &format!("{sign}<wbr>"));
    }
    minijinja::Value::from_safe_string(html.replace(",<wbr> ", ", "))
}

pub(super) fn page(page: &Page, live: Option<&Live>) -> String {
    let Parts { sections, charts, terms } = parts(page);
    let terms: Vec<Value> = terms
        .iter()
        .map(|&k| json!({ "id": id_of_term(k), "name": TERMS[k].name, "sentence": TERMS[k].sentence }))
        .collect();
    let context = json!({
        "title": page.title,
        "subtitle": page.subtitle,
        "verdict": verdict(page),
        "version": env!("CARGO_PKG_VERSION"),
        "sections": sections,
        // With this, no text inside can end the script element or start another.
        "charts": Value::Object(charts).to_string().replace('<', "\\u003c"),
        "light": page_variables(false),
        "dark": page_variables(true),
        "css": concat!(include_str!("../../assets/uplot/uPlot.min.css"), include_str!("../../assets/page.css")),
        "uplot": include_str!("../../assets/uplot/uPlot.iife.min.js"),
        "js": include_str!("../../assets/page.js"),
        "live": live.map(Live::text),
        "terms": terms,
    });
    render(&context)
}

/// The verdict of the page, or a text that there is none.
fn verdict(page: &Page) -> Value {
    match page.verdict() {
        Some(verdict) => json!({ "level": verdict.level, "badge": verdict.level, "text": verdict.text }),
        None => json!({ "level": "none", "badge": "no verdict", "text": "This page has no verdict." }),
    }
}

fn render(context: &Value) -> String {
    let template = TEMPLATES.get_template("page").expect("it was added");
    let html = template.render(Serde(context)).expect("the template asks for what it is given");
    // Texts on a page come from files.
    printable(&html).into_owned()
}

pub(super) fn state(page: &Page, version: &str, live: &Live) -> String {
    let html = self::page(page, Some(live));
    let main = html.split_once("<main>").and_then(|(_, rest)| rest.split_once("</main>"));
    let charts = parts(page).charts;
    let state = json!({ "version": version, "done": live.ended, "text": live.text(),
        "main": main.map_or("", |(main, _)| main), "charts": charts });
    printable(&state.to_string()).into_owned()
}

/// What the template shows of the sections.
#[derive(Default)]
struct Parts {
    sections: Vec<Value>,
    charts: Map<String, Value>,
    /// The numbers of the terms that the page explains.
    terms: BTreeSet<usize>,
}

fn parts(page: &Page) -> Parts {
    let mut parts = Parts::default();
    for (k, section) in page.sections.iter().enumerate() {
        // The first section follows the verdict of the page, and need not say it again.
        let said = if k == 0 { page.verdict() } else { None };
        parts.add(section, said);
    }
    parts
}

impl Parts {
    /// Adds a section. Its first block leaves out the verdict that is `said` above; a section of
    /// nothing else is left out.
    fn add(&mut self, section: &Section, said: Option<&Verdict>) {
        let id = slug(&section.title);
        let mut shown = section.blocks.clone();
        if let (Some(Block::Verdicts(verdicts)), Some(said)) = (shown.first_mut(), said) {
            verdicts.retain(|verdict| verdict != said);
        }
        shown.retain(|block| !block.is_empty());
        if shown.is_empty() {
            return;
        }
        let blocks: Vec<Value> = shown.iter().map(|block| self.block(block, &id)).collect();
        let section =
            json!({ "id": id, "title": section.title, "term": self.term(&section.title), "blocks": blocks });
        self.sections.push(section);
    }

    /// The term that a label shows, if pages explain it.
    fn term(&mut self, label: &str) -> Value {
        let Some(k) = term_of(label) else { return Value::Null };
        self.terms.insert(k);
        let last = label.rfind(' ').map_or(0, |space| space + 1);
        json!({ "id": id_of_term(k), "name": TERMS[k].name, "first": &label[..last], "last": &label[last..] })
    }

    fn block(&mut self, block: &Block, section: &str) -> Value {
        match block {
            Block::Note(text) => json!({ "kind": "note", "text": text }),
            Block::Verdicts(verdicts) => json!({ "kind": "verdicts", "verdicts": verdicts }),
            Block::Facts(facts) => {
                let facts: Vec<Value> =
                    facts.iter().map(|(name, value)| json!([name, value, self.term(name)])).collect();
                json!({ "kind": "facts", "facts": facts })
            }
            Block::Table(table) => {
                let terms: Vec<Value> = table.header.iter().map(|column| self.term(column.name())).collect();
                json!({ "kind": "table", "header": table.header, "terms": terms, "rows": table.rows,
                    "sortable": table.sortable, "runs": table.runs })
            }
            Block::Charts { tabs, wide, note } => {
                let id = format!("{section}-{}", self.charts.len());
                let shown: Vec<_> = tabs.iter().filter(|(_, figure)| !figure.is_empty()).collect();
                self.charts.insert(id.clone(), shown.iter().map(|(_, figure)| figure.json()).collect());
                let term = shown.first().map_or(Value::Null, |(_, figure)| self.term(figure.title()));
                let tabs: Vec<Value> = shown
                    .iter()
                    .map(|(name, figure)| json!({ "name": name, "svg": figure.svg(Theme::Page) }))
                    .collect();
                json!({ "kind": "charts", "id": id, "term": term, "tabs": tabs, "wide": wide, "note": note })
            }
            Block::Pictures { grid, note } => {
                json!({ "kind": "pictures", "svg": grid.svg(Theme::Page), "note": note })
            }
            Block::Code(text) => json!({ "kind": "code", "text": text }),
            Block::Details(title, blocks) => {
                let blocks: Vec<Value> = blocks.iter().map(|block| self.block(block, section)).collect();
                json!({ "kind": "details", "title": title, "blocks": blocks })
            }
        }
    }
}

fn id_of_term(k: usize) -> String {
    format!("term-{}", slug(TERMS[k].name))
}

/// `Tours in training` → `tours-in-training`.
fn slug(title: &str) -> String {
    let letter = |c: char| if c.is_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    title.chars().map(letter).collect()
}

#[cfg(test)]
mod tests {
    use crate::figure::{Figure, Point, Series};
    use crate::page::{Block, Cell, Column, Level, Live, Page, Section, Table, Verdict};

    const ENDED: Live = Live { epoch: 7, of: Some(9), ended: true };

    #[test]
    fn text_stays_text_whatever_it_holds() {
        let evil = "</script><script>alert(1)</script><!--<script>\" onload=x '";
        let figure = Figure::new(evil).with(Series::line(evil, [Point::new(0.0, 1.0)]).of_run(evil));
        let row = vec![Cell::text(evil), Cell::number(1.0, evil).marked()];
        let table = Table {
            header: vec![Column::text(evil), Column::number(evil)],
            rows: vec![row],
            sortable: true,
            runs: vec![evil.into()],
        };
        let blocks = [
            Block::Note(evil.into()),
            Block::Verdicts(vec![Verdict::new(Level::Bad, evil)]),
            Block::facts([(evil, evil)]),
            Block::Table(table),
            Block::chart(figure, evil),
            Block::Details(evil.into(), vec![Block::Code(evil.into())]),
        ];
        let page = Page::new(evil, evil).with(Section::new(evil, blocks));
        let html = page.html();
        // The page's own scripts: data, uPlot, ours.
        assert_eq!((html.matches("<script").count(), html.matches("</script>").count()), (3, 3));
        let (markup, _) = html.split_once(r#"id="charts">"#).unwrap();
        assert!(!html.contains("<!--") && !markup.contains("\" onload"));
        let data = html.split(r#"id="charts">"#).nth(1).unwrap().split("</script>").next().unwrap();
        let charts: serde_json::Value = serde_json::from_str(data).unwrap();
        assert_eq!(charts.as_object().unwrap().values().next().unwrap()[0]["series"][0]["runs"][0], evil);
        let state: serde_json::Value = serde_json::from_str(&page.state("v1", &ENDED)).unwrap();
        assert!(state["main"].as_str().unwrap().contains("<section") && state["done"] == true);
    }

    #[test]
    fn the_worst_that_is_known_decides_the_colour_and_a_page_without_a_verdict_says_so() {
        let with = |levels: &[Level]| {
            let verdicts =
                levels.iter().enumerate().map(|(k, &level)| Verdict::new(level, format!("verdict {k}")));
            let inner = vec![Block::Verdicts(verdicts.collect())];
            Page::new("t", "s").with(Section::new("Verdicts", [Block::Details("more".into(), inner)]))
        };
        let shown = |levels: &[Level]| {
            let page = with(levels);
            let (level, text) = page.verdict().map_or((None, ""), |v| (Some(v.level), v.text.as_str()));
            assert!(page.html().contains("id=\"verdict\""));
            (level, text.to_owned())
        };
        assert_eq!(
            shown(&[Level::Good, Level::Bad, Level::Warning, Level::Bad]),
            (Some(Level::Bad), "verdict 1".into())
        );
        assert_eq!(shown(&[Level::Note, Level::Good]), (Some(Level::Good), "verdict 1".into()));
        assert_eq!(shown(&[Level::Note]).0, None);
        assert!(with(&[Level::Note]).html().contains("This page has no verdict."));
        assert!(!with(&[Level::Good]).html().contains("This page has no verdict."));
        // The section below the verdict of the page does not say it again; the next one does.
        let good = || Block::Verdicts(vec![Verdict::new(Level::Good, "all is well")]);
        let page = Page::new("t", "s").with(Section::new("A", [good(), Block::Note("b".into())]));
        assert_eq!(page.html().matches("all is well").count(), 1);
        assert_eq!(page.with(Section::new("B", [good()])).html().matches("all is well").count(), 2);
    }

    #[test]
    fn long_words_of_tables_break_and_stay_escaped() {
        let shown = |text: &str| super::breakable(text).to_string();
        assert_eq!(shown("k=2,seed=0"), "k=<wbr>2,<wbr>seed=<wbr>0");
        assert_eq!(shown("a, b <c>"), "a, b &lt;c&gt;");
    }

    #[test]
    fn a_live_page_says_how_far_the_training_is() {
        let text = |epoch, of, ended| Live { epoch, of, ended }.text();
        assert_eq!(text(3, Some(9), false), "training, epoch 3 of 9");
        assert_eq!(text(3, None, false), "training, epoch 3");
        assert_eq!(text(7, Some(9), true), "training ended after 7 of 9 epochs");
        assert_eq!(text(9, Some(9), true), "training ended after 9 epochs");
        let page = Page::new("t", "s").with(Section::new("A", [Block::Note("b".into())]));
        assert!(page.live_html(&ENDED).contains("training ended after 7 of 9 epochs"));
        assert!(!page.html().contains("id=\"live\""));
        let state: serde_json::Value = serde_json::from_str(&page.state("v", &ENDED)).unwrap();
        assert_eq!(
            (&state["done"], state["text"].as_str()),
            (&true.into(), Some("training ended after 7 of 9 epochs"))
        );
    }

    #[test]
    fn terms_are_explained_once_and_beside_every_label() {
        let header = vec![Column::number("std. error"), Column::text("std. error"), Column::text("other")];
        let table = Table { header, rows: vec![vec![Cell::text("1"); 3]], sortable: true, runs: Vec::new() };
        let figure = Figure::new("Learning rate").with(Series::line("", [Point::new(0.0, 1.0)]));
        let blocks = [Block::facts([("seed", "1")]), Block::Table(table), Block::chart(figure, "")];
        let html = Page::new("t", "s").with(Section::new("Tours", blocks)).html();
        for (id, n) in [("seed", 1), ("standard-error", 2), ("learning-rate", 1), ("tour", 1)] {
            assert_eq!(html.matches(&format!("popovertarget=\"term-{id}\"")).count(), n, "{id}");
            assert_eq!(html.matches(&format!("id=\"term-{id}\"")).count(), 1, "{id}");
        }
        assert_eq!(html.matches("<div popover").count(), 4);
        assert!(html.contains("aria-label=\"What does “Standard error” mean?\""));
        assert!(html.contains("The same seed gives the same bytes."));
    }

    #[test]
    fn what_shows_nothing_is_left_out() {
        let empty =
            [Block::Note(String::new()), Block::facts::<&str, &str>([]), Block::chart(Figure::new("x"), "")];
        let html = Page::new("t", "s").with(Section::new("Empty", empty)).html();
        assert!(!html.contains("Empty") && !html.contains("<section"));
    }
}
