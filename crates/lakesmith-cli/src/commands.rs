//! One function a verb: options from arguments, one call into the library, the result to the output.

use std::collections::BTreeSet;
use std::io::{IsTerminal, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use lakesmith::op::{ApplyOptions, CheckpointOptions, HistoryOptions, Operation, Report};
use lakesmith::{
    Cancel, DemoOptions, Error, ErrorKind, Progress, QueryEngine, Result, ScanReport, Session, SessionOptions,
};

use crate::args::{
    self, ApplyArgs, Cli, DemoArgs, ExplainArgs, FsckArgs, HealthArgs, OptimizeArgs, ReorgArgs, RestoreArgs, Shared,
    SqlArgs, TuningArgs, VacuumArgs, Verb,
};
use crate::exit::Failure;
use crate::output::{Stdout, json, reference, tables};
use crate::progress::Screen;
use crate::prompt::{self, Step};
use crate::{settings, signals};

/// Where a command gets its session from and puts its results.
struct Context<'a> {
    shared: Shared,
    screen: &'a Arc<Screen>,
    out: &'a mut Stdout,
    /// Tell what the scans of queries skipped and read.
    stats: bool,
}

/// Runs the command line's verb.
///
/// # Errors
/// The library's, and Unavailable when results cannot be written.
pub(crate) fn run(cli: Cli, screen: &Arc<Screen>, out: &mut Stdout) -> Result<(), Failure> {
    let mut context = Context { shared: cli.shared, screen, out, stats: false };
    let done = match cli.verb {
        Verb::Optimize(args) => return context.optimize(*args),
        Verb::Reorg(args) => return context.reorg(*args),
        Verb::Vacuum(args) => return context.vacuum(*args),
        Verb::Restore(args) => return context.restore(args),
        Verb::Health(args) => return context.health(&args),
        Verb::Sql(args) => return context.sql(&args),
        Verb::Explain(args) => return context.explain(&args),
        Verb::Apply(args) => return context.apply(*args),
        Verb::Fsck(args) => return context.fsck(&args),
        Verb::Detail(args) => context.report(&args.table, Operation::Detail(args.at())),
        Verb::Files(args) => context.report(&args.table, Operation::Files(args.at())),
        Verb::Checkpoint(args) => {
            let options = CheckpointOptions { clean_log: args.clean_log, dry_run: args.dry_run };
            context.report(&args.table, Operation::Checkpoint(options))
        }
        Verb::History(args) => {
            let options =
                HistoryOptions { limit: args.limit, data_changes: args.data_changes, readable: args.readable };
            context.report(&args.table, Operation::History(options))
        }
        Verb::Demo(args) => context.demo(args),
        Verb::Config(tuning) => context.config(&tuning, &cli.from_variables),
        Verb::Completions(wanted) => {
            let mut script = Vec::new();
            clap_complete::generate(wanted.shell, &mut args::command(), "lakesmith", &mut script);
            context.out.bytes(&script)
        }
    };
    done.map_err(Failure::from)
}

/// The query engine of this build.
fn engine() -> Option<Arc<dyn QueryEngine>> {
    #[cfg(feature = "engine")]
    return Some(Arc::new(lakesmith_engine::Engine::new()));
    #[cfg(not(feature = "engine"))]
    None
}

fn plan_file(operation: &Operation) -> Option<PathBuf> {
    match operation {
        Operation::Optimize(options) => options.limits.plan_out.clone(),
        Operation::Reorg(options) => options.limits.plan_out.clone(),
        Operation::Vacuum(options) => options.plan_out.clone(),
        _ => None,
    }
}

