//! Turns a store's failure into the workspace's error: what can be done about it, and never a secret.

use std::error::Error as StdError;
use std::io;

use lakesmith_core::{Error, ErrorKind};

use crate::encoding::redact;
use crate::location::{Location, Scheme};

/// The error for `action` ("read", "write", "list", "delete") on `location`.
pub(crate) fn storage_error(source: object_store::Error, action: &str, location: &Location) -> Error {
    use object_store::Error as E;
    let base = match &source {
        E::NotFound { .. } => Error::not_found(format!("cannot {action}: no such object")),
        E::AlreadyExists { .. } => {
            Error::new(ErrorKind::Conflict, format!("cannot {action}: the object exists already"))
        }
        E::Precondition { .. } | E::NotModified { .. } => {
            Error::new(ErrorKind::Conflict, format!("cannot {action}: the object changed meanwhile"))
        }
        E::InvalidPath { .. } => {
            Error::unsupported(format!("cannot {action}: the name holds characters that no object store accepts"))
        }
        E::NotSupported { .. } | E::NotImplemented { .. } => {
            Error::unsupported(format!("cannot {action}: the storage does not offer this operation"))
        }
        E::PermissionDenied { .. } | E::Unauthenticated { .. } => {
            Error::unavailable(format!("cannot {action}: access denied; check {}", credentials(location.kind())))
        }
        _ => unavailable(&source, action, location),
    };
    base.with("path", location).caused_by(redacted_cause(&source))
}

/// The error for a local file operation outside the object store's interface.
pub(crate) fn io_error(source: io::Error, action: &str, location: &Location) -> Error {
    if source.kind() == io::ErrorKind::NotFound {
        return Error::not_found(format!("cannot {action}: no such file or folder")).with("path", location);
    }
    unavailable(&source, action, location).with("path", location).caused_by(source)
}

