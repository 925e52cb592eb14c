//! The session: runtime, clock, settings, limits and the way to stores.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use lakesmith_core::op::{self, Operation, Report};
use lakesmith_core::predicate::Expr;
use lakesmith_core::{Error, Result};
use lakesmith_delta::CommitContext;
use lakesmith_sql::{Settings, TableRef};
use lakesmith_storage::{Cancel, Location, NoProgress, Progress, Store, StoreOptions, SystemWorld, World};

use crate::catalog::Catalog;
use crate::catalog::statements::Current;
use crate::drive::ENGINE_INFO;
use crate::sql::SqlResult;
use crate::{QueryEngine, Table, TableOutline, plan_file, run, sql};

/// How a store is opened for a table's root; tests put faults here.
pub type StoreOpener = Arc<dyn Fn(&Location) -> Result<Store> + Send + Sync>;

/// What a [`Session`] is made of.
#[derive(Clone)]
pub struct SessionOptions {
    /// Settings as `SET` takes them (`lakesmith.*` and Spark's own keys).
    pub settings: BTreeMap<String, String>,
    /// Settings that SET and RESET do not change: what flags and variables say.
    pub fixed: BTreeMap<String, String>,
    /// Stops running operations.
    pub cancel: Cancel,
    /// Watches long work.
    pub progress: Arc<dyn Progress>,
    /// Clock and identifiers.
    pub world: Arc<dyn World>,
    /// Catalogs beside the warehouse, by name.
    pub catalogs: BTreeMap<String, Arc<dyn Catalog>>,
    /// Opens stores; `None`: from the location, the settings and the environment.
    pub store: Option<StoreOpener>,
    /// Runs SELECT and its kin; `None`: such statements are refused.
    pub engine: Option<Arc<dyn QueryEngine>>,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            settings: BTreeMap::new(),
            fixed: BTreeMap::new(),
            cancel: Cancel::default(),
            progress: Arc::new(NoProgress),
            world: Arc::new(SystemWorld),
            catalogs: BTreeMap::new(),
            store: None,
            engine: None,
        }
    }
}

/// Runs operations and SQL, one after the other. All methods block; they must not be called from async code.
pub struct Session {
    pub(crate) runtime: tokio::runtime::Runtime,
    pub(crate) settings: Settings,
    pub(crate) options: SessionOptions,
    pub(crate) current: Current,
}

impl Session {
    /// A session with its own I/O runtime.
    ///
    /// # Errors
    /// Usage for an unknown or malformed setting, Unavailable if threads cannot be started.
    pub fn new(options: SessionOptions) -> Result<Session> {
        let mut settings = Settings::default();
        for (key, value) in &options.settings {
            settings.set(key, value)?;
        }
        for (key, value) in &options.fixed {
            settings.fix(key, value)?;
        }
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .thread_name("lakesmith-io")
            .build()
            .map_err(|e| Error::unavailable("cannot start the I/O threads").caused_by(e))?;
        Ok(Session { runtime, settings, options, current: Current::default() })
    }

    /// Runs one operation on a table, given as a path, a URL, ``delta.`…` `` or a name in the warehouse; a local path that
    /// exists wins over a name.
    ///
    /// # Errors
    /// See [`lakesmith_core::ErrorKind`]; after an error nothing further was committed.
    pub fn run(&self, table: &str, operation: Operation) -> Result<Report> {
        let creates = matches!(operation, Operation::CreateTable(_));
        let target = self.target_of_text(table, creates)?;
        run::run(self, &target, operation)
    }

    /// Runs SQL statements in order and hands each result to `each`; the first failure stops.
    ///
    /// # Errors
    /// Usage for syntax, and those of the statements.
    pub fn sql(&mut self, text: &str, each: &mut dyn FnMut(SqlResult) -> Result<()>) -> Result<()> {
        sql::run(self, text, each)
    }

    /// Carries out a plan that `--plan-out` wrote, as far as a fresh plan agrees with it.
    ///
    /// # Errors
    /// Usage for a file that is no plan, Unsupported for a later format, Retention if it is about another table, the table
    /// moved in a way that matters or a guard's switch is not said again, and those of the operation.
    pub fn apply(&self, plan: &Path, options: &op::ApplyOptions) -> Result<Report> {
        plan_file::apply(self, plan, options)
    }

