//! `mclv tours`: runs tours, which show how the model's chain returns to a stopping set.

mod args;
mod page;
mod theorems;

pub(crate) use args::ToursArgs;

use super::{check_output, logz, model_data, model_file};
use crate::cli::Global;
use crate::output::{Output, facts, table, wrapped};
use crate::plot;
use crate::watch::Watch;
use anyhow::{Context, ensure};
use args::ToursFrom;
use mclv::chain::VisibleChain;
use mclv::data::{Dataset, Labels, RealRows, Rows};
use mclv::partition::{LogZ, N_SCOUTS, mclv_from_tours};
use mclv::progress::Silent;
use mclv::theorems::Theorems;
use mclv::tour::{
    Ccdf, ClassTours, Conclusion, Contribution, Estimate, Extremes, FirstStep, HiddenChain, StartedFrom,
    TailFit, TourEngine, TourSettings, Tours,
};
use mclv::{Rbm, StoppingSet, human_seconds, picture, write_atomically};
use mclv_report::tours::picture_grids;
use serde::{Serialize, Serializer};
use serde_json::json;

/// In JSON, neighbouring lengths of the tail function differ by at least this factor.
const THINNING: f64 = 1.05;
/// Tours of each kind in the pictures of the page.
const PAGE_TOURS: usize = 8;
/// The grey of empty places.
const NO_PICTURE: f32 = 0.375;

/// The tours of one stopping set, as printed.
#[derive(Serialize)]
struct Report {
    samples_per_row: u16,
    n_states: usize,
    log_z_s: f64,
    n_tours: usize,
    n_complete: usize,
    /// The number of steps at which tours were cut, if any were.
    cut_at: Option<u32>,
    n_own_start: usize,
    n_elsewhere: usize,
    n_one_step: usize,
    n_own_start_in_one_step: usize,
    mean_length: Estimate,
    longest: u32,
    /// Empirical: a fit to the longest tours.
    tail_fit: Option<TailFit>,
    contributions: Vec<Contribution>,
    /// `None` for tours from rows, which do not estimate it.
    #[serde(serialize_with = "with_texts")]
    log_z: Option<LogZ>,
    exact: Option<Exact>,
    /// The verdict: concentrated, mixing, stuck or unclear.
    #[serde(serialize_with = "with_text")]
    conclusion: Conclusion,
    by_label: Option<Vec<LabelTours>>,
    ccdf: Ccdf,
    pictured: Option<Pictured>,
    /// The statements of the paper, with --theorems.
    #[serde(skip_serializing_if = "Option::is_none")]
    theorems: Option<Theorems>,
    n_steps: u64,
    seconds: f64,
}

fn with_texts<S: Serializer>(log_z: &Option<LogZ>, serializer: S) -> Result<S::Ok, S::Error> {
    log_z.as_ref().map(logz::with_texts).serialize(serializer)
}

/// The conclusion, with its text.
fn with_text<S: Serializer>(conclusion: &Conclusion, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct WithText<'a> {
        #[serde(flatten)]
        conclusion: &'a Conclusion,
        text: String,
        own_starts: String,
    }
    let text = conclusion.to_string();
    WithText { conclusion, text, own_starts: conclusion.own_starts() }.serialize(serializer)
}

/// Exact values for tours from `π_S`, by enumeration.
#[derive(Serialize)]
struct Exact {
    mean_length: f64,
    tail_rate: f64,
    own_start_in_one_step: f64,
}

#[derive(Serialize)]
struct LabelTours {
    label: String,
    #[serde(flatten)]
    tours: ClassTours,
}

/// The lengths of the tours that pictures show.
#[derive(Serialize)]
struct Pictured {
    shortest: Vec<u32>,
    longest: Vec<u32>,
}

/// A stopping set, and the state that each draw from a row gave.
struct Drawn {
    set: StoppingSet,
    members: Vec<u32>,
}

