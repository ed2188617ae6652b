//! Colours that are safe for colour-blind readers.

/// Where a figure is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theme {
    /// In its own file: dark on white.
    Paper,
    /// In a page that defines [`page_variables`], with the light or dark colours of the page.
    Page,
}

/// Number of colours of series. Further series repeat them.
pub const N_COLOURS: usize = 7;

/// The colours of Okabe and Ito, without the yellow that is hard to see on white: (on white, on
/// black).
const SERIES: [(&str, &str); N_COLOURS] = [
    ("#0072b2", "#4fb0ea"),
    ("#d55e00", "#ff8a3d"),
    ("#009e73", "#2fd0a3"),
    ("#b4588f", "#e79cc8"),
    ("#b77900", "#f0b840"),
    ("#2b9cd8", "#8fd3ff"),
    ("#5a5a5a", "#b8b8b8"),
];

const INK: (&str, &str) = ("#1f2328", "#e6e8eb");
const FAINT: (&str, &str) = ("#5c6570", "#9aa3ad");
const GRID: (&str, &str) = ("#e3e6ea", "#31373e");
const GROUND: (&str, &str) = ("#ffffff", "#15181c");

/// The use of a colour.
#[derive(Clone, Copy)]
pub(super) enum Role {
    Series(usize),
    Ink,
    Faint,
    Grid,
}

impl Theme {
    pub(super) fn colour(self, role: Role) -> String {
        let (name, (light, _)) = match role {
            Role::Series(k) => (format!("series-{}", k % N_COLOURS), SERIES[k % N_COLOURS]),
            Role::Ink => ("ink".into(), INK),
            Role::Faint => ("faint".into(), FAINT),
            Role::Grid => ("grid".into(), GRID),
        };
        match self {
            Theme::Paper => light.into(),
            Theme::Page => format!("var(--{name},{light})"),
        }
    }
}

/// The CSS variables that a page needs for its figures (`--ink: …; --series-0: …`), light or dark.
pub fn page_variables(dark: bool) -> String {
    let pick = |(light, black): (&'static str, &'static str)| if dark { black } else { light };
    let mut css = String::new();
    for (name, colours) in [("ink", INK), ("faint", FAINT), ("grid", GRID), ("ground", GROUND)] {
        css.push_str(&format!("--{name}:{};", pick(colours)));
    }
    for (k, &colours) in SERIES.iter().enumerate() {
        css.push_str(&format!("--series-{k}:{};", pick(colours)));
    }
    css
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Contrast of two colours as WCAG 2 defines it.
    fn contrast(a: &str, b: &str) -> f64 {
        let luminance = |hex: &str| {
            let part = |k: usize| {
                let x = f64::from(u8::from_str_radix(&hex[k..k + 2], 16).unwrap()) / 255.0;
                if x <= 0.04045 { x / 12.92 } else { ((x + 0.055) / 1.055).powf(2.4) }
            };
            0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
        };
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn lines_and_letters_stand_out_from_the_ground() {
        for (light, dark) in SERIES {
            assert!(contrast(light, GROUND.0) >= 3.0, "{light}: {}", contrast(light, GROUND.0));
            assert!(contrast(dark, GROUND.1) >= 3.0, "{dark}");
        }
        for (light, dark) in [INK, FAINT] {
            assert!(contrast(light, GROUND.0) >= 4.5 && contrast(dark, GROUND.1) >= 4.5);
        }
    }

    #[test]
    fn a_page_gets_what_figures_ask_for() {
        let asked = Theme::Page.colour(Role::Series(9));
        assert_eq!(asked, "var(--series-2,#009e73)");
        assert!(page_variables(true).contains("--series-2:#2fd0a3;"));
        assert_eq!(Theme::Paper.colour(Role::Series(2)), "#009e73");
    }
}
