//! A thread with a stack for trees as deep as statements may be: planning goes down them by recursion.

use std::sync::mpsc::sync_channel;
use std::thread::{Builder, scope};

use lakesmith::{Error, QueryRows, Result};

/// Bytes of address space; memory is taken only as far down as a tree goes.
const STACK_BYTES: usize = 256 << 20;

/// Does `work` on a thread of its own. The rows that it hands over get to `each` on the caller's thread.
///
/// # Errors
/// What `each` returns, else what `work` does; Unavailable if the thread cannot be started.
pub(crate) fn deep<T: Send>(
    each: &mut dyn FnMut(QueryRows) -> Result<()>,
    work: impl FnOnce(&mut dyn FnMut(QueryRows) -> Result<()>) -> Result<T> + Send,
) -> Result<T> {
    let (sender, receiver) = sync_channel::<QueryRows>(0);
    scope(|scope| {
        let worker = Builder::new()
            .name("lakesmith-statement".to_owned())
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, move || {
                work(&mut |rows| {
                    sender.send(rows).map_err(|_| Error::internal("nobody takes the rows of the query any more"))
                })
            })
            .map_err(|e| Error::unavailable("cannot start a thread for the statement").caused_by(e))?;
        let refused = receiver.iter().try_for_each(each);
        drop(receiver);
        let done = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        refused.and(done)
    })
}