pub(crate) fn run(args: &ToursArgs, global: &Global, out: &Output) -> anyhow::Result<()> {
    if let Some(path) = &args.csv {
        check_output(path, args.force, &["csv"], ".csv").context("--csv")?;
    }
    if let Some(path) = &args.pictures {
        check_output(path, args.force, &["png"], ".png").context("--pictures")?;
    }
    if let Some(path) = &args.report {
        check_output(path, args.force, &["html", "htm"], ".html").context("--report")?;
    }
    if args.theorems.theorems {
        let cure =
            "--theorems: the statements of the paper are about tours from π_S of the model's own chain";
        ensure!(args.starts == ToursFrom::Pi, "{cure}; leave out --starts rows");
        ensure!(args.visible == VisibleChain::Sampled, "{cure}; leave out --visible mean-field");
    }
    ensure!(args.time_limit > 0.0, "--time-limit: must be more than 0; give 1s or more, or none");
    let (model_path, model) = model_file::open(&args.model, out)?;
    let data =
        model_data::load((&model_path, &model), args.data.as_deref(), &args.preparation, args.split, global)?;
    // Check before the long work that the shape is known.
    let shape = match (&args.pictures, &args.report) {
        (Some(_), _) => {
            Some(model_data::image_shape(args.picture.shape, &model, std::iter::once(&data))?.with_context(
                || {
                    let n = model.rbm.n_visible();
                    format!(
                        "--pictures: the height and width of pictures with {n} visible units are not known; give --shape HxW"
                    )
                },
            )?)
        }
        (None, Some(_)) => model_data::image_shape(args.picture.shape, &model, std::iter::once(&data))?,
        (None, None) => None,
    };
    let settings = TourSettings {
        n_tours: args.n_tours as usize,
        visible: args.visible,
        stratified: false,
        max_length: args.max_length,
        max_steps: args.max_steps.0,
        max_seconds: args.time_limit.is_finite().then_some(args.time_limit),
        seed: global.seed(),
        occasion: 0,
    };

    let (mut reports, mut tails, mut pictures) = (Vec::new(), Vec::new(), Vec::new());
    let (mut toured, mut grids) = (Vec::new(), Vec::new());
    for &m in &args.samples_per_row {
        let all: Vec<usize> = (0..data.n_rows()).collect();
        let (set, members) =
            StoppingSet::draw_with_members(&model.rbm, &data.rows, &all, m.into(), global.seed(), 0)?;
        let drawn = Drawn { set, members };
        let engine = TourEngine::new(&model.rbm, &drawn.set)?;
        let watch = Watch::new(&format!("tours, m = {m}"), "tours");
        let (tours, rows) = match args.starts {
            ToursFrom::Pi if args.theorems.theorems => (Theorems::run(&engine, &settings, &watch)?, None),
            ToursFrom::Pi => (engine.run(&settings, &watch)?, None),
            ToursFrom::Rows => (engine.run_from_rows(&data.rows, &settings, &watch)?, Some(&data.rows)),
        };
        drop(watch);
        let mut report = Report::new(m, &model.rbm, &data, &drawn, (&engine, &tours), global.seed())?;
        if args.theorems.theorems {
            let wanted = args.theorems.settings();
            let watch = Watch::new("theorems", "");
            let found = Theorems::measure(&engine, (&tours, &settings), Some(&data.rows), &wanted, &watch)?;
            report.theorems = Some(found);
        }
        if args.pictures.is_some() {
            let columns = usize::from(args.columns);
            let Extremes { shortest, longest } = engine.extremes(&tours, &settings, rows, columns)?;
            let lengths = |steps: &[FirstStep]| steps.iter().map(|step| step.tour.length).collect();
            report.pictured = Some(Pictured { shortest: lengths(&shortest), longest: lengths(&longest) });
            for steps in [shortest, longest] {
                let (starts, next): (Vec<_>, Vec<_>) = steps.into_iter().map(|s| (s.start, s.next)).unzip();
                for line in [starts, next] {
                    let mut line = line.concat();
                    line.resize(columns * model.rbm.n_visible(), NO_PICTURE);
                    pictures.extend(line);
                }
            }
        }
        let name = format!("m = {m}");
        if args.report.is_some() {
            toured.push(mclv_view::toured(&name, &drawn.set, &tours, report.conclusion.clone()));
            if let Some(shape) = shape {
                let extremes = engine.extremes(&tours, &settings, rows, PAGE_TOURS)?;
                grids.extend(picture_grids(&extremes, shape));
            }
        }
        tails.push((name, tours.ccdf()));
        reports.push(report);
    }
    if let Some(path) = &args.report {
        let title = format!("Tours of {}", model_path.display());
        super::report::save(&page::page(title, &data, &reports, &toured, grids), path)?;
    }

    if let Some(path) = &args.csv {
        write_atomically(path, csv(&reports, &tails).as_bytes())?;
    }
    if let (Some(path), Some(shape)) = (&args.pictures, shape) {
        let images = Rows::Reals(RealRows::new(model.rbm.n_visible(), pictures));
        write_atomically(path, &picture::grid(&images, shape, args.columns.into())?)?;
    }
    let json = json!({ "model": model_path.to_string_lossy(), "data": data.provenance, "starts": args.starts,
        "settings": settings, "csv": args.csv.as_ref().map(|p| p.to_string_lossy()),
        "pictures": args.pictures.as_ref().map(|p| p.to_string_lossy()),
        "report": args.report.as_ref().map(|p| p.to_string_lossy()), "sets": reports });
    out.print(&json, || text(args, &data, &reports, &tails))
}

