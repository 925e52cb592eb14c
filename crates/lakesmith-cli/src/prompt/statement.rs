//! What was typed: is it whole, what is it, and may it be remembered?

/// What a piece of input is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Input {
    Nothing,
    Help,
    Leave,
    Timing,
    UnknownCommand,
    Statements,
}

/// What whole input means.
pub(super) fn kind_of(text: &str) -> Input {
    let word = text.trim().trim_end_matches(';').trim_end();
    match word.to_ascii_lowercase().as_str() {
        "" => Input::Nothing,
        "\\?" | "\\h" | "\\help" | "help" | "?" => Input::Help,
        "\\q" | "\\quit" | "quit" | "exit" => Input::Leave,
        "\\timing" => Input::Timing,
        other if other.starts_with('\\') => Input::UnknownCommand,
        _ => Input::Statements,
    }
}

/// True if nothing more is needed: a command, or statements whose last one has its semicolon.
pub(super) fn is_whole(text: &str) -> bool {
    match kind_of(text) {
        Input::Statements => ends_outside(text),
        // Only comments and space: not a statement yet.
        Input::Nothing => text.trim().is_empty() || text.trim() == ";",
        _ => true,
    }
}

/// True if the last thing that is neither space nor comment is a semicolon outside of quotes.
fn ends_outside(text: &str) -> bool {
    let mut rest = text.chars().peekable();
    let mut ended = false;
    while let Some(c) = rest.next() {
        match c {
            '-' if rest.peek() == Some(&'-') => while rest.next_if(|c| *c != '\n').is_some() {},
            '/' if rest.peek() == Some(&'*') => {
                rest.next();
                let mut before = ' ';
                loop {
                    match rest.next() {
                        None => return false,
                        Some('/') if before == '*' => break,
                        Some(c) => before = c,
                    }
                }
            }
            '\'' | '"' | '`' => {
                ended = false;
                loop {
                    match rest.next() {
                        None => return false,
                        Some('\\') if c != '`' => {
                            rest.next();
                        }
                        Some(inner) if inner == c => break,
                        Some(_) => {}
                    }
                }
            }
            ';' => ended = true,
            c if c.is_whitespace() => {}
            _ => ended = false,
        }
    }
    ended
}

/// True if the text holds what nobody else should read later: the value of a secret setting, or a signed URL.
pub(super) fn is_secret(text: &str) -> bool {
    let lower = text.to_lowercase();
    let signed = ["sig=", "x-amz-signature", "x-amz-security-token", "x-goog-signature"];
    let sets_secret = lower.split(';').any(|statement| {
        let words = statement.trim_start();
        let Some(rest) = words.strip_prefix("set") else { return false };
        let Some((key, _)) = rest.split_once('=') else { return false };
        lakesmith::is_secret_setting(key.trim().trim_matches('`'))
    });
    let has_password = lower.split_whitespace().any(|word| {
        word.split_once("://")
            .and_then(|(_, rest)| rest.split('/').next())
            .is_some_and(|authority| authority.split_once('@').is_some_and(|(user, _)| user.contains(':')))
    });
    sets_secret || has_password || signed.iter().any(|part| lower.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_whole_with_their_semicolon_outside_of_quotes_and_comments() {
        for (text, whole) in [
            ("OPTIMIZE t", false),
            ("OPTIMIZE t;", true),
            ("OPTIMIZE t ;  \n", true),
            ("OPTIMIZE t; -- done", true),
            ("OPTIMIZE t -- done;", false),
            ("OPTIMIZE t WHERE a = ';", false),
            ("OPTIMIZE t WHERE a = ';';", true),
            ("OPTIMIZE t WHERE a = 'it\\';", false),
            ("OPTIMIZE delta.`a;b", false),
            ("OPTIMIZE delta.`a\\`;", true),
            ("OPTIMIZE t /* ; ", false),
            ("OPTIMIZE t /* ; */;", true),
            ("a; b", false),
            ("a; b;", true),
            ("\\timing", true),
            ("help", true),
            ("", true),
            ("-- only a remark", false),
        ] {
            assert_eq!(is_whole(text), whole, "{text:?}");
        }
    }

    #[test]
    fn commands_are_told_from_statements() {
        for (text, kind) in [
            ("  ", Input::Nothing),
            (";", Input::Nothing),
            ("\\?", Input::Help),
            ("HELP;", Input::Help),
            ("\\q", Input::Leave),
            ("exit", Input::Leave),
            ("\\timing", Input::Timing),
            ("\\nonsense", Input::UnknownCommand),
            ("help me;", Input::Statements),
        ] {
            assert_eq!(kind_of(text), kind, "{text:?}");
        }
    }

    #[test]
    fn secrets_are_not_remembered() {
        for text in [
            "SET fs.s3a.secret.key = abc;",
            "set  `aws.secret.access.key`=abc;",
            "OPTIMIZE t; SET azure.storage.account.key = x;",
            "DESCRIBE DETAIL delta.`https://a.blob.core.windows.net/c?sv=1&sig=xyz`;",
            "DESCRIBE DETAIL delta.`s3://user:pass@bucket/t`;",
        ] {
            assert!(is_secret(text), "{text}");
        }
        for text in ["SET lakesmith.memory = 1GiB;", "OPTIMIZE delta.`abfss://c@a.dfs.core.windows.net/t`;"] {
            assert!(!is_secret(text), "{text}");
        }
    }
}
