//! The last look at a task: its outputs, reopened, hold the rows of its inputs, or nothing is returned.

use std::sync::Arc;

use lakesmith_core::table::{InputFile, LeftOut, RewriteOutcome, RewriteTask, WrittenFile};
use lakesmith_core::{Error, Result};

use crate::content_hash;
use crate::file_read::{FileReader, OpenFile};
use crate::footer::{self, Footer};
use crate::output::FinishedFile;
use crate::rewrite::{TAIL_BYTES, TaskContext};
use crate::source::FileHandle;
use crate::target::Strings;

/// What a task did, by its own account.
#[derive(Debug)]
pub(crate) struct Done {
    /// Its outputs, in order.
    pub finished: Vec<FinishedFile>,
    /// Live rows of its inputs: footer counts minus deleted rows.
    pub rows_in: u64,
    /// Hash of these rows, if the task is to be verified.
    pub hash: u64,
    /// Bytes that were spilled.
    pub bytes_spilled: u64,
    /// Inputs of which no row is in the outputs.
    pub left_out: Vec<LeftOut>,
}

impl Done {
    /// Reopens the outputs and lets the rows add up.
    ///
    /// # Errors
    /// Internal if rows were lost, doubled or changed; those of reading.
    pub(crate) fn check(self, task: &RewriteTask, context: &TaskContext, strings: Strings) -> Result<RewriteOutcome> {
        let mut outputs = Vec::with_capacity(self.finished.len());
        let (mut rows_out, mut bytes_out, mut hash_out) = (0, 0, 0u64);
        for file in self.finished {
            context.check()?;
            let handle = context.handle(&file.location, file.size);
            let read = footer::read(&context.store, &file.location, file.size, TAIL_BYTES);
            let footer = context.control.runtime.block_on(read)?;
            let rows = footer.rows();
            if task.verify {
                hash_file(&mut hash_out, handle, footer, context, strings)?;
            }
            rows_out += rows;
            bytes_out += file.size;
            let modified_ms = context.control.now_ms.now_ms();
            outputs.push(WrittenFile { path: file.path, size: file.size, rows, stats: file.stats, modified_ms });
        }
        let counted: u64 = outputs.iter().map(|o| o.stats.rows).sum();
        if rows_out != self.rows_in || counted != self.rows_in {
            let what = format!("{} rows went in, {rows_out} rows are in the outputs", self.rows_in);
            return Err(broken(task, what));
        }
        if task.verify && hash_out != self.hash {
            return Err(broken(task, "the outputs hold other values than the inputs".to_owned()));
        }
        let is_left_out = |input: &InputFile| self.left_out.iter().any(|l| l.input == input.id);
        Ok(RewriteOutcome {
            task: task.id,
            outputs,
            row_map: Vec::new(),
            rows_in: self.rows_in,
            rows_out,
            bytes_in: task.inputs.iter().filter(|i| !is_left_out(i)).map(|i| i.size).sum(),
            bytes_out,
            bytes_spilled: self.bytes_spilled,
            content_hash: task.verify.then_some(hash_out),
            left_out: self.left_out,
        })
    }
}

/// The error for a rewrite whose outputs are not its inputs.
pub(crate) fn broken(task: &RewriteTask, what: String) -> Error {
    let inputs: Vec<&str> = task.inputs.iter().take(5).map(|i| i.location.as_str()).collect();
    Error::internal(format!("{what}; nothing is committed, please report this"))
        .with("task", task.id)
        .with("inputs", inputs.join(", "))
        .with("outputs", format!("{}/{}.*", task.root, task.output_stem))
}

fn hash_file(
    hash: &mut u64,
    handle: Arc<FileHandle>,
    footer: Footer,
    context: &TaskContext,
    strings: Strings,
) -> Result<()> {
    let file = OpenFile::new(handle, footer, strings)?;
    let roots = (0..file.fields().len()).collect();
    let batch_bytes = (context.memory_bytes / 16).min(16 << 20);
    let mut reader = FileReader::new(&file, roots, context.memory_bytes / 8, batch_bytes);
    while let Some(group) = reader.next_group()? {
        let mut batches = reader.decode(&group, (0..file.fields().len()).collect())?;
        while let Some(batch) = batches.next_batch()? {
            context.check()?;
            content_hash::add(hash, &batch)?;
        }
    }
    Ok(())
}