impl Context<'_> {
    // Signals are watched only from here on: until then Ctrl-C ends the process, as while statements are being typed.
    fn session(&self, tuning: Option<&TuningArgs>) -> Result<Session> {
        let cancel = Cancel::default();
        signals::watch(cancel.clone(), Arc::clone(self.screen))?;
        self.session_with(tuning, cancel)
    }

    fn session_with(&self, tuning: Option<&TuningArgs>, cancel: Cancel) -> Result<Session> {
        Session::new(SessionOptions {
            settings: settings::of_session(&self.shared),
            fixed: settings::fixed(&self.shared, tuning),
            cancel,
            progress: Arc::clone(self.screen) as Arc<dyn Progress>,
            engine: engine(),
            ..SessionOptions::default()
        })
    }

    fn optimize(&mut self, args: OptimizeArgs) -> Result<(), Failure> {
        let session = self.session(Some(&args.tuning))?;
        let table = args.table.clone();
        let options = settings::of_optimize(&session, args)?;
        Ok(self.run(&session, &table, Operation::Optimize(options))?)
    }

    fn reorg(&mut self, args: ReorgArgs) -> Result<(), Failure> {
        if !args.purge {
            return Err(Error::usage(
                "reorg needs --purge: it rewrites the files that still hold deleted rows or dropped columns",
            )
            .into());
        }
        let session = self.session(Some(&args.tuning))?;
        let table = args.table.clone();
        let options = settings::of_reorg(&session, args)?;
        Ok(self.run(&session, &table, Operation::Reorg(options))?)
    }

    fn health(&mut self, args: &HealthArgs) -> Result<(), Failure> {
        let session = self.session(None)?;
        let options = settings::of_health(&session, args)?;
        let started = Instant::now();
        let report = session.run(&args.table.table, Operation::Health(options))?;
        self.show(&report, started)?;
        let (Report::Health(report), Some(severity)) = (report, args.fail_on) else { return Ok(()) };
        match report.findings.iter().filter(|f| f.severity >= severity).count() {
            0 => Ok(()),
            count => {
                let message = format!("the table has findings of severity {} or worse: {count}", severity.as_str());
                Err(Failure::told(Error::new(ErrorKind::Limit, message).class("HEALTH_FINDINGS")))
            }
        }
    }

    fn vacuum(&mut self, args: VacuumArgs) -> Result<(), Failure> {
        let session = self.session(None)?;
        let table = args.table.clone();
        let options = settings::of_vacuum(&session, args)?;
        Ok(self.run(&session, &table, Operation::Vacuum(options))?)
    }

    fn restore(&mut self, args: RestoreArgs) -> Result<(), Failure> {
        let session = self.session(None)?;
        let table = args.table.clone();
        let options = settings::of_restore(&session, args)?;
        Ok(self.run(&session, &table, Operation::Restore(options))?)
    }

    fn apply(&mut self, args: ApplyArgs) -> Result<(), Failure> {
        let session = self.session(Some(&args.tuning))?;
        let started = Instant::now();
        let options = ApplyOptions {
            dry_run: args.dry_run,
            table: args.table,
            no_retention_check: args.no_retention_check,
            no_writers: args.no_writers,
        };
        let report = session.apply(&args.plan, &options)?;
        Ok(self.show(&report, started)?)
    }

    fn fsck(&mut self, args: &FsckArgs) -> Result<(), Failure> {
        let session = self.session(None)?;
        let started = Instant::now();
        let report = session.run(&args.table, Operation::Fsck(settings::of_fsck(args)))?;
        self.show(&report, started)?;
        match report {
            Report::Fsck(report) if !report.clean => Err(Failure::told(Error::new(
                ErrorKind::Corrupt,
                "the table contradicts its log, as the findings tell",
            ))),
            _ => Ok(()),
        }
    }

    fn report(&mut self, table: &str, operation: Operation) -> Result<()> {
        let session = self.session(None)?;
        self.run(&session, table, operation)
    }

    fn run(&mut self, session: &Session, table: &str, operation: Operation) -> Result<()> {
        let started = Instant::now();
        let plan = plan_file(&operation);
        let report = session.run(table, operation)?;
        self.show(&report, started)?;
        if let Some(plan) = plan {
            self.screen.notice(&format!("the plan is in {0}; `lakesmith apply {0}` carries it out", plan.display()));
        }
        Ok(())
    }

    fn show(&mut self, report: &Report, started: Instant) -> Result<()> {
        self.screen.clear();
        let written = if self.shared.json {
            json::document(self.out, report)
        } else {
            tables::report(self.out, report, started.elapsed())
        };
        self.sentence(report);
        delivered(written, Some(report), self.out)
    }

    /// With `--json` standard output holds the document alone.
    fn sentence(&self, report: &Report) {
        if let Report::Vacuum(report) = report
            && !report.dry_run
            && self.shared.json
            && !self.shared.quiet
        {
            self.screen.write(format!("{}\n", report.sentence()).as_bytes());
        }
    }

    fn sql(&mut self, args: &SqlArgs) -> Result<(), Failure> {
        self.stats = args.stats;
        let Some(text) = statements(args)? else { return self.prompt(args) };
        let mut session = self.session(Some(&args.tuning))?;
        self.statements(&mut session, &text)
    }

    fn explain(&mut self, args: &ExplainArgs) -> Result<(), Failure> {
        let session = self.session(None)?;
        let condition = args.condition.as_deref();
        let explained = session.explain(&args.table.table, args.table.at(), condition);
        let report = explained.map_err(|error| Failure::in_sql(error, condition.unwrap_or_default()))?;
        self.screen.clear();
        let written =
            if self.shared.json { json::document(self.out, &report) } else { self.out.line(&report.to_string()) };
        Ok(written?)
    }

    fn statements(&mut self, session: &mut Session, text: &str) -> Result<(), Failure> {
        let mut started = Instant::now();
        let done = session.sql(text, &mut |result| {
            self.screen.clear();
            let written = if self.shared.json {
                json::rows(self.out, &result)
            } else {
                tables::sql(self.out, &result, started.elapsed())
            };
            started = Instant::now();
            if let Some(report) = &result.report {
                self.sentence(report);
            }
            if self.stats && !result.continues {
                self.scans(&result.scans);
            }
            delivered(written, result.report.as_ref(), self.out)
        });
        self.screen.clear();
        done.map_err(|error| Failure::in_sql(error, text))
    }

    /// What the scans of a query skipped and read.
    fn scans(&self, scans: &[ScanReport]) {
        for scan in scans {
            let line = match self.shared.json {
                true => serde_json::json!({ "scan": scan }).to_string(),
                false => scan.to_string(),
            };
            self.screen.write(format!("{line}\n").as_bytes());
        }
    }

    /// Statements as they are typed.
    fn prompt(&mut self, args: &SqlArgs) -> Result<(), Failure> {
        let cancel = Cancel::default();
        signals::watch_statements(cancel.clone(), Arc::clone(self.screen))?;
        let mut session = self.session_with(Some(&args.tuning), cancel.clone())?;
        prompt::read_statements(&cancel, &mut |step| match step {
            Step::Line(text) => Ok(self.out.line(text).and_then(|()| self.out.flush())?),
            Step::Statements(text) => self.statements(&mut session, text),
        })
    }

    fn demo(&mut self, args: DemoArgs) -> Result<()> {
        let session = self.session(Some(&args.tuning))?;
        let defaults = DemoOptions::default();
        let options = DemoOptions { dir: args.dir.or(defaults.dir), rows: args.rows.unwrap_or(defaults.rows) };
        let (json, screen, out) = (self.shared.json, self.screen, &mut *self.out);
        let mut written = Ok(());
        let report = lakesmith::demo(&session, options, &mut |text| {
            screen.clear();
            if json {
                screen.notice(text);
            } else if written.is_ok() {
                written = out.line(text).and_then(|()| out.flush());
            }
        })?;
        written?;
        if json { json::document(self.out, &report) } else { Ok(()) }
    }

    fn config(&mut self, tuning: &TuningArgs, from_variables: &BTreeSet<String>) -> Result<()> {
        // Refuses what every other verb would refuse.
        self.session(Some(tuning))?;
        let reference = reference::Reference::new(&self.shared, tuning, from_variables);
        if self.shared.json { json::document(self.out, &reference.json()) } else { reference.write(self.out) }
    }
}

