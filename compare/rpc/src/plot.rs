//! A plot of bars as SVG.

use std::fmt;

use crate::figures::Figures;

const WIDTH: u32 = 720;
const NAME_WIDTH: u32 = 130;
const VALUE_WIDTH: u32 = 90;
const LINE: u32 = 18;
const HEADING: u32 = 30;

/// CPU time per call, a group of bars for each size. Bars of one group are to
/// scale.
#[derive(Debug, Default)]
pub struct Plot(Vec<(&'static str, Figures)>);

impl Plot {
    /// Adds a group; its figures are nanoseconds.
    pub fn add(&mut self, name: &'static str, figures: &Figures) {
        self.0.push((name, figures.clone()));
    }

    fn height(&self) -> u32 {
        let lines: usize = self.0.iter().map(|(_, group)| group.iter().count()).sum();
        let groups = u32::try_from(self.0.len()).unwrap_or(0);
        HEADING * (groups + 1) + LINE * u32::try_from(lines).unwrap_or(0)
    }
}

impl fmt::Display for Plot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let height = self.height();
        writeln!(
            f,
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" font-family="sans-serif" font-size="12">"#
        )?;
        writeln!(f, r#"<rect width="100%" height="100%" fill="white"/>"#)?;
        let mut y = 20;
        writeln!(
            f,
            r#"<text x="8" y="{y}" font-weight="bold">CPU time of the server per unary call, less is better</text>"#
        )?;
        for (name, group) in &self.0 {
            y += HEADING;
            writeln!(f, r#"<text x="8" y="{y}" font-weight="bold">{name}</text>"#)?;
            let most = group.iter().map(|(_, value)| value).fold(0.0, f64::max);
            for (subject, value) in group.iter() {
                y += LINE;
                bar(f, y, subject, value, value / most)?;
            }
        }
        writeln!(f, "</svg>")
    }
}

fn bar(f: &mut fmt::Formatter<'_>, y: u32, name: &str, value: f64, part: f64) -> fmt::Result {
    let width = f64::from(WIDTH - NAME_WIDTH - VALUE_WIDTH) * part;
    let colour = if name.starts_with("quill") {
        "#2563eb"
    } else {
        "#9ca3af"
    };
    let (x, top) = (NAME_WIDTH, y - 11);
    let end = f64::from(NAME_WIDTH) + width + 6.0;
    writeln!(f, r#"<text x="16" y="{y}">{name}</text>"#)?;
    writeln!(
        f,
        r#"<rect x="{x}" y="{top}" width="{width:.1}" height="13" fill="{colour}"/>"#
    )?;
    let micros = value / 1e3;
    writeln!(f, r#"<text x="{end:.1}" y="{y}">{micros:.2} us</text>"#)
}
