//! From archives to a registry.

use std::fs::File;
use std::io;
use std::path::Path;

use model::Error;

use super::catalogs::{self, Item};
use super::{Outcome, Setup, blocking};
use crate::archive::Set;
use crate::history::{SAME_SEQUENCE, Step, Store, held, step};
use crate::names;
use crate::operators::{Original, folder_of, index_path};
use crate::publish::{Target, publish};

/// What a run from archives did.
#[derive(Debug)]
pub enum Unpacked {
    Published(Box<Outcome>),
    /// The target has it.
    Nothing(&'static str),
}

/// Publishes a set of archives. `is_checked` says whether it has to be the one that follows what the target has.
///
/// Errors: Conflict – another one has to come first; Invalid – an archive is damaged; those of the target.
pub async fn unpack(
    setup: Setup<'_>,
    set: Set,
    target: &Target,
    is_checked: bool,
) -> Result<Unpacked, Error> {
    let archived = set.metadata().clone();
    let store = Store::in_target(target, archived.uid)?;
    let there = if archived.single_use {
        None
    } else {
        store.read().await?
    };
    if is_checked && step(there.as_ref(), &archived)? == Step::Nothing {
        return Ok(Unpacked::Nothing(SAME_SEQUENCE));
    }
    let (content, set) = blocking(move || Ok((set.content()?, set))).await?;
    let past = there.as_ref().map_or(&[][..], |it| &it.past_associations);
    let held = held(past, target)?;
    let published = publish(&content, &set, target, held, setup.limits, setup.progress).await;
    let mirror = &archived.past_mirror.mirror;
    let mut outcome = Outcome::of(&content, published, target, mirror, setup.limits)?;
    let scratch = tempfile::tempdir_in(setup.workspace)
        .map_err(|e| Error::internal("making a temporary folder", e))?;
    for (number, start) in archived.past_mirror.operators.iter().enumerate() {
        let folder = folder_of(&start.catalog);
        let index = scratch.path().join(format!("index-{number}.json"));
        let original = {
            let (index, set) = (index.clone(), set.clone());
            blocking(move || {
                extract(&set, &index_path(&folder), &index)?;
                Original::of_archive(&set, &folder)
            })
            .await?
        };
        let operators = mirror.operators.iter();
        let mut operators = operators.filter(|it| names::catalog::unique_name(it) == start.catalog);
        let operator = operators.next().ok_or_else(|| {
            let reason = format!(
                "{} is not among the operators of the configuration",
                start.catalog
            );
            Error::invalid("metadata", reason)
        })?;
        let (repository, tag) = names::catalog::rebuilt(operator, &original.root)?;
        let item = Item {
            name: &start.catalog,
            original: &original,
            index: &index,
            repository: &repository,
            tag: &tag,
        };
        let put = catalogs::put(item, target, scratch.path(), setup.limits, setup.progress).await?;
        outcome.sent.add(put.1);
        outcome.results.catalogs.push(put.0);
    }
    if !archived.single_use && outcome.failed.is_empty() {
        store.write(set.stored_metadata().clone()).await?;
    }
    Ok(Unpacked::Published(Box::new(outcome)))
}

/// Takes a file out of the archive.
fn extract(set: &Set, path: &str, to: &Path) -> Result<(), Error> {
    let place = set.place(path);
    let place = place.ok_or_else(|| Error::not_found("file of the archive", path))?;
    let copied = place.open().and_then(|mut from| {
        let mut copy = || io::copy(&mut from, &mut File::create(to)?);
        copy().map_err(|e| Error::internal(format!("writing {}", to.display()), e))
    });
    copied.map(drop)
}