/// Sends what was written on its way. Where that fails, whoever reads the errors must know what stands all the same.
fn delivered(written: Result<()>, report: Option<&Report>, out: &mut Stdout) -> Result<()> {
    let version = match report {
        Some(Report::Optimize(report)) => report.version_after,
        Some(Report::Checkpoint(report)) => Some(report.version),
        Some(Report::Vacuum(report)) => report.version_after,
        Some(Report::Restore(report)) => report.version_after,
        Some(Report::Done { version }) => Some(*version),
        _ => None,
    };
    match (written.and_then(|()| out.flush()), version) {
        (Err(error), Some(version)) => Err(Error::unavailable(format!(
            "the work is done and stands at version {version}, but its report could not be written to standard output"
        ))
        .with("version", version)
        .caused_by(error)),
        (Ok(()), Some(version)) if out.reader_is_gone() => {
            tracing::warn!(version, "the work is done, but nobody reads its report: standard output is closed");
            Ok(())
        }
        (done, _) => done.and_then(|()| report.map_or(Ok(()), failed)),
    }
}

/// The error of a run that did its work in part and reported it.
fn failed(report: &Report) -> Result<()> {
    match report {
        Report::Vacuum(report) => report.failure().map_or(Ok(()), Err),
        _ => Ok(()),
    }
}

/// The statements that were given; `None` if they are to be typed on the terminal.
fn statements(args: &SqlArgs) -> Result<Option<String>> {
    match (&args.statements, &args.file) {
        (Some(text), _) if text != "-" => Ok(Some(text.clone())),
        (_, Some(path)) => {
            let error = |e: std::io::Error| {
                let error = match e.kind() {
                    std::io::ErrorKind::NotFound => Error::not_found("the file of statements does not exist"),
                    std::io::ErrorKind::InvalidData => Error::usage("the file of statements is not UTF-8 text"),
                    _ => Error::unavailable("cannot read the file of statements"),
                };
                error.with("path", path.display()).caused_by(e)
            };
            std::fs::read_to_string(path).map(Some).map_err(error)
        }
        (None, None) if std::io::stdin().is_terminal() && std::io::stdout().is_terminal() => Ok(None),
        (None, None) if std::io::stdin().is_terminal() => {
            Err(Error::usage("no statements: give them as an argument, with --file FILE, or on standard input"))
        }
        _ => {
            let mut text = String::new();
            std::io::stdin().lock().read_to_string(&mut text).map_err(|e| {
                Error::usage("cannot read statements from standard input, which must be UTF-8 text").caused_by(e)
            })?;
            Ok(Some(text))
        }
    }
}
