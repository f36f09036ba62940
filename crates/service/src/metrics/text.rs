//! The Prometheus text format, version 0.0.4.
//!
//! Source: <https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format>.

use std::collections::HashMap;
use std::fmt::{self, Display, Write as _};
use std::sync::Arc;

use metrics::{Key, KeyName, SharedString};

use super::series::{Count, Histogram, Level, Series};

type Sorted<V> = Vec<(Key, Arc<Series<V>>)>;

/// Text that grows family by family.
pub(super) struct Text<'a> {
    out: String,
    descriptions: &'a HashMap<KeyName, SharedString>,
}

/// `name{label="value"} value`.
struct Line<'a, V> {
    key: &'a Key,
    suffix: &'static str,
    upper_bound: Option<&'a str>,
    value: V,
}

impl<'a> Text<'a> {
    pub(super) const fn new(descriptions: &'a HashMap<KeyName, SharedString>) -> Self {
        let out = String::new();
        Self { out, descriptions }
    }

    pub(super) fn finish(self) -> String {
        self.out
    }

    pub(super) fn counters(&mut self, series: Sorted<Count>) {
        self.families("counter", series, |text, key, series| {
            text.line(key, series.get());
        });
    }

    pub(super) fn gauges(&mut self, series: Sorted<Level>) {
        self.families("gauge", series, |text, key, series| {
            text.line(key, series.get());
        });
    }

    pub(super) fn histograms(&mut self, series: Sorted<Histogram>) {
        self.families("histogram", series, Self::histogram);
    }

    fn histogram(&mut self, key: &Key, series: &Histogram) {
        let sum = series.sum();
        let mut total = 0;
        for (bound, value) in series.cumulative() {
            total = value;
            let bound = bound.map_or_else(|| "+Inf".to_owned(), |bound| bound.to_string());
            self.push(&Line {
                key,
                suffix: "_bucket",
                upper_bound: Some(&bound),
                value,
            });
        }
        self.push(&Line {
            key,
            suffix: "_sum",
            upper_bound: None,
            value: sum,
        });
        self.push(&Line {
            key,
            suffix: "_count",
            upper_bound: None,
            value: total,
        });
    }

    /// The series of a name stand together, below its description.
    fn families<V>(
        &mut self,
        kind: &str,
        mut series: Sorted<V>,
        mut write: impl FnMut(&mut Self, &Key, &V),
    ) {
        series.sort_by(|(a, _), (b, _)| a.cmp(b));
        for family in series.chunk_by(|(a, _), (b, _)| a.name() == b.name()) {
            let Some((first, _)) = family.first() else {
                continue;
            };
            let name = first.name();
            if let Some(text) = self.descriptions.get(name) {
                let text = Escaped(text, false);
                self.push(&format_args!("# HELP {name} {text}"));
            }
            self.push(&format_args!("# TYPE {name} {kind}"));
            for (key, series) in family {
                write(self, key, series.value());
            }
            self.out.push('\n');
        }
    }

    fn line(&mut self, key: &Key, value: impl Display) {
        self.push(&Line {
            key,
            suffix: "",
            upper_bound: None,
            value,
        });
    }

    fn push(&mut self, line: &impl Display) {
        // Writing to a string cannot fail.
        let _written = writeln!(self.out, "{line}");
    }
}

impl<V: Display> Display for Line<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.key.name(), self.suffix)?;
        let labels = self.key.labels().map(|label| (label.key(), label.value()));
        let bound = self.upper_bound.map(|bound| ("le", bound));
        let mut separator = '{';
        for (name, value) in labels.chain(bound) {
            write!(f, "{separator}{name}=\"{}\"", Escaped(value, true))?;
            separator = ',';
        }
        if separator == ',' {
            f.write_char('}')?;
        }
        write!(f, " {}", self.value)
    }
}

/// Text on one line; between quotes if the second is set.
struct Escaped<'a>(&'a str, bool);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(text, is_quoted) = *self;
        for c in text.chars() {
            match c {
                '\\' => f.write_str("\\\\")?,
                '\n' => f.write_str("\\n")?,
                '"' if is_quoted => f.write_str("\\\"")?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::recorder::{Bounds, SeriesRecorder};
    use std::time::Duration;

    #[test]
    fn families_have_a_head_and_their_series_in_order() {
        let bounds = Bounds {
            max: 10,
            idle: Duration::ZERO,
        };
        let recorder = SeriesRecorder::new(bounds, |_| &[0.5, 2.0]);
        metrics::with_local_recorder(&recorder, || {
            metrics::describe_counter!("asked_total", "How \"often\"\nit was \\ asked");
            metrics::counter!("asked_total", "of" => "b", "at" => "x\\y \"z\"\n").increment(2);
            metrics::counter!("asked_total", "of" => "a").increment(1);
            metrics::gauge!("level").set(-1.5);
            for value in [0.25, 1.0, 4.0] {
                metrics::histogram!("took", "of" => "a").record(value);
            }
        });
        let expected = [
            "# HELP asked_total How \"often\"\\nit was \\\\ asked",
            "# TYPE asked_total counter",
            "asked_total{of=\"a\"} 1",
            "asked_total{of=\"b\",at=\"x\\\\y \\\"z\\\"\\n\"} 2",
            "",
            "# HELP atoll_metrics_dropped_total Measurements of series beyond the bound of series",
            "# TYPE atoll_metrics_dropped_total counter",
            "atoll_metrics_dropped_total 0",
            "",
            "# TYPE level gauge",
            "level -1.5",
            "",
            "# TYPE took histogram",
            "took_bucket{of=\"a\",le=\"0.5\"} 1",
            "took_bucket{of=\"a\",le=\"2\"} 2",
            "took_bucket{of=\"a\",le=\"+Inf\"} 3",
            "took_sum{of=\"a\"} 5.25",
            "took_count{of=\"a\"} 3",
            "",
            "",
        ];
        assert_eq!(recorder.render(), expected.join("\n"));
    }
}
