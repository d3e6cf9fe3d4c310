//! Plots as SVG.

use std::fmt::Write as _;

const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 240.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 26.0;

/// Lines over one another.
pub(super) struct Plot {
    pub(super) title: &'static str,
    pub(super) x: Scale,
    pub(super) x_label: fn(f64) -> String,
    pub(super) y_label: fn(f64) -> String,
    /// Whether every step up is ten times as much; otherwise it begins at 0.
    pub(super) is_y_logarithmic: bool,
    pub(super) lines: Vec<Line>,
}

/// One line.
pub(super) struct Line {
    pub(super) name: &'static str,
    pub(super) points: Vec<(f64, f64)>,
}

/// An axis from one value to another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    from: f64,
    to: f64,
    is_logarithmic: bool,
}

impl Scale {
    pub(super) fn linear(from: f64, to: f64) -> Self {
        Self {
            from,
            to: if to > from { to } else { from + 1.0 },
            is_logarithmic: false,
        }
    }

    /// Both are above 0.
    pub(super) fn logarithmic(from: f64, to: f64) -> Self {
        Self {
            from,
            to: if to > from { to } else { from * 10.0 },
            is_logarithmic: true,
        }
    }

    /// Where a value lies, 0 to 1.
    fn place(&self, value: f64) -> f64 {
        let place = if self.is_logarithmic {
            (value.max(self.from) / self.from).ln() / (self.to / self.from).ln()
        } else {
            (value - self.from) / (self.to - self.from)
        };
        place.clamp(0.0, 1.0)
    }

    /// Values with a label: round ones, neither few nor many.
    fn ticks(&self) -> Vec<f64> {
        if self.is_logarithmic {
            return self.decades();
        }
        let step = round_step((self.to - self.from) / 5.0);
        let first = (self.from / step).ceil();
        let ticks = (0..16).map(|n| (first + f64::from(n)) * step);
        ticks.take_while(|tick| *tick <= self.to * 1.0001).collect()
    }

    fn decades(&self) -> Vec<f64> {
        let decades = (self.to / self.from).log10();
        // Within a decade or two there is room for what lies between.
        let parts: &[f64] = match decades {
            d if d < 1.5 => &[1.0, 2.0, 5.0],
            _ => &[1.0],
        };
        let first = self.from.log10().floor() as i32;
        let powers = (first..first + 12).map(|power| 10_f64.powi(power));
        let ticks = powers.flat_map(|power| parts.iter().map(move |part| part * power));
        let is_within = |tick: &f64| *tick >= self.from * 0.9999 && *tick <= self.to * 1.0001;
        ticks.filter(is_within).collect()
    }
}

/// The next of 1, 2, 5, 10, 20, ...
fn round_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    let parts = [1.0, 2.0, 5.0, 10.0];
    let part = parts
        .into_iter()
        .find(|part| part * power >= least * 0.9999);
    part.unwrap_or(10.0) * power
}

impl Plot {
    /// The picture, as an element of a page.
    pub(super) fn svg(&self) -> String {
        let y = self.y();
        let mut svg = format!(
            "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{title}\">\n\
             <text class=\"title\" x=\"{LEFT}\" y=\"14\">{title}</text>\n",
            title = self.title
        );
        self.grid(&y, &mut svg);
        for (index, line) in self.lines.iter().enumerate() {
            let points: Vec<_> = line
                .points
                .iter()
                .map(|(at, value)| (left(self.x.place(*at)), top(y.place(*value))))
                .collect();
            if let [(x, y)] = points[..] {
                let _ = writeln!(
                    svg,
                    "<circle class=\"line{index}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\"/>"
                );
            }
            let points: Vec<_> = points
                .iter()
                .map(|(x, y)| format!("{x:.1},{y:.1}"))
                .collect();
            let points = points.join(" ");
            let _ = writeln!(svg, "<polyline class=\"line{index}\" points=\"{points}\"/>");
            if self.lines.len() > 1 {
                let x = WIDTH - RIGHT - 28.0 * (self.lines.len() - index) as f64;
                let name = line.name;
                let _ = writeln!(
                    svg,
                    "<text class=\"line{index}\" x=\"{x}\" y=\"14\">{name}</text>"
                );
            }
        }
        svg.push_str("</svg>\n");
        svg
    }

    /// The axis of values: round ends around all that there are.
    fn y(&self) -> Scale {
        let values = || {
            self.lines
                .iter()
                .flat_map(|line| &line.points)
                .map(|(_, y)| *y)
        };
        let most = values().fold(0.0, f64::max);
        if !self.is_y_logarithmic {
            return Scale::linear(0.0, most * 1.08);
        }
        let least = values().filter(|y| *y > 0.0).fold(f64::INFINITY, f64::min);
        if !least.is_finite() {
            return Scale::logarithmic(1.0, 10.0);
        }
        Scale::logarithmic(least * 0.8, most.max(least * 2.0) * 1.25)
    }

    fn grid(&self, y: &Scale, svg: &mut String) {
        for tick in y.ticks() {
            let at = top(y.place(tick));
            let label = (self.y_label)(tick);
            let (x1, x2, text) = (LEFT, WIDTH - RIGHT, LEFT - 6.0);
            let _ = writeln!(
                svg,
                "<line class=\"grid\" x1=\"{x1}\" x2=\"{x2}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
                 <text x=\"{text}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
                at + 4.0
            );
        }
        for tick in self.x.ticks() {
            let at = left(self.x.place(tick));
            let label = (self.x_label)(tick);
            let (y1, y2) = (HEIGHT - BOTTOM, HEIGHT - BOTTOM + 4.0);
            let _ = writeln!(
                svg,
                "<line class=\"grid\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{y1}\" y2=\"{y2}\"/>\
                 <text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{label}</text>",
                HEIGHT - 8.0
            );
        }
    }
}

fn left(place: f64) -> f64 {
    LEFT + place * (WIDTH - LEFT - RIGHT)
}

fn top(place: f64) -> f64 {
    HEIGHT - BOTTOM - place * (HEIGHT - TOP - BOTTOM)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_have_a_few_round_labels() {
        for (scale, ticks) in [
            (
                Scale::linear(0.0, 10.0),
                &[0.0, 2.0, 4.0, 6.0, 8.0, 10.0][..],
            ),
            (Scale::linear(0.0, 0.7), &[0.0, 0.2, 0.4, 0.6]),
            (Scale::logarithmic(80.0, 600.0), &[100.0, 200.0, 500.0]),
            (Scale::logarithmic(1.0, 1000.0), &[1.0, 10.0, 100.0, 1000.0]),
        ] {
            let found = scale.ticks();
            assert_eq!(found.len(), ticks.len(), "{scale:?}: {found:?}");
            let is_close = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-9;
            assert!(
                found.iter().zip(ticks).all(is_close),
                "{scale:?}: {found:?}"
            );
        }
        // Nothing measured is no reason to fail.
        for scale in [Scale::linear(0.0, 0.0), Scale::logarithmic(1.0, 1.0)] {
            assert!(!scale.ticks().is_empty());
        }
    }

    #[test]
    fn a_plot_of_nothing_is_a_plot() {
        let plot = Plot {
            title: "t",
            x: Scale::linear(0.0, 0.0),
            x_label: |x| x.to_string(),
            y_label: |y| y.to_string(),
            is_y_logarithmic: true,
            lines: vec![Line {
                name: "a",
                points: Vec::new(),
            }],
        };
        let svg = plot.svg();
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}