impl Report {
    fn new(
        m: u16,
        rbm: &Rbm,
        data: &Dataset,
        drawn: &Drawn,
        (engine, tours): (&TourEngine<'_>, &Tours),
        seed: u64,
    ) -> anyhow::Result<Self> {
        let all = tours.as_slice();
        let from_rows = tours.started_from() == StartedFrom::Rows;
        let log_z =
            if from_rows { None } else { Some(mclv_from_tours(engine, tours, N_SCOUTS, seed, &Silent)?) };
        let chain = HiddenChain::if_quick(rbm).filter(|_| tours.is_gibbs() && !from_rows);
        let theory = chain.as_ref().map(|chain| chain.tours(&drawn.set)).transpose()?;
        let exact = theory.as_ref().map(|theory| Exact {
            mean_length: theory.length_moments().0,
            tail_rate: theory.tail_rate(),
            own_start_in_one_step: theory.own_start_in_one_step(),
        });
        let conclusion = Conclusion::new(rbm, &drawn.set, tours, theory.as_ref(), seed)?;
        Ok(Self {
            samples_per_row: m,
            n_states: drawn.set.len(),
            log_z_s: tours.log_z_s(),
            n_tours: tours.n_tours(),
            n_complete: tours.n_complete(),
            cut_at: all.iter().filter(|t| !t.is_complete()).map(|t| t.length).max(),
            n_own_start: tours.n_own_start(),
            n_elsewhere: tours.n_elsewhere(),
            n_one_step: tours.n_one_step(),
            n_own_start_in_one_step: tours.n_own_start_in_one_step(),
            mean_length: tours.mean_length(),
            longest: tours.longest(),
            tail_fit: tours.tail_fit(),
            contributions: tours.contributions(),
            log_z,
            exact,
            conclusion,
            by_label: data.labels.as_ref().map(|labels| by_label(labels, drawn, tours, from_rows)),
            ccdf: tours.ccdf().thinned(THINNING),
            pictured: None,
            theorems: None,
            n_steps: tours.n_steps(),
            seconds: tours.seconds(),
        })
    }

    fn share(&self, n: usize) -> String {
        format!("{:.2} %", 100.0 * n as f64 / self.n_tours as f64)
    }

    /// The names and values of the table.
    fn lines(&self) -> Vec<(&'static str, String)> {
        let Estimate { value, std_err, .. } = self.mean_length;
        let (at_least, more_than) = if self.cut_at.is_some() { ("≥ ", "> ") } else { ("", "") };
        let complete = match self.cut_at {
            Some(k) => format!("{} at K = {k}", self.share(self.n_complete)),
            None => "all".into(),
        };
        let tail = match &self.tail_fit {
            Some(fit) => format!("{:.5} ± {:.5}", fit.rate, fit.std_err),
            None => "too few long tours".into(),
        };
        let fitted =
            self.tail_fit.map_or("–".into(), |fit| format!("{}, ξ > {}", fit.n_tours, fit.threshold));
        let mut lines = vec![
            ("states in S", self.n_states.to_string()),
            ("log Z_S", format!("{:.4}", self.log_z_s)),
            ("tours", self.n_tours.to_string()),
            ("complete", complete),
            ("back in own start", self.share(self.n_own_start)),
            ("back in another state", self.share(self.n_elsewhere)),
            ("only one step", self.share(self.n_one_step)),
            ("own start in one step", self.share(self.n_own_start_in_one_step)),
        ];
        let exact = self.exact.as_ref();
        lines.extend(exact.map(|e| ("  exactly", format!("{:.2} %", 100.0 * e.own_start_in_one_step))));
        lines.push(("mean length", format!("{at_least}{value:.4} ± {std_err:.4}")));
        lines.extend(exact.map(|e| ("  exactly", format!("{:.4}", e.mean_length))));
        lines.push(("longest", format!("{more_than}{}", self.longest)));
        lines.push(("tail rate (empirical)", tail));
        lines.push(("  tours used for it", fitted));
        // Without tours of more than one step there is no tail.
        let rate = |rate: f64| if rate.is_finite() { format!("{rate:.5}") } else { "–".into() };
        lines.extend(exact.map(|e| ("  exactly", rate(e.tail_rate))));
        if let Some(log_z) = &self.log_z {
            let interval =
                log_z.interval.map_or("none".into(), |(low, high)| format!("{low:.4} to {high:.4}"));
            lines.push(("log Ẑ", log_z.with_error(log_z.value, 4)));
            lines.push(("  95 % interval", interval));
            lines.push(("  guarantee for Z", log_z.guarantee.of_z().into()));
            lines.push(("  guarantee for log Z", log_z.guarantee.of_log_z().into()));
        }
        lines.push(("steps", self.n_steps.to_string()));
        lines.push(("time", human_seconds(self.seconds)));
        lines
    }
}

/// Groups tours by the labels of the rows that their starts were drawn from.
fn by_label(labels: &Labels, drawn: &Drawn, tours: &Tours, from_rows: bool) -> Vec<LabelTours> {
    let of_row = |row: usize| labels.ids[row % labels.ids.len()];
    let owners: Vec<(u32, u32)> = if from_rows {
        (0..labels.ids.len()).map(|row| (row as u32, of_row(row))).collect()
    } else {
        drawn.members.iter().enumerate().map(|(draw, &state)| (state, of_row(draw))).collect()
    };
    let by_class = tours.by_class(&owners, labels.names.len());
    let named = labels.names.iter().zip(by_class);
    named.filter_map(|(label, tours)| Some(LabelTours { label: label.clone(), tours: tours? })).collect()
}

/// The tail function as CSV, with a row for each length at which it changes.
fn csv(reports: &[Report], tails: &[(String, Ccdf)]) -> String {
    let mut text = String::from("samples_per_row,k,ccdf,low,high\n");
    for (report, (_, tail)) in reports.iter().zip(tails) {
        for point in &tail.points {
            let m = report.samples_per_row;
            text.push_str(&format!("{m},{},{:?},{:?},{:?}\n", point.k, point.p, point.low, point.high));
        }
    }
    text
}

fn text(args: &ToursArgs, data: &Dataset, reports: &[Report], tails: &[(String, Ccdf)]) -> String {
    let starts = match args.starts {
        ToursFrom::Pi => "tours from π_S",
        ToursFrom::Rows => "tours from rows (they do not estimate Z)",
    };
    let mut text =
        format!("{} ({}), {}; {starts}\n", data.name, data.provenance.split, data.provenance.preparation());
    let columns: Vec<Vec<(&str, String)>> = reports.iter().map(Report::lines).collect();
    let header: Vec<&str> =
        std::iter::once("samples per row").chain(tails.iter().map(|(name, _)| name.as_str())).collect();
    let rows = (0..columns[0].len()).map(|k| {
        let name = columns[0][k].0.to_owned();
        std::iter::once(name).chain(columns.iter().map(|column| column[k].1.clone())).collect()
    });
    let right: Vec<usize> = (1..header.len()).collect();
    text.push_str(&table(&header, &right, rows));
    text.push('\n');
    for (report, (name, _)) in reports.iter().zip(tails) {
        let several = if reports.len() > 1 { format!("{name}: ") } else { String::new() };
        let Report { conclusion, .. } = report;
        text.push_str(&wrapped(&format!("{several}{conclusion} {}", conclusion.own_starts())));
        text.push('\n');
        for note in report.log_z.iter().flat_map(|log_z| &log_z.notes) {
            text.push_str(&format!("{name}: {note}\n"));
        }
    }
    text.push_str(&logz::about_intervals(reports.iter().filter_map(|report| report.log_z.as_ref())));

    let curves: Vec<(String, &Ccdf)> = tails.iter().map(|(name, tail)| (name.clone(), tail)).collect();
    let plot = plot::tails(&curves);
    if !plot.is_empty() {
        text.push_str(&format!("\n{plot}"));
    }
    if reports.iter().any(|report| report.by_label.is_some()) {
        text.push_str(&format!("\n{}\n", label_table(reports)));
    }

    for (report, (name, _)) in reports.iter().zip(tails) {
        text.extend(report.theorems.as_ref().map(|found| theorems::text(name, found)));
    }
    let mut files: Vec<(&str, String)> = Vec::new();
    files.extend(args.csv.as_ref().map(|path| ("wrote", path.display().to_string())));
    files.extend(args.pictures.as_ref().map(|path| ("wrote", path.display().to_string())));
    files.extend(args.report.as_ref().map(|path| ("wrote", path.display().to_string())));
    for (report, (name, _)) in reports.iter().zip(tails) {
        if let Some(pictured) = &report.pictured {
            let list = |lengths: &[u32]| -> String {
                lengths.iter().map(u32::to_string).collect::<Vec<_>>().join(" ")
            };
            let shown = format!("shortest {}, longest {}", list(&pictured.shortest), list(&pictured.longest));
            files.push((name, shown));
        }
    }
    if !files.is_empty() {
        text.push_str(&format!("\n{}", facts(&files)));
    }
    text
}

fn label_table(reports: &[Report]) -> String {
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let rows = reports.iter().flat_map(|report| {
        report.by_label.iter().flatten().map(move |LabelTours { label, tours }| {
            vec![
                report.samples_per_row.to_string(),
                label.clone(),
                format!("{:.0}", tours.n_tours),
                percent(tours.one_step),
                format!("{:.2}", tours.mean_length),
                tours.longer_than_100.map_or("–".into(), percent),
                format!("{:.0}", tours.n_unfinished),
            ]
        })
    });
    let header = ["m", "label", "tours", "one step", "mean length", "over 100", "unfinished"];
    table(&header, &[0, 2, 3, 4, 5, 6], rows)
}
