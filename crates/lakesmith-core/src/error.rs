//! The one error type of the workspace.
//!
//! `kind` is API: it says what the user can do about the failure and decides the exit code, the HTTP status and the
//! Python class. `class` is the name that Spark gives to the same failure, where it has one. `message` is prose:
//! lower case, no full stop; it names the object, why, and what to do next.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// What the caller can do about an [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The request is wrong: options, SQL syntax, unknown columns.
    Usage,
    /// The table, version, file or column does not exist.
    NotFound,
    /// The table needs something that Lakesmith does not do; the message names the feature.
    Unsupported,
    /// Another writer won in a way that cannot be carried over.
    Conflict,
    /// A retention period or another guard forbids it.
    Retention,
    /// Stored bytes contradict the format or each other.
    Corrupt,
    /// The storage or catalog did not answer as needed (credentials, network, full, read-only).
    Unavailable,
    /// A limit of the user's (memory, disk, time) would be exceeded.
    Limit,
    /// The user stopped the run.
    Cancelled,
    /// An invariant of Lakesmith's own failed: a bug.
    Internal,
}

impl ErrorKind {
    /// Process exit code, as documented in the command-line contract.
    pub fn exit_code(self) -> u8 {
        match self {
            ErrorKind::Usage => 2,
            ErrorKind::Retention => 3,
            ErrorKind::Conflict => 4,
            ErrorKind::Unsupported => 5,
            ErrorKind::Cancelled => 130,
            ErrorKind::NotFound
            | ErrorKind::Corrupt
            | ErrorKind::Unavailable
            | ErrorKind::Limit
            | ErrorKind::Internal => 1,
        }
    }

    /// Class shown when Spark has no class of its own for the failure.
    pub fn default_class(self) -> &'static str {
        match self {
            ErrorKind::Usage => "USAGE",
            ErrorKind::NotFound => "NOT_FOUND",
            ErrorKind::Unsupported => "UNSUPPORTED",
            ErrorKind::Conflict => "CONFLICT",
            ErrorKind::Retention => "REFUSED",
            ErrorKind::Corrupt => "CORRUPT",
            ErrorKind::Unavailable => "UNAVAILABLE",
            ErrorKind::Limit => "LIMIT_EXCEEDED",
            ErrorKind::Cancelled => "CANCELLED",
            ErrorKind::Internal => "INTERNAL",
        }
    }
}

/// Boxed cause of an [`Error`].
pub type Cause = Box<dyn std::error::Error + Send + Sync + 'static>;

/// A failure with its kind, class, context and cause. See the module documentation. A clone shares the cause.
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    class: Option<Cow<'static, str>>,
    message: String,
    context: Vec<(Cow<'static, str>, String)>,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

/// Result with the workspace's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// A new error of `kind`.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Error(Box::new(Inner { kind, class: None, message: message.into(), context: Vec::new(), source: None }))
    }

    /// Shorthand for [`ErrorKind::Usage`].
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Usage, message)
    }

    /// Shorthand for [`ErrorKind::NotFound`].
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, message)
    }

    /// Shorthand for [`ErrorKind::Unsupported`].
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, message)
    }

    /// Shorthand for [`ErrorKind::Corrupt`].
    pub fn corrupt(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Corrupt, message)
    }

    /// Shorthand for [`ErrorKind::Unavailable`].
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unavailable, message)
    }

    /// Shorthand for [`ErrorKind::Internal`].
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, message)
    }

    /// Sets the error class, Spark's name where one exists (for example `DELTA_MISSING_DELTA_TABLE`).
    #[must_use]
    pub fn class(mut self, class: impl Into<Cow<'static, str>>) -> Self {
        self.0.class = Some(class.into());
        self
    }

    /// Adds a piece of context such as `("path", "...")`, `("version", "12")`, `("column", "a")`, `("line", "1")`.
    #[must_use]
    pub fn with(mut self, key: impl Into<Cow<'static, str>>, value: impl fmt::Display) -> Self {
        self.0.context.push((key.into(), value.to_string()));
        self
    }

    /// Puts a value in place of those recorded under `key`; nothing changes if there are none.
    #[must_use]
    pub fn replacing(mut self, key: &str, value: impl fmt::Display) -> Self {
        for (_, known) in self.0.context.iter_mut().filter(|(k, _)| k == key) {
            *known = value.to_string();
        }
        self
    }

    /// Sets the cause, shown after the message.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Cause>) -> Self {
        self.0.source = Some(Arc::from(source.into()));
        self
    }

    /// What the caller can do.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Spark's class where one was set, else the kind's default class.
    pub fn class_name(&self) -> &str {
        self.0.class.as_deref().unwrap_or(self.0.kind.default_class())
    }

    /// The message without class, context and cause.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Context in the order in which it was added.
    pub fn context(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.context.iter().map(|(k, v)| (k.as_ref(), v.as_str()))
    }

    /// The first value recorded under `key`.
    pub fn context_value(&self, key: &str) -> Option<&str> {
        self.context().find(|(k, _)| *k == key).map(|(_, v)| v)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        let mut separator = " (";
        for (key, value) in &self.0.context {
            write!(f, "{separator}{key}: {value}")?;
            separator = ", ";
        }
        if separator == ", " {
            f.write_str(")")?;
        }
        let mut cause = self.0.source.as_deref().map(|s| s as &dyn std::error::Error);
        let mut last = String::new();
        while let Some(source) = cause {
            let text = source.to_string();
            // Wrappers often repeat the text of what they wrap.
            if !last.contains(&text) {
                write!(f, ": {text}")?;
                last = text;
            }
            cause = source.source();
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}] {self}", self.class_name())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|s| s as &(dyn std::error::Error + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_shows_message_context_and_each_cause_once() {
        let cause = std::io::Error::other("disk full");
        let error = Error::unavailable("cannot write the data file")
            .class("FAILED_WRITE")
            .with("path", "a.parquet")
            .with("version", 3)
            .caused_by(cause);
        assert_eq!(error.to_string(), "cannot write the data file (path: a.parquet, version: 3): disk full");
        assert_eq!(error.class_name(), "FAILED_WRITE");
        assert_eq!(error.kind().exit_code(), 1);
        assert_eq!(error.context_value("version"), Some("3"));
    }

    #[test]
    fn what_is_replaced_or_cloned_keeps_the_rest() {
        let error = Error::usage("wrong").class("PARSE").with("line", 1).with("hint", "x").caused_by("cause");
        let moved = error.clone().replacing("line", 7).replacing("position", 3);
        assert_eq!(moved.to_string(), "wrong (line: 7, hint: x): cause");
        assert_eq!((moved.class_name(), moved.kind()), ("PARSE", ErrorKind::Usage));
        assert_eq!(error.to_string(), "wrong (line: 1, hint: x): cause");
    }

    #[test]
    fn class_defaults_to_the_kind() {
        assert_eq!(Error::usage("x").class_name(), "USAGE");
        assert_eq!(ErrorKind::Cancelled.exit_code(), 130);
    }
}
