//! Fills in the template of a page.

use super::{Block, Page, Section};
use crate::figure::{Drawing, Theme, page_variables};
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment};
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

static TEMPLATES: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut templates = Environment::new();
    templates.set_auto_escape_callback(|_| AutoEscape::Html);
    templates.add_template("page", include_str!("../../assets/page.html")).expect("the template is valid");
    templates
});

pub(super) fn page(page: &Page, live: bool) -> String {
    let (sections, charts) = sections(page);
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
        "live": live,
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
    template.render(Serde(context)).expect("the template asks for what it is given")
}

pub(super) fn state(page: &Page, version: &str, done: bool) -> String {
    let html = self::page(page, true);
    let main = html.split_once("<main>").and_then(|(_, rest)| rest.split_once("</main>"));
    let (_, charts) = sections(page);
    json!({ "version": version, "done": done, "main": main.map_or("", |(main, _)| main), "charts": charts })
        .to_string()
}

fn sections(page: &Page) -> (Vec<Value>, Map<String, Value>) {
    let mut charts = Map::new();
    let sections = page.sections.iter().map(|section| section_view(section, &mut charts)).collect();
    (sections, charts)
}

fn section_view(section: &Section, charts: &mut Map<String, Value>) -> Value {
    let id = slug(&section.title);
    let blocks: Vec<Value> = section.blocks.iter().map(|block| block_view(block, &id, charts)).collect();
    json!({ "id": id, "title": section.title, "blocks": blocks })
}

fn block_view(block: &Block, section: &str, charts: &mut Map<String, Value>) -> Value {
    match block {
        Block::Note(text) => json!({ "kind": "note", "text": text }),
        Block::Verdicts(verdicts) => json!({ "kind": "verdicts", "verdicts": verdicts }),
        Block::Facts(facts) => json!({ "kind": "facts", "facts": facts }),
        Block::Table(table) => json!({ "kind": "table", "header": table.header, "rows": table.rows,
            "sortable": table.sortable, "runs": table.runs }),
        Block::Charts { tabs, wide, note } => {
            let id = format!("{section}-{}", charts.len());
            let shown: Vec<_> = tabs.iter().filter(|(_, figure)| !figure.is_empty()).collect();
            charts.insert(id.clone(), shown.iter().map(|(_, figure)| figure.json()).collect());
            let tabs: Vec<Value> = shown
                .iter()
                .map(|(name, figure)| json!({ "name": name, "svg": figure.svg(Theme::Page) }))
                .collect();
            json!({ "kind": "charts", "id": id, "tabs": tabs, "wide": wide, "note": note })
        }
        Block::Pictures { grid, note } => {
            json!({ "kind": "pictures", "svg": grid.svg(Theme::Page), "note": note })
        }
        Block::Code(text) => json!({ "kind": "code", "text": text }),
        Block::Details(title, blocks) => {
            let blocks: Vec<Value> = blocks.iter().map(|block| block_view(block, section, charts)).collect();
            json!({ "kind": "details", "title": title, "blocks": blocks })
        }
    }
}

/// `Tours in training` → `tours-in-training`.
fn slug(title: &str) -> String {
    let letter = |c: char| if c.is_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    title.chars().map(letter).collect()
}

#[cfg(test)]
mod tests {
    use crate::figure::{Figure, Point, Series};
    use crate::page::{Block, Cell, Column, Level, Page, Section, Table, Verdict};

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
        assert_eq!(charts.as_object().unwrap().values().next().unwrap()[0]["series"][0]["run"], evil);
        let state: serde_json::Value = serde_json::from_str(&page.state("v1", true)).unwrap();
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
    }

    #[test]
    fn what_shows_nothing_is_left_out() {
        let empty =
            [Block::Note(String::new()), Block::facts::<&str, &str>([]), Block::chart(Figure::new("x"), "")];
        let html = Page::new("t", "s").with(Section::new("Empty", empty)).html();
        assert!(!html.contains("Empty") && !html.contains("<section"));
    }
}
