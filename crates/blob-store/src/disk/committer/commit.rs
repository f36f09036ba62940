//! Changes that are checked, promised by the journal, made and shown together.

use std::io;
use std::sync::Arc;

use tokio::sync::oneshot;

use super::errors::{DOING, again, ended, full};
use super::shared::Shared;
use super::work::Work;
use crate::disk::change::{Change, Order};
use crate::disk::files::{self, Prepared};
use crate::disk::tables::Tables;
use crate::{Result, StoreError};

/// A change whose check it has passed.
struct Accepted {
    order: Order,
    prepared: Prepared,
    done: oneshot::Sender<Result<()>>,
}

impl Work {
    pub(super) fn commit(&mut self, orders: Vec<(Order, oneshot::Sender<Result<()>>)>) {
        if let Err(refused) = self.may_change() {
            return refuse(orders, &refused);
        }
        let recovered = self.recover();
        if let Err(error) = &recovered {
            refuse(orders, error);
            return self.note(&recovered);
        }
        let mut accepted = Vec::new();
        let made = self.try_commit(orders, &mut accepted);
        self.note(&made);
        for Accepted { done, .. } in accepted {
            // Who asked may have gone away: the change is made all the same.
            done.send(match &made {
                Ok(()) => Ok(()),
                Err(error) => Err(again(error)),
            })
            .ok();
        }
    }

    fn try_commit(
        &mut self,
        orders: Vec<(Order, oneshot::Sender<Result<()>>)>,
        accepted: &mut Vec<Accepted>,
    ) -> Result<()> {
        let shared = Arc::clone(&self.shared);
        let update = shared.index.update()?;
        {
            let mut tables = update.tables()?;
            for (mut order, done) in orders {
                match self.accept(&mut tables, &mut order) {
                    Ok(prepared) => accepted.push(Accepted {
                        order,
                        prepared,
                        done,
                    }),
                    Err(error) => drop(done.send(Err(error))),
                }
            }
        }
        if accepted.is_empty() {
            return Ok(());
        }
        self.append(accepted)?;
        self.is_behind = true;
        let placed = accepted
            .iter_mut()
            .map(|accepted| std::mem::take(&mut accepted.prepared))
            .try_for_each(|prepared| prepared.place(&shared.layout, &shared.verified))
            .map_err(StoreError::io(DOING));
        // Without a commit the index has none of it; two updates at once would wait for each other.
        let shown = placed.and_then(|()| update.commit());
        if let Err(error) = shown {
            tracing::warn!(
                error = model::error::chain(&error),
                "changes are made again from the journal"
            );
            // The journal has them: what failed for a moment only, or for lack of room, can still be made good.
            return self
                .replay()
                .or_else(|error| self.with_reserve(error, Self::replay));
        }
        self.is_behind = false;
        Ok(())
    }

    /// Promises changes. Deletions may use the reserve.
    fn append(&mut self, accepted: &[Accepted]) -> Result<()> {
        let append = |work: &mut Self| {
            let orders = accepted.iter().map(|accepted| &accepted.order);
            let journal = work.journal.as_mut().ok_or_else(ended)?;
            journal.append(orders).map_err(StoreError::io(DOING))
        };
        let removes = accepted
            .iter()
            .any(|accepted| !accepted.order.change.adds());
        append(self).or_else(|error| {
            if removes {
                self.with_reserve(error, append)
            } else {
                Err(error)
            }
        })
    }

    fn accept(&self, tables: &mut Tables<'_>, order: &mut Order) -> Result<Prepared> {
        tables.check(order)?;
        if order.change.adds() && self.shared.reserve.is_released() {
            return Err(full());
        }
        let Shared {
            layout, verified, ..
        } = &*self.shared;
        if files::is_too_young(layout, &order.change).map_err(StoreError::io(DOING))? {
            return Err(StoreError::Renewed);
        }
        let prepared = files::prepare(layout, verified, order).map_err(|error| {
            match &order.change {
                // Seen a moment ago, and collected since.
                Change::AddBlob { blob, .. } if error.kind() == io::ErrorKind::NotFound => {
                    StoreError::UnknownBlob(blob.told().clone())
                }
                _ => StoreError::io(DOING)(error),
            }
        })?;
        tables.apply(order)?;
        Ok(prepared)
    }
}

fn refuse(orders: Vec<(Order, oneshot::Sender<Result<()>>)>, why: &StoreError) {
    for (_, done) in orders {
        done.send(Err(again(why))).ok();
    }
}