fn unavailable(source: &(dyn StdError + 'static), action: &str, location: &Location) -> Error {
    let reason = match find_io(source).map(|e| e.kind()) {
        Some(io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) => {
            "the disk is full; free some space and run again".to_owned()
        }
        Some(io::ErrorKind::ReadOnlyFilesystem) => "the file system is read-only".to_owned(),
        Some(io::ErrorKind::PermissionDenied) => "permission denied; check the owner and mode of the folder".to_owned(),
        Some(io::ErrorKind::NotADirectory) => "a part of the path is a file, not a folder".to_owned(),
        Some(io::ErrorKind::IsADirectory) => "it is a folder, not a file".to_owned(),
        _ if location.kind() == Scheme::File => "the file system did not answer as needed".to_owned(),
        _ => credentials_missing(&chain_text(source), location)
            .unwrap_or_else(|| "the storage did not answer as needed; check the endpoint and the network".to_owned()),
    };
    Error::unavailable(format!("cannot {action}: {reason}"))
}

/// What is wrong if a failure on `location`, as its text has it, comes from credentials that are not there or not right, and
/// the variables to set.
pub fn credentials_missing(text: &str, location: &Location) -> Option<String> {
    const SIGNS: [&str; 6] = [
        "credential",
        // Without credentials, the machine's own service is asked for some.
        "169.254.169.254",
        "metadata.google.internal",
        "InvalidAccessKeyId",
        "SignatureDoesNotMatch",
        "Account must be specified",
    ];
    let is_remote = !matches!(location.kind(), Scheme::File | Scheme::Memory);
    let found = is_remote && SIGNS.iter().any(|sign| text.contains(sign));
    found.then(|| format!("no usable credentials; set {}", credentials(location.kind())))
}

fn find_io<'a>(source: &'a (dyn StdError + 'static)) -> Option<&'a io::Error> {
    let mut next = Some(source);
    while let Some(error) = next {
        if let Some(io) = error.downcast_ref::<io::Error>() {
            return Some(io);
        }
        next = error.source();
    }
    None
}

fn credentials(scheme: Scheme) -> &'static str {
    match scheme {
        Scheme::S3 => {
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (AWS_SESSION_TOKEN for temporary ones), and AWS_REGION"
        }
        Scheme::Gcs => "GOOGLE_APPLICATION_CREDENTIALS or GOOGLE_SERVICE_ACCOUNT",
        Scheme::Abfss | Scheme::Azure => {
            "AZURE_STORAGE_ACCOUNT_NAME with AZURE_STORAGE_ACCOUNT_KEY, AZURE_STORAGE_SAS_KEY, or AZURE_CLIENT_ID, \
             AZURE_CLIENT_SECRET and AZURE_TENANT_ID"
        }
        Scheme::File | Scheme::Memory => "the permissions",
    }
}

fn chain_text(source: &(dyn StdError + 'static)) -> String {
    let mut text = source.to_string();
    let mut next = source.source();
    while let Some(error) = next {
        let more = error.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        next = error.source();
    }
    text
}

/// The whole chain as one text: responses of a store can repeat a signed URL.
fn redacted_cause(source: &(dyn StdError + 'static)) -> lakesmith_core::error::Cause {
    redact(&chain_text(source)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generic(source: impl Into<lakesmith_core::error::Cause>) -> object_store::Error {
        object_store::Error::Generic { store: "test", source: source.into() }
    }

    #[test]
    fn a_full_or_read_only_disk_is_named() {
        let at = Location::parse("/t/a").unwrap();
        let full = storage_error(generic(io::Error::from(io::ErrorKind::StorageFull)), "write", &at);
        assert_eq!(full.kind(), ErrorKind::Unavailable);
        assert_eq!(full.message(), "cannot write: the disk is full; free some space and run again");
        let read_only = storage_error(generic(io::Error::from(io::ErrorKind::ReadOnlyFilesystem)), "write", &at);
        assert_eq!(read_only.message(), "cannot write: the file system is read-only");
    }

    #[test]
    fn denied_access_names_the_settings_and_hides_the_signature() {
        let at = Location::parse("abfss://c@a.dfs.core.windows.net/t").unwrap();
        let source = object_store::Error::PermissionDenied {
            path: "t".to_owned(),
            source: "GET https://a.blob.core.windows.net/c/t?sig=TOPSECRET failed".into(),
        };
        let error = storage_error(source, "read", &at);
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        let text = error.to_string();
        assert!(text.contains("AZURE_STORAGE_ACCOUNT_NAME") && text.contains("abfss://c@a.dfs"), "{text}");
        assert!(!text.contains("TOPSECRET"), "{text}");
    }

    #[test]
    fn missing_credentials_name_the_variables_to_set() {
        let metadata = "error performing token request: GET http://169.254.169.254/latest/api/token";
        for (at, text, variable) in [
            ("s3://b/t", metadata, "AWS_ACCESS_KEY_ID"),
            ("abfss://c@a.dfs.core.windows.net/t", metadata, "AZURE_STORAGE_ACCOUNT_KEY"),
            ("az://c/t", "Account must be specified", "AZURE_STORAGE_ACCOUNT_NAME"),
            ("gs://b/t", metadata, "GOOGLE_APPLICATION_CREDENTIALS"),
        ] {
            let found = credentials_missing(text, &Location::parse(at).unwrap()).unwrap();
            assert!(found.starts_with("no usable credentials; set ") && found.contains(variable), "{found}");
        }
        let at = Location::parse("s3://b/t").unwrap();
        assert_eq!(credentials_missing("connection refused", &at), None);
        assert_eq!(credentials_missing(metadata, &Location::parse("/t").unwrap()), None);
        let error = storage_error(generic(metadata), "read", &at);
        assert!(error.message().contains("AWS_SECRET_ACCESS_KEY"), "{error}");
    }

    #[test]
    fn a_missing_object_is_not_found_with_its_location() {
        let at = Location::parse("s3://b/x").unwrap();
        let source = object_store::Error::NotFound { path: "x".to_owned(), source: "404".into() };
        let error = storage_error(source, "read", &at);
        assert_eq!((error.kind(), error.context_value("path")), (ErrorKind::NotFound, Some("s3://b/x")));
    }
}
