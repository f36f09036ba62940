//! Charts: found in their repositories, fetched, and searched for the images that they would run.

mod chart;
mod images;
mod render;
mod repository;
mod values;

use std::path::{Path, PathBuf};

use model::Error;
use model::image_set::{self, Helm};
use net::web::{Web, shown};
use url::Url;

use self::images::images;
use self::render::{ChartInput, render};
use self::repository::Repository;
use self::values::read_values;
use crate::additional_images::additional_image;
use crate::content::{SelectedImage, Why};
use crate::json_path::JsonPath;

/// Folder of charts in archives and results. Source: the peer.
pub const FOLDER: &str = "charts/";
/// Largest archive of a chart; those with large ones have dependencies in them. Units: bytes.
const CHART_LIMIT: u64 = 64 << 20;

/// A chart to be mirrored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// Its file's name, which is the same wherever it goes.
    pub name: String,
    /// The fetched file.
    pub path: PathBuf,
    /// Its address.
    pub source: Url,
}

/// Charts and their images.
#[derive(Debug, Default)]
pub struct Charts {
    /// Charts of repositories. Local charts are not mirrored. Source: the peer.
    pub fetched: Vec<Fetched>,
    /// The images that all of them name; their registries may lack them.
    pub wanted: Vec<SelectedImage>,
    /// Warnings: values in charts that are no references, and images that nothing names.
    pub notes: Vec<String>,
    /// Charts and repositories that cannot be read, where the run continues on errors.
    pub unread: Vec<Error>,
}

/// Fetches the charts of repositories into `scratch`, and searches all.
///
/// Errors: NotFound – no such chart, version or file; Invalid – a repository or chart that cannot be read, or rendered,
/// unless the run `continue_on_error` then.
pub async fn charts(
    helm: &Helm,
    web: &Web,
    scratch: &Path,
    continue_on_error: bool,
) -> Result<Charts, Error> {
    let folder = scratch.join(FOLDER);
    std::fs::create_dir_all(&folder)
        .map_err(|e| Error::internal(format!("making {}", folder.display()), e))?;
    let mut charts = Charts::default();
    for chart in &helm.local {
        let searched = charts.search(Path::new(&chart.path), chart).await;
        charts.done(&chart.path, searched, continue_on_error)?;
    }
    for named in &helm.repositories {
        let opened = Repository::open(web, named).await;
        let opened = opened.and_then(|it| it.wanted(&named.charts).map(|wanted| (it, wanted)));
        // The caller distinguishes an unavailable server from broken charts.
        let opened = match opened {
            Err(error) if !continue_on_error => return Err(error),
            opened => opened,
        };
        let Some((repository, wanted)) = charts.done(&named.name, opened, continue_on_error)?
        else {
            continue;
        };
        for chart in wanted {
            let what = format!("{} {} of {}", chart.name, chart.version, repository.shown());
            let got = charts.get(web, &repository, &chart, &folder).await;
            charts.done(&what, got, continue_on_error)?;
        }
    }
    Ok(charts)
}

impl Charts {
    async fn get(
        &mut self,
        web: &Web,
        repository: &Repository,
        chart: &image_set::Chart,
        folder: &Path,
    ) -> Result<(), Error> {
        let entry = repository.entry(&chart.name, &chart.version)?;
        let url = repository.url(entry)?;
        let name = file_name(&url)?;
        let path = folder.join(&name);
        if let Some(other) = self.fetched.iter().find(|it| it.name == name) {
            if other.source == url {
                // Its values may select other images.
                return self.search(&path, chart).await;
            }
            let [url, other] = [&url, &other.source].map(shown);
            let reason = format!("{url} and {other} are both to be {FOLDER}{name}");
            return Err(Error::conflict(reason));
        }
        web.download(&url, &path, CHART_LIMIT).await?;
        entry.compare(&path).await?;
        self.fetched.push(Fetched {
            name,
            path: path.clone(),
            source: url,
        });
        self.search(&path, chart).await
    }

    /// Collects the images of the chart in that file.
    async fn search(&mut self, path: &Path, chart: &image_set::Chart) -> Result<(), Error> {
        let values = read_values(&chart.values_files).await?;
        let input = ChartInput {
            path,
            values: &values,
        };
        let rendered = render(input).await?;
        let paths = chart.image_paths.iter().map(|path| path.parse());
        let paths = paths.collect::<Result<Vec<JsonPath>, String>>();
        let paths = paths.map_err(|reason| Error::invalid("imagePaths", reason))?;
        let found = images(&rendered, &paths)?;
        let shown = path.display();
        self.notes
            .extend(found.notes.iter().map(|note| format!("{shown}: {note}")));
        for name in found.images {
            let image = image_set::ImageSelection {
                name,
                platforms: chart.platforms.clone(),
                ..image_set::ImageSelection::default()
            };
            let why = Why::Chart {
                chart: path
                    .file_name()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into(),
            };
            match additional_image(&image, why) {
                Ok(wanted) => self.wanted.push(SelectedImage {
                    may_be_missing: true,
                    ..wanted
                }),
                Err(error) => self.notes.push(format!("{}: {error}", path.display())),
            }
        }
        Ok(())
    }

    /// The result; none for a failure where the run continues on errors.
    fn done<T>(
        &mut self,
        what: &str,
        done: Result<T, Error>,
        continue_on_error: bool,
    ) -> Result<Option<T>, Error> {
        let error = match done {
            Ok(done) => return Ok(Some(done)),
            Err(error) => Error::invalid(format!("chart {what}"), model::error::chain(&error)),
        };
        if !continue_on_error {
            return Err(error);
        }
        self.unread.push(error);
        Ok(None)
    }
}

/// File name of a chart. Source: helm, which takes it from the address.
fn file_name(url: &Url) -> Result<String, Error> {
    let last = url.path_segments().and_then(|mut parts| parts.next_back());
    match last {
        Some(name) if !name.is_empty() && !name.starts_with('.') => Ok(name.to_owned()),
        _ => {
            let reason = "it does not end in the name of a file";
            Err(Error::invalid(
                format!("address {} of a chart", shown(url)),
                reason,
            ))
        }
    }
}
