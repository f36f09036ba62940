//! The Prometheus text format.
//!
//! Names of metrics and of labels are constants of the code and stay as they are; help and values of labels are escaped.
//! Source: prometheus.io, "Exposition formats", text format 0.0.4.

use std::collections::HashMap;
use std::fmt::{self, Display};
use std::sync::atomic::Ordering::Relaxed;

use metrics::SharedString;

use super::series::{Kind, Series, SeriesId};

/// Displays series as text.
pub(super) struct Exposition<'a> {
    /// Those of a family stand together.
    pub(super) series: &'a [(SeriesId, Series)],
    /// Texts of metrics by name.
    pub(super) help: &'a HashMap<String, SharedString>,
}

impl Display for Exposition<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let families = self
            .series
            .chunk_by(|(a, _), (b, _)| a.family() == b.family());
        for family in families {
            let (name, kind) = family[0].0.family();
            if let Some(help) = self.help.get(name) {
                writeln!(f, "# HELP {name} {}", escaped(help))?;
            }
            let kind = match kind {
                Kind::Counter => "counter",
                Kind::Gauge => "gauge",
                Kind::Histogram => "histogram",
            };
            writeln!(f, "# TYPE {name} {kind}")?;
            for (id, series) in family {
                write_series(f, id, series)?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

fn write_series(f: &mut fmt::Formatter<'_>, id: &SeriesId, series: &Series) -> fmt::Result {
    let name = id.key.name();
    let labels = id.key.labels().map(|label| {
        let value = escaped(label.value()).replace('"', "\\\"");
        format!("{}=\"{value}\"", label.key())
    });
    let labels = labels.collect::<Vec<_>>().join(",");
    let (braced, comma) = match labels.as_str() {
        "" => (String::new(), ""),
        labels => (format!("{{{labels}}}"), ","),
    };
    let value = series.value.load(Relaxed);
    match id.kind {
        Kind::Counter => writeln!(f, "{name}{braced} {value}"),
        Kind::Gauge => writeln!(f, "{name}{braced} {}", f64::from_bits(value)),
        Kind::Histogram => {
            let bounds = series.bounds.iter().map(f64::to_string);
            let mut count = 0;
            for (bucket, le) in series.buckets.iter().zip(bounds.chain(["+Inf".to_owned()])) {
                count += bucket.load(Relaxed);
                writeln!(f, "{name}_bucket{{{labels}{comma}le=\"{le}\"}} {count}")?;
            }
            writeln!(f, "{name}_sum{braced} {}", f64::from_bits(value))?;
            writeln!(f, "{name}_count{braced} {count}")
        }
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use proptest::prelude::*;

    use crate::metrics::MetricsRecorder;

    /// Name and labels.
    type SampleId = (String, Vec<(String, String)>);

    /// A text as a scraper reads it.
    #[derive(Debug, Default)]
    struct Scraped {
        help: BTreeMap<String, String>,
        types: BTreeMap<String, String>,
        samples: BTreeMap<SampleId, f64>,
    }

    /// Reads characters up to `end`, resolving escapes.
    fn unescaped(rest: &mut std::str::Chars<'_>, end: Option<char>) -> String {
        let mut text = String::new();
        loop {
            match rest.next() {
                found if found == end => return text,
                Some('\\') => text.push(match rest.next() {
                    Some('n') => '\n',
                    Some(escaped @ ('\\' | '"')) => escaped,
                    other => panic!("escape of {other:?}"),
                }),
                Some(other) => text.push(other),
                None => panic!("no end: {text}"),
            }
        }
    }

    fn sample(line: &str) -> (SampleId, f64) {
        let length = line.find(['{', ' ']).unwrap();
        let (name, mut rest) = (line[..length].to_owned(), line[length..].chars());
        let mut labels = Vec::new();
        while let Some('{' | ',') = rest.next() {
            let key = rest.by_ref().take_while(|c| *c != '=').collect();
            assert_eq!(rest.next(), Some('"'), "{line}");
            labels.push((key, unescaped(&mut rest, Some('"'))));
        }
        let value = rest.as_str().trim_start_matches(' ').parse().unwrap();
        ((name, labels), value)
    }

    fn scraped(text: &str) -> Scraped {
        let mut scraped = Scraped::default();
        // Not `lines`: a carriage return is a character of a text.
        for line in text.split('\n').filter(|line| !line.is_empty()) {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                let (name, help) = rest.split_once(' ').unwrap();
                let help = unescaped(&mut help.chars(), None);
                assert_eq!(scraped.help.insert(name.to_owned(), help), None, "twice");
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap();
                let twice = scraped.types.insert(name.to_owned(), kind.to_owned());
                assert_eq!(twice, None, "a family is in one piece");
            } else {
                let (id, value) = sample(line);
                assert_eq!(scraped.samples.insert(id, value), None, "twice");
            }
        }
        scraped
    }

    #[test]
    fn the_text_is_the_documented_one() {
        let recorder = MetricsRecorder::new(10, Duration::MAX, &[]);
        metrics::with_local_recorder(&recorder, || {
            metrics::describe_gauge!("level", "A \"level\"\\\nof something");
            metrics::gauge!("level").set(-0.5);
            metrics::counter!("asked_total", "b" => "2", "a" => "say \"\\\n\"").increment(3);
            metrics::counter!("asked_total", "b" => "1").increment(1);
            metrics::histogram!("got_size_bytes").record(1024.0);
            metrics::histogram!("got_size_bytes").record(1e300);
        });
        let expected = r#"# TYPE asked_total counter
asked_total{b="1"} 1
asked_total{b="2",a="say \"\\\n\""} 3

# HELP atoll_metrics_dropped_total Measurements of series beyond the bound of series
# TYPE atoll_metrics_dropped_total counter
atoll_metrics_dropped_total 0

# TYPE got_size_bytes histogram
got_size_bytes_bucket{le="1024"} 1
got_size_bytes_bucket{le="16384"} 1
got_size_bytes_bucket{le="262144"} 1
got_size_bytes_bucket{le="4194304"} 1
got_size_bytes_bucket{le="67108864"} 1
got_size_bytes_bucket{le="1073741824"} 1
got_size_bytes_bucket{le="17179869184"} 1
got_size_bytes_bucket{le="+Inf"} 2
got_size_bytes_sum SUM
got_size_bytes_count 2

# HELP level A "level"\\\nof something
# TYPE level gauge
level -0.5

"#;
        let expected = expected.replace("SUM", &1e300.to_string());
        assert_eq!(recorder.render(), expected);
    }

    proptest! {
        #[test]
        fn any_metrics_are_read_back(
            help in any::<String>(),
            counts in prop::collection::btree_map(any::<String>(), any::<u32>(), 0..9),
            levels in prop::collection::btree_map((any::<String>(), any::<String>()), any::<i32>(), 0..9),
            seconds in prop::collection::vec(-1_i32..1000, 0..9),
        ) {
            let recorder = MetricsRecorder::new(100, Duration::MAX, &[]);
            let mut expected = BTreeMap::from([(("atoll_metrics_dropped_total".to_owned(), vec![]), 0.0)]);
            let label = |name: &str, value: &str| (name.to_owned(), value.to_owned());
            metrics::with_local_recorder(&recorder, || {
                metrics::describe_counter!("asked_total", help.clone());
                for (value, count) in &counts {
                    metrics::counter!("asked_total", "of" => value.clone()).increment(u64::from(*count));
                    expected.insert(("asked_total".to_owned(), vec![label("of", value)]), f64::from(*count));
                }
                for ((first, second), level) in &levels {
                    let level = f64::from(*level) / 3.0;
                    metrics::gauge!("level", "a" => first.clone(), "b" => second.clone()).set(level);
                    let labels = vec![label("a", first), label("b", second)];
                    expected.insert(("level".to_owned(), labels), level);
                }
                for value in &seconds {
                    metrics::histogram!("took_duration_seconds").record(f64::from(*value));
                }
            });
            let mut found = scraped(&recorder.render());
            let mut take = |suffix: &str, labels| {
                let id = (format!("took_duration_seconds{suffix}"), labels);
                found.samples.remove(&id)
            };
            if !seconds.is_empty() {
                let sum: i32 = seconds.iter().sum();
                prop_assert_eq!(take("_sum", vec![]), Some(f64::from(sum)));
                let count = |le: f64| -> f64 { seconds.iter().map(|value| f64::from(u8::from(f64::from(*value) <= le))).sum() };
                prop_assert_eq!(take("_count", vec![]), Some(count(f64::INFINITY)));
                for le in ["0.001", "0.005", "0.02", "0.1", "0.5", "2", "10", "60", "600", "+Inf"] {
                    let expected = count(le.parse().unwrap());
                    prop_assert_eq!(take("_bucket", vec![label("le", le)]), Some(expected), "{}", le);
                }
            }
            prop_assert_eq!(&found.samples, &expected);
            let described = (!counts.is_empty()).then_some(&help);
            prop_assert_eq!(found.help.get("asked_total"), described);
        }
    }
}
