//! Fill in the template.

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
        "version": env!("CARGO_PKG_VERSION"),
        "sections": sections,
        // Within a script element only this could end it.
        "charts": Value::Object(charts).to_string().replace("</", "<\\/"),
        "light": page_variables(false),
        "dark": page_variables(true),
        "css": concat!(include_str!("../../assets/uplot/uPlot.min.css"), include_str!("../../assets/page.css")),
        "uplot": include_str!("../../assets/uplot/uPlot.iife.min.js"),
        "js": include_str!("../../assets/page.js"),
        "live": live,
    });
    render(&context)
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