    /// Parses the text of a `--where` option.
    ///
    /// # Errors
    /// Usage (`PARSE_SYNTAX_ERROR`) with the position.
    pub fn parse_predicate(&self, text: &str) -> Result<Expr> {
        lakesmith_sql::parse_predicate(text)
    }

    /// Options of OPTIMIZE as the settings have them.
    ///
    /// # Errors
    /// Usage for a setting that cannot be read.
    pub fn optimize_options(&self) -> Result<op::OptimizeOptions> {
        self.settings.optimize_options()
    }

    /// Options of REORG as the settings have them.
    ///
    /// # Errors
    /// Usage for a setting that cannot be read.
    pub fn reorg_options(&self) -> Result<op::ReorgOptions> {
        self.settings.reorg_options()
    }

    /// Options of RESTORE as the settings have them.
    ///
    /// # Errors
    /// Usage for a setting that cannot be read.
    pub fn restore_options(&self) -> Result<op::RestoreOptions> {
        self.settings.restore_options()
    }

    /// Options of VACUUM as the settings have them.
    ///
    /// # Errors
    /// Usage for a setting that cannot be read.
    pub fn vacuum_options(&self) -> Result<op::VacuumOptions> {
        self.settings.vacuum_options()
    }

    /// Options of the health check as the settings have them.
    ///
    /// # Errors
    /// Usage for a setting that cannot be read.
    pub fn health_options(&self) -> Result<op::HealthOptions> {
        Ok(op::HealthOptions { sizes: self.settings.optimize_options()?.sizes, ..op::HealthOptions::default() })
    }

    /// The settings in force.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Stops what runs.
    pub fn cancel(&self) -> &Cancel {
        &self.options.cancel
    }

    /// Opens one version of a table for reading.
    ///
    /// # Errors
    /// NotFound, Unsupported for a feature that can't be read, Corrupt, Unavailable; as [`Session::resolve`].
    pub fn open_table(&self, table: &TableRef, at: op::TimeTravel) -> Result<Table> {
        Table::open(self, &self.target(table)?, at)
    }

    /// Opens one version of a table without its files, which may be very many.
    ///
    /// # Errors
    /// As [`Session::open_table`].
    pub fn outline_table(&self, table: &TableRef, at: op::TimeTravel) -> Result<TableOutline> {
        TableOutline::open(self, &self.target(table)?, at)
    }

    /// What commits need; `timeout_ms` as the operation's own options have it, or else as `lakesmith.commitTimeout` does.
    ///
    /// # Errors
    /// Usage for a setting that cannot be read.
    pub(crate) fn commit_context(&self, timeout_ms: Option<u64>) -> Result<CommitContext<'_>> {
        Ok(CommitContext {
            world: self.options.world.as_ref(),
            cancel: &self.options.cancel,
            engine_info: ENGINE_INFO.to_string(),
            timeout_ms: match timeout_ms {
                Some(timeout_ms) => timeout_ms,
                None => self.settings.limits()?.commit_timeout_ms,
            },
        })
    }

    /// Opens the storage that holds `root`.
    ///
    /// # Errors
    /// Usage for settings that contradict each other.
    pub fn open(&self, root: &Location) -> Result<Store> {
        self.open_with(root, &BTreeMap::new())
    }

    /// The same with more settings, which win over those of the session.
    pub(crate) fn open_with(&self, root: &Location, further: &BTreeMap<String, String>) -> Result<Store> {
        match &self.options.store {
            Some(open) => open(root),
            None => {
                let keys = self.settings.iter().filter(|(key, _)| StoreOptions::understands(key));
                let further = further.iter().map(|(key, value)| (key.as_str(), value.as_str()));
                let keys = keys.chain(further);
                let options = keys.fold(StoreOptions::from_env(), |options, (key, value)| options.with(key, value));
                Store::open(root, &options)
            }
        }
    }
}
