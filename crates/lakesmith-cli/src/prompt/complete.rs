//! Words that a half-typed one may become.

/// Words of the statements that are understood.
const WORDS: [&str; 108] = [
    "ADD",
    "AFTER",
    "ALTER",
    "ANALYZE",
    "AND",
    "ANTI",
    "APPLY",
    "AS",
    "ASC",
    "BETWEEN",
    "BY",
    "CASCADE",
    "CASE",
    "CAST",
    "CHECK",
    "CLUSTER",
    "COLUMN",
    "COLUMNS",
    "COMMENT",
    "CONSTRAINT",
    "CREATE",
    "CROSS",
    "CURRENT_DATE()",
    "CURRENT_TIMESTAMP()",
    "DATABASE",
    "DATABASES",
    "DATE",
    "DEFAULT",
    "DELTA",
    "DESC",
    "DESCRIBE",
    "DETAIL",
    "DISTINCT",
    "DROP",
    "DRY",
    "ELSE",
    "END",
    "EXCEPT",
    "EXISTS",
    "EXPLAIN",
    "EXTENDED",
    "FALSE",
    "FIRST",
    "FROM",
    "FULL",
    "GROUP",
    "HAVING",
    "HISTORY",
    "HOURS",
    "IF",
    "IN",
    "INNER",
    "INTERSECT",
    "INTERVAL",
    "IS",
    "JOIN",
    "LEFT",
    "LIKE",
    "LIMIT",
    "LITE",
    "LOCATION",
    "NATURAL",
    "NOT",
    "NULL",
    "NULLS",
    "OF",
    "ON",
    "OPTIMIZE",
    "OR",
    "ORDER",
    "OUTER",
    "OVER",
    "PARTITION",
    "PARTITIONED",
    "PURGE",
    "RENAME",
    "REORG",
    "REPLACE",
    "RESET",
    "RETAIN",
    "RIGHT",
    "RLIKE",
    "RUN",
    "SCHEMA",
    "SELECT",
    "SEMI",
    "SET",
    "SHOW",
    "TABLE",
    "TABLES",
    "TBLPROPERTIES",
    "TEMPORARY",
    "THEN",
    "TIMESTAMP",
    "TO",
    "TRUE",
    "TYPE",
    "UNION",
    "UNSET",
    "USE",
    "USING",
    "VACUUM",
    "VALUES",
    "VERSION",
    "VIEW",
    "WHEN",
    "WHERE",
    "WITH",
];
const COMMANDS: [&str; 3] = ["\\?", "\\q", "\\timing"];

/// Completes keywords, settings and commands.
pub(super) struct Completer {
    settings: Vec<String>,
}

impl Completer {
    pub(super) fn new() -> Self {
        let mut settings: Vec<String> = lakesmith::settings_reference().iter().map(|s| s.key.to_string()).collect();
        settings.sort();
        Self { settings }
    }

    /// Where the word before the end of `text` begins, and what it may become.
    pub(super) fn complete(&self, text: &str) -> (usize, Vec<String>) {
        let belongs = |c: char| c.is_alphanumeric() || "._\\?".contains(c);
        let start =
            text.rfind(|c: char| !belongs(c)).map_or(0, |at| at + text[at..].chars().next().map_or(1, char::len_utf8));
        let word = &text[start..];
        if word.is_empty() || inside_quotes(&text[..start]) {
            return (start, Vec::new());
        }
        let matches = |candidate: &&str| {
            candidate.len() >= word.len()
                && candidate.get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word))
        };
        let words =
            WORDS.iter().copied().filter(matches).map(|w| if is_lower(word) { w.to_lowercase() } else { w.into() });
        let settings = self.settings.iter().map(String::as_str).filter(matches).map(str::to_owned);
        let commands = COMMANDS.iter().copied().filter(matches).map(str::to_owned);
        (start, words.chain(settings).chain(commands).collect())
    }
}

fn is_lower(word: &str) -> bool {
    word.chars().any(char::is_lowercase)
}

fn inside_quotes(text: &str) -> bool {
    let mut open = None;
    for c in text.chars() {
        match open {
            Some(quote) if quote == c => open = None,
            Some(_) => {}
            None if "'\"`".contains(c) => open = Some(c),
            None => {}
        }
    }
    open.is_some()
}

/// The longest beginning that all candidates share, without regard to case.
pub(super) fn common_beginning(candidates: &[String]) -> String {
    let Some((first, rest)) = candidates.split_first() else { return String::new() };
    let mut length = first.len();
    for other in rest {
        let shared = first.char_indices().zip(other.chars()).find(|((_, a), b)| !a.eq_ignore_ascii_case(b));
        length = length.min(shared.map_or(first.len().min(other.len()), |((at, _), _)| at));
    }
    first[..length].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_follow_the_case_of_what_is_typed_and_settings_are_found() {
        let completer = Completer::new();
        let complete = |text: &str| completer.complete(text);
        assert_eq!(complete("OPTI"), (0, vec!["OPTIMIZE".to_owned()]));
        assert_eq!(complete("optimize t wh"), (11, vec!["when".to_owned(), "where".to_owned()]));
        assert_eq!(complete("\\ti"), (0, vec!["\\timing".to_owned()]));
        let (start, settings) = complete("SET lakesmith.mem");
        assert_eq!((start, settings), (4, vec!["lakesmith.memory".to_owned()]));
        assert!(complete("SET lakesmith.").1.len() > 3);
        assert_eq!(complete("OPTIMIZE delta.`/opti").1, Vec::<String>::new());
        for (typed, word) in
            [("SELECT * FRO", "FROM"), ("EXPL", "EXPLAIN"), ("CREATE TEMPORARY VI", "VIEW"), ("JOI", "JOIN")]
        {
            assert_eq!(complete(typed).1, [word], "{typed}");
        }
        assert_eq!(complete("SELECT a FROM t GRO").1, ["GROUP"]);
        assert_eq!(complete("SELECT a FROM t VERSI").1, ["VERSION"]);
        assert_eq!(complete("").1, Vec::<String>::new());
        assert_eq!(complete("a = 'ü' or").1, ["or", "order"]);
    }

    #[test]
    fn candidates_share_a_beginning() {
        let of = |words: &[&str]| common_beginning(&words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&["DESCRIBE"]), "DESCRIBE");
        assert_eq!(of(&["DESCRIBE", "DETAIL"]), "DE");
        assert_eq!(of(&[]), "");
    }
}
